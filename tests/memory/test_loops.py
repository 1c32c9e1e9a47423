"""The loop that waits for coroutines on behalf of synchronous code."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from memory import loops


@pytest.fixture(autouse=True)
def _a_loop_of_its_own() -> Iterator[None]:
    loops.stop()
    yield
    loops.stop()


async def where() -> threading.Thread:
    await asyncio.sleep(0)
    return threading.current_thread()


def test_every_call_runs_on_one_thread_that_is_not_ours() -> None:
    threads = {loops.wait_for(where()) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.current_thread()}


def test_what_is_raised_there_is_raised_here() -> None:
    async def fail() -> None:
        raise LookupError("there")

    with pytest.raises(LookupError, match="there"):
        loops.wait_for(fail())


def test_stopping_cancels_what_still_runs() -> None:
    began = threading.Event()
    ended: list[str] = []

    async def long() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("closed")

    def wait() -> None:
        with pytest.raises(CancelledError):
            loops.wait_for(long())

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert began.wait(10)
    loops.stop()
    waiting.join(10)
    assert not waiting.is_alive()
    assert ended == ["closed"]
