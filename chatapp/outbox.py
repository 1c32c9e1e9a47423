"""What waits to be sent over one websocket, and how much of it may wait.

Daphne writes whatever it is given and keeps what the browser does not read: without a limit one
browser that never reads costs the process tens of megabytes. So a socket has a budget in bytes: of
frames that wait here, and of those that the server has not yet written, where it can be asked.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

logger = logging.getLogger(__name__)

BUDGET = 2 * 1024 * 1024
# A whole reply in one frame may be larger than that: such a frame comes on top.
LARGE = BUDGET // 8
# Where the server can't be asked: what may be sent without a sign of life from the browser, which
# pings every 20 seconds.
UNHEARD_BUDGET = 16 * 1024 * 1024

type Send = Callable[[dict[str, Any]], Awaitable[None]]


def unwritten(send: Any) -> Callable[[], int] | None:
    """Return how to ask the server for the bytes that it has not yet written; None if one can't."""
    if isinstance(send, partial) and send.args:  # Daphne: partial(handle_reply, protocol)
        protocol = send.args[0]
        return partial(_twisted_unwritten, protocol) if hasattr(protocol, "transport") else None
    transport = getattr(getattr(send, "__self__", None), "transport", None)  # uvicorn
    size = getattr(transport, "get_write_buffer_size", None)
    return size if callable(size) else None


def _twisted_unwritten(protocol: Any) -> int:
    transport = protocol.transport
    waiting = len(getattr(transport, "dataBuffer", b"")) - getattr(transport, "offset", 0)
    return int(waiting + getattr(transport, "_tempDataLen", 0))


class Outbox:
    """Sends frames in order from a task of its own, so that no reply waits for a browser."""

    def __init__(self, send: Send, ask: Callable[[], int] | None, overflow: Callable[[], None]):
        self._send = send
        self._ask = ask
        self._overflow = overflow
        self._frames: deque[str] = deque()
        self._waiting = 0
        self._unheard = 0
        self._largest = 0
        self._wake = asyncio.Event()
        self._held = True
        self.closed = False

    def release(self, first: str) -> None:
        """Send this frame first, then what has gathered, and from now on everything at once."""
        self._frames.appendleft(first)
        self._waiting += _bytes_of(first)
        self._held = False
        self._wake.set()

    def heard(self) -> None:
        """Note that the browser gave a sign of life."""
        self._unheard = 0

    def put(self, frame: str) -> None:
        """Send a frame, or give the socket up if too much waits already."""
        if self.closed:
            return
        size = _bytes_of(frame)
        if size > LARGE:
            self._largest = max(self._largest, size)
        behind = self._waiting + (self._ask() if self._ask else 0)
        too_much = behind + size > BUDGET + self._largest
        if too_much or (not self._ask and self._unheard + size > UNHEARD_BUDGET):
            self._give_up()
            return
        self._waiting += size
        self._unheard += size
        self._frames.append(frame)
        if not self._held:
            self._wake.set()

    def _give_up(self) -> None:
        self.closed = True
        self._frames.clear()
        self._overflow()

    async def run(self) -> None:
        """Send for as long as the socket is open."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._frames:
                frame = self._frames.popleft()
                try:
                    await self._send({"type": "websocket.send", "text": frame})
                except Exception as error:  # each server has its own for "the browser has gone"
                    logger.info("a frame was not sent: %s", type(error).__name__)
                    self._give_up()
                    return
                self._waiting -= _bytes_of(frame)


def _bytes_of(frame: str) -> int:
    return len(frame) if frame.isascii() else len(frame.encode())
