"""What waits for the person: take it, decline it, take all; trust what others said."""

from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope, entered
from memory import edit, jobs
from memory.consolidate import keep_version
from memory.learn import archive_least_used
from memory.models import Memory
from memory.profile import changed
from memory.providers.base import provider
from memory.suspicion import reason_to_wait

AT_ONCE = 200
DECLINED = gettext_noop("You declined it; it is not proposed again.")


def accept(scope: Scope, *, memory: UUID) -> Memory:
    """Return the memory, now held true and trusted: it waited, was declined, or was not trusted.

    What it is to replace is retired. Beyond the most of persona or insights the least used is
    archived. Raises NotFound, or InvalidInput when there is nothing to accept. Call it outside a
    transaction.
    """
    found = edit.one(scope, memory)
    if found.status == Memory.Status.CURRENT and not found.trusted:
        return _trust(scope, memory)
    if found.status == Memory.Status.DECLINED:
        _set(scope, memory, of=Memory.Status.DECLINED, to=Memory.Status.WAITING, because="")
    taken = edit.accept(scope, memory=memory)
    if taken.kind in {Memory.Kind.PERSONA, Memory.Kind.INSIGHT}:
        with entered(scope):
            jobs.hold(scope)
            archive_least_used(scope, kind=taken.kind)
    return taken


def _trust(scope: Scope, memory: UUID) -> Memory:
    with entered(scope):
        jobs.hold(scope)
        rows = Memory.objects.within(scope).current().filter(pk=memory)
        if not rows.update(trusted=True, because="", updated_at=timezone.now()):
            raise NotFound
        trusted = rows.get()
        changed(scope)
    edit.make_findable_again(scope, [trusted])
    return trusted


def decline(scope: Scope, *, memory: UUID) -> Memory:
    """Return the memory, now declined: it is used nowhere and not proposed again.

    Declining twice is the same as once. Raises NotFound, or InvalidInput when it does not wait.
    Call it outside a transaction.
    """
    found = edit.one(scope, memory)
    if found.status == Memory.Status.DECLINED:
        return found
    if found.status == Memory.Status.CURRENT and not found.trusted:
        return _set(
            scope, memory, of=Memory.Status.CURRENT, to=Memory.Status.DECLINED, because=DECLINED
        )
    return _set(
        scope, memory, of=Memory.Status.WAITING, to=Memory.Status.DECLINED, because=DECLINED
    )


def _set(scope: Scope, memory: UUID, *, of: str, to: str, because: str) -> Memory:
    with entered(scope):
        jobs.hold(scope)
        rows = Memory.objects.within(scope).unexpired()
        kept = rows.filter(pk=memory, status=of).first()
        if kept is None:
            raise InvalidInput(_("It does not wait for you."))
        now = timezone.now()
        keep_version(
            kept, change="declined" if to == Memory.Status.DECLINED else "proposed", at=now
        )
        kept.status, kept.because, kept.updated_at = to, because, now
        kept.save()
        provider().forget(scope, memories=[kept.pk])
    return kept


def acceptable(scope: Scope) -> list[UUID]:
    """Return what waits and may be accepted all at once, oldest first, at most AT_ONCE.

    What gives orders or claims to be the system is looked at one by one.
    """
    with entered(scope):
        waiting = Memory.objects.within(scope).unexpired().filter(status=Memory.Status.WAITING)
        rows = list(waiting.order_by("created_at")[: 2 * AT_ONCE])
    plain = [one.pk for one in rows if not reason_to_wait(f"{one.text}\n{one.answer}")]
    return plain[:AT_ONCE]


def accept_all(scope: Scope) -> int:
    """Return how many of what waits were accepted (`acceptable`)."""
    taken = 0
    for memory in acceptable(scope):
        try:
            accept(scope, memory=memory)
        except (InvalidInput, NotFound):
            continue  # decided in another tab meanwhile
        taken += 1
    return taken
