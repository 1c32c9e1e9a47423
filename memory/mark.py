"""Mark a memory without changing what it says: pinned, tagged, with an end, kept to one session.

Each verb returns the memory as it is afterwards; called again with what was there before, it is
undone. Who has a page open in two places changes only what the last act names.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope, entered
from accounts.text import one_line
from memory import jobs
from memory.edit import make_findable_again
from memory.models import Memory
from memory.profile import changed as profile_changed
from memory.trash import empty_by

MOST_TAGS = 12
TAG_CHARS = 40
LAST_END = datetime(9990, 1, 1, tzinfo=UTC)  # a day in every time zone, with years to spare


def pin(scope: Scope, *, memory: UUID, pinned: bool = True) -> Memory:
    """Return the memory, now pinned: it goes before the model whatever is asked, while it fits.

    With `pinned=False` it is one among the others again. Raises NotFound, or InvalidInput for what
    is not remembered now. Call it outside a transaction.
    """
    changed = _changed(scope, memory, pinned=pinned)
    make_findable_again(scope, [changed])  # a provider's entry holds whether it is pinned
    return changed


def tag(scope: Scope, *, memory: UUID, tags: Iterable[str]) -> Memory:
    """Return the memory with exactly these tags: see `normal_tags`. Raises NotFound, InvalidInput.

    Call it outside a transaction.
    """
    return _changed(scope, memory, tags=normal_tags(tags))


def normal_tags(tags: Iterable[str]) -> list[str]:
    """Return the tags without case, doubles, blanks and a leading `#`, in order of the alphabet.

    InvalidInput for more than 12 of them, or one of more than 40 characters.
    """
    found = set()
    for given in tags:
        text = one_line(str(given)).lstrip("#").strip().casefold().replace(",", " ")
        text = " ".join(text.split())
        if len(text) > TAG_CHARS:
            raise InvalidInput(_("A tag has at most %d characters.") % TAG_CHARS)
        if text:
            found.add(text)
    if len(found) > MOST_TAGS:
        raise InvalidInput(_("A memory has at most %d tags.") % MOST_TAGS)
    return sorted(found)


def expire(scope: Scope, *, memory: UUID, at: datetime | None) -> Memory:
    """Return the memory, which ends at this time (aware); None: it has no end.

    From then on it is in no list, no search and no prompt, and soon erased for good. Raises
    NotFound, or InvalidInput for a time that is past, without a zone or beyond the calendar. Call
    it outside a transaction.
    """
    if at is not None and (timezone.is_naive(at) or at <= timezone.now()):
        raise InvalidInput(_("The end must be a time that is still to come."))
    if at is not None and at > LAST_END:
        raise InvalidInput(_("The end is too far away: choose none, or an earlier one."))
    return _changed(scope, memory, expires_at=at)


def keep_to(scope: Scope, *, memory: UUID, session: UUID | None) -> Memory:
    """Return the memory, now used in this session alone; None: everywhere.

    Raises NotFound, InvalidInput. Call it outside a transaction.
    """
    reach = Memory.Reach.PERSONAL if session is None else Memory.Reach.SESSION
    changed = _changed(scope, memory, reach=reach, reach_key=session)
    make_findable_again(scope, [changed])
    return changed


def _changed(scope: Scope, memory: UUID, **fields: Any) -> Memory:
    with entered(scope):
        jobs.hold(scope)
        kept = Memory.objects.within(scope).unexpired().filter(pk=memory).first()
        if kept is None:
            raise NotFound
        if kept.status == Memory.Status.TRASH:
            raise InvalidInput(_("It is in the trash. Bring it back first."))
        for name, value in fields.items():
            setattr(kept, name, value)
        kept.updated_at = timezone.now()
        kept.save(update_fields=[*fields, "updated_at"])
        if fields.get("expires_at"):
            empty_by(scope, fields["expires_at"])
        if not fields.keys() & {"pinned", "tags"}:
            profile_changed(scope)
    return kept
