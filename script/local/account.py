"""As whom the embedded servers run: Postgres refuses to run as root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.refusal import Refusal

NAMES = ("postgres", "recollect")


@dataclass(frozen=True, slots=True)
class Account:
    """The account of the embedded servers; `other` when it is not the one that runs the script."""

    name: str
    uid: int
    gid: int
    other: bool

    def options(self) -> dict[str, Any]:
        """What subprocess needs to start a program under this account."""
        if not self.other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give a file or folder to this account."""
        if self.other:
            os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether this account can get to the path; the path itself need not exist yet."""
        if not self.other:
            return True
        while not path.exists():
            path = path.parent
        asked = ["/bin/sh", "-c", 'test -d "$1" && cd "$1" || test -r "$1"', "sh", str(path)]
        return (
            subprocess.run(
                asked, cwd="/", capture_output=True, check=False, **self.options()
            ).returncode
            == 0
        )


def current() -> Account:
    """The account of the embedded servers on this machine, made if root has none to use."""
    if os.geteuid() != 0:
        return Account(_name_of(os.geteuid()), os.geteuid(), os.getegid(), other=False)
    return _existing() or _made()


def _existing() -> Account | None:
    for name in NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid, other=True)
    return None


def _made() -> Account:
    shell = shutil.which("nologin") or "/usr/sbin/nologin"
    commands: Sequence[list[str]] = (
        ["useradd", "--system", "--user-group", "--no-create-home", "--shell", shell, NAMES[1]],
        ["adduser", "-S", "-D", "-H", "-s", shell, NAMES[1]],
    )
    for command in commands:
        if shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False)
            if account := _existing():
                return account
    raise Refusal(
        "Postgres does not run as root, and no account could be made for it: make a system user "
        "named 'recollect', or start as an ordinary user."
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
