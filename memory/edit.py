"""Correct a memory, forget it, take either back: what stood before is kept as a version."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope, entered
from accounts.text import required_text
from memory import jobs
from memory.claims import is_safety
from memory.consolidate import (
    SUPERSEDED,
    confirm,
    keep_version,
    settle_exchange,
    supersede,
)
from memory.keys import findable, spell
from memory.models import MEMORY_CHARS, Memory, MemoryVersion
from memory.profile import changed as profile_changed
from memory.providers.base import provider
from memory.remember import all_embedded_or_later, embedded_or_later, make_findable
from memory.suspicion import reason_to_wait
from memory.trash import empty_later, make_way

# What `undo` takes back.
UNDOABLE = ("edited", "forgotten")


def one(scope: Scope, memory: UUID) -> Memory:
    """Return the memory; NotFound if it does not exist, is not this person's, or has expired."""
    with entered(scope):
        found = Memory.objects.within(scope).unexpired().filter(pk=memory).first()
    if found is None:
        raise NotFound
    return found


def mark_of(text: str) -> str:
    """Return what tells this text from another, for `edit`'s `seen`."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def edit(scope: Scope, *, memory: UUID, text: str, seen: str = "") -> Memory:
    """Return the memory with the person's own text, findable by it at once and by the old no more.

    The exchange that it came from leaves recall. With `seen`, the `mark_of` the text that was to be
    edited, another text is not overwritten. Raises NotFound, or InvalidInput for a text that is
    blank, too long, or remembered already. Call it outside a transaction.
    """
    text = required_text(text, what="A memory", max_chars=MEMORY_CHARS)
    if seen:
        now = one(scope, memory)
        if now.text != text and mark_of(now.text) != seen:
            sentence = _("It was changed meanwhile, and says now: %(text)s")
            raise InvalidInput(sentence % {"text": now.text})
    return _rewrite(scope, memory, text=text)


def restore(scope: Scope, *, memory: UUID, version: int | None = None) -> Memory:
    """Return the memory, back from the trash; with `version`, with the text that it had then.

    What it said until now is kept as a version, so that this can be undone too. What was past
    stays past. Raises NotFound, also for a version that it does not have, or InvalidInput when it
    is not in the trash (without `version`) or the claim was made anew. Call it outside a
    transaction.
    """
    found = one(scope, memory)
    if version is None:
        if found.status != Memory.Status.TRASH:
            raise InvalidInput(_("It is not in the trash."))
        return undo(scope, memory=memory)
    with entered(scope):
        kept = MemoryVersion.objects.within(scope).filter(memory=found, pk=version).first()
    if kept is None:
        raise NotFound
    if found.status == Memory.Status.TRASH:
        undo(scope, memory=memory)
    return _rewrite(scope, memory, text=kept.text, first_person=kept.first_person)


def _rewrite(scope: Scope, memory: UUID, *, text: str, first_person: str = "") -> Memory:
    changed = one(scope, memory)
    if changed.status == Memory.Status.TRASH:
        raise InvalidInput(_("It is in the trash. Bring it back first."))
    if changed.text == text:
        return changed
    before = changed.text
    _put(changed, text=text, first_person=first_person)
    entry = embedded_or_later(changed)
    now = timezone.now()
    with entered(scope):
        jobs.hold(scope)
        # What else became of it meanwhile (counted, superseded) stays.
        kept = _locked(scope, memory)
        if kept.text != before or kept.status == Memory.Status.TRASH:
            raise InvalidInput(_("It was changed meanwhile. Look at it again."))
        keep_version(kept, change="edited", at=now)
        _put(kept, text=text, first_person=first_person)
        _refuse_second(scope, kept)
        replaces, kept.would_replace = kept.would_replace, None
        kept.updated_at = now
        kept.save()
        if kept.status == Memory.Status.CURRENT:
            _replace(scope, replaces, by=kept, at=now)
        profile_changed(scope)
        make_findable(scope, kept, entry)
        settle_exchange(scope, _source_of_fact(kept), at=now)
    return kept


def _put(memory: Memory, *, text: str, first_person: str) -> None:
    memory.text, memory.first_person = text, first_person
    if memory.status in {Memory.Status.CURRENT, Memory.Status.WAITING}:
        memory.because = reason_to_wait(text)
        memory.status = Memory.Status.WAITING if memory.because else Memory.Status.CURRENT
    memory.trusted = True  # The person stands for these words.
    memory.safety = is_safety(text)
    spell(memory)


def _locked(scope: Scope, memory: UUID) -> Memory:
    rows = Memory.objects.within(scope).unexpired().select_for_update()
    found = rows.filter(pk=memory).first()
    if found is None:
        raise NotFound
    return found


def _refuse_second(scope: Scope, memory: Memory) -> None:
    if memory.kind == Memory.Kind.EXCHANGE or memory.status != Memory.Status.CURRENT:
        return
    make_way(scope, memory)
    same = Memory.objects.within(scope).current().facts().filter(key=memory.key)
    if same.exclude(pk=memory.pk).exists():
        raise InvalidInput(_("This is remembered already."))


def _source_of_fact(memory: Memory) -> UUID | None:
    return None if memory.kind == Memory.Kind.EXCHANGE else memory.source


def forget(scope: Scope, *, memory: UUID, restore: bool = False) -> Memory:
    """Return the memory, now in the trash for 30 days; the exchange that it came from goes with it.

    With `restore` (Undo of what was just learnt) the facts that it had superseded hold again.
    Forgetting twice is the same as once. Raises NotFound. Call it outside a transaction.
    """
    now = timezone.now()
    brought_back: list[Memory] = []
    with entered(scope):
        jobs.hold(scope)
        kept = _locked(scope, memory)
        if kept.status == Memory.Status.TRASH:
            return kept
        keep_version(kept, change="forgotten", at=now)
        kept.status, kept.trashed_at, kept.updated_at = Memory.Status.TRASH, now, now
        if kept.kind == Memory.Kind.EXCHANGE:
            kept.because = ""
        kept.save()
        provider().forget(scope, memories=[kept.pk])
        settle_exchange(scope, _source_of_fact(kept), at=now)
        empty_later(scope)
        profile_changed(scope)
        if restore:
            brought_back = _hold_again(scope, superseded_by=kept)
    make_findable_again(scope, brought_back)
    return kept


def _hold_again(scope: Scope, *, superseded_by: Memory) -> list[Memory]:
    """Make current again what this memory took the place of, unless the same claim is there."""
    again = []
    for old in (
        Memory.objects.within(scope)
        .unexpired()
        .filter(superseded_by=superseded_by, status=Memory.Status.PAST)
    ):
        same = Memory.objects.within(scope).current().facts().filter(key=old.key)
        if same.exists():
            continue
        make_way(scope, old)
        MemoryVersion.objects.within(scope).filter(memory=old, change="superseded").delete()
        old.status, old.valid_until, old.because = Memory.Status.CURRENT, None, ""
        old.updated_at = timezone.now()
        old.save()
        again += [old, *_settled(scope, old.source)]
    return again


def _settled(scope: Scope, source: UUID | None) -> list[Memory]:
    """Settle the exchange of this source; return it if it is current and needs its keys."""
    settle_exchange(scope, source, at=timezone.now())
    if source is None:
        return []
    exchanges = Memory.objects.within(scope).current().filter(source=source)
    return list(exchanges.filter(kind=Memory.Kind.EXCHANGE))


def undoable(scope: Scope, memories: Iterable[Memory]) -> dict[UUID, int]:
    """Return the version that `undo` takes back, for each of these that has one; one query."""
    with entered(scope):
        versions = MemoryVersion.objects.within(scope).filter(
            memory__in=[memory.pk for memory in memories], change__in=UNDOABLE
        )
        return dict(versions.values_list("memory_id").annotate(last=Max("pk")))


def undo(scope: Scope, *, memory: UUID, version: int | None = None) -> Memory:
    """Return the memory as it was before it was last forgotten or edited.

    `version` names what is taken back (`undoable`): asked for again, nothing more is. The exchange
    that it came from comes back with it, unless another of its facts keeps it out. Raises NotFound,
    or InvalidInput when there is nothing to undo, the claim was made anew, or the memory was
    changed since that version. Call it outside a transaction.
    """
    with entered(scope):
        jobs.hold(scope)
        kept = _locked(scope, memory)
        versions = MemoryVersion.objects.within(scope).filter(memory=kept, change__in=UNDOABLE)
        last = versions.order_by("-pk").first()
        if version is not None and (last is None or last.pk != version):
            if versions.filter(pk=version).exists():
                raise InvalidInput(_("It was changed meanwhile. Look at it again."))
            return kept
        if last is None:
            raise InvalidInput(_("There is nothing to undo."))
        kept.text, kept.first_person = last.text, last.first_person
        if last.change == "forgotten" or kept.status != Memory.Status.PAST:
            kept.status = last.status  # an older text of what was superseded does not hold again
        if kept.status != Memory.Status.TRASH:
            kept.trashed_at = None
        if kept.kind == Memory.Kind.EXCHANGE and kept.status == Memory.Status.PAST:
            kept.status = Memory.Status.CURRENT  # Its facts say below whether it may be.
        if kept.status == Memory.Status.CURRENT:
            kept.because = ""
        elif kept.status == Memory.Status.WAITING and not kept.because:
            kept.because = reason_to_wait(kept.text) or reason_to_wait(kept.answer)
        spell(kept)
        _refuse_second(scope, kept)
        kept.updated_at = timezone.now()
        kept.save()
        last.delete()
        changed = [kept, *_settled(scope, kept.source)]
        if kept.status == Memory.Status.CURRENT:
            _take_its_place_again(scope, kept)
        kept.refresh_from_db()
        profile_changed(scope)
    make_findable_again(scope, changed)
    return kept


def _take_its_place_again(scope: Scope, memory: Memory) -> None:
    """Retire once more what held again while this memory was in the trash."""
    for old in Memory.objects.within(scope).current().filter(superseded_by=memory):
        now = timezone.now()
        keep_version(old, change="superseded", at=now)
        Memory.objects.within(scope).filter(pk=old.pk).update(
            status=Memory.Status.PAST, valid_until=now, because=SUPERSEDED, updated_at=now
        )
        provider().forget(scope, memories=[old.pk])
        settle_exchange(scope, old.source, at=now)


def accept(scope: Scope, *, memory: UUID) -> Memory:
    """Return a memory that waited for review, now held true; the same claim is confirmed instead.

    Raises NotFound, or InvalidInput when it does not wait. Call it outside a transaction.
    """
    with entered(scope):
        jobs.hold(scope)
        kept = _locked(scope, memory)
        if kept.status != Memory.Status.WAITING:
            raise InvalidInput(_("It does not wait for you."))
        same = Memory.objects.within(scope).current().facts().filter(key=kept.key)
        known = same.first() if kept.kind != Memory.Kind.EXCHANGE else None
        now = timezone.now()
        if known is not None:
            _replace(scope, kept.would_replace, by=known, at=now)
            kept.delete()
            return confirm(scope, known, at=now)
        make_way(scope, kept)
        replaces, kept.would_replace = kept.would_replace, None
        kept.status, kept.because, kept.trusted = Memory.Status.CURRENT, "", True
        kept.updated_at = now
        kept.save()
        _replace(scope, replaces, by=kept, at=now)
        profile_changed(scope)
    make_findable_again(scope, [kept])
    return kept


def _replace(scope: Scope, old: UUID | None, *, by: Memory, at: datetime) -> None:
    if old is not None and old != by.pk:
        supersede(scope, old, by=by, at=at)


def make_findable_again(scope: Scope, memories: list[Memory]) -> None:
    """Embed memories that came back and tell the provider, unless they changed meanwhile."""
    back = [memory for memory in memories if findable(memory)]
    if not back:
        return
    entries = all_embedded_or_later(back)
    with entered(scope):
        jobs.hold(scope)
        for memory, entry in zip(back, entries, strict=True):
            now = Memory.objects.within(scope).filter(pk=memory.pk).first()
            if now and findable(now) and now.text == memory.text:
                make_findable(scope, now, entry)
                memory.by_words = now.by_words
