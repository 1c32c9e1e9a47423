"""What was learnt from a reply's exchange, as the chat shows it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.scope import Scope, entered
from memory.edit import undoable
from memory.exchange import read_sessions
from memory.jobs import failures
from memory.models import Job, Memory

FRESH = timedelta(seconds=30)


def learnt_for_replies(scope: Scope, reply_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return what was learnt for each of these replies that has a job; in two queries.

    Each is {state, stored, facts, note, fresh}: state is off, waiting, running, done, failed or
    parked; facts are {id, text, kind, forgotten, waiting}, with the
    version that Undo takes back where there is one. The texts come from the memories themselves, so
    that a purge leaves none.
    """
    if not reply_ids:
        return {}
    with entered(scope):
        jobs = list(
            Job.objects.within(scope).filter(kind=Job.Kind.REMEMBER, source__in=list(reply_ids))
        )
        wanted = {UUID(one) for job in jobs for one in _ids(job)}
        kept = Memory.objects.within(scope).unexpired().in_bulk(wanted)
    gone = [memory for memory in kept.values() if memory.status == Memory.Status.TRASH]
    versions = undoable(scope, gone) if gone else {}
    return {job.source: _view(job, kept, versions) for job in jobs}


def _ids(job: Job) -> list[str]:
    exchange = job.result.get("exchange")
    return [*job.result.get("facts", []), *([exchange] if exchange else [])]


def _view(job: Job, kept: dict[UUID, Memory], versions: dict[UUID, int]) -> dict[str, Any]:
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
            | ({"version": versions[fact.pk]} if fact.pk in versions else {})
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


def evidence_of(scope: Scope, memories: Sequence[Memory]) -> dict[UUID, Memory]:
    """Return what these memories rest on and the person still has, by its id; in one query."""
    ids = {pk for memory in memories for pk in memory.evidence}
    if not ids:
        return {}
    with entered(scope):
        kept = Memory.objects.within(scope).live().filter(pk__in=ids)
        return {memory.pk: memory for memory in kept}


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A job that came to nothing: what it was to do, where it is from, why, and when."""

    kind: str
    session: Any
    why: str
    at: datetime | None
    rejected: bool  # the model answered, and its answer was of no use


FAILURES_SHOWN = 50


def failed_runs(scope: Scope) -> list[FailedRun]:
    """Return the newest of what could not be remembered or learnt, each with its reason."""
    with entered(scope):
        jobs = list(failures(scope)[:FAILURES_SHOWN])
    sessions = read_sessions(scope, [job.session_key for job in jobs if job.session_key])
    return [
        FailedRun(
            kind=job.kind,
            session=sessions.get(job.session_key) if job.session_key else None,
            why=_why(job),
            at=job.finished_at,
            rejected=job.state == Job.State.DONE,
        )
        for job in jobs
    ]


def _why(job: Job) -> str:
    code = str(job.result.get("rejected", "")) if job.state == Job.State.DONE else ""
    reasons = {
        "template": _("The model repeated its instructions instead of answering."),
        "reasoning": _("The model gave its thoughts instead of an answer."),
        "not_plain_text": _("The model's answer was no plain text."),
        "too_long": _("The model's answer was too long."),
        "empty": _("The model's answer was empty."),
        "not_one_sentence": _("The model's answer was more than a sentence."),
        "wrong_shape": _("The model's answer had the wrong shape."),
        "provider_unusable": _("The model's answer held nothing that could be read."),
        "provider_length": _("The model's answer was cut off."),
        "provider_filtered": _("The model's provider withheld the answer."),
    }
    if code:
        return reasons.get(code, _("The model's answer could not be used."))
    return job.last_error.partition(": ")[2] or _("It failed several times.")
