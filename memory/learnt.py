"""What was learnt from a reply's exchange, as the chat shows it."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.scope import Scope, entered, read_once
from memory.edit import UNDOABLE
from memory.exchange import read_sessions
from memory.jobs import failures
from memory.models import Job, Memory

FRESH = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Run:
    """What is kept of a job, and the memories that it made and that may be shown, by their ids."""

    state: str
    result: Mapping[str, Any]
    last_error: str
    finished_at: datetime | None
    made: dict[str, "_Made"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Made:
    """A memory as the chat shows it; `version` is what Undo takes back of one in the trash."""

    id: UUID
    text: str
    kind: str
    status: str
    version: int | None


# Written out: every open page reads it after each reply.
_RUNS = """
select j.source, j.state, j.result, j.last_error, j.finished_at,
  m.id, m.text, m.kind, m.status, case when m.status = 'trash' then (
    select max(v.id) from memory_memoryversion v where v.tenant_id = m.tenant_id
      and v.user_id = m.user_id and v.memory_id = m.id and v.change = any(%(undoable)s)) end
from memory_job j
left join lateral (
  select jsonb_array_elements_text(coalesce(j.result -> 'facts', '[]'))::uuid as id
  union all select (j.result ->> 'exchange')::uuid
) told on true
left join memory_memory m on m.tenant_id = j.tenant_id and m.user_id = j.user_id and m.id = told.id
  and (m.expires_at is null or m.expires_at > now())
where j.tenant_id = %(tenant)s and j.user_id = %(user)s and j.kind = 'remember'
  and j.source = any(%(replies)s)
"""


def learnt_for_replies(scope: Scope, reply_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return what was learnt for each of these replies that has a job; in one query.

    Each is {state, stored, facts, note, fresh}: state is off, waiting, running, done, failed or
    parked; facts are {id, text, kind, forgotten, waiting}, with the
    version that Undo takes back where there is one. The texts come from the memories themselves, so
    that a purge leaves none.
    """
    if not reply_ids:
        return {}
    given = {
        "tenant": scope.tenant_id,
        "user": scope.user_id,
        "replies": list(reply_ids),
        "undoable": list(UNDOABLE),
    }
    runs: dict[UUID, _Run] = {}
    for source, state, result, last_error, finished_at, *made in read_once(scope, _RUNS, given):
        if source not in runs:
            runs[source] = _Run(state, json.loads(result), last_error, finished_at)
        if made[0] is not None:
            runs[source].made[str(made[0])] = _Made(*made)
    return {source: _view(run) for source, run in runs.items()}


def _view(run: _Run) -> dict[str, Any]:
    facts = [run.made[one] for one in run.result.get("facts", []) if one in run.made]
    stored = run.made.get(run.result.get("exchange") or "")
    return {
        "state": _state(run),
        "stored": stored is not None and stored.status != Memory.Status.TRASH,
        "facts": [
            {
                "id": fact.id,
                "text": fact.text,
                "kind": fact.kind,
                "forgotten": fact.status == Memory.Status.TRASH,
                "waiting": fact.status == Memory.Status.WAITING,
            }
            | ({} if fact.version is None else {"version": fact.version})
            for fact in facts
        ],
        "note": _note(run),
        "fresh": run.finished_at is not None and timezone.now() - run.finished_at < FRESH,
    }


def _state(job: _Run) -> str:
    if job.state == Job.State.DONE:
        if job.result.get("rejected"):
            return "failed"
        off = not job.result.get("auto_store", True) and not job.result.get("facts")
        return "off" if off else "done"
    if job.state == Job.State.WAITING and job.last_error:
        return "waiting"
    return str(job.state)


def _note(job: _Run) -> str:
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
