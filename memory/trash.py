"""What was forgotten is kept for 30 days, and then erased for good."""

from datetime import timedelta

from django.utils import timezone

from accounts.scope import Scope
from memory import jobs
from memory.jobs import Claim
from memory.models import Job, Memory
from memory.tombstones import bar

KEPT = timedelta(days=30)
ROWS = 500


def empty_later(scope: Scope) -> None:
    """Have the trash emptied when its oldest is due. In the caller's transaction."""
    waiting = Job.objects.within(scope).filter(
        kind=Job.Kind.TRASH, state__in=(Job.State.WAITING, Job.State.RUNNING)
    )
    if not waiting.exists():
        jobs.enqueue(scope, kind=Job.Kind.TRASH, due_at=timezone.now() + KEPT)


def empty(claimed: Claim) -> None:
    """Erase what has been in the trash for 30 days; its messages are never learnt from again."""
    due = timezone.now() - KEPT
    with jobs.writing(claimed) as scope:
        trash = Memory.objects.within(scope).filter(status=Memory.Status.TRASH)
        old = list(trash.filter(trashed_at__lte=due).values_list("pk", "source")[:ROWS])
        bar(scope, [source for _memory, source in old if source])
        Memory.objects.within(scope).filter(pk__in=[memory for memory, _source in old]).delete()
        oldest = trash.order_by("trashed_at").values_list("trashed_at", flat=True).first()
        # Still holding the scope: what is forgotten after this finds the job over, or due again.
        if oldest is None:
            jobs.finish(claimed)
        else:
            jobs.again(claimed, at=max(oldest + KEPT, timezone.now()))
