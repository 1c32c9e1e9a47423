"""A memory's row opened: its pin, tags, end, reach and versions, each with a way back."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.door import MemberRequest, member
from accounts.errors import InvalidInput
from accounts.text import clean_text, cut
from accounts.web import SeeOther, whole_cursor
from accounts.zones import zone_of
from memory import edit as verbs
from memory import history, mark
from memory.models import Memory
from memory.recall import as_read
from memory.views import _row as row

FIELD_CHARS = 1_000


@member
@require_GET
def memory_more(request: MemberRequest, memory_id: UUID) -> HttpResponse:
    """Show one memory with all that can be done to it, and what it was before."""
    return _opened(request, verbs.one(request.membership.scope, memory_id))


def _opened(
    request: MemberRequest, found: Memory, *, status: int = 200, **context: Any
) -> HttpResponse:
    zone = zone_of(request.user.time_zone)
    # The day before the moment: what ends with a day ends at the midnight that closes it.
    ends = found.expires_at
    shown = {
        "more": True,
        "versions": history.versions(request.membership.scope, memory=found.pk),
        "tags": ", ".join(found.tags),
        "until": _day(ends, zone),
        "today": datetime.now(zone).date().isoformat(),
        "as_read": as_read(found, zone=zone),
    }
    return row(request, found, status=status, **shown | context)


def _day(at: datetime | None, zone: ZoneInfo) -> str:
    return (at.astimezone(zone) - timedelta(seconds=1)).date().isoformat() if at else ""


def _changed(
    request: MemberRequest, memory_id: UUID, change: Callable[[], Memory], **context: Any
) -> HttpResponseBase:
    """Make the change and draw the opened row; refused, with the reason."""
    try:
        found = change()
    except InvalidInput as error:
        found = verbs.one(request.membership.scope, memory_id)
        return _opened(request, found, status=400, error=str(error), **context)
    if not request.htmx:
        return SeeOther(reverse("memory_more", args=[request.tenant.slug, memory_id]))
    return _opened(request, found, **context)


@member
@require_POST
def memory_pin(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Pin a memory, or (pinned=0) unpin it: the one undoes the other."""
    pinned = request.POST.get("pinned", "1") != "0"
    found = mark.pin(request.membership.scope, memory=memory_id, pinned=pinned)
    if request.htmx:
        return row(request, found)
    return SeeOther(reverse("memory_more", args=[request.tenant.slug, memory_id]))


@member
@require_POST
def memory_tags(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Give a memory these tags, written with commas, in the place of those that it has."""
    scope = request.membership.scope
    before = verbs.one(scope, memory_id)
    given = cut(clean_text(request.POST.get("tags", "")), FIELD_CHARS, "")
    return _changed(
        request,
        memory_id,
        lambda: mark.tag(scope, memory=memory_id, tags=given.split(",")),
        back={"address": "memory_tags", "name": "tags", "value": ", ".join(before.tags)},
    )


@member
@require_POST
def memory_until(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Let a memory end with a day, where the person is; without one it has no end."""
    scope, zone = request.membership.scope, zone_of(request.user.time_zone)
    before = verbs.one(scope, memory_id)
    given = request.POST.get("until", "").strip()
    return _changed(
        request,
        memory_id,
        lambda: mark.expire(scope, memory=memory_id, at=_end_of(given, zone)),
        back={"address": "memory_until", "name": "until", "value": _day(before.expires_at, zone)},
    )


def _end_of(day: str, zone: ZoneInfo) -> datetime | None:
    if not day:
        return None
    try:
        return datetime.combine(date.fromisoformat(day) + timedelta(days=1), time(), zone)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(_("This is no day.")) from error


@member
@require_POST
def memory_reach(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Keep a memory to the session that it came from (here=1), or let it be used everywhere."""
    scope = request.membership.scope
    before = verbs.one(scope, memory_id)
    here = request.POST.get("here", "") == "1"
    if here and before.session_key is None:
        raise InvalidInput(_("It came from no session."))
    session = before.session_key if here else None
    return _changed(
        request, memory_id, lambda: mark.keep_to(scope, memory=memory_id, session=session)
    )


@member
@require_POST
def memory_restore(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Give a memory the text of an earlier version; what it says now becomes a version."""
    scope = request.membership.scope
    version = whole_cursor(request.POST.get("version", ""))
    return _changed(
        request, memory_id, lambda: verbs.restore(scope, memory=memory_id, version=version)
    )
