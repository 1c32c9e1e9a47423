"""script/server from start to stop, as the person at the terminal sees it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from local import processes, server, servers, state
from local.refusal import Refusal
from local.server import Where
from local.state import State

from tests.script.conftest import CLONE

SCRIPT = CLONE / "script" / "server"
# Generous, since the machine may be busy with other tests.
START_SECONDS = 240
STOP_SECONDS = 60


@pytest.fixture
def environment(own: State, clean_environment: dict[str, str]) -> dict[str, str]:
    """The variables of an installation of the test's own."""
    more = {"RECOLLECT_STATE": str(own.folder), "PORT": str(state.free_port())}
    return clean_environment | more


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """script/server, running in a terminal."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self.output = log.open("w")
        self.process = subprocess.Popen(
            [SCRIPT],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # As in a terminal: what runs this test in the background may ignore Ctrl-C for all.
            preexec_fn=_heed_interrupts,
        )

    @property
    def shown(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> None:
        """Wait until something is shown."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert self.process.poll() is None, self.shown
            assert time.monotonic() < deadline, self.shown
            time.sleep(0.1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS)
        self.output.close()


@pytest.fixture
def terminal(environment: dict[str, str], folder: Path) -> Iterator[Terminal]:
    """A terminal in which script/server has just been typed."""
    opened = Terminal(environment, folder / "shown")
    yield opened
    opened.close()


def ask(environment: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [SCRIPT, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def healthy(port: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def eventually(ready: "object", seconds: float = START_SECONDS) -> None:
    assert callable(ready)
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def running(own: State) -> list[str]:
    """Everything that lives for this state folder."""
    embedded = servers.of(own)
    names = {"Postgres", "Valkey"} - set(embedded.dead())
    return sorted({*names, *processes.services(own.folder).values()})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_one_command_to_a_running_installation_and_back(
    terminal: Terminal, environment: dict[str, str], own: State
) -> None:
    port = environment["PORT"]
    terminal.wait_for("Its state")
    assert f"Recollect runs at http://127.0.0.1:{port}/" in terminal.shown
    assert re.search(rf"works once:\n +http://127\.0\.0\.1:{port}/first/\S+", terminal.shown)
    assert len(re.findall(r"\.\. \d+\.\d s$", terminal.shown, re.MULTILINE)) >= 6
    assert healthy(port)
    everything = ["Postgres", "Valkey", "background", "beat", "interactive", "supervisor", "web"]
    assert running(own) == everything

    second = ask(environment)
    assert second.returncode == 0
    assert f"already runs at http://127.0.0.1:{port}/" in second.stdout

    # Each part dies and comes back: by the supervisor, or by the script.
    web = [pid for pid, name in processes.services(own.folder).items() if name == "web"]
    embedded = servers.of(own)
    assert embedded.postgres is not None
    for pid in (*web, embedded.postgres.pid):
        os.kill(pid, signal.SIGKILL)
    terminal.wait_for("Postgres died and is started again")
    eventually(lambda: healthy(port))
    assert web != [pid for pid, name in processes.services(own.folder).items() if name == "web"]

    # The script itself is killed: the rest lives on, and the next one takes it over.
    terminal.process.kill()
    terminal.process.wait()
    assert "web" in running(own)
    with socket.create_connection(("127.0.0.1", int(port))):
        pass
    stopped = ask(environment, "--stop")
    assert stopped.returncode == 0
    assert running(own) == []
    for name in everything:
        assert name.lower() in stopped.stderr.lower()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stop_while_it_starts_leaves_nothing_behind(terminal: Terminal, own: State) -> None:
    terminal.wait_for("Valkey (port")
    terminal.process.send_signal(signal.SIGINT)
    terminal.process.wait(STOP_SECONDS)
    assert terminal.process.returncode != 0
    assert running(own) == []


def test_a_taken_port_is_named_with_its_variable(environment: dict[str, str], own: State) -> None:
    with socket.create_server(("127.0.0.1", int(environment["PORT"]))):
        refused = ask(environment)
    assert refused.returncode == 1
    said = refused.stderr.strip().splitlines()[-1]
    assert said.startswith(f"Port {environment['PORT']} is taken by another program")
    assert "PORT=" in said
    assert running(own) == []


def test_nonsense_is_named_by_its_variable() -> None:
    for port in ("0", "65536", "x", "-1"):
        with pytest.raises(Refusal, match=f"PORT must be .* not '{port}'"):
            Where.of({"PORT": port})
    with pytest.raises(Refusal, match=r"address of BIND, 192\.0\.2\.1"):
        Where.of({"BIND": "192.0.2.1", "PORT": str(state.free_port())})


def test_the_printed_address_is_one_that_can_be_opened() -> None:
    port = state.free_port()
    for bind, address in {
        "127.0.0.1": f"http://127.0.0.1:{port}/",
        "0.0.0.0": f"http://127.0.0.1:{port}/",  # noqa: S104
    }.items():
        where = Where.of({"BIND": bind, "PORT": str(port), "ALLOWED_HOSTS": ".example.org, x"})
        assert (where.address, where.host) == (address, "example.org")
    assert Where("::1", 1, "").address == "http://[::1]:1/"


def test_a_database_of_ones_own_needs_both_logins(own: State) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", "postgres://x:y@127.0.0.1:1/z")
        patch.delenv("DATABASE_OWNER_URL", raising=False)
        patch.delenv("REDIS_URL", raising=False)
        installation = server.Installation(own, {})
        with pytest.raises(Refusal, match=r"DATABASE_OWNER_URL .* is not set"):
            installation.prepare()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_servers_of_ones_own_are_used_and_none_is_started(
    running: "servers.Servers", own: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = state.read_env(running.state.env)
    for name in state.ADDRESSES:
        monkeypatch.setenv(name, given[name])
    installation = server.Installation(own, {})
    installation.prepare()
    assert installation.servers is not None
    assert (installation.servers.postgres, installation.servers.valkey) == (None, None)
    assert set(state.read_env(own.env)) == {"SECRET_KEY", "FIELD_KEYS"}
    assert installation.environment["DATABASE_URL"] == given["DATABASE_URL"]


def test_stop_without_a_start_says_that_nothing_runs(
    own: State, capfd: pytest.CaptureFixture[str]
) -> None:
    assert server.stop(own) == 0
    assert "Nothing runs." in capfd.readouterr().err


def test_the_shell_of_the_tests_starts_no_installation(
    own: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.borrowed.write_text(str(own.folder))
    monkeypatch.setenv("RECOLLECT_STATE", str(own.folder))
    with pytest.raises(Refusal, match="open another one"):
        server.main([])


def test_a_note_that_cannot_be_read_is_no_note(own: State) -> None:
    note = own.run / "server.json"
    note.write_text("{")
    assert server._noted(own) == {}
    note.write_text(json.dumps({"pid": 1}))
    assert server._noted(own) == {"pid": 1}
