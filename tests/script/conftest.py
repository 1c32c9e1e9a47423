"""Folders and servers for the tests of the scripts."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CLONE / "script"))

from local import servers, state  # noqa: E402 - script is on the path only now
from local.servers import Servers  # noqa: E402
from local.state import State  # noqa: E402


def make_folder() -> Path:
    """A new folder with a space in its name that every account can reach, as pytest's cannot."""
    folder = Path(tempfile.mkdtemp(prefix="recollect test "))
    folder.chmod(0o711)
    return folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the test's own."""
    made = make_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def own(folder: Path) -> State:
    """An empty state folder."""
    return state.prepared(folder / "state")


@pytest.fixture(scope="session")
def running() -> Iterator[Servers]:
    """Embedded servers that run; a test must leave them as they are."""
    made = make_folder()
    started = servers.of(state.prepared(made / "state"), durable=False)
    try:
        started.start()
        yield started
    finally:
        started.stop()
        shutil.rmtree(made)


@pytest.fixture
def clean_environment() -> dict[str, str]:
    """The environment without anything that names a state folder, a server or a service."""
    ours = ("RECOLLECT_", "DATABASE_", "REDIS_", "SECRET_KEY", "FIELD_KEYS", "PORT", "BIND")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
