"""Database steps off the event loop, on a few threads of their own.

Channels and asgiref would run all of a process's steps on one thread, so that one slow query holds
up every reply. Each step opens its own transaction, is short, and never waits for a network.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from channels.db import database_sync_to_async
from django.db import close_old_connections

from accounts.errors import AppError

# With the pages' own threads they share DATABASE_POOL connections (6).
THREADS = 3
SLOW_THREADS = 2  # for work that may wait for an embedder, between its own transactions


class Away(AppError):
    """The database does not answer."""

    code = "database_away"
    http_status = 503
    message = "The database can't be reached right now. Nothing was lost. Try again in a moment."


_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="step")
_slow_threads = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="slow-step")
on_callers_thread = False  # tests: the step sees the test's own, uncommitted transaction


async def step[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what the work returns, run in a thread with a database connection."""
    if on_callers_thread:
        return await database_sync_to_async(work)(*args, **kwargs)
    return await _in(_threads, partial(_with_connection, work, *args, **kwargs))


async def slow_step[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what work returns that may wait for a network; no step waits behind it."""
    if on_callers_thread:
        return await database_sync_to_async(work)(*args, **kwargs)
    return await _in(_slow_threads, partial(_with_connection, work, *args, **kwargs))


async def _in[R](threads: ThreadPoolExecutor, work: Callable[[], R]) -> R:
    return await asyncio.get_running_loop().run_in_executor(threads, work)


def _with_connection[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
