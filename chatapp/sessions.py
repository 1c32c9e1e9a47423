"""Sessions: begin one with its first message, list, read, rename, delete."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import connection

from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope, entered, read_once
from accounts.text import one_line, required_text
from chatapp.frames import message_text
from chatapp.models import NEW_SESSION, TITLE_CHARS, ChatSession, Message, ReplyTicket
from chatapp.shown import SessionRow, ShownExchange, group_of, shown_reply
from chatapp.turn import Begun, begin_in
from memory.learnt import learnt_for_replies
from memory.recall import counts_for_replies
from memory.tools import shown_acts

PAGE = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(r"(\d{1,17})-([0-9a-f]{32})")


def create(scope: Scope, *, text: str, client_id: UUID) -> Begun:
    """Return a new session with its first message and a reply that waits for a process.

    Asked for again with the same client_id, the session that it made then. Raises InvalidInput
    for a text that can't be used.
    """
    text = message_text(text)
    with entered(scope):
        with connection.cursor() as cursor:
            # Two tries of one browser come one after the other.
            cursor.execute(
                "select pg_advisory_xact_lock(%s, hashtext(%s))",
                [scope.user_id % 2**31, str(client_id)],
            )
        stored = Message.objects.within(scope).filter(client_id=client_id, position=1).first()
        session_id = stored.session_id if stored else _new(scope).pk
        return begin_in(scope, session_id, text=text, client_id=client_id, claiming=False)


def _new(scope: Scope) -> ChatSession:
    session = ChatSession(tenant_id=scope.tenant_id, user_id=scope.user_id, title=NEW_SESSION)
    session.save(force_insert=True)
    return session


def rename(scope: Scope, session_id: UUID, *, title: str) -> ChatSession:
    """Return the session under its new title. It keeps its place in the list.

    Raises NotFound, or InvalidInput for a title that is blank or over 100 characters.
    """
    title = one_line(required_text(title, what="The title", max_chars=TITLE_CHARS * 10))
    if len(title) > TITLE_CHARS:
        raise InvalidInput(f"The title is too long: {len(title)} of {TITLE_CHARS} characters.")
    with entered(scope):
        if not ChatSession.objects.within(scope).filter(pk=session_id).update(title=title):
            raise NotFound
        return ChatSession.objects.within(scope).get(pk=session_id)


def set_auto_store(scope: Scope, session_id: UUID, *, on: bool | None) -> ChatSession:
    """Return the session, which is remembered or not from now on; None: as the person has set it.

    What was said before stays as it is. Raises NotFound.
    """
    with entered(scope):
        if not ChatSession.objects.within(scope).filter(pk=session_id).update(auto_store=on):
            raise NotFound
        return ChatSession.objects.within(scope).get(pk=session_id)


def delete(scope: Scope, session_id: UUID) -> list[UUID]:
    """Erase the session with its messages; what was remembered stays. Raises NotFound.

    Returns the replies that were running or waiting: their process finds no row for them.
    """
    with entered(scope):
        found = ChatSession.objects.within(scope).filter(pk=session_id).select_for_update()
        if not found.exists():
            raise NotFound
        tickets = ReplyTicket.objects.filter(session_id=session_id)
        running = list(tickets.values_list("reply_id", flat=True))
        tickets.delete()
        with connection.cursor() as cursor:
            # One statement, as many as there are: the model's own delete reads all of them first.
            cursor.execute(
                "delete from chatapp_message"
                " where tenant_id = %s and user_id = %s and session_id = %s",
                [scope.tenant_id, scope.user_id, session_id],
            )
            cursor.execute(
                "delete from chatapp_chatsession where tenant_id = %s and user_id = %s and id = %s",
                [scope.tenant_id, scope.user_id, session_id],
            )
    return running


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Up to 50 sessions, newest activity first, and the cursor of the next page ("" at the end)."""

    rows: Sequence[SessionRow]
    next: str


_ROWS = """
select s.id, s.title, s.last_activity_at, s.message_count,
  exists (select 1 from chatapp_replyticket t where t.session_id = s.id),
  exists (select 1 from memory_memory m where m.tenant_id = s.tenant_id and m.user_id = s.user_id
    and m.session_key = s.id and m.kind <> 'exchange' and m.status = 'current'
    and (m.expires_at is null or m.expires_at > now()))
from chatapp_chatsession s where s.tenant_id = %(tenant)s and s.user_id = %(user)s
"""


def page(scope: Scope, *, zone: ZoneInfo, before: str = "") -> SessionPage:
    """Return a page of the list. New sessions shift no page; InvalidInput for a foreign cursor."""
    given: dict[str, object] = {"tenant": scope.tenant_id, "user": scope.user_id}
    query = _ROWS
    if before:
        at, pk = _place(before)
        query += " and (s.last_activity_at, s.id) < (%(at)s, %(pk)s)"
        given |= {"at": at, "pk": pk}
    query += f" order by s.last_activity_at desc, s.id desc limit {PAGE + 1}"
    found = [_row(row, zone) for row in read_once(scope, query, given)]
    rows = found[:PAGE]
    return SessionPage(rows, _cursor(rows[-1]) if len(found) > PAGE else "")


def row(scope: Scope, session_id: UUID, *, zone: ZoneInfo) -> SessionRow | None:
    """Return one session's row, or None if it isn't in the scope."""
    given = {"tenant": scope.tenant_id, "user": scope.user_id, "id": session_id}
    found = read_once(scope, f"{_ROWS} and s.id = %(id)s", given)
    return _row(found[0], zone) if found else None


def _row(values: tuple[Any, ...], zone: ZoneInfo) -> SessionRow:
    id, title, at, count, running, learnt = values
    return SessionRow(id, title, at, count, running, learnt, group_of(at, zone))


def _cursor(last: SessionRow) -> str:
    return f"{(last.last_activity_at - _EPOCH) // timedelta(microseconds=1)}-{last.id.hex}"


def _place(cursor: str) -> tuple[datetime, UUID]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("This is no place in the list.")
    return _EPOCH + timedelta(microseconds=int(match[1])), UUID(match[2])


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session with the last of its exchanges; `older` is the place to go on before, or None."""

    session: ChatSession
    exchanges: Sequence[ShownExchange]
    older: int | None


def read(scope: Scope, session_id: UUID, *, before: int | None = None) -> Conversation:
    """Return the session's last 50 exchanges, or those before a position. Raises NotFound."""
    with entered(scope):
        session = ChatSession.objects.within(scope).filter(pk=session_id).first()
        if session is None:
            raise NotFound
        messages = Message.objects.within(scope).filter(session_id=session_id)
        questions = messages.filter(role=Message.Role.USER)
        if before is not None:
            questions = questions.filter(position__lt=before)
        found = list(questions.order_by("-position")[: PAGE + 1])
        asked = found[:PAGE][::-1]
        replies = messages.replies().filter(question_id__in=[message.pk for message in asked])
        by_question = {reply.question_id: reply for reply in replies}
    ids = [reply.pk for reply in by_question.values()]
    counts, learnt = counts_for_replies(scope, ids), learnt_for_replies(scope, ids)
    acts = shown_acts(scope, {one.pk: one.tool_calls or [] for one in by_question.values()})
    exchanges = []
    for message in asked:
        reply = by_question.get(message.pk)
        shown = None
        if reply is not None:
            shown = shown_reply(
                reply,
                recalled=counts.get(reply.pk),
                learnt=learnt.get(reply.pk),
                acts=acts.get(reply.pk, ()),
            )
        exchanges.append(ShownExchange(message, shown))
    return Conversation(session, exchanges, asked[0].position if len(found) > PAGE else None)


def reply_of(scope: Scope, reply_id: UUID, *, session_id: UUID | None = None) -> Message:
    """Return a reply; NotFound if it isn't in the scope (or, when given, in that session)."""
    with entered(scope):
        found = Message.objects.within(scope).replies().filter(pk=reply_id)
        if session_id is not None:
            found = found.filter(session_id=session_id)
        reply = found.first()
    if reply is None:
        raise NotFound
    return reply


@dataclass(frozen=True, slots=True)
class Pending:
    """What is still happening in a session: replies with their status, what is being learnt."""

    running: list[tuple[UUID, str]]
    learning: list[UUID]
    messages: int


def pending(scope: Scope, session_id: UUID) -> Pending:
    """Return what runs, waits or is being learnt in the session. Raises NotFound."""
    rows = read_once(
        scope,
        "select s.message_count,"
        " (select coalesce(json_agg(json_build_array(m.id, m.status) order by m.position), '[]')"
        "  from chatapp_replyticket t join chatapp_message m on m.id = t.reply_id"
        "  where t.session_id = s.id and m.status in ('waiting', 'streaming')),"
        " (select coalesce(json_agg(j.source), '[]') from memory_job j"
        "  where j.tenant_id = s.tenant_id and j.user_id = s.user_id and j.session_key = s.id"
        "  and j.kind = 'remember' and j.state in ('waiting', 'running'))"
        " from chatapp_chatsession s"
        " where s.tenant_id = %(tenant)s and s.user_id = %(user)s and s.id = %(id)s",
        {"tenant": scope.tenant_id, "user": scope.user_id, "id": session_id},
    )
    if not rows:
        raise NotFound
    count, running, learning = rows[0]
    return Pending(
        [(UUID(reply), status) for reply, status in running],
        [UUID(source) for source in learning],
        count,
    )
