"""The one way in which a script gives up."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
NO_PATH = {errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


class Refusal(Exception):
    """One clear sentence for the person at the terminal; the script ends with exit code 1."""


def disk_full(folder: Path) -> Refusal:
    """The sentence about a full disk."""
    return Refusal(
        f"The disk that holds {folder} is full: free some space, or set RECOLLECT_STATE to a "
        "folder on another disk, and start again. Nothing is lost."
    )


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn a full disk or a folder without write permission into one clear sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk_full(folder) from error
        if error.errno in FORBIDDEN:
            raise Refusal(
                f"Cannot write to {error.filename or folder}: {error.strerror}. Make it writable "
                "for you, or set RECOLLECT_STATE to a folder that is."
            ) from error
        if error.errno in NO_PATH:
            raise Refusal(
                f"There can be no folder {folder}: {error.strerror}. Set RECOLLECT_STATE to "
                "another."
            ) from error
        raise
