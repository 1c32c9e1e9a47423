"""The embedded Postgres: made, started, found again after a crash, stopped."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from local import processes
from local.account import Account
from local.refusal import Refusal, disk_full, explained
from local.state import DATABASE, Keys

MAJOR = "18"
SUPERUSER = "postgres"
ROLES = Path(__file__).resolve().parents[1] / "roles.sql"
START_SECONDS = 60
TRIES = 6

SETTINGS = """\
# Written anew at each start by script/server; own settings belong into own.conf beside it.
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
max_connections = 200
jit = off
random_page_cost = 1.1
timezone = 'UTC'
log_timezone = 'UTC'
logging_collector = on
log_destination = 'stderr'
log_directory = '{logs}'
log_filename = 'postgres-%a.log'
log_file_mode = 0600
log_rotation_age = 1d
log_rotation_size = 0
log_truncate_on_rotation = on
log_line_prefix = '%m [%p] %q%u@%d '
log_checkpoints = off
{durable}include_if_exists = 'own.conf'
"""
NOT_DURABLE = """\
fsync = off
synchronous_commit = off
full_page_writes = off
"""
ACCESS = "host all all 127.0.0.1/32 scram-sha-256\n"


@dataclass(slots=True)
class Postgres:
    """One cluster in `folder`; `durable` is off for tests, whose data may be lost."""

    folder: Path
    programs: Path
    account: Account
    keys: Keys
    durable: bool = True

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        """The pid of the running server of this folder, 0 if it does not run."""
        process = processes.find(processes.pid_in(self.data / "postmaster.pid"))
        if process and "postgres" in process.command and str(self.data) in process.command:
            return process.pid
        return 0

    def make(self) -> None:
        """Make the cluster, unless it is there."""
        if self.data.exists():
            version = (self.data / "PG_VERSION").read_text().strip()
            if version != MAJOR:
                raise Refusal(
                    f"The database in {self.data} was made by Postgres {version}, and this "
                    f"version of Recollect brings {MAJOR}: load it from a dump."
                )
            return
        with explained(self.folder):
            self.folder.mkdir(exist_ok=True, mode=0o700)
            self.account.own(self.folder)
            (self.folder / "logs").mkdir(exist_ok=True, mode=0o700)
            self.account.own(self.folder / "logs")
            fresh = self.folder / "data.new"
            shutil.rmtree(fresh, ignore_errors=True)
            password = self.folder / "superuser"
            password.unlink(missing_ok=True)
            password.touch(0o600)
            password.write_text(self.keys.superuser)
            self.account.own(password)
            try:
                self._call(
                    "initdb",
                    f"--pgdata={fresh}",
                    f"--username={SUPERUSER}",
                    f"--pwfile={password}",
                    "--auth=scram-sha-256",
                    "--encoding=UTF8",
                    "--locale=C",  # with a bogus LANG the builtin locale alone is not enough
                    "--locale-provider=builtin",
                    "--builtin-locale=C.UTF-8",
                    "--no-instructions",
                    *(() if self.durable else ("--no-sync",)),
                )
            finally:
                password.unlink()
            with (fresh / "postgresql.conf").open("a") as settings:
                settings.write("\ninclude 'recollect.conf'\n")
            fresh.rename(self.data)

    def start(self) -> bool:
        """Have the server run and answer; False if it already did.

        Shortly after a crash the remains of the former server hold the data: then it tries again.
        """
        if self.pid:
            if self._wait():
                return False
            self.stop()
        self._configure()
        self._bury()
        for attempt in range(TRIES):
            try:
                self._call(
                    "pg_ctl",
                    "start",
                    "--wait",
                    f"--timeout={START_SECONDS}",
                    f"--pgdata={self.data}",
                    f"--log={self.folder / 'logs' / 'start.log'}",
                )
                return True
            except Refusal:
                if "No space left" in self._last_words():
                    raise disk_full(self.folder) from None
                if attempt == TRIES - 1:
                    raise
                time.sleep(0.5 * (attempt + 1))
        return True

    def stop(self) -> None:
        """Stop the server, letting no transaction get lost; no error if it does not run."""
        if pid := self.pid:
            # Fast shutdown: clients are cut off, what was committed is written.
            processes.end([pid], seconds=60, first=signal.SIGINT)

    def answers(self) -> bool:
        """Whether the server lets its superuser in."""
        try:
            with self.connection():
                return True
        except psycopg.OperationalError:
            return False

    def _wait(self) -> bool:
        """Whether a server that runs comes to answer: after a crash it first mends its data."""
        deadline = time.monotonic() + START_SECONDS
        while not (answers := self.answers()) and self.pid and time.monotonic() < deadline:
            time.sleep(0.2)
        return answers

    def connection(self, database: str = "postgres") -> psycopg.Connection:
        """A connection of the superuser."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.keys.postgres_port,
            user=SUPERUSER,
            password=self.keys.superuser,
            dbname=database,
            connect_timeout=5,
            autocommit=True,
        )

    def bootstrap(self) -> None:
        """Make or mend the roles, the database and the extension."""
        made = subprocess.run(
            [
                *(self.programs / "psql", "--no-psqlrc", "--quiet", "--no-password"),
                *("--host=127.0.0.1", f"--port={self.keys.postgres_port}"),
                *(f"--username={SUPERUSER}", "--dbname=postgres", f"--file={ROLES}"),
            ],
            # By the environment, not -v: command lines are public on a machine.
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "PGPASSWORD": self.keys.superuser,
                "WEB_PASSWORD": self.keys.web,
                "MIGRATE_PASSWORD": self.keys.migrate,
                "APP_DATABASE": DATABASE,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Refusal(f"The database's roles could not be made: {made.stderr.strip()}")

    def _configure(self) -> None:
        with explained(self.folder):
            logs = str(self.folder / "logs").replace("'", "''")
            durable = "" if self.durable else NOT_DURABLE
            text = SETTINGS.format(port=self.keys.postgres_port, logs=logs, durable=durable)
            for name, content in (("recollect.conf", text), ("pg_hba.conf", ACCESS)):
                file = self.data / name
                if not file.exists() or file.read_text() != content:
                    file.write_text(content)
                    file.chmod(0o600)
                    self.account.own(file)

    def _bury(self) -> None:
        """Remove the pid file of a dead server whose pid now is another process's.

        Postgres itself would take that process for a running server. Where a process still works
        in the data folder, the file stays: it guards the data.
        """
        file = self.data / "postmaster.pid"
        if file.exists() and not self.pid and not processes.working_in(self.data):
            with contextlib.suppress(FileNotFoundError):
                file.unlink()

    def _last_words(self) -> str:
        files = sorted((self.folder / "logs").glob("*.log"), key=lambda log: log.stat().st_mtime)
        return "".join(file.read_text(errors="replace")[-4000:] for file in files[-2:])

    def _call(self, program: str, *arguments: str) -> None:
        """Run one of Postgres' programs to its end as the servers' account."""
        # A file, not a pipe: the server would inherit the pipe and hold it open for ever.
        with (self.folder / "logs" / "programs.log").open("w+") as output:
            called = subprocess.run(
                [self.programs / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={"PATH": os.defpath, "LANG": "C", "LC_ALL": "C"},
                umask=0o077,
                start_new_session=True,
                check=False,
                **self.account.options(),
            )
            output.seek(0)
            said = output.read().strip()
        if called.returncode:
            if "No space left" in said:
                raise disk_full(self.folder)
            reason = said.splitlines()[-1] if said else f"exit code {called.returncode}"
            raise Refusal(f"Postgres' {program} failed ({reason}); more in {self.folder / 'logs'}.")
