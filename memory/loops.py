"""An event loop in a thread, where code without one waits for code that needs one.

Workers and commands are synchronous, the client of the language model is not; one client with exact
deadlines serves both. The thread starts with the first use and belongs to one process: a fork gets
its own.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def wait_for[T](work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns; it is cancelled when this thread is interrupted."""
    future = asyncio.run_coroutine_threadsafe(work, _running())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _running() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_run, args=(_loop,), name="loop", daemon=True)
            _thread.start()
        return _loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def stop() -> None:
    """End the thread: what still runs is cancelled and closed. The next use starts another."""
    global _loop, _thread
    with _lock:
        loop, thread, _loop, _thread = _loop, _thread, None, None
    if loop and thread:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


def _forget() -> None:
    global _lock, _loop, _thread
    _lock, _loop, _thread = threading.Lock(), None, None


os.register_at_fork(after_in_child=_forget)
atexit.register(stop)
