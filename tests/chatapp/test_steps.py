"""Steps in threads of their own: a thread keeps its connection, but none that is of no use."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from chatapp import steps

type Run = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def thread(db: None) -> Iterator[ThreadPoolExecutor]:
    """One thread that does steps, as the web process has three."""
    with ThreadPoolExecutor(1) as thread:
        yield thread
        thread.submit(lambda: connection.close()).result()


@pytest.fixture
def run(thread: ThreadPoolExecutor) -> Run:
    return lambda work: thread.submit(steps._on_held_connection, work).result()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


def parameters() -> dict[str, Any]:
    """Return how the login itself connects: the role may end no other connection."""
    given = connection.get_connection_params()
    return {name: given[name] for name in ("dbname", "user", "password", "host", "port")}


def held(thread: ThreadPoolExecutor) -> bool:
    return bool(thread.submit(lambda: connection.connection is not None).result())


def test_a_thread_keeps_its_connection_until_it_is_cut(
    thread: ThreadPoolExecutor, run: Run
) -> None:
    first = run(backend)
    assert held(thread)
    assert run(backend) == first
    with psycopg.connect(**parameters()) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", [first])
    assert run(backend) != first


def test_what_fails_gives_the_connection_back(thread: ThreadPoolExecutor, run: Run) -> None:
    def fail() -> None:
        backend()
        raise RuntimeError

    with suppress(RuntimeError):
        run(fail)
    assert not held(thread)


def test_a_connection_is_not_kept_for_ever(
    thread: ThreadPoolExecutor, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "HELD_SECONDS", 0.0)
    run(backend)
    kept = thread.submit(lambda: connection.connection).result()
    run(backend)
    assert held(thread)
    monkeypatch.setattr(steps, "HELD_SECONDS", 60.0)
    assert thread.submit(lambda: steps._still_good(kept)).result() is False


def test_where_few_are_in_the_pool_each_step_gives_its_own_back(
    thread: ThreadPoolExecutor, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"]["OPTIONS"]["pool"], "max_size", 4)
    run(backend)
    assert not held(thread)
