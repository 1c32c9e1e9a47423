"""Processes that a benchmark starts, watches and ends: its own, by pid, and no others."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

CLONE = Path(__file__).resolve().parents[3]
STOP_SECONDS = 15


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time that one process has used, in seconds.

    Linux tells it to the nanosecond; psutil, the fallback, in hundredths of a second.
    """
    if sys.platform == "linux":
        # The clock id of another process's CPU time: clock_getcpuclockid(3), CPUCLOCK_SCHED.
        try:
            return time.clock_gettime((~process.pid << 3) | 2)
        except OSError as error:
            raise psutil.NoSuchProcess(process.pid) from error
    times = process.cpu_times()
    return times.user + times.system


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_of(pids: Iterable[int]) -> float:
    """Return the CPU seconds of these processes and their living descendants."""
    total = 0.0
    for pid in pids:
        for process in family(pid):
            try:
                total += cpu_seconds(process)
            except psutil.NoSuchProcess:
                continue
    return total


def memory_of(pid: int) -> dict[str, float]:
    """Return MiB held by a process and its descendants.

    `rss` counts what forked processes share once for each; `pss` (Linux) shares it out.
    """
    rss = pss = 0
    for process in family(pid):
        try:
            rss += process.memory_info().rss
            pss += getattr(process.memory_full_info(), "pss", 0)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return {"rss": rss / 2**20, "pss": pss / 2**20}


def free_port() -> int:
    """Return a loopback port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass(slots=True)
class Running:
    """A process of ours, with a log where it does not talk to us."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path | None

    @classmethod
    def start(
        cls,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        log: Path | None = None,
    ) -> Self:
        """Start Python with these arguments. Without a log, its input and output are pipes."""
        command = [sys.executable, *arguments]
        # A session of its own: Ctrl-C in the terminal is for us, and we end it in our order.
        if log is None:
            process = subprocess.Popen(
                command,
                cwd=CLONE,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        else:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    cwd=CLONE,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def last_words(self, lines: int = 15) -> str:
        """Return the end of its log."""
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """End it and what it started: asked first, made after a while."""
        everyone = family(self.pid)
        if self.alive:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for process in everyone[1:]:
            # psutil knows a process by pid and start: a reused pid is not hit.
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def product_environment() -> dict[str, str]:
    """Return the variables for a process of the product, with the servers of this benchmark."""
    return {
        **{name: value for name, value in os.environ.items() if name != "RECOLLECT_AS"},
        "DJANGO_SETTINGS_MODULE": "chatapp.settings",
        "PYTHONPATH": os.pathsep.join([str(CLONE / "script"), str(CLONE)]),
        "PYTHONUNBUFFERED": "1",
    }
