"""What was learnt from a reply's exchange, as the chat shows it."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.scope import Scope, entered
from memory.models import Job, Memory

FRESH = timedelta(seconds=30)


def learnt_for_replies(scope: Scope, reply_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return what was learnt for each of these replies that has a job; in two queries.

    Each is {state, stored, facts, note, fresh}: state is off, waiting, running, done, failed or
    parked; facts are {id, text, kind, forgotten}. The texts come from the memories themselves, so
    that a purge leaves none.
    """
    if not reply_ids:
        return {}
    with entered(scope):
        jobs = list(
            Job.objects.within(scope).filter(kind=Job.Kind.REMEMBER, source__in=list(reply_ids))
        )
        wanted = {UUID(one) for job in jobs for one in _ids(job)}
        kept = {memory.pk: memory for memory in Memory.objects.within(scope).filter(pk__in=wanted)}
    return {job.source: _view(job, kept) for job in jobs}


def _ids(job: Job) -> list[str]:
    exchange = job.result.get("exchange")
    return [*job.result.get("facts", []), *([exchange] if exchange else [])]


def _view(job: Job, kept: dict[UUID, Memory]) -> dict[str, Any]:
    facts = [kept[UUID(one)] for one in job.result.get("facts", []) if UUID(one) in kept]
    exchange = job.result.get("exchange")
    stored = kept.get(UUID(exchange)) if exchange else None
    return {
        "state": _state(job),
        "stored": stored is not None and stored.status != Memory.Status.TRASH,
        "facts": [
            {
                "id": fact.pk,
                "text": fact.text,
                "kind": fact.kind,
                "forgotten": fact.status == Memory.Status.TRASH,
                "waiting": fact.status == Memory.Status.WAITING,
            }
            for fact in facts
        ],
        "note": _note(job),
        "fresh": job.finished_at is not None and timezone.now() - job.finished_at < FRESH,
    }


def _state(job: Job) -> str:
    if job.state == Job.State.DONE:
        if job.result.get("rejected"):
            return "failed"
        off = not job.result.get("auto_store", True) and not job.result.get("facts")
        return "off" if off else "done"
    if job.state == Job.State.WAITING and job.last_error:
        return "waiting"
    return str(job.state)


def _note(job: Job) -> str:
    if job.state == Job.State.PARKED:
        return _("Facts could not be learnt after several tries.")
    if job.result.get("rejected"):
        return _("No facts were learnt: the model's answer could not be used.")
    if job.state == Job.State.WAITING and job.last_error:
        return _("Facts could not be learnt yet. It is tried again by itself.")
    return ""
