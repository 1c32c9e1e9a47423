"""Erase for good what was forgotten 30 days ago, and what has come to its end."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Min, Q
from django.utils import timezone

from accounts.scope import Scope, entered
from memory import jobs
from memory.jobs import Claim
from memory.models import Job, JobTicket, Memory, MemoryVersion
from memory.profile import changed as profile_changed
from memory.providers.base import provider
from memory.tombstones import bar

KEPT = timedelta(days=30)
ROWS = 500


def empty_later(scope: Scope) -> None:
    """Have the trash emptied when what goes into it now is due. In the caller's transaction."""
    empty_by(scope, timezone.now() + KEPT)


def empty_by(scope: Scope, at: datetime) -> None:
    """Have what is due erased at this time, if not before. In the caller's transaction."""
    waiting = Job.objects.within(scope).filter(
        kind=Job.Kind.TRASH, state__in=(Job.State.WAITING, Job.State.RUNNING)
    )
    tickets = JobTicket.objects.filter(job_id__in=waiting.values("pk"))
    due = tickets.aggregate(due=Min("due_at"))["due"]
    if due is None or due > at:
        jobs.enqueue(scope, kind=Job.Kind.TRASH, due_at=at)


def empty(claimed: Claim) -> None:
    """Erase what has been in the trash for 30 days, and what has expired.

    The messages that it came from are never learnt from again.
    """
    now = timezone.now()
    with jobs.writing(claimed) as scope:
        memories = Memory.objects.within(scope)
        due = memories.filter(
            Q(status=Memory.Status.TRASH, trashed_at__lte=now - KEPT) | Q(expires_at__lte=now)
        )
        if due.exclude(status=Memory.Status.TRASH).exists():
            profile_changed(scope)
        _erase(scope, list(due.values_list("pk", "source")[:ROWS]))
        # Still holding the scope: what is forgotten after this finds the job over, or due again.
        ends = memories.aggregate(
            trash=Min("trashed_at", filter=Q(status=Memory.Status.TRASH)), end=Min("expires_at")
        )
        next_due = [
            *([ends["trash"] + KEPT] if ends["trash"] else []),
            *([ends["end"]] if ends["end"] else []),
        ]
        if next_due:
            jobs.again(claimed, at=max(min(next_due), now))
        else:
            jobs.finish(claimed)


def make_way(scope: Scope, memory: Memory) -> None:
    """Erase what has expired and makes the same claim: a claim holds once. In the transaction."""
    # Of those that hold, as the index of claims has them: by the key alone all would be read.
    same = Memory.objects.within(scope).facts().filter(status=Memory.Status.CURRENT, key=memory.key)
    over = same.filter(expires_at__lte=timezone.now()).exclude(pk=memory.pk)
    _erase(scope, list(over.values_list("pk", "source")))


def empty_now(scope: Scope) -> int:
    """Return how many memories were erased for good: all that are in the trash, no undo.

    In steps of 500, each a transaction; the messages that they came from are never learnt from
    again.
    """
    erased = 0
    while True:
        with entered(scope):
            jobs.hold(scope)
            trash = Memory.objects.within(scope).filter(status=Memory.Status.TRASH)
            rows = list(trash.order_by("pk").values_list("pk", "source")[:ROWS])
            _erase(scope, rows)
        erased += len(rows)
        if len(rows) < ROWS:
            return erased


def _erase(scope: Scope, rows: Sequence[tuple[UUID, UUID | None]]) -> None:
    """Erase these memories with all that hangs on them; bar their sources."""
    if not rows:
        return
    bar(scope, [source for _memory, source in rows if source])
    ids = [memory for memory, _source in rows]
    provider().forget(scope, memories=ids)
    MemoryVersion.objects.within(scope).filter(memory__in=ids).delete()
    memories = Memory.objects.within(scope)
    memories.filter(would_replace__in=ids).update(would_replace=None)
    memories.filter(pk__in=ids).delete()
