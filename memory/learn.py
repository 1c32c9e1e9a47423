"""Learn who a person is, how they like answers, and what shows over time: persona and insights.

Off, by itself, or as proposals that wait for the person: `MemorySettings.learn`. It runs after an
exchange that says how to answer, and after some new facts; one call of the model, and each part of
its answer is checked as hard as a fact. What was declined is not proposed again.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import numpy as np
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from accounts.errors import InvalidInput, Rejected
from accounts.scope import Scope, entered
from accounts.text import one_line
from memory import embedder, jobs
from memory.answers import complete_json
from memory.claims import same_claim, sentence
from memory.consolidate import confirm, keep_version, stands_later, supersede
from memory.embedder import Vector
from memory.folding import words
from memory.gate import Claimed, about_answering, pattern_refusal, persona_refusal
from memory.jobs import WHOLE_SCOPE, Claim
from memory.json_answer import numbered
from memory.keys import entries_of, spell
from memory.model_choice import current_endpoint
from memory.model_server import Endpoint
from memory.models import Job, Memory, MemorySettings, Usage
from memory.profile import changed
from memory.prompts import (
    LEARNING_EXAMPLES,
    LEARNING_SCHEMA,
    MOST_LEARNT,
    learning_messages,
    new_fence,
)
from memory.providers.base import Entry, provider
from memory.stop_words import STOP_WORDS
from memory.suspicion import reason_for_claim
from memory.vectors import Vectors
from memory.wishes import matter_of, told_apart, wish_of

logger = logging.getLogger(__name__)

NEW_FACTS = 5
PAUSE = timedelta(seconds=60)
MODEL_SECONDS = 75
STATEMENTS = 12
FACTS = 60
EVIDENCE = 3
KEPT = 20  # of each kind; beyond, the least used is archived
DECLINED = 200
# Cosines of the default embedder. Facts that bear a pattern have 0.29 to 0.43 with it in the first
# person (0.31 to 0.58 in the third), most others 0.05 to 0.24 (0.09 to 0.30). Two wordings of what
# is no wish about answers: the mean over the whole and over its matter alone is 0.65 to 0.82 for
# most that say the same, 0.48 to 0.70 for what differs in one word ("keeps fit by running" and "by
# swimming"), and 0.90 for the whole alone joins "a formal tone" and "a friendly tone".
SAME = 0.9
DECLINED_SAME = 0.72
SAME_GROUND = 0.5  # where they rest on the same words, or on the same facts
BEARS = 0.25
BEARS_THIRD = 0.3
PROPOSED = gettext_noop("Proposed: it is used once you accept it.")
ARCHIVED = gettext_noop("Archived: there was something newer, and this was used least.")

Learn = MemorySettings.Learn


def set_learning(scope: Scope, *, mode: str, extract_on: bool | None = None) -> str:
    """Return the mode of learning after the change: off, auto or propose; InvalidInput for another.

    What was said while it was off is not learnt from when it is on again. `extract_on` says
    whether facts are looked for in what is said; None leaves it as it is.
    """
    if mode not in Learn.values:
        raise InvalidInput("There is no such mode of learning.")
    with entered(scope):
        jobs.hold(scope)
        kept, _made = MemorySettings.objects.within(scope).get_or_create(
            tenant_id=scope.tenant_id, user_id=scope.user_id
        )
        if kept.learn == Learn.OFF and mode != Learn.OFF:
            _begin_at(scope, timezone.now())
        extracting = kept.extract_on if extract_on is None else extract_on
        MemorySettings.objects.within(scope).update(learn=mode, extract_on=extracting)
    return mode


def _begin_at(scope: Scope, since: datetime) -> None:
    job, _made = Job.objects.within(scope).get_or_create(
        tenant_id=scope.tenant_id,
        user_id=scope.user_id,
        kind=Job.Kind.LEARN,
        source=WHOLE_SCOPE,
        defaults={"state": Job.State.DONE},
    )
    if job.state == Job.State.RUNNING:  # its runner would write over what is kept here
        jobs.enqueue(scope, kind=Job.Kind.LEARN, keeping=True)
    Job.objects.within(scope).filter(pk=job.pk).update(
        result=job.result | {"since": since.isoformat()}
    )


def consider(scope: Scope, claimed: Claim, said: str) -> None:
    """Have it learnt from an exchange if there is reason to; in the transaction that closes it.

    At once where the person says how they like answers; else once some facts are new.
    """
    if claimed.result.get("learn", Learn.OFF) == Learn.OFF:
        return
    if not claimed.result.get("auto_store", True) or current_endpoint() is None:
        return
    if about_answering(said):
        jobs.enqueue(scope, kind=Job.Kind.LEARN, keeping=True)
        return
    last = Job.objects.within(scope).filter(kind=Job.Kind.LEARN).first()
    if last is not None and last.state in {Job.State.WAITING, Job.State.RUNNING}:
        return
    since = _mark(last.result if last else {}, "ran_at")
    new = _facts(scope).filter(updated_at__gt=since) if since else _facts(scope)
    if new.count() >= NEW_FACTS:
        jobs.enqueue(scope, kind=Job.Kind.LEARN, due_at=timezone.now() + PAUSE, keeping=True)


def _mark(result: dict[str, Any], name: str) -> datetime | None:
    kept = result.get(name)
    return datetime.fromisoformat(kept) if kept else None


def _facts(scope: Scope) -> Any:
    kinds = (Memory.Kind.FACT, Memory.Kind.NOTE)
    return Memory.objects.within(scope).current().filter(kind__in=kinds, trusted=True)


@dataclass(frozen=True, slots=True)
class _Material:
    """What is learnt from: the person's own words of late, their facts, and what is known."""

    statements: Sequence[Memory]
    facts: Sequence[Memory]
    known: Sequence[Memory]
    declined: Sequence[Memory]


def learn_person(claimed: Claim) -> None:
    """Learn persona and insights, and close the job with what came of it and what was refused.

    Raises ProviderError when the model or the embedder is away, Overtaken after a purge.
    """
    scope = claimed.scope
    endpoint = current_endpoint()
    with entered(scope):
        off = _mode(scope) == Learn.OFF
        material = _material(scope, claimed)
    if off or endpoint is None or not (material.statements or len(material.facts) >= EVIDENCE):
        jobs.finish(claimed, nothing="off" if off else "nothing new")
        return
    jobs.renew(claimed)
    ran_at = timezone.now()
    try:
        answer = _ask(endpoint, material)
    except Rejected as error:
        logger.warning("job %s: the learner's answer was rejected: %s", claimed.id, error.code)
        jobs.finish(claimed, rejected=error.code)
        return
    found = _checked(scope, answer, material)
    if found.refused and not found.drafts and set(found.refused) <= _UNUSABLE:
        jobs.finish(claimed, rejected=min(found.refused), refused=dict(found.refused))
        return
    read = max((one.updated_at for one in material.statements), default=None)
    marks = {"ran_at": ran_at.isoformat()} | ({"read_until": read.isoformat()} if read else {})
    with jobs.writing(claimed):
        result = _store(scope, found)
        jobs.finish(claimed, refused=dict(found.refused), **result, **marks)


_UNUSABLE = {
    *("wrong_shape", "template", "reasoning", "not_plain_text", "too_long", "empty"),
    "not_one_sentence",
}


def _mode(scope: Scope) -> str:
    return MemorySettings.objects.within(scope).values_list("learn", flat=True).first() or Learn.OFF


def _material(scope: Scope, claimed: Claim) -> _Material:
    exchanges = Memory.objects.within(scope).current().filter(kind=Memory.Kind.EXCHANGE)
    since, read = _mark(claimed.result, "since"), _mark(claimed.result, "read_until")
    if since:
        exchanges = exchanges.filter(created_at__gte=since)
    if read:
        exchanges = exchanges.filter(updated_at__gt=read)
    learnt = Memory.objects.within(scope).unexpired().filter(kind__in=_KINDS)
    standing = (Memory.Status.CURRENT, Memory.Status.WAITING)
    return _Material(
        list(reversed(exchanges.order_by("-created_at")[:STATEMENTS])),
        list(_facts(scope).order_by("-updated_at")[:FACTS]),
        list(learnt.filter(status__in=standing).order_by("-updated_at")[: 4 * KEPT]),
        list(learnt.filter(_unwanted()).order_by("-updated_at")[:DECLINED]),
    )


def _unwanted() -> Q:
    """Pick what was declined; and insights that were forgotten, which rest on no new words."""
    forgotten = Q(status=Memory.Status.TRASH, kind=Memory.Kind.INSIGHT)
    return Q(status=Memory.Status.DECLINED) | forgotten


_KINDS = (Memory.Kind.PERSONA, Memory.Kind.INSIGHT)


def _ask(endpoint: Endpoint, material: _Material) -> dict[str, Any]:
    answer: dict[str, Any] = complete_json(
        endpoint,
        learning_messages(
            statements=[one.text for one in material.statements],
            facts=[one.text for one in material.facts],
            known=[one.text for one in [*material.known, *material.declined[:KEPT]]],
            evidence=EVIDENCE,
            fence=new_fence(),
        ),
        LEARNING_SCHEMA,
        timeout=MODEL_SECONDS,
        name="learning",
        accepts={"type": "object", "properties": {name: {"type": "array"} for name in _LISTS}},
    )
    if not any(name in answer for name in _LISTS):
        raise Rejected(code="wrong_shape")
    return answer


_LISTS = ("persona", "insights")


@dataclass(slots=True)
class _Found:
    """What of an answer may be kept, with its vectors; and why the rest was refused."""

    drafts: list[tuple[Memory, Entry]] = field(default_factory=list)
    known: list[UUID] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    _vectors: dict[str, Vector] = field(default_factory=dict)

    def vectors_of(self, texts: Sequence[str]) -> Vectors:
        """Return the texts' vectors; each is embedded once, whatever it is held against."""
        lacking = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if lacking:
            self._vectors |= zip(lacking, embedder.embed(lacking), strict=True)
        return cast("Vectors", np.stack([self._vectors[text] for text in texts]))


def _checked(scope: Scope, answer: dict[str, Any], material: _Material) -> _Found:
    """Return what passed: borne out by a statement or by facts, new, and not declined before."""
    found = _Found()
    memories: list[Memory] = []
    for read, given in ((_persona, answer.get("persona")), (_insight, answer.get("insights"))):
        for number, one in enumerate(given or []):
            code, memory = read(scope, one, material)
            code = "too_many" if number >= MOST_LEARNT else code
            if code or memory is None:
                found.refused[code] += 1
            else:
                memories.append(memory)
    if not memories:
        return found
    entries = entries_of(memories)
    for memory, entry in zip(memories, entries, strict=True):
        code = _again(memory, material, found)
        if code:
            found.refused[code] += 1
        else:
            found.drafts.append((memory, entry))
    return found


def _again(memory: Memory, material: _Material, found: _Found) -> str:
    """Return why it is nothing new: known, or declined, in these or in other words."""
    if _nearest(memory, material.declined, found, declined=True):
        return "declined"
    same = _nearest(memory, material.known, found)
    if same is not None:
        if same.source != memory.source:
            found.known.append(same.pk)
        return "known"
    drafts = [draft for draft, _entry in found.drafts]
    return "known" if _nearest(memory, drafts, found) else ""


def _nearest(
    memory: Memory, others: Sequence[Memory], found: _Found, *, declined: bool = False
) -> Memory | None:
    """Return which of the others says the same; of declined ones also what nearly does.

    A proposal that was declined may come back as the other kind; what is known may not.
    """
    others = [one for one in others if declined or one.kind == memory.kind]
    for one in others:
        if one.key == memory.key or same_claim(one.text, memory.text):
            return one
    wish = wish_of(memory.text)
    wishes = [wish_of(one.text) for one in others]
    if wish in wishes and wish is not None:
        return others[wishes.index(wish)]
    rest = [
        one
        for one, its in zip(others, wishes, strict=True)
        if not (wish and its) and not told_apart(one.text, memory.text)
    ]
    if not rest:
        return None
    vectors = found.vectors_of([one.text for one in [memory, *rest]])
    wholes = vectors[1:] @ vectors[0]
    if not declined:
        best = int(wholes.argmax())
        return rest[best] if wholes[best] >= SAME else None
    matters = found.vectors_of([matter_of(one.text) for one in [memory, *rest]])
    means = (wholes + matters[1:] @ matters[0]) / 2
    for one, mean in zip(rest, means, strict=True):
        if mean >= (SAME_GROUND if _same_ground(one, memory) else DECLINED_SAME):
            return one
    return None


def _same_ground(one: Memory, other: Memory) -> bool:
    """Tell whether two rest on the same words of one message, or on mostly the same facts."""
    if one.source and one.source == other.source:
        return bool(set(words(one.quote)) & set(words(other.quote)) - STOP_WORDS)
    shared = set(one.evidence) & set(other.evidence)
    return len(shared) * 2 > min(len(one.evidence), len(other.evidence))


def _persona(scope: Scope, given: Any, material: _Material) -> tuple[str, Memory | None]:
    claim = _claim(given, ("text", "first_person", "quote"))
    if claim is None:
        return "wrong_shape", None
    places = numbered([given.get("statement")], len(material.statements))
    if places is None:
        return "unknown_statement", None
    said = material.statements[places[0]]
    code = persona_refusal(claim, said.text, templates=LEARNING_EXAMPLES)
    if code:
        return code, None
    if not about_answering(said.text) and any(
        same_claim(claim.text, fact.text) for fact in material.facts
    ):
        return "known", None
    return "", _memory(
        scope,
        claim,
        kind=Memory.Kind.PERSONA,
        quote=claim.quote[:2_000],
        source=said.source,
        session_key=said.session_key,
        created_at=said.created_at,
        valid_from=said.created_at,
    )


def _insight(scope: Scope, given: Any, material: _Material) -> tuple[str, Memory | None]:
    claim = _claim(given, ("text", "first_person"))
    if claim is None or not isinstance(given.get("facts"), list):
        return "wrong_shape", None
    places = numbered(given["facts"], len(material.facts))
    if places is None:
        return "unknown_fact", None
    cited = [material.facts[place] for place in places]
    if len(cited) < EVIDENCE:
        return "too_little_evidence", None
    code = pattern_refusal(claim.text, [fact.text for fact in cited], templates=LEARNING_EXAMPLES)
    if code:
        return code, None
    bearing = _bearing(claim, cited)
    if len(bearing) < EVIDENCE:
        return "not_supported", None
    return "", _memory(
        scope, claim, kind=Memory.Kind.INSIGHT, evidence=[fact.pk for fact in bearing]
    )


def _bearing(claim: Claimed, facts: Sequence[Memory]) -> list[Memory]:
    """Return the facts that bear a pattern: they share a word with it, or are near in meaning."""
    said = set(words(claim.text)) - STOP_WORDS
    # Both in one person: a claim in the first is farther from one in the third than its matter is.
    first = [claim.first_person, *(fact.first_person for fact in facts)]
    third = [claim.text, *(fact.text for fact in facts)]
    vectors = embedder.embed(first if all(first) else third)
    scores = vectors[1:] @ vectors[0]
    near = BEARS if all(first) else BEARS_THIRD
    return [
        fact
        for fact, score in zip(facts, scores, strict=True)
        if score >= near or said & (set(words(fact.text)) - STOP_WORDS)
    ]


def _claim(given: Any, needed: Sequence[str]) -> Claimed | None:
    if not isinstance(given, dict) or not all(isinstance(given.get(one), str) for one in needed):
        return None
    return Claimed(
        text=one_line(given["text"]),
        first_person=one_line(given["first_person"]),
        quote=given.get("quote", ""),
    )


def _memory(scope: Scope, claim: Claimed, **given: Any) -> Memory:
    text = sentence(claim.text)
    return spell(
        Memory(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            text=text,
            first_person=claim.first_person if claim.first_person != text else "",
            origin=Memory.Origin.OWN_WORDS,
            because=reason_for_claim(text) or reason_for_claim(claim.first_person),
            **given,
        )
    )


def _store(scope: Scope, found: _Found) -> dict[str, Any]:
    """Return what was kept, as the mode now is; in the transaction that closes the job."""
    mode, now = _mode(scope), timezone.now()
    if mode == Learn.OFF:
        return {"nothing": "off"}
    kept: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for memory, entry in found.drafts:
        contrary = _contrary(scope, memory)
        overtaken = any(stands_later(scope, one, memory) for one in contrary)
        if overtaken or not _still_rests(scope, memory) or _there(scope, memory):
            found.refused["overtaken"] += 1
            continue
        waits = mode == Learn.PROPOSE or memory.because
        memory.status = Memory.Status.WAITING if waits else Memory.Status.CURRENT
        memory.because = memory.because or (PROPOSED if waits else "")
        memory.would_replace = contrary[0].pk if waits and contrary else None
        memory.save(force_insert=True)
        kept[memory.kind].append(str(memory.pk))
        if memory.status == Memory.Status.CURRENT:
            provider().remember(scope, entry=entry)
            for old in contrary:
                supersede(scope, old.pk, by=memory, at=now)
    for known in Memory.objects.within(scope).filter(pk__in=found.known):
        confirm(scope, known, at=now)
    archived = [str(one) for kind in _KINDS for one in archive_least_used(scope, kind=kind)]
    if any(kept.values()):
        changed(scope)
    return {"kept": kept, "archived": archived}


def _contrary(scope: Scope, memory: Memory) -> list[Memory]:
    """Return what was learnt of the answers and can't be followed beside this."""
    wish = wish_of(memory.text)
    if wish is None or memory.kind != Memory.Kind.PERSONA:
        return []
    learnt = Memory.objects.within(scope).current().filter(kind=Memory.Kind.PERSONA)
    wishes = [(one, wish_of(one.text)) for one in learnt.order_by("created_at")]
    return [one for one, its in wishes if its is not None and wish.against(its)]


def _there(scope: Scope, memory: Memory) -> bool:
    """Tell whether the same is there by now, in whatever state: also forgotten from this message.

    What was forgotten may be learnt again from what is said later, not from the same words.
    """
    same = Memory.objects.within(scope).filter(key=memory.key, kind__in=_KINDS)
    standing = (Memory.Status.CURRENT, Memory.Status.WAITING, Memory.Status.DECLINED)
    trash = same.filter(status=Memory.Status.TRASH)
    again = trash.filter(source=memory.source) if memory.source else trash
    claim = Memory.objects.within(scope).current().facts().filter(key=memory.key)
    return same.filter(status__in=standing).exists() or again.exists() or claim.exists()


def _still_rests(scope: Scope, memory: Memory) -> bool:
    """Tell whether what it was learnt from still holds: its facts, or the exchange of its words."""
    current = Memory.objects.within(scope).current()
    if memory.kind == Memory.Kind.INSIGHT:
        return current.filter(pk__in=memory.evidence).count() == len(memory.evidence)
    return current.filter(kind=Memory.Kind.EXCHANGE, source=memory.source).exists()


def archive_least_used(scope: Scope, *, kind: str) -> list[UUID]:
    """Return what of a kind went to the past because there are more than KEPT; in a transaction.

    The least used and oldest first; nothing pinned. They are not lost: they stay in the list.
    """
    rows = Memory.objects.within(scope).current().filter(kind=kind)
    over = rows.count() - KEPT
    if over <= 0:
        return []
    loose = list(rows.filter(pinned=False))
    used = dict(
        Usage.objects.within(scope)
        .filter(memory__in=[one.pk for one in loose])
        .values_list("memory_id", "recalled_count")
    )
    loose.sort(key=lambda one: (used.get(one.pk, 0), one.updated_at))
    now = timezone.now()
    gone = loose[:over]
    for one in gone:
        keep_version(one, change="archived", at=now)
    ids = [one.pk for one in gone]
    Memory.objects.within(scope).filter(pk__in=ids).update(
        status=Memory.Status.PAST, because=ARCHIVED, valid_until=now, updated_at=now
    )
    provider().forget(scope, memories=ids)
    return ids
