"""The whole product on a database of its own: what the browser tests and the screenshots drive.

Daphne, a Celery worker for both queues and beat are started as an installation starts them, from
the variables that `script/test --env` prints; the language model is the stub. Everything that was
started is ended by its pid, and the database is dropped.
"""

import contextlib
import http.client
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
import redis
from psycopg import sql

from tests.stub_model import MODEL, StubModel

CLONE = Path(__file__).resolve().parents[2]
OWNER, APPLICATION = "recollect_owner", "recollect_app"
HEALTHY_SECONDS = 60.0
STOP_SECONDS = 15.0
MARK = "RECOLLECT_SERVICE"


class Program:
    """One process of the product: start, stop (SIGTERM) and kill (SIGKILL), as often as wanted."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], logs: Path
    ) -> None:
        self.name = name
        self.arguments = [sys.executable, *arguments]
        self.environment = {**environment, MARK: name}
        self.log = logs / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.arguments,
                cwd=CLONE,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """End it as a restart of the service does, and wait until it is gone."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def said(self, pattern: str, seconds: float = 10.0) -> str:
        """Wait until this stands in its log; return what the pattern's group holds."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.log.read_text(errors="replace"))):
            if time.monotonic() > deadline:
                raise LookupError(f"{pattern} is not in {self.log}:\n{self.tail()}")
            time.sleep(0.05)
        return found[1]

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Product:
    """A running installation. Use it as a context manager."""

    def __init__(
        self, name: str, *, environ: Mapping[str, str] = os.environ, redis_number: int = 15
    ) -> None:
        if not re.fullmatch(r"[a-z0-9_]{1,40}", name):
            raise ValueError("the name of a database consists of a-z, 0-9 and _")
        missing = [key for key in ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "SECRET_KEY")
                   if not environ.get(key)]  # fmt: skip
        if missing:
            raise LookupError(f"{', '.join(missing)} not set: run it by script/test")
        self.name = name
        self.folder = Path(environ.get("RECOLLECT_STATE") or CLONE / ".state") / "browser" / name
        self.logs = self.folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.owner_url = environ["DATABASE_OWNER_URL"]
        self.database_url = with_path(environ["DATABASE_URL"], name)
        self.own_database_url = with_path(self.owner_url, name)
        self.redis_url = with_path(environ["REDIS_URL"], str(redis_number))
        self.stub = StubModel()
        # No model in the environment: with_model sets one as the operator's page does, so that a
        # journey can have the installation as it is on its first day.
        kept = {key: value for key, value in environ.items() if not key.startswith("OPENAI_")}
        self.environment = kept | {
            "DJANGO_SETTINGS_MODULE": environ.get("X_SETTINGS", "chatapp.settings"),
            "PYTHONUNBUFFERED": "1",
            "RECOLLECT_STATE": str(self.folder),
            "DATABASE_URL": self.database_url,
            "DATABASE_OWNER_URL": self.own_database_url,
            "REDIS_URL": self.redis_url,
            "BIND": "127.0.0.1",
            "PORT": str(self.port),
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "DEBUG": "0",
            "EMAIL_URL": "console:",
            "EMBEDDINGS": "local",
        }
        for variable in ("RECOLLECT_AS", "CHAT_MODEL", "CSRF_TRUSTED_ORIGINS", "HTTPS"):
            self.environment.pop(variable, None)
        celery = ("-m", "celery", "-A", "chatapp", "worker", "--loglevel", "INFO")
        self.web = Program("web", ("-m", "chatapp.serve"), self.environment, self.logs)
        self.worker = Program(
            "worker",
            # Both queues and beat in one process: two starts less.
            (
                *(*celery, "-Q", "interactive,background", "-n", f"{name}@%h", "-c", "1"),
                *("-B", "-s", str(self.folder / "schedule")),
            ),
            self.environment,
            self.logs,
        )

    def __enter__(self) -> Self:
        self._end_leftovers()
        for log in self.logs.iterdir():
            log.unlink()
        try:
            self._make_database()
            self.manage("collectstatic", "--no-input", "--clear", "--verbosity", "0")
            self.with_model()
            with redis.Redis.from_url(self.redis_url) as store:
                store.flushdb()
            self.web.start()
            self.worker.start()
            self.wait_until_healthy()
            self._wait_for_worker()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process and drop the database."""
        self.worker.stop()
        self.web.stop()
        self._end_leftovers()
        self.stub.stop()
        with self._server() as connection:
            connection.execute(_drop(self.name))

    def wait_until_healthy(self) -> None:
        """Return when /healthz says so; raise with the log's end when it does not come up."""
        deadline = time.monotonic() + HEALTHY_SECONDS
        while True:
            if not self.web.alive:
                raise RuntimeError(f"the web server ended:\n{self.web.tail()}")
            if self._answers():
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"the web server is not healthy:\n{self.web.tail()}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    def restart(self, *, kill: bool = False) -> None:
        """End the web server, cleanly or not, and start it again on the same port."""
        if kill:
            self.web.kill()
        else:
            self.web.stop()
        self.web.start()
        self.wait_until_healthy()

    def restart_all(self) -> None:
        """End the web server and the worker with beat, and start both again."""
        self.worker.stop()
        self.restart()
        self.worker.log.write_text("")
        self.worker.start()
        self._wait_for_worker()

    def manage(self, *arguments: str, owner: bool = False) -> str:
        """What a management command prints."""
        environment = self.environment | ({"RECOLLECT_AS": "owner"} if owner else {})
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CLONE,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"manage.py {' '.join(arguments)}:\n{done.stderr[-3000:]}")
        return done.stdout

    @contextmanager
    def owner(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that may do what a person at the database may; it sees no one's rows."""
        with psycopg.connect(self.own_database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
            yield connection

    def rows(self, email: str, query: str) -> list[tuple[Any, ...]]:
        """What the application sees inside the personal scope of one person."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(APPLICATION)))
            found = connection.execute(
                "select id from accounts_user where lower(email) = lower(%s)", [email]
            ).fetchone()
            if found is None:
                raise LookupError(f"nobody has the address {email}")
            _enter(connection, "", str(found[0]))
            tenant = connection.execute(
                "select tenant_id from accounts_membership m join accounts_tenant t"
                " on t.id = m.tenant_id where m.user_id = %s and t.personal",
                [found[0]],
            ).fetchone()
            if tenant is None:
                raise LookupError(f"{email} has no personal tenant")
            _enter(connection, str(tenant[0]), str(found[0]))
            return connection.execute(query.encode()).fetchall()

    def forgive(self) -> None:
        """Forget failed and counted tries, which would throttle so many people on one address."""
        with self.owner() as connection:
            connection.execute("delete from accounts_attempt")

    def with_model(self) -> None:
        """Let replies come from the stub, as the operator's page would."""
        self._choose(self.stub.base_url, MODEL)

    def without_model(self) -> None:
        """Have no model set up, as on the first day."""
        self._choose("", "")

    def _choose(self, address: str, model: str) -> None:
        with self.owner() as connection:
            connection.execute(
                "update memory_modelsettings set base_url = %s, chat_model = %s,"
                " api_key_sealed = '', without_model = false",
                [address, model],
            )

    def log_tails(self) -> str:
        """The ends of the logs, for the report of a failure."""
        return "\n".join(
            f"--- {program.log}\n{program.tail()}" for program in (self.web, self.worker)
        )

    def _make_database(self) -> None:
        with self._server() as connection:
            connection.execute(_drop(self.name))
            connection.execute(
                sql.SQL("create database {} encoding 'UTF8'").format(sql.Identifier(self.name))
            )
        self.manage("migrate", "--no-input", "--verbosity", "0", owner=True)
        self.manage(
            *("shell", "--no-imports", "--command"),
            "from memory.models import ModelSettings; ModelSettings().save()",
        )

    @contextmanager
    def _server(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
            yield connection

    def _wait_for_worker(self) -> None:
        deadline = time.monotonic() + HEALTHY_SECONDS
        while " ready." not in self.worker.tail(400):
            if not self.worker.alive or time.monotonic() > deadline:
                raise RuntimeError(f"the worker does not come up:\n{self.worker.tail()}")
            time.sleep(0.1)

    def _end_leftovers(self) -> None:
        """End what a killed run left behind: what was started to serve this very folder."""
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                environment = process.environ()
                if MARK in environment and environment.get("RECOLLECT_STATE") == str(self.folder):
                    left.append(process)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=5)


def _enter(connection: psycopg.Connection[Any], tenant: str, user: str) -> None:
    connection.execute(
        "select set_config('app.tenant_id', %s, true), set_config('app.user_id', %s, true)",
        [tenant, user],
    )


def _drop(name: str) -> sql.Composed:
    return sql.SQL("drop database if exists {}").format(sql.Identifier(name))


def with_path(url: str, path: str) -> str:
    """The same server's address with another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{path}"))


def free_port() -> int:
    """A port of the loopback that nobody listens on now.

    Below those that systems hand out to outgoing connections, so that none takes it during a
    restart.
    """
    while True:
        port = 12000 + secrets.randbelow(8000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
