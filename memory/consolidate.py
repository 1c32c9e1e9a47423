"""Bring new facts among the known ones: new, confirmed, or in the place of an older one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext_noop

from accounts.scope import Scope
from memory.folding import words
from memory.models import Memory, MemoryVersion
from memory.providers.base import Entry, provider

# Kept with the memory; translated where it is shown.
SUPERSEDED = gettext_noop("A newer statement took its place.")
FORGOTTEN_WITH_FACT = gettext_noop("A fact that came from it was forgotten.")
FACT_CHANGED = gettext_noop("A fact that came from it was changed.")


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact that passed the gate, not yet stored; `entry` is what it will be found by."""

    memory: Memory
    entry: Entry
    supersedes: UUID | None = None


@dataclass(slots=True)
class Outcome:
    """What became of the drafts: ids of memories."""

    added: list[UUID] = field(default_factory=list)
    confirmed: list[UUID] = field(default_factory=list)
    superseded: list[UUID] = field(default_factory=list)


def consolidate(scope: Scope, drafts: Sequence[Draft], *, at: datetime) -> Outcome:
    """Return what became of the drafts. Call it in the transaction that holds the scope.

    The same claim is confirmed (its seen count rises). A draft that contradicts a known fact about
    the same subject takes its place; the older one is kept as past, and the exchange that it came
    from leaves recall. Whatever runs at the same time, a claim is never there twice, nor lost.
    """
    outcome = Outcome()
    for draft in drafts:
        known = known_claim(scope, draft.memory)
        if known is None and _add(scope, draft):
            outcome.added.append(draft.memory.pk)
            known = draft.memory
        else:
            confirmed = _confirm(scope, draft, at)
            if confirmed is None:
                continue
            outcome.confirmed.append(confirmed.pk)
            known = confirmed
        holds = known.status == Memory.Status.CURRENT  # what waits for review retires nothing
        if holds and draft.supersedes and draft.supersedes != known.pk:
            outcome.superseded += supersede(scope, draft.supersedes, by=known, at=at)
    return outcome


def known_claim(scope: Scope, claim: Memory) -> Memory | None:
    """Return the same claim, held true; for one that waits for review also one that waits."""
    same = Memory.objects.within(scope).facts().filter(key=claim.key)
    return same.filter(status__in={Memory.Status.CURRENT, claim.status}).order_by("status").first()


def _add(scope: Scope, draft: Draft) -> bool:
    try:
        with transaction.atomic():
            draft.memory.save(force_insert=True)
    except IntegrityError:
        return False  # Only a writer that does not hold the scope could have been first.
    if draft.memory.status == Memory.Status.CURRENT:
        provider().remember(scope, entry=draft.entry)
    return True


def _confirm(scope: Scope, draft: Draft, at: datetime) -> Memory | None:
    known = known_claim(scope, draft.memory)
    if known is not None:
        same = Memory.objects.within(scope).filter(pk=known.pk)
        same.update(seen_count=F("seen_count") + 1, updated_at=at)
    return known


def supersede(scope: Scope, old_id: UUID, *, by: Memory, at: datetime) -> list[UUID]:
    """Retire a current fact about the same subject; return its id, or nothing if it is none."""
    old = Memory.objects.within(scope).current().facts().filter(pk=old_id).first()
    if old is None or subject_of(old.text) != subject_of(by.text):
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


def subject_of(text: str) -> str:
    """Return whom a fact is about: "user", "user's sister", or its first word."""
    said = [
        word for word in words(text) if word not in {"the", "der", "die", "das", "le", "la", "el"}
    ]
    first = said[0] if said else ""
    if first.endswith("'s") and len(said) > 1:
        return f"{first} {said[1]}"
    if first in {"my", "mein", "meine", "mon", "ma", "mi"} and len(said) > 1:
        return f"user's {said[1]}"
    return "user" if first in {"i", "i'm", "i've", "ich", "je", "yo"} else first


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
