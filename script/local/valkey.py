"""The embedded Valkey: started, found again after a crash, stopped."""

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from local import processes
from local.account import Account
from local.refusal import Refusal, disk_full, explained
from local.state import Keys

START_SECONDS = 30
LARGEST_LOG = 5 * 1024 * 1024

SETTINGS = """\
# Written anew at each start by script/server.
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
pidfile "{folder}/valkey.pid"
logfile "{folder}/valkey.log"
# The process keeps its command line, by which it is told from any other.
set-proc-title no
daemonize no
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""


@dataclass(slots=True)
class Valkey:
    """One server whose data lie in `folder`."""

    folder: Path
    program: Path
    account: Account
    keys: Keys

    @property
    def pid(self) -> int:
        """The pid of the running server of this folder, 0 if it does not run."""
        process = processes.find(processes.pid_in(self.folder / "valkey.pid"))
        if process and "valkey-server" in process.command and str(self.folder) in process.command:
            return process.pid
        return 0

    def start(self) -> bool:
        """Have the server run and answer; False if it already did."""
        if self.pid and self.answers():
            return False
        self._configure()
        pid = self._launch()
        deadline = time.monotonic() + START_SECONDS
        while processes.find(pid) and time.monotonic() < deadline:
            # While it still reads its file it answers, but with an error.
            if self.pid == pid and self.answers():
                return True
            time.sleep(0.02)
        processes.end([pid], seconds=5)
        raise self._refusal()

    def stop(self) -> None:
        """Stop the server, which writes what it has; no error if it does not run."""
        if pid := self.pid:
            processes.end([pid], seconds=20)

    def answers(self) -> bool:
        """Whether the server answers to its password."""
        client = redis.Redis(
            host="127.0.0.1",
            port=self.keys.valkey_port,
            password=self.keys.valkey,
            socket_timeout=5,
            socket_connect_timeout=5,
            retry=Retry(NoBackoff(), 0),
        )
        with contextlib.closing(client):
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def trim_log(self) -> None:
        """Keep the newest part of a log that has grown large; Valkey does not rotate its own."""
        log = self.folder / "valkey.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            log.with_suffix(".log.1").write_bytes(log.read_bytes())
            os.truncate(log, 0)

    def _configure(self) -> None:
        with explained(self.folder):
            self.folder.mkdir(exist_ok=True, mode=0o700)
            self.account.own(self.folder)
            self.trim_log()
            (self.folder / "valkey.pid").unlink(missing_ok=True)
            settings = self.folder / "valkey.conf"
            settings.touch(0o600)
            folder = str(self.folder).replace("\\", "\\\\").replace('"', '\\"')
            settings.write_text(
                SETTINGS.format(
                    port=self.keys.valkey_port, password=self.keys.valkey, folder=folder
                )
            )
            settings.chmod(0o600)
            self.account.own(settings)

    def _launch(self) -> int:
        """Start the program and return its pid. It is nobody's child: it may outlive the script."""
        settings = self.folder / "valkey.conf"
        with (self.folder / "start.log").open("w") as output:
            shell = subprocess.run(
                ["/bin/sh", "-c", '"$@" >&2 & echo $!', "sh", self.program, settings],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=self.folder,
                env={"PATH": os.defpath, "LANG": "C"},
                umask=0o077,
                start_new_session=True,
                check=True,
                **self.account.options(),
            )
        return int(shell.stdout)

    def _refusal(self) -> Refusal:
        log = self.folder / "valkey.log"
        said = log.read_text(errors="replace")[-3000:] if log.exists() else ""
        said += (self.folder / "start.log").read_text(errors="replace")[-1000:]
        if "No space left" in said:
            return disk_full(self.folder)
        return Refusal(f"Valkey did not start; more in {log}.")
