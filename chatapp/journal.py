"""What a running reply has sent so far: in this process, and in Redis for the others.

A journal is the list of texts that the reply's frames added, in order; frame n is the n-th. HTML is
not kept: it follows from the text (chatapp.markdown.Blocks), the same in every process. Postgres
stays the truth: a journal lives as long as its reply runs, and losing it loses nothing that is not
in the row within two seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from redis.asyncio.client import Pipeline

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.5
KEPT_SECONDS = 900
REDIS_SECONDS = 2.0
AWAY = (RedisError, OSError, TimeoutError)


class Journal:
    """The texts of one reply's frames."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = [text for text in texts if text]

    @property
    def n(self) -> int:
        """The number of the last frame."""
        return len(self.texts)

    def push(self, text: str) -> int:
        """Keep the next frame's text; return its number."""
        self.texts.append(text)
        return len(self.texts)

    def text(self) -> str:
        """Return everything so far."""
        return "".join(self.texts)


def _key(reply: UUID) -> str:
    return f"recollect:journal:{reply.hex}"


def client() -> "aioredis.Redis":
    """Return a Redis client for the running event loop."""
    return aioredis.from_url(
        settings.REDIS_URL,
        socket_timeout=REDIS_SECONDS,
        socket_connect_timeout=REDIS_SECONDS,
        decode_responses=True,
    )


def forget(replies: Iterable[UUID]) -> None:
    """Remove the journals of these replies from Redis; for code without an event loop.

    Where Redis is away they expire by themselves.
    """
    keys = [_key(reply) for reply in replies]
    if not keys:
        return
    try:
        with Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=REDIS_SECONDS,
            socket_connect_timeout=REDIS_SECONDS,
        ) as redis:
            redis.delete(*keys)
    except AWAY as error:
        logger.warning("journals could not be erased: %s", type(error).__name__)


class Shelf:
    """Copies the journals of this process to Redis, several times a second, all in one go.

    When Redis is away the copies wait; when it is back each is written anew from its beginning.
    """

    def __init__(self, redis: "aioredis.Redis") -> None:
        self.redis = redis
        self._journals: dict[UUID, Journal] = {}
        self._written: dict[UUID, int] = {}
        self._gone: set[UUID] = set()
        self._wake = asyncio.Event()
        self._soon = False
        # Called with (reply, n) when frames up to n can be read by other processes.
        self.readable: Callable[[UUID, int], None] | None = None

    def add(self, reply: UUID, journal: Journal) -> None:
        """Keep a copy of this journal until it is dropped."""
        self._journals[reply] = journal
        self._written[reply] = -1
        self._gone.discard(reply)

    def drop(self, reply: UUID) -> None:
        """Remove the copy: the reply has ended, and the row has all of it."""
        self._journals.pop(reply, None)
        if self._written.pop(reply, -1) >= 0:
            self.erase(reply)

    def erase(self, reply: UUID) -> None:
        """Remove the copy that some process left."""
        self._gone.add(reply)
        self.touch(soon=True)

    def touch(self, *, soon: bool = False) -> None:
        """Say that there is something to copy; `soon` where another process is waiting for it."""
        self._soon = self._soon or soon
        self._wake.set()

    async def run(self) -> None:
        """Copy for as long as the process lives."""
        while True:
            await self._wake.wait()
            if not self._soon:
                await asyncio.sleep(FLUSH_SECONDS)
            self._wake.clear()
            self._soon = False
            try:
                async with asyncio.timeout(REDIS_SECONDS):
                    await self._copy()
            except AWAY:
                logger.warning("journals can't be copied: Redis is away")
                await asyncio.sleep(REDIS_SECONDS)
                self._wake.set()
            except Exception:  # the next ones are to be copied all the same
                logger.exception("journals could not be copied")

    async def _copy(self) -> None:
        pipe: Pipeline = self.redis.pipeline(transaction=True)
        reached: dict[UUID, int] = {}
        for reply, journal in self._journals.items():
            written = self._written[reply]
            if journal.n > max(written, 0):
                if written < 0:
                    pipe.delete(_key(reply))
                pipe.rpush(_key(reply), *journal.texts[max(written, 0) :])
                pipe.expire(_key(reply), KEPT_SECONDS)
                reached[reply] = journal.n
                self._written[reply] = -1  # until it is known to have arrived
        gone = list(self._gone)
        if gone:
            pipe.delete(*map(_key, gone))
        if not pipe.command_stack:
            return
        await pipe.execute()
        self._gone.difference_update(gone)
        for reply, n in reached.items():
            if reply in self._journals:
                self._written[reply] = n
                if self.readable:
                    self.readable(reply, n)
            else:
                self._gone.add(reply)
                self._wake.set()

    async def read(self, reply: UUID, after: int = 0) -> list[str]:
        """Return the texts of a reply's frames behind `after`; none if there is no journal."""
        ours = self._journals.get(reply)
        if ours is not None:
            return ours.texts[after:]
        try:
            async with asyncio.timeout(REDIS_SECONDS):
                found: list[Any] = await self.redis.lrange(_key(reply), after, -1)
        except AWAY:
            return []
        return [str(text) for text in found]

    async def flush(self) -> None:
        """Copy and remove now what is due, if Redis is there."""
        with suppress(*AWAY):
            async with asyncio.timeout(REDIS_SECONDS):
                await self._copy()

    async def close(self) -> None:
        """Close the connections."""
        with suppress(*AWAY):
            await self.redis.aclose()
