"""The application's processes under supervisord, which starts them again when they die."""

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local import processes
from local.processes import SERVICE, STATE
from local.state import CLONE, State, write_private

SUPERVISOR = "supervisor"
STOP_SECONDS = 25
MANY_FILES = 8192


@dataclass(frozen=True, slots=True)
class Program:
    """One process of the application: its arguments for Python, and how it stops."""

    name: str
    arguments: tuple[str, ...]
    stop_seconds: int = 10


def programs(state: State) -> tuple[Program, ...]:
    """The processes that make up a running installation."""
    # Django's checks are for who changes the code; without them a worker needs no pages either.
    celery = ("-m", "celery", "-A", "chatapp", "--skip-checks")
    # Neither worker needs to know the other: that saves a second at the start.
    quiet = ("--loglevel", "INFO", "--without-mingle", "--without-gossip")
    # Two workers: one queue must not wait for the other.
    return (
        Program("web", ("-m", "chatapp.serve")),
        Program(
            "interactive",
            (*celery, "worker", "-Q", "interactive", "-n", "interactive@%h", "-c", "2", *quiet),
        ),
        Program(
            "background",
            (*celery, "worker", "-Q", "background", "-n", "background@%h", "-c", "1", *quiet),
        ),
        Program("beat", (*celery, "beat", "-s", str(state.beat / "schedule"), *quiet[:2])),
    )


@dataclass(slots=True)
class Supervisor:
    """supervisord with its settings in the state folder."""

    state: State
    environment: Mapping[str, str]
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def log(self) -> Path:
        return self.state.logs / "supervisor.log"

    def start(self) -> None:
        """Start supervisord, which starts the programs. Returns at once."""
        settings = self.state.run / "supervisord.conf"
        write_private(settings, configuration(self.state))
        with (self.state.logs / "supervisor-start.log").open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "local.keeper", "-n", "-c", str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=CLONE,
                env={
                    **self.environment,
                    "PYTHONPATH": os.pathsep.join([str(CLONE / "script"), str(CLONE)]),
                    STATE: str(self.state.folder),
                    SERVICE: SUPERVISOR,
                },
                # Ctrl-C in the terminal is for the script, which stops things in their order.
                start_new_session=True,
            )

    def alive(self) -> bool:
        """Whether supervisord itself runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Stop supervisord and whatever is left of its programs."""
        if self.process is not None and self.alive():
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        end_leftovers(self.state)

    def deaths(self, name: str, since: int) -> int:
        """How often a program has ended by itself, read from supervisord's log behind `since`."""
        return self._log_from(since).count(f"exited: {name} (")

    def log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _log_from(self, since: int) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")


def end_leftovers(state: State) -> list[str]:
    """End the application's processes that serve this state folder; returns their names.

    They are what a killed script or supervisor left behind.
    """
    found = processes.services(state.folder)
    supervisors = [pid for pid, name in found.items() if name == SUPERVISOR]
    processes.end(supervisors, seconds=STOP_SECONDS)
    # It may have started one more meanwhile; and what is left has lost its supervisor.
    rest = [pid for pid in processes.services(state.folder) if pid not in supervisors]
    processes.end(rest, seconds=10)
    return sorted(set(found.values()))


def configuration(state: State) -> str:
    """supervisord's settings: growing pauses between tries, without end, and rotated logs."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    lines = [
        "[supervisord]",
        "nodaemon=true",
        "silent=true",
        f"directory={_escaped(str(CLONE))}",
        f"logfile={_escaped(str(state.logs / 'supervisor.log'))}",
        "logfile_maxbytes=2MB",
        "logfile_backups=2",
        f"pidfile={_escaped(str(state.run / 'supervisord.pid'))}",
        "umask=077",
        f"minfds={files}",
        "minprocs=1",
        *(["user=root"] if os.geteuid() == 0 else []),
        # One group is stopped as a whole; of several each waits for the one before.
        "",
        "[group:recollect]",
        f"programs={','.join(program.name for program in programs(state))}",
    ]
    for program in programs(state):
        command = shlex.join([sys.executable, *program.arguments])
        lines += [
            "",
            f"[program:{program.name}]",
            f"command={_escaped(command)}",
            f'environment={SERVICE}="{program.name}"',
            "autostart=true",
            "autorestart=true",
            # One that ends sooner has failed to start: the next try waits a second longer.
            "startsecs=10",
            "startretries=1000000",
            "stopsignal=TERM",
            f"stopwaitsecs={program.stop_seconds}",
            "stopasgroup=false",
            "killasgroup=true",
            # This one value supervisord expands twice.
            f"stdout_logfile={_escaped(_escaped(str(state.logs / f'{program.name}.log')))}",
            "stdout_logfile_maxbytes=5MB",
            "stdout_logfile_backups=3",
            "redirect_stderr=true",
        ]
    return "\n".join(lines) + "\n"


def last_lines(log: Path, count: int = 8) -> str:
    """The end of a log, to be shown when its program does not come up."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def _escaped(text: str) -> str:
    """A value as supervisord's settings want it: % begins an expansion there."""
    return text.replace("%", "%%")
