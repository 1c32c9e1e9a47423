"""Recollect as it runs for people: the web server, the workers and beat, on their own servers."""

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import psutil
import psycopg
from local import health
from local.state import State
from local.supervise import programs

from .floors import StartFailed, log_folder, wait_until_up
from .people import PASSWORD, Someone
from .processes import CLONE, Running, cpu_of, free_port, memory_of, product_environment

WORKERS = ("interactive", "background")
DRAIN_SECONDS = 120
QUIET = (
    "select (select count(*) from memory_jobticket where queue = 'interactive')"
    " + (select count(*) from chatapp_replyticket)"
)


@dataclass(slots=True)
class Web:
    """One web server of the product."""

    server: str
    port: int
    running: Running

    def socket_url(self, someone: Someone, session: str) -> str:
        return f"ws://127.0.0.1:{self.port}/ws/t/{someone.slug}/sessions/{session}/"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(slots=True)
class Installation:
    """One web server with its workers, as script/server starts them. Leave it to end them.

    One web server and not several side by side: each would carry the other's frames over Redis.
    """

    model_url: str
    server: str = "daphne"
    web: Web = field(init=False)
    workers: dict[str, Running] = field(default_factory=dict)
    _database: "psycopg.Connection[Any]" = field(init=False)
    _postgres: list[int] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        state = State(Path(os.environ["RECOLLECT_STATE"]))
        logs = log_folder()
        environment = product_environment() | {
            "OPENAI_BASE_URL": self.model_url,
            "OPENAI_API_KEY": "stub",
            "CHAT_MODEL": "stub-model",
        }
        for program in programs(state):
            if program.name == "web":
                port = free_port()
                running = Running.start(
                    f"web ({self.server})",
                    program.arguments,
                    environment
                    | {"WEB_SERVER": self.server, "PORT": str(port), "BIND": "127.0.0.1"},
                    log=logs / f"bench-{self.server}.log",
                )
                self.web = Web(self.server, port, running)
            else:
                running = Running.start(
                    program.name,
                    program.arguments,
                    environment,
                    log=logs / f"bench-{program.name}.log",
                )
                self.workers[program.name] = running
            self._stack.callback(running.stop)
        wait_until_up(self.web.running, self.web.port, "/healthz", seconds=60)
        for name in WORKERS:
            self._wait_for_worker(name)
        # The connection is the last to come and the first to go.
        self._database = psycopg.connect(
            os.environ["DATABASE_URL"], options="-c role=recollect_app", autocommit=True
        )
        self._stack.callback(self._database.close)
        self._postgres = postgres_pids()

    def _wait_for_worker(self, name: str) -> None:
        deadline = time.monotonic() + 60
        running = self.workers[name]
        while time.monotonic() < deadline and running.alive:
            if health.worker(os.environ["REDIS_URL"], name):
                return
            time.sleep(0.2)
        raise StartFailed(f"worker '{name}' did not come up:\n{running.last_words()}")

    def log_in(self, someone: Someone) -> Someone:
        """Return the person with the cookies of a login over HTTP, with address and password."""
        connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=30)
        try:
            connection.request("GET", "/login/")
            page = connection.getresponse()
            page.read()
            cookies = SimpleCookie(page.headers.get("set-cookie", ""))
            token = cookies["csrftoken"].value
            form = {"email": someone.email, "password": PASSWORD, "csrfmiddlewaretoken": token}
            headers = {
                "cookie": f"csrftoken={token}",
                "content-type": "application/x-www-form-urlencoded",
            }
            connection.request("POST", "/login/", urlencode(form), headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        for line in answer.headers.get_all("set-cookie", []):
            cookies.load(line)
        if answer.status not in {302, 303} or len(cookies) < 2:
            raise StartFailed(f"{someone.email} could not log in: status {answer.status}")
        sent = "; ".join(f"{name}={cookie.value}" for name, cookie in cookies.items())
        return replace(someone, cookie=sent)

    def drained(self) -> bool:
        """Wait until no reply and no job is left; False when that takes too long."""
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline:
            row = self._database.execute(QUIET).fetchone()
            if row is not None and row[0] == 0:
                return True
            time.sleep(0.05)
        return False

    def memory(self) -> dict[str, dict[str, float]]:
        """Return MiB of each process tree by its name."""
        return {
            running.name: memory_of(running.pid)
            for running in (self.web.running, *self.workers.values())
        }

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds used so far by the web server, the workers, and Postgres."""
        return {
            "web": cpu_of([self.web.running.pid]),
            "workers": cpu_of(running.pid for running in self.workers.values()),
            "postgres": cpu_of(self._postgres),
        }


def postgres_pids() -> list[int]:
    """Return the pid of the main process of the benchmark's Postgres."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("select pg_backend_pid()").fetchone()
        parent = psutil.Process(row[0]).parent() if row else None
    return [parent.pid] if parent else []


def seed(*groups: dict[str, int]) -> list[Someone]:
    """Return new people in the benchmark's database (benches.rig.people.seed)."""
    return [Someone(**found) for found in _with_django("seed", groups)]


def stored_otherwise(replies: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with those of the replies that are not stored as they were sent."""
    wrong: list[str] = _with_django("stored", replies)
    return wrong


def vacuum() -> None:
    """Bring the database into the state in which a grown one is: statistics, visibility map."""
    with psycopg.connect(
        os.environ["DATABASE_OWNER_URL"], options="-c role=recollect_owner", autocommit=True
    ) as connection:
        connection.execute("vacuum (analyze)")


def _with_django(verb: str, told: object) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "benches.rig.people", verb],
        input=json.dumps(told).encode(),
        stdout=subprocess.PIPE,
        cwd=CLONE,
        env=product_environment(),
        check=False,
    )
    if done.returncode:
        raise StartFailed(f"benches.rig.people {verb} failed; see its words above")
    return json.loads(done.stdout)
