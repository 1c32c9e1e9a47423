"""script/fix: mends what can be mended without thought.

script/fix                              ruff's fixes and its format
script/fix --requirements [--upgrade]   compiles the requirements files anew
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from local.front import command
from local.progress import step
from local.refusal import Refusal
from local.state import CLONE

COMPILE = ("--universal", "--python-version", "3.12", "--generate-hashes", "--no-emit-index-url")
FILES = ("requirements", "requirements-dev", "requirements-chroma", "script/local/uv")
ALONE = {"requirements-chroma": ("--no-deps",)}


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; 1 if something is left that needs thought."""
    match list(arguments):
        case []:
            return _style()
        case ["--requirements", *rest] if set(rest) <= {"--upgrade"}:
            return _compile(rest)
    raise Refusal("script/fix takes --requirements, and with it --upgrade, or nothing.")


def _style() -> int:
    ruff = [sys.executable, "-m", "ruff"]
    codes = [
        subprocess.run([*ruff, *arguments, "."], cwd=CLONE, check=False).returncode
        for arguments in (("check", "--fix"), ("format",))
    ]
    return max(codes)


def _compile(options: Sequence[str]) -> int:
    uv = Path(sys.executable).with_name("uv")
    for name in FILES:
        with step(f"{name}.txt"):
            done = subprocess.run(
                [
                    *(str(uv), "pip", "compile", "--quiet", *COMPILE, *options),
                    *ALONE.get(name, ()),
                    *("--custom-compile-command", "script/fix --requirements"),
                    *(f"{name}.in", "-o", f"{name}.txt"),
                ],
                cwd=CLONE,
                check=False,
            )
        if done.returncode:
            raise Refusal(f"{name}.in could not be compiled: see above.")
    return 0


if __name__ == "__main__":
    command(main)
