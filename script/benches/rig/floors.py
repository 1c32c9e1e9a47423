"""The two floors: the stub model by itself, and a bare relay of it."""

import http.client
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from .processes import Running, free_port, product_environment
from .tally import words

FIRST_TOKEN, PER_TOKEN = 0.05, 0.005
START_SECONDS = 30


class StartFailed(Exception):
    """A process did not come up; its last words say why."""


def request(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """Return status and body of one HTTP request to this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(
            method, path, None if body is None else orjson.dumps(body), headers or {}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_until_up(
    running: Running, port: int, path: str, *, seconds: float = START_SECONDS
) -> None:
    """Wait until a server answers anything but 5xx; raises StartFailed with its last words."""
    deadline = time.monotonic() + seconds
    said = "no answer"
    while time.monotonic() < deadline and running.alive:
        try:
            status, body = request(port, "GET", path)
        except OSError:
            pass
        else:
            if status < 500:
                return
            said = f"{status}: {body[:300].decode(errors='replace')}"
        time.sleep(0.1)
    raise StartFailed(f"{running.name} did not come up ({said}):\n{running.last_words()}")


class Stub:
    """tests/stub_model.py in a process of its own."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        times = ["--first-token", str(FIRST_TOKEN), "--per-token", str(PER_TOKEN)]
        self.running = Running.start(
            "stub model",
            ["-m", "tests.stub_model", "--port", str(self.port), "--kept", "100", *times],
            product_environment(),
            log=log,
        )
        self.url = f"http://127.0.0.1:{self.port}/v1"
        wait_until_up(self.running, self.port, "/v1/models")

    def answers(self, tokens: int) -> None:
        """Make every chat reply so many tokens long."""
        wanted = {"count": tokens, "words": words()}
        status, body = request(self.port, "POST", "/control/default", wanted)
        if status != 200:
            raise StartFailed(f"the stub model refused its orders: {body!r}")


class Relay:
    """benches/rig/relay.py on Daphne, in a process of its own."""

    def __init__(self, base_url: str, log: Path) -> None:
        self.port = free_port()
        environment = product_environment() | {"RELAYED_BASE_URL": base_url}
        # The relay has no settings of ours.
        environment.pop("DJANGO_SETTINGS_MODULE")
        self.running = Running.start(
            "relay",
            [
                *("-m", "daphne", "--bind", "127.0.0.1", "--port", str(self.port)),
                *("--verbosity", "0", "--no-server-name", "--websocket_timeout", "-1"),
                "benches.rig.relay:application",
            ],
            environment,
            log=log,
        )
        self.url = f"ws://127.0.0.1:{self.port}/"
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.running.alive:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise StartFailed(f"the relay did not come up:\n{self.running.last_words()}")


@contextmanager
def floors(logs: Path) -> Iterator[tuple[Stub, Relay]]:
    """Have both run."""
    stub = Stub(logs / "bench-stub.log")
    try:
        relay = Relay(stub.url, logs / "bench-relay.log")
        try:
            yield stub, relay
        finally:
            relay.running.stop()
    finally:
        stub.running.stop()


def log_folder() -> Path:
    """Return where the logs of this benchmark go."""
    folder = Path(os.environ["RECOLLECT_STATE"]) / "logs"
    folder.mkdir(exist_ok=True, parents=True)
    return folder
