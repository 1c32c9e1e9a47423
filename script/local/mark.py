"""The mark of a finished preparation: while nothing has changed, nothing needs to wait for one.

It stands for the code that prepares and for the migrations that the database says it has, so that
a new version and an older database that was put back both differ from it.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg

from local.state import CLONE, State, write_private

FOLDERS = ("accounts", "memory", "chatapp", "static")
FILES = ("requirements.txt", "script/local/prepare.py")


def stands(own: State, *, url: str, role: str, clone: Path = CLONE) -> bool:
    """Whether this code and this database are as they were when all was last prepared."""
    try:
        return _file(own).read_text() == _mark(url, role, clone)
    except (OSError, psycopg.Error):
        return False


def leave(own: State, *, url: str, role: str, clone: Path = CLONE) -> None:
    """Note that all is prepared; a database that goes away meanwhile leaves no mark."""
    with suppress(psycopg.Error):
        write_private(_file(own), _mark(url, role, clone))


def remove(own: State) -> None:
    """Note that something is being prepared, and may be left half done."""
    _file(own).unlink(missing_ok=True)


def _file(own: State) -> Path:
    return own.run / "prepared"


def _mark(url: str, role: str, clone: Path) -> str:
    digest = hashlib.sha256(f"{url} {role}".encode())
    for file in _code(clone):
        digest.update(f"\0{file.relative_to(clone)}\0".encode())
        digest.update(file.read_bytes())
    with psycopg.connect(url, options=f"-c role={role}", connect_timeout=5) as connection:
        rows = connection.execute("select app, name from django_migrations order by app, name")
        digest.update(repr(rows.fetchall()).encode())
    return digest.hexdigest()


def _code(clone: Path) -> Iterator[Path]:
    yield from (clone / name for name in FILES)
    for name in FOLDERS:
        for file in sorted((clone / name).rglob("*")):
            if file.suffix != ".pyc" and file.is_file():
                yield file
