"""What pages and frames show of sessions, messages and replies, ready for the templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.template.loader import get_template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import Tenant
from chatapp.markdown import render
from chatapp.models import Message
from memory.tools import ShownAct

LEARNING: dict[str, Any] = {
    "state": "waiting",
    "stored": False,
    "facts": [],
    "note": "",
    "fresh": False,
}


@dataclass(slots=True)
class ShownReply:
    """A reply in any state; `recalled_count` and `learnt_view` come from memory."""

    id: UUID
    status: str
    text: str
    html: SafeString
    model: str
    created_at: datetime
    finished_at: datetime | None
    problem: str
    recalled_count: int | None
    recall_note: str
    learnt_view: Mapping[str, Any] | None
    acts: Sequence[ShownAct] = ()


@dataclass(slots=True)
class ShownExchange:
    """A question and its reply."""

    message: Message
    reply: ShownReply | None


@dataclass(slots=True)
class SessionRow:
    """One session in the sidebar."""

    id: UUID
    title: str
    last_activity_at: datetime
    message_count: int
    running: bool
    learnt: bool
    group: str


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How many memories may be recalled, and how many wait for the person's review."""

    remembered: int
    waiting: int


def shown_reply(
    reply: Message,
    *,
    recalled: int | None = None,
    learnt: Mapping[str, Any] | None = None,
    html: SafeString | None = None,
    acts: Sequence[ShownAct] = (),
) -> ShownReply:
    """Return the reply for its partial; `html` where its text is rendered already."""
    return ShownReply(
        id=reply.pk,
        status=reply.status,
        text=reply.text,
        html=render(reply.text) if html is None else html,
        model=reply.model,
        created_at=reply.created_at,
        finished_at=reply.finished_at,
        problem=reply.error,
        recalled_count=recalled,
        recall_note=reply.memory_note,
        learnt_view=learnt,
        acts=acts,
    )


def _drawn(template: str, context: dict[str, Any]) -> str:
    return get_template(template).render(context)


def exchange_html(message: Message, reply: ShownReply, tenant: Tenant) -> str:
    """Return a question with its reply, as the page shows it."""
    return _drawn("chat/exchange.html", {"message": message, "reply": reply, "tenant": tenant})


def reply_html(reply: ShownReply, tenant: Tenant) -> str:
    """Return a reply, as the page shows it."""
    return _drawn("chat/reply.html", {"reply": reply, "tenant": tenant})


def recalled_html(reply_id: UUID, count: int, note: str, tenant: Tenant) -> str:
    """Return the pill that says how many memories a reply was given."""
    context = {"reply": {"id": reply_id}, "count": count, "note": note, "tenant": tenant}
    return _drawn("chat/recalled.html", context)


def acts_html(reply_id: UUID, acts: Sequence[ShownAct], tenant: Tenant) -> str:
    """Return what the model did by itself for a reply."""
    return _drawn("chat/acts.html", {"reply": {"id": reply_id}, "acts": acts, "tenant": tenant})


def learnt_html(reply_id: UUID, learnt: Mapping[str, Any] | None, tenant: Tenant) -> str:
    """Return what was learnt from a reply's exchange."""
    context = {"reply": {"id": reply_id}, "learnt": learnt, "tenant": tenant}
    return _drawn("chat/learnt.html", context)


def memory_count_html(counts: MemoryCounts) -> str:
    """Return how much is remembered, for the foot of the sidebar."""
    return _drawn("chat/memory_count.html", {"counts": counts})


def row_html(row: SessionRow, tenant: Tenant) -> str:
    """Return a session's row for the sidebar."""
    return _drawn("chat/session_row.html", {"session": row, "tenant": tenant})


def group_of(at: datetime, zone: ZoneInfo, today: date | None = None) -> str:
    """Return the sidebar's heading for a time, by the person's own calendar."""
    today = today or timezone.now().astimezone(zone).date()
    day = at.astimezone(zone).date()
    age = (today - day).days
    if age <= 0:
        return _("Today")
    if age == 1:
        return _("Yesterday")
    if age < 7:
        return _("Last 7 days")
    return date_format(day, "F Y")
