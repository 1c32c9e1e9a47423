"""Whose rows a piece of work may touch, as one thing with the transaction that it runs in."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows this piece of work may touch: one person in one tenant."""

    tenant_id: int
    user_id: int

    def __post_init__(self) -> None:
        for number in (self.tenant_id, self.user_id):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise ValueError("a scope needs the ids of a tenant and a user")


_SET = """
select '', '', set_config('app.tenant_id', %(app_tenant)s, true),
  set_config('app.user_id', %(app_user)s, true)
"""
# The before is read in a materialised step, so that it can't be what is being set.
_SWITCH = """
with before as materialized (select coalesce(current_setting('app.tenant_id', true), '') as tenant,
  coalesce(current_setting('app.user_id', true), '') as person)
select tenant, person, set_config('app.tenant_id', %(app_tenant)s, true),
  set_config('app.user_id', %(app_user)s, true) from before
"""


def _switch(
    tenant: str,
    user: str,
    query: str = "",
    given: Mapping[str, Any] | None = None,
    *,
    nested: bool = True,
) -> tuple[tuple[str, str], list[tuple[Any, ...]]]:
    """Set what the policies read, until the transaction ends; return what the outer one set before.

    With it the rows of the query that travels in the same message: the last statement's.
    """
    with connection.cursor() as cursor:
        settings = {"app_tenant": tenant, "app_user": user}
        switch = _SWITCH if nested else _SET
        cursor.execute(f"{switch};{query}" if query else switch, {**(given or {}), **settings})
        before, person = cursor.fetchone()[:2]
        while cursor.nextset():
            pass
        return (str(before), str(person)), cursor.fetchall() if query else []


def _standing() -> tuple[str, str] | None:
    """Return what this thread's connection has set now, as far as it was set here."""
    standing: tuple[str, str] | None = getattr(connection, "recollect_scope", None)
    return standing


def _stand(settings: tuple[str, str] | None) -> None:
    connection.recollect_scope = settings  # type: ignore[attr-defined]


@contextmanager
def _entered(
    tenant: str, user: str, query: str = "", given: Mapping[str, Any] | None = None
) -> Iterator[list[tuple[Any, ...]]]:
    nested = connection.in_atomic_block
    with transaction.atomic():
        before, rows = _switch(tenant, user, query, given, nested=nested)
        outer = _standing()
        _stand((tenant, user))
        try:
            yield rows
        finally:
            _stand(outer)
        if nested:
            _switch(*before)  # SET LOCAL outlives a released savepoint; a rollback restores it.


@contextmanager
def entered(scope: Scope) -> Iterator[Scope]:
    """Open a transaction in which Postgres shows only this scope's rows."""
    with _entered(str(scope.tenant_id), str(scope.user_id)):
        yield scope


@contextmanager
def entered_with(
    scope: Scope, query: str, given: Mapping[str, Any]
) -> Iterator[list[tuple[Any, ...]]]:
    """Open a transaction in this scope that begins with a query; yield the query's rows.

    They travel in one message. The query may be several statements, of which each sees what was
    committed before it began, as a lock and what is read under it: the rows are the last one's.
    """
    with _entered(str(scope.tenant_id), str(scope.user_id), query, given) as rows:
        yield rows


def read_once(
    scope: Scope, query: str, given: Mapping[str, Any], *, within_ms: int | None = None
) -> list[tuple[Any, ...]]:
    """Return the rows of one query in this scope, read in a single round trip to the database.

    What `entered` does in four messages travels here as one, which Postgres runs as a transaction
    of its own. `given` fills the query's named places. Raises OperationalError when the query
    takes longer than `within_ms`.
    """
    limit = "" if within_ms is None else str(max(1, within_ms))
    if connection.in_atomic_block:
        return _read_within(scope, query, given, limit)
    timeout = _TIMEOUT if limit else ""
    with connection.cursor() as cursor:
        cursor.execute(f"select {_SETTINGS}{timeout}; {query}", _with(scope, given, limit))
        cursor.nextset()
        return list(cursor.fetchall())


# Named places, whoever it is: the driver takes a text apart once, and then knows it.
_SETTINGS = (
    "set_config('app.tenant_id', %(scope_tenant)s, true),"
    " set_config('app.user_id', %(scope_user)s, true)"
)
_TIMEOUT = ", set_config('statement_timeout', %(scope_ms)s, true)"


def _with(scope: Scope, given: Mapping[str, Any], limit: str = "") -> dict[str, Any]:
    return {
        **given,
        "scope_tenant": str(scope.tenant_id),
        "scope_user": str(scope.user_id),
        "scope_ms": limit,
    }


def _read_within(
    scope: Scope, query: str, given: Mapping[str, Any], limit: str
) -> list[tuple[Any, ...]]:
    """Read inside the caller's transaction; a query that takes too long breaks only a savepoint."""
    with entered(scope), connection.cursor() as cursor:
        if limit:
            cursor.execute("select set_config('statement_timeout', %s, true)", [limit])
        cursor.execute(query, given)
        rows = list(cursor.fetchall())
        if limit:
            cursor.execute(
                "select set_config('statement_timeout', reset_val, true)"
                " from pg_settings where name = 'statement_timeout'"
            )
        return rows


def write_once(scope: Scope, query: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of one writing query in this scope, sent in a single round trip.

    Inside the caller's transaction it takes part in it, without a savepoint, and puts the outer
    scope back; outside it is a transaction of its own. The query must return rows.
    """
    if not connection.in_atomic_block:
        return read_once(scope, query, given)
    with connection.cursor() as cursor:
        if _standing() == (str(scope.tenant_id), str(scope.user_id)):
            cursor.execute(query, given)
            return list(cursor.fetchall())
        cursor.execute(
            "select set_config('app.outer_tenant', coalesce(current_setting('app.tenant_id', true),"
            " ''), true), set_config('app.outer_user', coalesce(current_setting('app.user_id',"
            f" true), ''), true); select {_SETTINGS}; {query};"
            " select set_config('app.tenant_id', current_setting('app.outer_tenant'), true),"
            " set_config('app.user_id', current_setting('app.outer_user'), true)",
            _with(scope, given),
        )
        cursor.nextset()
        cursor.nextset()
        return list(cursor.fetchall())


@contextmanager
def entered_person(user_id: int) -> Iterator[None]:
    """Open a transaction in which a person's own memberships show, in every tenant, and no more."""
    with _entered("", str(user_id)):
        yield


@contextmanager
def entered_tenant(tenant_id: int) -> Iterator[None]:
    """Open a transaction in which a tenant's members, invitations and audit show, and no text."""
    with _entered(str(tenant_id), ""):
        yield


@contextmanager
def reviewing(tenant_id: int) -> Iterator[None]:
    """Open a transaction as the review role: it reads one tenant's rows and writes none.

    Write the audit entry first (accounts.audit.record), unless only sums over everybody are read.
    """
    with _entered(str(tenant_id), ""):
        with connection.cursor() as cursor:
            cursor.execute("select current_user")
            before = cursor.fetchone()[0]
            cursor.execute(
                sql.SQL("set local role {}").format(sql.Identifier(settings.REVIEW_ROLE))
            )
        yield
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("set local role {}").format(sql.Identifier(before)))
