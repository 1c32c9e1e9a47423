"""Which processes run, what they are, and how to end one without hitting another.

A pid alone says nothing: after a crash or a restart of the machine it may be anybody's. So a
process counts as ours only by its pid, its command line and the state folder that it serves.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SERVICE = "RECOLLECT_SERVICE"
STATE = "RECOLLECT_STATE"
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A living process."""

    pid: int
    command: str
    environment: frozenset[str]

    def serves(self, state: Path) -> str:
        """The name of the service that it is for this state folder, or nothing."""
        if f"{STATE}={state}" not in self.environment:
            return ""
        for entry in self.environment:
            name, _, value = entry.partition("=")
            if name == SERVICE:
                return value
        return ""


def find(pid: int) -> Process | None:
    """The process with this pid; None if there is none, or only its unburied remains."""
    if pid <= 0:
        return None
    return _from_proc(pid) if PROC.is_dir() else _from_ps(pid)


def every() -> Iterator[Process]:
    """All processes whose details this user may read."""
    if PROC.is_dir():
        for entry in PROC.iterdir():
            if entry.name.isdigit() and (process := _from_proc(int(entry.name))):
                yield process
    else:
        for line in _ps("-ax"):
            if process := _parsed(line):
                yield process


def services(state: Path) -> dict[int, str]:
    """The pid and service of each process that was started to serve this state folder."""
    ours = ((process.pid, process.serves(state)) for process in every())
    return {pid: name for pid, name in ours if name and pid != os.getpid()}


def working_in(folder: Path) -> list[int]:
    """The pids of processes whose working directory is this folder (Linux only)."""
    found = []
    for entry in PROC.iterdir() if PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            if Path(os.readlink(entry / "cwd")) == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone already is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_gone(pids: list[int], seconds: float) -> list[int]:
    """Wait until these have ended; return those that still live."""
    deadline = time.monotonic() + seconds
    while True:
        pids = [pid for pid in pids if find(pid)]
        if not pids or time.monotonic() > deadline:
            return pids
        time.sleep(0.05)


def end(pids: list[int], *, seconds: float, first: int = signal.SIGTERM) -> None:
    """Ask these processes to end, and after the given seconds make them."""
    for pid in pids:
        send(pid, first)
    for pid in wait_gone(pids, seconds):
        send(pid, signal.SIGKILL)
    wait_gone(pids, 5)


def pid_in(file: Path) -> int:
    """The pid on the first line of a file; 0 if there is no such file or line."""
    try:
        return int(file.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return 0


def _from_proc(pid: int) -> Process | None:
    try:
        command = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    if not command:
        return None  # a kernel thread or a zombie
    try:
        environment = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        environment = b""  # somebody else's
    return Process(
        pid,
        os.fsdecode(command).replace("\0", " ").strip(),
        frozenset(os.fsdecode(environment).split("\0")),
    )


def _from_ps(pid: int) -> Process | None:
    return next((process for line in _ps("-p", str(pid)) if (process := _parsed(line))), None)


def _ps(*which: str) -> list[str]:
    # macOS: -E appends the environment to the command line.
    flags = ["-E"] if sys.platform == "darwin" else []
    listed = subprocess.run(
        ["ps", *which, *flags, "-ww", "-o", "pid=,stat=,command="],
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.stdout.splitlines()


def _parsed(line: str) -> Process | None:
    pid, status, command = [*line.split(None, 2), "", "", ""][:3]
    if not pid.isdigit() or status.startswith("Z"):
        return None
    return Process(int(pid), command, frozenset(command.split(" ")))
