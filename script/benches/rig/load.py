"""Drives the load client, a process of its own, and reads what its people heard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import orjson

from .client import Sample
from .processes import Running, product_environment


class LoadFailed(Exception):
    """The load client could not do what it was told; its words say why."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What one round gave: a sample a person, and the CPU seconds of the client."""

    samples: list[Sample]
    client_cpu: float


class Load:
    """The client; `open`, `go` and `close` make one round."""

    def __init__(self) -> None:
        self.running = Running.start("client", ["-m", "benches.rig.client"], product_environment())

    def open(self, kind: str, people: Sequence[dict[str, str]], url: str = "") -> None:
        """Connect everybody, and wait until each has been greeted."""
        self._tell({"do": "open", "kind": kind, "url": url, "people": list(people)})

    def go(self, seconds: float) -> Heard:
        """Have everybody ask at once; return when the last reply has ended or time is up."""
        told = self._tell({"do": "go", "seconds": seconds})
        return Heard([Sample(**sample) for sample in told["samples"]], told["cpu"])

    def close(self) -> None:
        """Hang up."""
        self._tell({"do": "close"})

    def stop(self) -> None:
        """End the client."""
        self.running.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _tell(self, command: dict[str, Any]) -> dict[str, Any]:
        pipes = self.running.process
        if pipes.stdin is None or pipes.stdout is None:
            raise LoadFailed("the load client has no pipes")
        pipes.stdin.write(orjson.dumps(command) + b"\n")
        pipes.stdin.flush()
        line = pipes.stdout.readline()
        if not line:
            raise LoadFailed("the load client died; see its words above")
        told: dict[str, Any] = orjson.loads(line)
        if "error" in told:
            raise LoadFailed(told["error"])
        return told
