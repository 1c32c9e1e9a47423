"""The copies of running replies in Redis."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync

from chatapp.journal import Journal, Shelf
from chatapp.journal import client as redis_client


def test_journals_are_copied_read_and_dropped() -> None:
    @async_to_sync
    async def talk() -> None:
        shelf, other, reply = Shelf(redis_client()), Shelf(redis_client()), uuid4()
        told: list[tuple[UUID, int]] = []
        shelf.readable = lambda pk, n: told.append((pk, n))
        journal = Journal(["so far "])
        shelf.add(reply, journal)
        running = asyncio.ensure_future(shelf.run())
        for text in ("one ", "", "two"):
            journal.push(text)
            shelf.touch(soon=True)
            await asyncio.sleep(0.05)
        found = await other.read(reply), await other.read(reply, 3)
        shelf.drop(reply)
        shelf.touch(soon=True)
        await asyncio.sleep(0.2)
        left = await other.read(reply)
        running.cancel()
        await shelf.close()
        await other.close()
        assert found == (["so far ", "one ", "", "two"], ["two"])
        assert told[-1] == (reply, 4)
        assert left == []

    talk()


def test_without_redis_nothing_fails(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    @async_to_sync
    async def talk() -> None:
        shelf, reply = Shelf(redis_client()), uuid4()
        shelf.add(reply, Journal(["x"]))
        running = asyncio.ensure_future(shelf.run())
        shelf.touch(soon=True)
        await asyncio.sleep(0.1)
        alive, found = not running.done(), await shelf.read(uuid4())
        running.cancel()
        await shelf.close()
        assert alive
        assert found == []

    talk()
