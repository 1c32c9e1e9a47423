"""The load: people who ask at once, in a process of its own, driven by lines of JSON.

Commands come on standard input, one a line, and each is answered by one line:

    {"do": "open", "kind": "direct", "url": ..., "people": [{"tag", "text"}]}
    {"do": "open", "kind": "socket", "people": [{"tag", "text", "url", "cookie", "origin"}]}
    {"do": "go", "seconds": 60}     everybody asks at once; answered when the last reply has ended
    {"do": "close"}

Times are in seconds from the moment before a person's own question was written.
"""

import asyncio
import gc
import sys
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from .stream import Connection

HELLO_SECONDS = 20


@dataclass(slots=True)
class Sample:
    """One reply as its reader saw it."""

    tag: str
    first: float | None = None
    last: float | None = None
    text: str = ""
    reply: str = ""
    status: str = ""
    recalled: int = 0
    frames: list[tuple[int, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    received_bytes: int = 0
    gaps: list[float] = field(default_factory=list)
    error: str = ""

    def heard(self, now: float) -> None:
        """Note that text arrived."""
        if self.first is None:
            self.first = now
        elif self.last is not None:
            self.gaps.append(now - self.last)
        self.last = now


class Person(Protocol):
    """Somebody who asks and listens."""

    tag: str

    async def open(self) -> None: ...

    async def ask(self) -> Sample: ...

    async def close(self) -> None: ...


class Direct:
    """Asks the model itself."""

    def __init__(self, url: str, tag: str, text: str) -> None:
        self.tag, self.text = tag, text
        self.model = Connection(url)

    async def open(self) -> None:
        await self.model.open()

    async def ask(self) -> Sample:
        sample = Sample(self.tag)
        pieces = []
        start = time.perf_counter()
        async for text in self.model.texts(self.text):
            sample.heard(time.perf_counter() - start)
            pieces.append(text)
        sample.text = "".join(pieces)
        sample.status = "complete"
        return sample

    async def close(self) -> None:
        await self.model.close()


class Socket:
    """Asks over a websocket with the frames that the page uses."""

    def __init__(self, url: str, tag: str, text: str, cookie: str = "", origin: str = "") -> None:
        self.url, self.tag, self.text = url, tag, text
        self.headers = {"cookie": cookie} if cookie else {}
        self.origin = origin or None

    async def open(self) -> None:
        self.socket: ClientConnection = await connect(
            self.url,
            additional_headers=self.headers,
            origin=self.origin,  # type: ignore[arg-type]
            compression=None,
            max_size=None,
            ping_interval=None,
            open_timeout=HELLO_SECONDS,
            proxy=None,
        )
        async with asyncio.timeout(HELLO_SECONDS):
            while orjson.loads(await self.socket.recv())["type"] != "hello":
                pass

    async def ask(self) -> Sample:
        sample = Sample(self.tag)
        frame = {"type": "message", "text": self.text, "client_id": str(uuid.uuid4())}
        wire = orjson.dumps(frame).decode()
        start = time.perf_counter()
        await self.socket.send(wire)
        try:
            while not sample.status:
                raw = await self.socket.recv(decode=False)
                self.read(sample, raw, time.perf_counter() - start)
        except ConnectionClosed as closed:
            sample.error = f"the socket was closed: {closed}"
        return sample

    def read(self, sample: Sample, raw: bytes, now: float) -> None:
        """Take one frame in."""
        frame = orjson.loads(raw)
        kind = frame["type"]
        sample.counts[kind] = sample.counts.get(kind, 0) + 1
        sample.received_bytes += len(raw)
        sample.times.setdefault(kind, now)
        if kind == "delta":
            sample.heard(now)
            sample.frames.append((frame["n"], frame["text"]))
        elif kind == "snapshot":
            # It stands for every frame up to its own.
            sample.heard(now)
            sample.frames = [(number, "") for number in range(1, frame["n"])]
            sample.frames.append((frame["n"], frame["text"]))
        elif kind in {"stored", "started"}:
            sample.reply = frame.get("reply", "")
        elif kind == "finished":
            sample.status = frame["status"]
            sample.reply = frame["reply"]
        elif kind == "error":
            sample.error = f"{frame.get('code')}: {frame.get('message')}"
            sample.status = "failed"
        elif kind == "recalled":
            sample.recalled = frame["count"]
            sample.frames.append((frame["n"], ""))

    async def close(self) -> None:
        await self.socket.close()


def person(command: dict[str, Any], given: dict[str, Any]) -> Person:
    """Return one of the people that a command names."""
    if command["kind"] == "direct":
        return Direct(command["url"], given["tag"], given["text"])
    return Socket(**given)


async def asked(someone: Person, seconds: float) -> Sample:
    """Return what a person heard; an error in the sample where it did not go well."""
    sample = Sample("")
    try:
        async with asyncio.timeout(seconds):
            sample = await someone.ask()
    except TimeoutError:
        sample.error = f"no end within {seconds:g} s"
    except (OSError, ValueError, KeyError) as error:
        sample.error = f"{type(error).__name__}: {error}"
    sample.tag = someone.tag
    return sample


async def serve() -> None:
    """Do what the lines on standard input say, until they end."""
    people: list[Person] = []
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        command = orjson.loads(line)
        answer: dict[str, Any] = {}
        if command["do"] == "open":
            people = [person(command, given) for given in command["people"]]
            try:
                await asyncio.gather(*(someone.open() for someone in people))
            except Exception as error:  # told to the one who drives
                answer["error"] = f"{type(error).__name__}: {error}"
        elif command["do"] == "go":
            gc.collect()
            gc.disable()
            used = time.process_time()
            samples = await asyncio.gather(*(asked(one, command["seconds"]) for one in people))
            answer["cpu"] = time.process_time() - used
            gc.enable()
            answer["samples"] = [asdict(sample) for sample in samples]
        elif command["do"] == "close":
            await asyncio.gather(*(someone.close() for someone in people), return_exceptions=True)
            people = []
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve())
