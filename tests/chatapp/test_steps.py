"""Steps in threads of their own: a thread keeps its connection, but none that is of no use."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import Error, connection

from accounts.scope import Scope, entered, read_once, write_once
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


SCOPE, OTHER = Scope(901, 902), Scope(903, 904)


def shown_to() -> tuple[str, str]:
    """Return the scope that the policies read on this thread's connection now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select coalesce(current_setting('app.tenant_id', true), ''),"
            " coalesce(current_setting('app.user_id', true), '')"
        )
        tenant, user = cursor.fetchone()
        return tenant, user


def cut(pid: int) -> None:
    with psycopg.connect(**parameters()) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", [pid])


def _raises() -> None:
    with entered(SCOPE):
        raise RuntimeError


def _ends_the_task() -> None:
    with entered(SCOPE), entered(OTHER):
        raise KeyboardInterrupt


def _fails() -> None:
    with entered(SCOPE), connection.cursor() as cursor:
        cursor.execute("select 1 / 0")


def _fails_unnoticed() -> None:
    with suppress(Error):
        read_once(SCOPE, "select 1 / 0", {})


def _fails_within_and_goes_on() -> None:
    with entered(SCOPE):
        with suppress(Error), entered(OTHER):
            write_once(SCOPE, "select 1 / 0", {})
        assert shown_to() == ("901", "902")


def _takes_too_long() -> None:
    read_once(SCOPE, "select pg_sleep(5)", {}, within_ms=10)


def _takes_too_long_within() -> None:
    with entered(SCOPE):
        with suppress(Error):
            read_once(OTHER, "select pg_sleep(5)", {}, within_ms=10)
        assert shown_to() == ("901", "902")


def _is_cut_within() -> None:
    with entered(SCOPE), entered(OTHER):
        cut(backend())
        backend()


def _is_cut_unnoticed() -> None:
    with suppress(Error), entered(SCOPE):
        cut(backend())
        backend()


def _is_cut_behind_its_work() -> None:
    with suppress(Error), entered(SCOPE):
        cut(backend())


@pytest.mark.parametrize(
    "ends",
    [
        _raises,
        _ends_the_task,
        _fails,
        _fails_unnoticed,
        _fails_within_and_goes_on,
        _takes_too_long,
        _takes_too_long_within,
        _is_cut_within,
        _is_cut_unnoticed,
        _is_cut_behind_its_work,
    ],
)
def test_however_a_step_ends_the_next_has_nobodys_scope(run: Run, ends: Callable[[], None]) -> None:
    run(backend)
    with suppress(BaseException):
        run(ends)
    assert run(shown_to) == ("", "")
    assert run(lambda: connection.in_atomic_block) is False
    assert run(lambda: read_once(OTHER, "select current_setting('app.user_id')", {})) == [("904",)]
    assert run(shown_to) == ("", "")
