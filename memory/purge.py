"""Erase for good what is remembered of a person, so that nothing comes back."""

from collections.abc import Callable
from typing import Literal
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts.scope import Scope, entered
from memory import jobs
from memory.models import MemorySettings, Tombstone
from memory.providers.base import provider
from memory.tombstones import bar

SOURCES = 5_000  # barred in one step

type What = Literal["memories", "everything"]

# Jobs first, since a worker locks a job before its ticket; then children before their parents.
_TABLES = {
    "background jobs": "memory_job",
    "records of recall": "memory_recalled",
    "use counts": "memory_usage",
    "earlier versions": "memory_memoryversion",
    "search keys": "memory_searchrow",
    "profiles": "memory_profile",
    "memories": "memory_memory",
}
_RECEIPT = (
    "memories",
    "earlier versions",
    "search keys",
    "records of recall",
    "use counts",
    "profiles",
    "background jobs",
)


def preview(scope: Scope, *, what: What = "memories") -> dict[str, int]:
    """Return what `purge` would erase, counted by kind; nothing is changed."""
    counts: dict[str, int] = {}
    with entered(scope), connection.cursor() as cursor:
        for kind in _RECEIPT:
            cursor.execute(
                f"select count(*) from {_TABLES[kind]} where tenant_id = %s and user_id = %s",  # noqa: S608
                [scope.tenant_id, scope.user_id],
            )
            counts[kind] = cursor.fetchone()[0]
        if what == "everything":
            for path in settings.ERASURE_PREVIEWS:
                counts |= _counting(path)(scope)
    return counts


def purge(scope: Scope, *, what: What = "memories") -> dict[str, int]:
    """Return how much was erased, counted by kind, exactly; zeros when there was nothing.

    In one transaction: memories with their versions, search keys and records of use, and the jobs
    that wait or run; with "everything" also what settings.ERASERS erase. Messages that stay are
    barred: nothing said until now is ever remembered from them. A job that runs meanwhile finds
    the purge generation raised and writes nothing.
    """
    with entered(scope):
        # What the chat keeps goes first: it locks its sessions before it asks for a job.
        erasers = settings.ERASERS if what == "everything" else []
        beside = [_counting(path)(scope) for path in erasers]
        jobs.hold(scope)
        now = timezone.now()
        _bar_sources(scope)
        counts = _erase(scope)
        MemorySettings.objects.within(scope).get_or_create(
            tenant_id=scope.tenant_id, user_id=scope.user_id
        )
        MemorySettings.objects.within(scope).update(generation=F("generation") + 1, purged_at=now)
    for more in beside:
        counts |= more
    return counts


def erase_person(scope: Scope) -> dict[str, int]:
    """Return what was erased of an account that is being deleted: everything, settings included.

    For the transaction that deletes the account or the membership: afterwards this scope has no
    row in memory's tables.
    """
    with entered(scope):
        counts = purge(scope, what="everything")
        Tombstone.objects.within(scope).delete()
        MemorySettings.objects.within(scope).delete()
    return counts


def _counting(path: str) -> Callable[[Scope], dict[str, int]]:
    found: Callable[[Scope], dict[str, int]] = import_string(path)
    return found


def _bar_sources(scope: Scope) -> None:
    """Leave a tombstone for each message that something was remembered from.

    Read in steps, by the index on sources: a person may have any number of them.
    """
    last = UUID(int=0)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "select distinct source from memory_memory where tenant_id = %s and user_id = %s"
                " and source > %s order by source limit %s",
                [scope.tenant_id, scope.user_id, last, SOURCES],
            )
            sources = [row[0] for row in cursor.fetchall()]
        if not sources:
            return
        bar(scope, sources)
        last = sources[-1]


def _erase(scope: Scope) -> dict[str, int]:
    owner = [scope.tenant_id, scope.user_id]
    counts: dict[str, int] = {}
    with connection.cursor() as cursor:
        for kind, table in _TABLES.items():
            counts[kind] = provider().purge(scope) if kind == "search keys" else 0
            cursor.execute(
                f"delete from {table} where tenant_id = %s and user_id = %s",  # noqa: S608
                owner,
            )
            counts[kind] += cursor.rowcount
        cursor.execute("delete from memory_jobticket where tenant_id = %s and user_id = %s", owner)
    return {kind: counts[kind] for kind in _RECEIPT}
