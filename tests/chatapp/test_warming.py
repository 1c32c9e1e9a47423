"""What is loaded before the first question, and who waits for it."""

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from accounts.errors import Misconfigured
from chatapp import warming
from chatapp.retrieval import vector_of
from chatapp.warming import Warming
from memory import embedder, model_server


def slow_to_load(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    ready = threading.Event()
    monkeypatch.setattr(embedder, "warm", lambda: ready.wait(10))
    monkeypatch.setattr(model_server, "warm", lambda: None)
    return ready


def test_a_question_waits_for_the_embedder_to_be_loaded(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = slow_to_load(monkeypatch)

    @async_to_sync
    async def talk() -> int:
        loading = Warming()
        loading.start()
        vector = vector_of("Where do I live?", loading)
        await asyncio.sleep(0.1)
        assert not vector.done()
        ready.set()
        assert await loading.loaded()
        return len((await vector).vector)

    assert talk() == 384


def test_nobody_waits_longer_than_a_while(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = slow_to_load(monkeypatch)
    monkeypatch.setattr(warming, "PATIENCE", 0.1)

    @async_to_sync
    async def talk() -> None:
        loading = Warming()
        loading.start()
        assert not await loading.loaded()
        ready.set()
        async with asyncio.timeout(10):
            while not await loading.loaded():  # noqa: ASYNC110 - it no longer waits
                await asyncio.sleep(0.01)
        await loading.close()

    talk()


def test_what_can_not_be_loaded_holds_nobody_up(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise Misconfigured

    monkeypatch.setattr(embedder, "warm", broken)

    @async_to_sync
    async def talk() -> bool:
        loading = Warming()
        assert await loading.loaded()  # never begun
        loading.start()
        return await loading.loaded()

    assert talk()
