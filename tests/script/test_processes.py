"""A process is ours by pid, command line and state folder, not by its pid alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local import processes

SLEEP = [sys.executable, "-uc", "import time; print(1); time.sleep(60)"]


@pytest.fixture
def sleeper(folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that says that it is a service of the folder."""
    mark = {processes.STATE: str(folder), processes.SERVICE: "web"}
    with subprocess.Popen(SLEEP, env=os.environ | mark, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # until then the kernel may show an environment that is empty
        yield process
        process.kill()


def test_finds_the_living_and_neither_the_dead_nor_the_unburied() -> None:
    me = processes.find(os.getpid())
    assert me is not None
    assert "python" in me.command
    assert processes.find(0) is None
    dead = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)  # ended, but still in the table
    assert processes.find(dead.pid) is None
    dead.wait()


def test_services_are_found_by_their_state_folder(
    sleeper: "subprocess.Popen[bytes]", folder: Path
) -> None:
    assert processes.services(folder) == {sleeper.pid: "web"}
    assert processes.services(folder / "other") == {}


def test_ends_what_does_not_end_by_itself() -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-uc", stubborn], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        processes.end([process.pid], seconds=0.2)
        assert process.wait() == -9
    processes.end([process.pid], seconds=0.2)


def test_a_pid_file_without_a_pid_is_no_pid(folder: Path) -> None:
    assert processes.pid_in(folder / "none") == 0
    (folder / "pid").write_text("x\n")
    assert processes.pid_in(folder / "pid") == 0
    (folder / "pid").write_text("123\nmore\n")
    assert processes.pid_in(folder / "pid") == 123
