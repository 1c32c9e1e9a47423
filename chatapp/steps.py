"""Database steps off the event loop, on a few threads of their own.

Channels and asgiref would run all of a process's steps on one thread, so that one slow query holds
up every reply. Each step opens its own transaction, is short, and never waits for a network.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections, connection
from psycopg import Error

from accounts.errors import AppError
from chatapp import pool

logger = logging.getLogger(__name__)

# With the pages' own threads they share DATABASE_POOL connections (8).
THREADS = 3
SLOW_THREADS = 2  # for work that may wait for an embedder, between its own transactions
# A thread of ours keeps its connection from step to step: to take one from the pool and to give it
# back costs more than a short query does. Not where that would leave the pages too few.
HELD_SECONDS = 60.0
LEFT_FOR_PAGES = 3
TRIES = 6  # over some 15 seconds, of what must not get lost while the database is away


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
    return await _in(_threads, partial(_on_held_connection, work, *args, **kwargs))


async def insist[R](work: Callable[[], R], *, wanted: Callable[[], bool] = lambda: True) -> R:
    """Return what the step returns; try again while the database is away, if it is still wanted.

    Only for work that changes nothing more when it is done twice: it may have been done, and the
    answer lost.
    """
    for tried in range(TRIES):
        try:
            return await step(work)
        except DatabaseError as error:
            if tried == TRIES - 1 or not wanted():
                raise
            logger.warning("a step is tried again: %s", type(error).__name__)
            await asyncio.sleep(0.5 * 2**tried)
    raise AssertionError("unreachable")


async def slow_step[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what work returns that may wait for a network; no step waits behind it."""
    if on_callers_thread:
        return await database_sync_to_async(work)(*args, **kwargs)
    return await _in(_slow_threads, partial(_with_connection, work, *args, **kwargs))


async def _in[R](threads: ThreadPoolExecutor, work: Callable[[], R]) -> R:
    return await asyncio.get_running_loop().run_in_executor(threads, work)


_held_until: dict[int, float] = {}  # by thread: how long it may keep the connection that it has


def _on_held_connection[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    if not _may_hold():
        return _with_connection(work, *args, **kwargs)
    if connection.connection is not None and not _still_good(connection.connection):
        connection.close()
    if connection.connection is None:
        _held_until[threading.get_ident()] = time.monotonic() + HELD_SECONDS
    try:
        return work(*args, **kwargs)
    except BaseException:
        connection.close()  # back to the pool, which sees whether it is of use still
        raise


def _may_hold() -> bool:
    chosen = settings.DATABASES["default"]["OPTIONS"].get("pool")
    return bool(chosen) and chosen["max_size"] >= THREADS + SLOW_THREADS + LEFT_FOR_PAGES


def _still_good(kept: Any) -> bool:
    if time.monotonic() > _held_until[threading.get_ident()]:
        return False
    try:
        pool.check(kept)
    except (Error, OSError, ValueError):  # ValueError: it has no socket any more
        return False
    return True


def _with_connection[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
