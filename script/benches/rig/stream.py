"""Streams a chat completion over plain asyncio: the cheapest client there can be.

Both floors use it, so that what they cost is the network and the model, not a library.
"""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import orjson

DONE = b"[DONE]"


class Connection:
    """One kept-alive connection to an OpenAI-compatible server on this machine."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self.path = parts.path.rstrip("/") + "/chat/completions"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect."""
        self._streams = await asyncio.open_connection(self.host, self.port)
        return self._streams

    async def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()

    async def texts(self, question: str) -> AsyncIterator[str]:
        """Yield the text of the answer as it arrives, one piece for each read from the network."""
        reader, writer = self._streams or await self.open()
        body = orjson.dumps(
            {
                "model": "stub-model",
                "stream": True,
                "messages": [{"role": "user", "content": question}],
            }
        )
        writer.write(
            f"POST {self.path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise ConnectionError(head.decode("latin-1"))
        async for text in self._events(reader):
            yield text

    async def _events(self, reader: asyncio.StreamReader) -> AsyncIterator[str]:
        # The stub's chunks hold whole lines, and no line of it looks like a chunk's size.
        rest = b""
        while True:
            received = await reader.read(65536)
            if not received:
                raise ConnectionError("the model hung up")
            lines = (rest + received).split(b"\n")
            rest = lines.pop()
            pieces = []
            done = False
            for line in lines:
                if line.startswith(b"data: "):
                    if line.startswith(DONE, 6):
                        done = True
                        break
                    pieces.append(text_of(line[6:]))
            text = "".join(pieces)
            if text:
                yield text
            if done:
                await self._end(reader, rest, lines)
                return

    @staticmethod
    async def _end(reader: asyncio.StreamReader, rest: bytes, lines: list[bytes]) -> None:
        """Read the last chunk, of size nought, so that the connection can be used again."""
        seen = b"\n".join([*lines, rest])
        while not seen.endswith(b"\r\n0\r\n\r\n"):
            received = await reader.read(4096)
            if not received:
                raise ConnectionError("the model hung up")
            seen += received


def text_of(data: bytes) -> str:
    """Return the text that one event adds, which may be none."""
    choices = orjson.loads(data).get("choices") or [{}]
    content = (choices[0].get("delta") or {}).get("content")
    return content if isinstance(content, str) else ""
