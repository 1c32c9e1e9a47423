"""The browser of the browser tests: Debian's chromium."""

import os
import shutil
import subprocess

from local.progress import say, step
from local.refusal import Refusal

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]


def found(*, needed: bool) -> str | None:
    """The browser's program, installed first where root can; None if it is missing but spared."""
    if path := _path():
        return path
    if os.geteuid() == 0 and shutil.which("apt-get"):
        with step("Chromium from Debian's packages"):
            quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            for arguments in (["apt-get", "update", "--quiet"], INSTALL):
                done = subprocess.run(
                    arguments,
                    env=quiet,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            if path := _path():
                return path
        say(done.stderr.strip()[-1000:])
    sentence = (
        "The browser tests need Chromium, which is not on this machine: install it "
        "(on Debian: sudo apt-get install chromium)"
    )
    if needed:
        raise Refusal(f"{sentence}, or leave those tests out with script/test -m 'not browser'.")
    say(f"{sentence}; without it they will fail.")
    return None


def _path() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
