"""The browser of the browser tests: Debian's chromium."""

import os
import shutil
import subprocess

from local.progress import say, step
from local.refusal import Refusal

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Another apt-get may be under way: it is waited for.
APT_GET = ("apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300")
PACKAGE_LISTS = (*APT_GET, "update")
INSTALL = (*APT_GET, "install", "--yes", "--no-install-recommends", "chromium")


def found(*, needed: bool) -> str | None:
    """The browser's program, installed first where root can; None if it is missing but spared."""
    if path := _path():
        return path
    reason = ""
    if os.geteuid() == 0 and shutil.which(APT_GET[0]):
        with step("Chromium from Debian's packages"):
            reason = _installed()
        if path := _path():
            return path
    sentence = (
        "The browser tests need Chromium, which is not on this machine: install it "
        "(on Debian: sudo apt-get install chromium)"
    )
    if reason:
        say(reason)
        sentence = (
            "The browser tests need Chromium, which is not on this machine, and apt-get could not "
            "install it (see above): install it"
        )
    if needed:
        raise Refusal(f"{sentence}, or leave those tests out with script/test -m 'not browser'.")
    say(f"{sentence}; without it they will fail.")
    return None


def _installed() -> str:
    """Have apt-get install it; returns apt-get's last words if it fails, else nothing."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # Lists that cannot be fetched are no obstacle where the package is at hand all the same.
    for command in (PACKAGE_LISTS, INSTALL):
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stderr.strip()[-1000:] if done.returncode else ""


def _path() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
