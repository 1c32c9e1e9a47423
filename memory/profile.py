"""A readable profile: sentences that a model writes from current memories, each linked to them."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import Rejected
from accounts.scope import Scope, entered, write_once
from accounts.text import one_line
from memory import jobs
from memory.answers import complete_json
from memory.claims import sentence
from memory.folding import words
from memory.gate import Claimed, borne_part, other_names, shape_refusal
from memory.jobs import Claim
from memory.json_answer import numbered
from memory.model_choice import current_endpoint
from memory.models import Job, Memory, Profile
from memory.prompts import MOST_SENTENCES, PROFILE_SCHEMA, list_of, new_fence, profile_messages
from memory.suspicion import reason_for_claim

logger = logging.getLogger(__name__)

PAUSE = timedelta(seconds=60)  # several changes are written of at once
MODEL_SECONDS = 75
MOST_MEMORIES = 60
MOST_OF_A_SENTENCE = 8
BORNE = 0.5


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the profile with the memories that it rests on."""

    text: str
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class Group:
    """Memories under a heading, for a profile that nobody has written."""

    title: str
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class Shown:
    """The profile as a person sees it: sentences, or while there are none the memories grouped.

    `pending` tells that it is being written anew, `problem` why it could not be.
    """

    sentences: Sequence[Sentence] = ()
    groups: Sequence[Group] = ()
    written_at: datetime | None = None
    pending: bool = False
    problem: str = ""


def changed(scope: Scope) -> None:
    """Mark the profile stale and have it written anew soon; in the transaction of the change.

    A person who never looked at their profile has none, and nothing is done.
    """
    stale = write_once(
        scope,
        "update memory_profile set stale = true where tenant_id = %(tenant)s"
        " and user_id = %(user)s and not stale returning 1",
        {"tenant": scope.tenant_id, "user": scope.user_id},
    )
    if stale:
        jobs.enqueue(scope, kind=Job.Kind.PROFILE, due_at=timezone.now() + PAUSE)


def profile_of(scope: Scope) -> Shown:
    """Return the profile as it may be shown: no sentence whose memories are gone or changed.

    The first look has it written. Call it outside a transaction.
    """
    endpoint = current_endpoint()
    with entered(scope):
        kept, made = Profile.objects.within(scope).get_or_create(
            tenant_id=scope.tenant_id, user_id=scope.user_id
        )
        memories = _memories(scope)
        sentences = _holding(kept, memories)
        gone = len(sentences) < len(kept.sentences)
        if endpoint and memories and (made or (gone and not kept.stale)):
            jobs.enqueue(scope, kind=Job.Kind.PROFILE)
            Profile.objects.within(scope).update(stale=True)
        job = Job.objects.within(scope).filter(kind=Job.Kind.PROFILE).first()
    return Shown(
        sentences,
        [] if sentences else _grouped(memories),
        kept.written_at if sentences else None,
        pending=bool(endpoint and job and job.state in {Job.State.WAITING, Job.State.RUNNING}),
        problem=_problem(job),
    )


def _problem(job: Job | None) -> str:
    if job is not None and (job.state == Job.State.PARKED or job.result.get("rejected")):
        return _("The model's last answer could not be used.")
    return ""


def _memories(scope: Scope) -> list[Memory]:
    """Return what a profile is written of: the person's current claims, the weightiest first."""
    rows = Memory.objects.within(scope).current().holding().facts().filter(trusted=True)
    return list(rows.order_by("-safety", "-pinned", "-seen_count", "-created_at")[:MOST_MEMORIES])


def _holding(kept: Profile, memories: Sequence[Memory]) -> list[Sentence]:
    """Return the sentences of which every memory still holds, in the words that it had then."""
    now = {(str(memory.pk), memory.key): memory for memory in memories}
    shown = []
    for one in kept.sentences:
        found = [now.get(pair) for pair in zip(one["memories"], one["keys"], strict=True)]
        resting = [memory for memory in found if memory is not None]
        if len(resting) == len(found):
            shown.append(Sentence(one["text"], resting))
    return shown


def _grouped(memories: Sequence[Memory]) -> list[Group]:
    titles = {
        "safety": _("Never to be overlooked"),
        Memory.Kind.PERSONA: _("How you like your answers"),
        Memory.Kind.FACT: _("About you"),
        Memory.Kind.NOTE: _("Your notes"),
        Memory.Kind.INSIGHT: _("Patterns"),
    }
    groups: dict[str, list[Memory]] = {name: [] for name in titles}
    for memory in memories:
        groups["safety" if memory.safety else memory.kind].append(memory)
    return [Group(titles[name], found) for name, found in groups.items() if found]


@dataclass(slots=True)
class _Written:
    sentences: list[dict[str, Any]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def write_profile(claimed: Claim) -> None:
    """Write the profile anew from what holds now; sentences that say more than that are left out.

    Without a model the sentences whose memories are gone go. Raises ProviderError when the model is
    away, Overtaken when something changed meanwhile: then it is written once more.
    """
    scope, endpoint = claimed.scope, current_endpoint()
    with jobs.writing(claimed):
        Profile.objects.within(scope).update(stale=False)
        memories = _memories(scope)
    if endpoint is None or not memories:
        _keep(claimed, None)
        return
    try:
        answer = complete_json(
            endpoint,
            profile_messages([memory.text for memory in memories], fence=new_fence()),
            PROFILE_SCHEMA,
            timeout=MODEL_SECONDS,
            name="profile",
            accepts=list_of("sentences"),
        )
    except Rejected as error:
        logger.warning("job %s: the profile's answer was rejected: %s", claimed.id, error.code)
        _keep(claimed, None, rejected=error.code)
        return
    written = checked(answer["sentences"], memories)
    if not written.sentences and written.refused:
        reason = min(written.refused)
        _keep(claimed, None, rejected=reason, refused=dict(written.refused))
        return
    _keep(claimed, written.sentences, refused=dict(written.refused))


def _keep(claimed: Claim, sentences: list[dict[str, Any]] | None, **result: Any) -> None:
    with jobs.writing(claimed) as scope:
        kept = Profile.objects.within(scope).first()
        if kept is not None:
            if sentences is None:  # none were written: what no longer holds goes all the same
                held = {one.text for one in _holding(kept, _memories(scope))}
                kept.sentences = [one for one in kept.sentences if one["text"] in held]
            else:
                kept.sentences, kept.written_at = sentences, timezone.now()
            kept.save()
        jobs.finish(claimed, **result)


def checked(given: Sequence[Any], memories: Sequence[Memory]) -> _Written:
    """Return the sentences that say only what their memories say, and why others do not.

    Each names one to eight memories by their numbers, is one sentence of at most 300 characters,
    and holds no name and no number that they do not.
    """
    written = _Written()
    for one in given:
        code, text, resting = _read(one, memories)
        code = code or _refusal(text, resting)
        if not code and len(written.sentences) == MOST_SENTENCES:
            code = "too_many"
        if code:
            written.refused[code] += 1
            continue
        written.sentences.append(
            {
                "text": sentence(text),
                "memories": [str(memory.pk) for memory in resting],
                "keys": [memory.key for memory in resting],
            }
        )
    return written


def _read(given: Any, memories: Sequence[Memory]) -> tuple[str, str, list[Memory]]:
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        return "wrong_shape", "", []
    numbers = given.get("memories")
    if not isinstance(numbers, list) or not 1 <= len(numbers) <= MOST_OF_A_SENTENCE:
        return "no_memories", "", []
    places = numbered(numbers, len(memories))
    if places is None:
        return "unknown_memory", "", []
    return "", one_line(given["text"]), [memories[place] for place in places]


def _refusal(text: str, resting: Sequence[Memory]) -> str:
    code = shape_refusal(Claimed(text, "", ""), ())
    if code or reason_for_claim(text):
        return code or "suspicious"
    told = [word for memory in resting for word in words(memory.text)]
    digits = {word for word in told if any(character.isdigit() for character in word)}
    said = {word for word in words(text) if any(character.isdigit() for character in word)}
    if not said <= digits:
        return "other_number"
    if other_names(text, told):
        return "other_name"
    if borne_part(text, told) < BORNE:
        return "not_supported"
    return ""
