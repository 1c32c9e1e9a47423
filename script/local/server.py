"""script/server: everything that a running installation needs, in the foreground.

script/server           start; Ctrl-C stops it
script/server --stop    stop the one that runs in another terminal
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from local import account, external, health, mark, processes, servers, state
from local.front import command
from local.progress import say, step
from local.refusal import Refusal, explained
from local.servers import Servers
from local.state import CLONE, State, locked, port_is_free, read_env, write_private
from local.supervise import Supervisor, end_leftovers, last_lines, programs

PORT = 8765
BIND = "127.0.0.1"
APP_ROLE = "recollect_app"
START = "RECOLLECT_START"
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - not bound to
HEALTHY_SECONDS = 180
TOO_MANY_DEATHS = 3
LONGEST_PAUSE = 30.0
CHECK_SECONDS = 1.0
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str]) -> int:
    """Start and watch, or stop."""
    if arguments not in ([], ["--stop"]):
        raise Refusal("script/server takes no arguments but --stop.")
    servers_account = account.current()
    folder, note = state.chosen(os.environ, servers_account)
    if State(folder).for_tests():
        raise Refusal(
            "This shell has the variables of script/test --env: open another one for script/server."
        )
    own = state.prepared(folder)
    if arguments:
        return stop(own)
    if note:
        say(note)
    with locked(own.run / "lock", wait=False) as free:
        if not free:
            return _already_running(own)
        return run(own)


def run(own: State) -> int:
    """Start everything and stay until a signal says stop."""
    with explained(own.folder), ExitStack() as stack:
        started = time.monotonic()
        say(f"Recollect starts; its state lies in {own.folder}")
        note = own.run / "server.json"
        stack.callback(note.unlink, missing_ok=True)
        _remember(note, address="", ready=False)
        if names := end_leftovers(own):
            say(f"  Ended what a killed run left behind: {', '.join(names)}")
        settings = read_env(own.env) | {key: value for key, value in os.environ.items() if value}
        where = Where.of(settings)
        installation = Installation(own, settings)
        stack.callback(installation.stop)
        installation.prepare()
        installation.start(where)
        _remember(note, address=where.address, ready=True)
        print(_welcome(own, where, installation.link, time.monotonic() - started), flush=True)
        try:
            installation.watch()
        except (KeyboardInterrupt, SystemExit):
            return 0


@dataclass(frozen=True, slots=True)
class Where:
    """On which address the installation answers."""

    bind: str
    port: int
    host: str

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Where":
        """From BIND and PORT; refuses nonsense and a port that is taken."""
        bind = settings.get("BIND", BIND)
        text = settings.get("PORT", str(PORT))
        if not text.isdecimal() or not 1 <= int(text) <= 65535:
            raise Refusal(f"PORT must be a whole number from 1 to 65535, not '{text}'.")
        port = int(text)
        hosts = [host.strip() for host in settings.get("ALLOWED_HOSTS", "").split(",")]
        named = hosts[0].lstrip(".") if hosts[0] not in ("", "*") else "localhost"
        where = cls(bind, port, named)
        try:
            free = port_is_free(port, bind)
        except PermissionError as error:
            raise Refusal(
                f"Only root may listen on port {port}: set PORT to 1024 or more."
            ) from error
        except OSError as error:
            raise Refusal(f"Nothing can listen on the address of BIND, {bind}: {error}.") from error
        if not free:
            raise Refusal(
                f"Port {port} is taken by another program: stop that, or choose another port "
                f"with the variable PORT, as in PORT={port + 1} script/server."
            )
        return where

    @property
    def local(self) -> str:
        """The address from this machine."""
        host = EVERYWHERE.get(self.bind, self.bind)
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self.port}"

    @property
    def address(self) -> str:
        """The address to print."""
        return f"{self.local}/"


@dataclass(slots=True)
class Installation:
    """The servers and the processes of one state folder."""

    state: State
    settings: Mapping[str, str]
    link: str = ""
    began: float = 0.0
    log_began: int = 0
    servers: Servers | None = None
    supervisor: Supervisor = field(init=False)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = {
            **os.environ,
            "RECOLLECT_STATE": str(self.state.folder),
            "DJANGO_SETTINGS_MODULE": "chatapp.settings",
            "PYTHONPATH": str(CLONE),
            "PYTHONUNBUFFERED": "1",
            START: secrets.token_hex(8),
        }
        for name in ("RECOLLECT_AS", processes.SERVICE):
            self.environment.pop(name, None)
        self.supervisor = Supervisor(self.state, self.environment)

    def prepare(self) -> None:
        """Have servers run, the database migrated and the settings found sound."""
        own = state.own_addresses(os.environ, read_env(self.state.env), _keys(self.state))
        if "DATABASE_URL" in own or "DATABASE_OWNER_URL" in own:
            self._check_database(own)
        if "REDIS_URL" in own:
            with step("REDIS_URL checked"):
                external.check_redis(own["REDIS_URL"])
        self.servers = servers.of(self.state, without=own)
        self.servers.start()
        self.environment |= own
        url = self.environment.get("DATABASE_URL") or read_env(self.state.env)["DATABASE_URL"]
        role = self.settings.get("APP_ROLE", APP_ROLE)
        prepared = mark.stands(self.state, url=url, role=role)
        if prepared:
            self._start_processes()  # there is nothing that they would have to wait for
        else:
            mark.remove(self.state)
        with step("Migrations, settings and database role"):
            self.link = self._prepare(*(["--unchanged"] if prepared else [])).strip()
        if not prepared:
            mark.leave(self.state, url=url, role=role)

    def start(self, where: Where) -> None:
        """Start the application's processes and wait until each is healthy."""
        if not self.supervisor.alive():
            self._start_processes()
        redis_url = self.environment.get("REDIS_URL") or read_env(self.state.env)["REDIS_URL"]
        checks = {
            "web": lambda: health.web(where.local, where.host, self.environment[START]),
            "interactive": lambda: health.worker(redis_url, "interactive"),
            "background": lambda: health.worker(redis_url, "background"),
            "beat": lambda: health.beat(self.state, self.began),
        }
        titles = {
            "web": f"Web server at {where.local}",
            "interactive": "Worker 'interactive'",
            "background": "Worker 'background'",
            "beat": "Beat",
        }
        deadline = time.monotonic() + HEALTHY_SECONDS
        for program in programs(self.state):
            with step(titles[program.name]):
                while not checks[program.name]():
                    self._still_hopeful(program.name, deadline)
                    time.sleep(0.1)

    def watch(self) -> NoReturn:
        """Stay for ever, and bring back whatever dies."""
        pause = 0.0
        next_try = 0.0
        while True:
            time.sleep(CHECK_SECONDS)
            now = time.monotonic()
            dead = self._dead()
            if not dead:
                # Long enough alive: the next death is answered at once again.
                pause = pause if now < next_try + LONGEST_PAUSE else 0.0
                continue
            if now < next_try:
                continue
            try:
                self._revive(dead)
            except Refusal as refusal:
                say(str(refusal))
            pause = min(LONGEST_PAUSE, pause * 2 or 1.0)
            next_try = time.monotonic() + pause

    def stop(self) -> None:
        """Stop everything that was started, in its order. Signals no longer interrupt it."""
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        with step("Stopped"):
            self.supervisor.stop()
            if self.servers is not None:
                self.servers.stop()

    def _start_processes(self) -> None:
        self.began = time.time()
        self.log_began = self.supervisor.log_size()
        self.supervisor.start()

    def _dead(self) -> list[str]:
        dead = self.servers.dead() if self.servers else []
        return dead if self.supervisor.alive() else [*dead, "supervisor"]

    def _revive(self, dead: Sequence[str]) -> None:
        say(f"{time.strftime('%H:%M:%S')} {', '.join(dead)} died and is started again.")
        if self.servers:
            self.servers.revive()
        if "supervisor" in dead:
            self.supervisor.stop()
            self.supervisor.start()

    def _still_hopeful(self, name: str, deadline: float) -> None:
        if not self.supervisor.alive():
            reason = last_lines(self.state.logs / "supervisor-start.log")
            raise Refusal(f"The supervisor ended at once:\n{reason}")
        log = self.state.logs / f"{name}.log"
        if self.supervisor.deaths(name, self.log_began) >= TOO_MANY_DEATHS:
            raise Refusal(f"'{name}' does not stay up; {log} ends with:\n{last_lines(log)}")
        if time.monotonic() > deadline:
            raise Refusal(
                f"'{name}' is not healthy after {HEALTHY_SECONDS} s; {log} ends with:\n"
                f"{last_lines(log)}"
            )

    def _check_database(self, own: Mapping[str, str]) -> None:
        for name, use in (
            ("DATABASE_URL", "the application's login"),
            ("DATABASE_OWNER_URL", "the login for migrations"),
        ):
            if name not in own:
                raise Refusal(
                    f"{name} ({use}) is not set: a database of your own needs both DATABASE_URL "
                    "and DATABASE_OWNER_URL."
                )
        with step("DATABASE_URL and DATABASE_OWNER_URL checked"):
            external.check_database(
                url=own["DATABASE_URL"],
                owner_url=own["DATABASE_OWNER_URL"],
                app=self.settings.get("APP_ROLE", APP_ROLE),
                owner=self.settings.get("OWNER_ROLE", "recollect_owner"),
                review=self.settings.get("REVIEW_ROLE", "recollect_review"),
            )

    def _prepare(self, *arguments: str) -> str:
        """What local.prepare prints, run to its end."""
        environment = {
            **self.environment,
            "PYTHONPATH": os.pathsep.join([str(CLONE / "script"), str(CLONE)]),
            # So that it is found and ended with the rest when this process is stopped meanwhile.
            processes.SERVICE: "migrations",
        }
        done = subprocess.run(
            [sys.executable, "-m", "local.prepare", *arguments],
            cwd=CLONE,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise Refusal("\n".join(said[-8:]) or "local.prepare failed without a word.")
        return done.stdout


def stop(own: State) -> int:
    """Stop the installation of this state folder, wherever it was started from."""
    with locked(own.run / "lock", wait=False) as free:
        if not free:
            pid = _noted(own).get("pid", 0)
            process = processes.find(pid)
            if process is None or "local.server" not in process.command:
                raise Refusal("It runs, but its process was not found: press Ctrl-C there.")
            with step(f"Stopping process {pid}"):
                processes.send(pid, signal.SIGTERM)
                left = processes.wait_gone([pid], 90)
            return 1 if left else 0
        names = end_leftovers(own)
        if own.keys.exists():
            running = servers.of(own, without={})
            names += [name for name in ("postgres", "valkey") if getattr(running, name).pid]
            running.stop()
        say(f"Stopped: {', '.join(names)}." if names else "Nothing runs.")
    return 0


def _keys(own: State) -> state.Keys | None:
    return state.keys_of(own) if own.keys.exists() else None


def _remember(note: Path, *, address: str, ready: bool) -> None:
    content = {"pid": os.getpid(), "address": address, "ready": ready}
    write_private(note, json.dumps(content) + "\n")


def _noted(own: State) -> dict[str, Any]:
    try:
        noted: dict[str, Any] = json.loads((own.run / "server.json").read_text())
    except (OSError, ValueError):
        return {}
    return noted


def _already_running(own: State) -> int:
    noted = _noted(own)
    if noted.get("ready"):
        print(
            f"Recollect already runs at {noted['address']} (process {noted['pid']}, state in "
            f"{own.folder}). script/server --stop stops it."
        )
    else:
        print(f"Recollect is being started already (process {noted.get('pid', 'unknown')}).")
    return 0


def _welcome(own: State, where: Where, link: str, seconds: float) -> str:
    lines = [
        "",
        f"Recollect runs at {where.address} (ready after {seconds:.1f} s)",
        "",
        "  To stop it    Ctrl-C here, or script/server --stop",
        f"  Its state     {own.folder} (back it up; logs are in {own.logs})",
    ]
    if link:
        path = link.splitlines()[-1].strip()
        whole = path if "://" in path else where.local + "/" + path.lstrip("/")
        lines += ["", "  Become its operator with this link, which works once:", f"  {whole}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    command(main)
