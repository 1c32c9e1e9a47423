"""Bring new facts among the known ones: new, confirmed, in an older one's place, or rejected."""

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from uuid import UUID

from django.db.models import Case, F, Max, Q, When
from django.utils.translation import gettext_noop

from accounts.scope import Scope
from memory import jobs
from memory.claims import (
    attribute_of,
    contradicts,
    resembling_words,
    same_claim,
    same_matter,
    subject_of,
    tells_change,
)
from memory.folding import words
from memory.insert import insert
from memory.models import Job, Memory, MemoryVersion
from memory.providers.base import Entry, provider
from memory.stop_words import STOP_WORDS
from memory.terms import pairs_of

__all__ = ["Draft", "Outcome", "confirm", "consolidate", "known_claim", "subject_of", "supersede"]

RESEMBLING = 200
# Below this nearness, with no word shared, a model's word that one fact makes another untrue is not
# believed. Measured with the default embedder: "lives in Bergen" to "owns a boat" 0.33, "retired"
# to "works at Acme" 0.41, "is vegan" to "is vegetarian" 0.87.
NEAR_ENOUGH = 0.4

# Kept with the memory; translated where it is shown.
SUPERSEDED = gettext_noop("A newer statement took its place.")
FORGOTTEN_WITH_FACT = gettext_noop("A fact that came from it was forgotten.")
FACT_CHANGED = gettext_noop("A fact that came from it was changed.")
EDITED_MEANWHILE = gettext_noop("It differs from what you have written yourself meanwhile.")


@dataclass(frozen=True, slots=True)
class Old:
    """A known fact that a model says is made untrue: its text as the model read it, how near."""

    memory: UUID
    text: str
    nearness: float


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact that passed the gate, not yet stored; `entry` is what it will be found by.

    `changed` tells that the person spoke of a change in `told`: another value of an attribute is
    the newer one.
    """

    memory: Memory
    entry: Entry
    supersedes: Old | None = None
    changed: bool = False
    told: str = ""


@dataclass(slots=True)
class Outcome:
    """What became of the drafts: ids of memories, and why some were rejected."""

    added: list[UUID] = field(default_factory=list)
    confirmed: list[UUID] = field(default_factory=list)
    superseded: list[UUID] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


def consolidate(scope: Scope, drafts: Sequence[Draft], *, at: datetime) -> Outcome:
    """Return what became of the drafts. Call it in the transaction that holds the scope.

    The same claim is confirmed (its seen count rises). A draft that contradicts a known fact about
    the same subject takes its place; the older one is kept as past, and the exchange that it came
    from leaves recall. A statement that was made before the known one is kept as past itself. What
    the person wrote themselves meanwhile is not retired: the draft waits for them. Whatever runs at
    the same time, a claim is never there twice, nor lost.
    """
    outcome = Outcome()
    for draft in drafts:
        _place(scope, draft, outcome, at)
    return outcome


def _place(scope: Scope, draft: Draft, outcome: Outcome, at: datetime) -> None:
    claim = draft.memory
    resembling = _resembling(scope, claim)
    known = known_claim(scope, claim) or _said_otherwise(claim, resembling)
    if known is None:
        if claim.status == Memory.Status.WAITING and _declined(scope, claim):
            outcome.rejected["declined"] += 1
            return
        olds = _made_untrue(scope, draft, resembling)
        if any(old.source == claim.source and claim.source for old in olds):
            outcome.rejected["contradicts_itself"] += 1
            return
        _settle_time(scope, claim, olds)
        if _add(scope, draft):
            outcome.added.append(claim.pk)
            known = claim
            if claim.status == Memory.Status.PAST:
                settle_exchange(scope, claim.source, at=at)
    if known is None or known is not claim:
        known = known or known_claim(scope, claim)
        if known is None:
            return
        known = confirm(scope, known, at=at)
        outcome.confirmed.append(known.pk)
        olds = _made_untrue(scope, draft, resembling)
    if known.status == Memory.Status.CURRENT:  # what waits for review retires nothing
        for old in olds:
            if old.pk != known.pk and not stands_later(scope, old, claim):
                outcome.superseded += supersede(scope, old.pk, by=known, at=at)


def _resembling(scope: Scope, claim: Memory) -> list[Memory]:
    """Return current claims that may say the same or the contrary, as they stand now."""
    beginnings = resembling_words(claim.text)
    if not beginnings:
        return []
    says = reduce(operator.or_, (Q(folded__contains=word) for word in beginnings))
    rows = Memory.objects.within(scope).current().facts().filter(says)
    return list(rows.exclude(kind__in=_LEARNT).order_by("-created_at")[:RESEMBLING])


_LEARNT = (Memory.Kind.PERSONA, Memory.Kind.INSIGHT)


def _said_otherwise(claim: Memory, resembling: Sequence[Memory]) -> Memory | None:
    if claim.status != Memory.Status.CURRENT:
        return None
    return next((one for one in resembling if same_claim(claim.text, one.text)), None)


def _declined(scope: Scope, claim: Memory) -> bool:
    declined = Memory.objects.within(scope).filter(status=Memory.Status.DECLINED)
    return declined.filter(key=claim.key).exists()


def _made_untrue(scope: Scope, draft: Draft, resembling: Sequence[Memory]) -> list[Memory]:
    """Return the current facts that a draft makes untrue: by a written rule, or as a model says."""
    claim = draft.memory
    olds = [
        one
        for one in resembling
        if contradicts(
            claim.text,
            one.text,
            changed=draft.changed or _told_later(one, claim),
            told=draft.told,
        )
    ]
    named = draft.supersedes
    if named and named.memory not in {old.pk for old in olds}:
        old = Memory.objects.within(scope).current().facts().filter(pk=named.memory).first()
        if old and same_matter(claim.text, named.text) and _related(claim.text, named):
            olds.append(old)
    return olds


def _told_later(known: Memory, claim: Memory) -> bool:
    """Tell whether a change was spoken of after this claim was made, which is read only now."""
    return known.created_at > claim.created_at and tells_change(known.quote)


def _related(text: str, old: Old) -> bool:
    """Tell whether a fact may make another untrue at all: a boat is no matter of one's address."""
    now, was = attribute_of(text), attribute_of(old.text)
    if now and was:
        return now[0] == was[0] and now[1].split()[0] == was[1].split()[0]
    pairs = [set(pairs_of(one)) - _OF_ANY_CLAIM for one in (text, old.text)]
    if pairs[0] and pairs[1]:  # the default embedder knows few of these characters
        return bool(pairs[0] & pairs[1])
    said = [set(words(one)) - STOP_WORDS - {"user", "user's"} for one in (text, old.text)]
    return bool(said[0] & said[1]) or old.nearness >= NEAR_ENOUGH


_OF_ANY_CLAIM = frozenset(("用户", "用戶", "ユー", "ーザ", "ザー", "ーは", "户的"))


def _settle_time(scope: Scope, claim: Memory, olds: Sequence[Memory]) -> None:
    """Let a claim give way to what was said, or written by the person, after it."""
    if claim.status != Memory.Status.CURRENT:
        claim.would_replace = next((old.pk for old in olds), None)
        return
    for old in olds:
        edited = _edited_at(scope, old)
        if edited and edited > claim.created_at:
            claim.status, claim.because = Memory.Status.WAITING, EDITED_MEANWHILE
            claim.would_replace = old.pk
            return
        if old.created_at > claim.created_at:
            claim.status, claim.because = Memory.Status.PAST, SUPERSEDED
            claim.superseded_by = old
            claim.valid_until = max(old.valid_from, claim.valid_from)


def stands_later(scope: Scope, old: Memory, claim: Memory) -> bool:
    """Tell whether a memory was said, or last written by the person, after a claim was made."""
    return (_edited_at(scope, old) or old.created_at) > claim.created_at


def _edited_at(scope: Scope, memory: Memory) -> datetime | None:
    """Return when the person last wrote the text themselves; None if never."""
    edits = MemoryVersion.objects.within(scope).filter(memory=memory, change="edited")
    last: datetime | None = edits.aggregate(last=Max("at"))["last"]
    return last


def known_claim(scope: Scope, claim: Memory) -> Memory | None:
    """Return the same claim, held true; for one that waits for review also one that waits."""
    same = Memory.objects.within(scope).facts().filter(key=claim.key)
    return same.filter(status__in={Memory.Status.CURRENT, claim.status}).order_by("status").first()


def _add(scope: Scope, draft: Draft) -> bool:
    if not insert(draft.memory):
        return False  # Only a writer that does not hold the scope could have been first.
    if draft.memory.status == Memory.Status.CURRENT:
        provider().remember(scope, entry=draft.entry, fresh=True)
        embed_later(scope, draft.entry)
    return True


def embed_later(scope: Scope, entry: Entry) -> bool:
    """Tell whether a memory is found by its words alone; then let a job make its vectors.

    For the transaction in which the provider is told of it.
    """
    without = not any(unit.vectors for unit in entry.units)
    if without:
        jobs.enqueue(scope, kind=Job.Kind.EMBED)
    return without


def confirm(scope: Scope, known: Memory, *, at: datetime) -> Memory:
    """Return a claim that was made once more; one that had expired holds again."""
    same = Memory.objects.within(scope).filter(pk=known.pk)
    same.update(
        seen_count=F("seen_count") + 1,
        updated_at=at,
        expires_at=Case(When(expires_at__gt=at, then="expires_at"), default=None),
    )
    return same.get()


def supersede(scope: Scope, old_id: UUID, *, by: Memory, at: datetime) -> list[UUID]:
    """Retire a current fact about the same subject; return its id, or nothing if it is none."""
    old = Memory.objects.within(scope).current().facts().filter(pk=old_id).first()
    if old is None or not same_matter(by.text, old.text):
        return []
    keep_version(old, change="superseded", at=at)
    Memory.objects.within(scope).filter(pk=old.pk).update(
        status=Memory.Status.PAST,
        valid_until=at,
        superseded_by=by.pk,
        because=SUPERSEDED,
        updated_at=at,
    )
    provider().forget(scope, memories=[old.pk])
    settle_exchange(scope, old.source, at=at)
    return [old.pk]


def keep_version(memory: Memory, *, change: str, at: datetime) -> None:
    """Keep the memory as it stands, before a change."""
    MemoryVersion.objects.within(memory.scope).create(
        tenant_id=memory.tenant_id,
        user_id=memory.user_id,
        memory=memory,
        text=memory.text,
        first_person=memory.first_person,
        status=memory.status,
        change=change,
        at=at,
    )


def settle_exchange(scope: Scope, source: UUID | None, *, at: datetime) -> None:
    """Let the exchange that facts came from follow them: to the trash, out of recall, or back.

    Where one of its facts was forgotten it is in the trash, where one was edited or superseded it
    is past; else it is current. What the person themselves forgot, or what waits for review,
    stays as it is. It comes back without keys; the caller makes it findable again.
    """
    if source is None:
        return
    exchange = Memory.objects.within(scope).filter(source=source, kind=Memory.Kind.EXCHANGE).first()
    follows = {"", FORGOTTEN_WITH_FACT, FACT_CHANGED}
    if (
        exchange is None
        or exchange.because not in follows
        or (exchange.status != Memory.Status.CURRENT and not exchange.because)
    ):
        return
    facts = Memory.objects.within(scope).facts().filter(source=source)
    changed = MemoryVersion.objects.within(scope).filter(
        memory__in=facts, change__in=("edited", "superseded")
    )
    if facts.filter(status=Memory.Status.TRASH).exists():
        status, because = Memory.Status.TRASH, FORGOTTEN_WITH_FACT
    elif facts.filter(status=Memory.Status.PAST).exists() or changed.exists():
        status, because = Memory.Status.PAST, FACT_CHANGED
    else:
        status, because = Memory.Status.CURRENT, ""
    if status == exchange.status:
        return
    Memory.objects.within(scope).filter(pk=exchange.pk).update(
        status=status,
        because=because,
        trashed_at=at if status == Memory.Status.TRASH else None,
        valid_until=None if status == Memory.Status.CURRENT else at,
        updated_at=at,
    )
    if status != Memory.Status.CURRENT:
        provider().forget(scope, memories=[exchange.pk])
