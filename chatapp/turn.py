"""One turn: a question stored, its reply claimed by one process, filled, and ended.

    begin      the question and an empty reply, in one transaction; claimed at once if none runs
    claim      a waiting reply becomes this process's, or stays somebody else's
    keep       the text so far, with a longer lease
    finish     text and status, with the job "remember this exchange"; the next one is claimed
    interrupt  a reply whose process is gone
    stop, retry

Each is one short transaction in the scope, to be run in a thread (chatapp.steps). Nothing here
waits for a network. A reply is this process's while its row says `streaming` with this `attempt`;
every later write asks for both, so that a process that was too late changes nothing.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.door import WELCOMED, welcomed
from accounts.errors import AppError, InvalidInput, NotFound, TooMuch
from accounts.scope import Scope, entered, entered_with, write_once
from accounts.text import cut, one_line
from chatapp.frames import message_text
from chatapp.models import NEW_SESSION, TITLE_CHARS, ChatSession, Message, ReplyTicket
from chatapp.window import Said, window
from memory import remember, tools
from memory.tools import Allowed, ShownAct
from memory.vectors import Embedded

LEASE = timedelta(seconds=15)
# A waiting reply is claimed by whoever ends the one before it; after this, by anybody.
PATIENCE = timedelta(seconds=3)
MOST_WAITING = 50

Status = Message.Status
ENDED = frozenset(
    {Status.STOPPED, Status.LENGTH, Status.FILTERED, Status.INTERRUPTED, Status.FAILED}
)
REMEMBERED = frozenset({Status.COMPLETE, Status.STOPPED, Status.LENGTH})


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply that this process has claimed, with all that its prompt needs."""

    scope: Scope
    session_id: UUID
    reply_id: UUID
    attempt: int
    question: Said
    history: Sequence[Said]
    so_far: str = ""
    # What this reply did in an earlier try, what the model may do now, and the memories that the
    # calls in the window and these point to, as they read now.
    calls: Sequence[Mapping[str, Any]] = ()
    allowed: Allowed = field(default_factory=Allowed)
    texts: Mapping[UUID, str] = field(default_factory=dict)

    @property
    def sources(self) -> list[UUID]:
        """The messages that the model is shown anyway."""
        return [id for said in (*self.history, self.question) for id in said.ids]


@dataclass(frozen=True, slots=True)
class _Window:
    """What was said before a question, and what the model may do when it answers."""

    said: Sequence[Said]
    allowed: Allowed

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        return [call for said in self.said for call in said.calls]


@dataclass(frozen=True, slots=True)
class Begun:
    """A stored question and its reply. `turn` is there if the reply was claimed at once."""

    session: ChatSession
    message: Message
    reply: Message
    fresh: bool
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A reply that has ended, and the session's next one, claimed in the same transaction."""

    session: ChatSession
    reply: Message
    next: Turn | None = None
    learning: bool = False  # a job to remember the exchange was stored with it
    learnt: bool = False  # something was learnt in this session before
    acts: Sequence[ShownAct] = ()  # what the model did by itself for the reply


def title_from(text: str) -> str:
    """Return a session's title from its first message: one line, at most 100 characters."""
    return cut(one_line(text), TITLE_CHARS) or NEW_SESSION


_SESSION = (
    "id",
    "title",
    "created_at",
    "last_activity_at",
    "message_count",
    "auto_store",
    "tenant_id",
    "user_id",
)
_COLUMNS = ", ".join(f"s.{column}" for column in _SESSION)
_LOCK = f"""
select {_COLUMNS} from chatapp_chatsession s
where s.tenant_id = %(tenant)s and s.user_id = %(user)s and s.id = %(session)s for update
"""  # noqa: S608 - constants


def _locked(scope: Scope, session_id: UUID) -> ChatSession:
    """Return the session, held until the transaction ends; NotFound if it isn't in the scope."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, _given(scope, session=session_id))
        row = cursor.fetchone()
    if row is None:
        raise NotFound
    return _session(row)


def _session(row: Sequence[Any]) -> ChatSession:
    session = ChatSession(**dict(zip(_SESSION, row, strict=True)))
    session._state.adding = False
    return session


def begin(
    scope: Scope, session_id: UUID, *, text: str, client_id: UUID, claiming: bool = True
) -> Begun:
    """Store a question with its empty reply; claim the reply if none runs or waits.

    A resend (the same client_id) changes nothing and returns what is stored. Raises NotFound for a
    session that isn't in the scope, InvalidInput for a text that can't be used, TooMuch when too
    many replies wait already.
    """
    text = message_text(text)
    given = _given(scope, session=session_id, client=client_id)
    with entered_with(scope, _LOOK, given) as rows:
        return _begin(rows, scope, text=text, client_id=client_id, claiming=claiming)


def begin_in(
    scope: Scope, session_id: UUID, *, text: str, client_id: UUID, claiming: bool
) -> Begun:
    """Do what `begin` does with a text that is clean, inside the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, _given(scope, session=session_id, client=client_id))
        cursor.nextset()
        rows = cursor.fetchall()
    return _begin(rows, scope, text=text, client_id=client_id, claiming=claiming)


def _begin(
    rows: Sequence[Sequence[Any]], scope: Scope, *, text: str, client_id: UUID, claiming: bool
) -> Begun:
    """Begin with what _LOOK found."""
    if not rows:
        raise NotFound
    *found, stored, busy = rows[0]
    session = _session(found)
    if stored is not None:
        message = Message.objects.within(scope).get(pk=stored)
        reply = Message.objects.within(scope).replies().get(question=message)
        return Begun(session, message, reply, fresh=False)
    if busy > MOST_WAITING:
        raise TooMuch("Many messages wait for their reply already. Wait for some.", retry_after=30)
    now = timezone.now()
    claimed = claiming and not busy
    owner: dict[str, Any] = {
        "tenant_id": scope.tenant_id,
        "user_id": scope.user_id,
        "session_id": session.pk,
        "created_at": now,
    }
    message = Message(
        **owner,
        role=Message.Role.USER,
        text=text,
        position=session.message_count + 1,
        client_id=client_id,
    )
    reply = Message(
        **owner,
        question_id=message.pk,
        role=Message.Role.ASSISTANT,
        position=session.message_count + 2,
        status=Status.STREAMING if claimed else Status.WAITING,
        attempt=1 if claimed else 0,
        lease_until=now + LEASE if claimed else None,
    )
    if session.message_count == 0 and session.title == NEW_SESSION:
        session.title = title_from(text)
    session.message_count += 2
    session.last_activity_at = now
    before = _store(scope, session, message, reply)
    turn = None
    if claimed:
        said = Said("user", text, (message.pk,))
        texts = tools.live_texts(scope, before.calls, session_key=session.pk)
        turn = Turn(
            scope,
            session.pk,
            reply.pk,
            1,
            said,
            before.said,
            allowed=before.allowed,
            texts=texts,
        )
    return Begun(session, message, reply, fresh=True, turn=turn)


# Written out, and several in one message to the database: these are on the way to the first word,
# and by the model's own means they cost three times the processor time.

# Each statement sees what was committed before it: what is known is read behind the lock.
_LOOK = f"""{_LOCK};
select {_COLUMNS},
  (select m.id from chatapp_message m where m.tenant_id = s.tenant_id and m.user_id = s.user_id
    and m.session_id = s.id and m.client_id = %(client)s),
  (select count(*) from chatapp_replyticket where session_id = %(session)s)
from chatapp_chatsession s
where s.tenant_id = %(tenant)s and s.user_id = %(user)s and s.id = %(session)s
"""  # noqa: S608 - constants

_HISTORY = """
select auto_store from chatapp_chatsession
where tenant_id = %(tenant)s and user_id = %(user)s and id = %(session)s;
select role, text, id, tool_calls from chatapp_message
where tenant_id = %(tenant)s and user_id = %(user)s
  and session_id = %(session)s and position < %(before)s and role in ('user', 'assistant')
order by position desc limit %(limit)s
"""

_STORE = """
insert into chatapp_message (tenant_id, user_id, session_id, created_at, id, role, text, position,
  client_id, question_id, status, attempt, lease_until, error_code, error, memory_note, model)
values
  (%(tenant)s, %(user)s, %(session)s, %(now)s, %(message)s, 'user', %(text)s, %(before)s,
   %(client)s, null, 'complete', 0, null, '', '', '', ''),
  (%(tenant)s, %(user)s, %(session)s, %(now)s, %(reply)s, 'assistant', '', %(before)s + 1,
   null, %(message)s, %(status)s, %(attempt)s, %(lease)s, '', '', '', '');
update chatapp_chatsession
  set title = %(title)s, message_count = %(before)s + 1, last_activity_at = %(now)s
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(session)s;
insert into chatapp_replyticket (reply_id, session_id, tenant_id, user_id, due_at)
  values (%(reply)s, %(session)s, %(tenant)s, %(user)s, %(due)s)
"""


def _calls_in(column: Any) -> list[Mapping[str, Any]]:
    """Return what a cursor gives of `tool_calls`: JSON as text, or nothing."""
    calls = json.loads(column) if isinstance(column, str) else column
    return [call for call in calls or [] if isinstance(call, dict) and "id" in call]


def _given(scope: Scope, **given: Any) -> dict[str, Any]:
    return {"tenant": scope.tenant_id, "user": scope.user_id} | given


def _store(scope: Scope, session: ChatSession, message: Message, reply: Message) -> _Window:
    """Store a question with its reply and their session; return the window before them."""
    given = _given(
        scope,
        session=session.pk,
        now=message.created_at,
        message=message.pk,
        text=message.text,
        before=message.position,
        client=message.client_id,
        reply=reply.pk,
        status=str(reply.status),
        attempt=reply.attempt,
        lease=reply.lease_until,
        title=session.title,
        due=reply.lease_until or message.created_at + PATIENCE,
        limit=2 * settings.WINDOW_MESSAGES,
    )
    with connection.cursor() as cursor:
        cursor.execute(f"{_STORE};{tools.ALLOWED};{_HISTORY}", given)
        for _statement in range(3):
            cursor.nextset()
        return _windowed(cursor)


def _ticket(reply: Message, due_at: datetime) -> None:
    """Write down, outside the wall, that there is a reply to recover, and nothing of what it is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into chatapp_replyticket (reply_id, session_id, tenant_id, user_id, due_at)"
            " values (%s, %s, %s, %s, %s)"
            " on conflict (reply_id) do update set due_at = excluded.due_at",
            [reply.pk, reply.session_id, reply.tenant_id, reply.user_id, due_at],
        )


def _history(scope: Scope, session_id: UUID, *, before: int) -> _Window:
    """Return the window of what was said before this position, and what the model may do."""
    # Twice the limit: what failed is left out, and the window counts what is left.
    limit = 2 * settings.WINDOW_MESSAGES
    with connection.cursor() as cursor:
        given = _given(scope, session=session_id, before=before, limit=limit)
        cursor.execute(f"{tools.ALLOWED};{_HISTORY}", given)
        return _windowed(cursor)


def _windowed(cursor: Any) -> _Window:
    """Read what `tools.ALLOWED` and `_HISTORY` found; the cursor stands at the first result."""
    may = cursor.fetchone()
    cursor.nextset()
    storing = cursor.fetchone()
    cursor.nextset()
    said = [
        Said(
            "user" if role == Message.Role.USER else "assistant",
            text,
            (id,),
            tuple(_calls_in(calls)),
        )
        for role, text, id, calls in reversed(cursor.fetchall())
    ]
    kept = window(said, settings.WINDOW_MESSAGES, settings.WINDOW_TOKENS)
    return _Window(kept, tools.allowed(may, storing=storing[0] if storing else None))


def claim(scope: Scope, session_id: UUID) -> Turn | None:
    """Make the session's next waiting reply this process's; None if one runs or none waits."""
    with entered(scope):
        session = ChatSession.objects.within(scope).filter(pk=session_id)
        if not session.select_for_update().values_list("pk").first():
            return None
        return _claim_next(scope, session_id)


def _claim_next(scope: Scope, session_id: UUID) -> Turn | None:
    """Claim inside the caller's transaction, by a conditional update behind `one_reply_runs`.

    What waits for somebody who was disabled or has left is not answered: it ends here.
    """
    waiting = ReplyTicket.objects.filter(session_id=session_id).values_list("reply_id", flat=True)
    ids = list(waiting)
    if not ids:
        return None
    if not welcomed(scope).exists():
        _end_waiting(scope, ids)
        return None
    rows = Message.objects.within(scope).filter(pk__in=ids)
    reply = rows.filter(status=Status.WAITING).in_order().select_related("question").first()
    question = reply.question if reply else None
    if reply is None or question is None or rows.filter(status=Status.STREAMING).exists():
        return None
    now = timezone.now()
    try:
        with transaction.atomic():
            claimed = rows.filter(pk=reply.pk, status=Status.WAITING).update(
                status=Status.STREAMING, attempt=reply.attempt + 1, lease_until=now + LEASE
            )
    except IntegrityError:  # one_reply_runs: another process was first
        return None
    if not claimed:
        return None
    reply.status, reply.attempt = Status.STREAMING, reply.attempt + 1
    _ticket(reply, now + LEASE)
    before = _history(scope, session_id, before=question.position)
    calls = reply.tool_calls or []
    return Turn(
        scope,
        session_id,
        reply.pk,
        reply.attempt,
        Said("user", question.text, (question.pk,)),
        before.said,
        reply.text,
        calls,
        before.allowed,
        tools.live_texts(scope, [*before.calls, *calls], session_key=session_id),
    )


def _end_waiting(scope: Scope, ids: Sequence[UUID]) -> None:
    rows = Message.objects.within(scope).filter(pk__in=ids, status=Status.WAITING)
    ended = list(rows.select_for_update().values_list("pk", flat=True))
    rows.update(status=Status.INTERRUPTED, lease_until=None, finished_at=timezone.now())
    ReplyTicket.objects.filter(pk__in=ended).delete()


def keep(turn: Turn, *, text: str, memory_note: str = "") -> bool:
    """Store the text so far and lengthen the lease; False if the reply is no longer ours.

    It is nobody's once its person was disabled or has left.
    """
    given = _given(
        turn.scope,
        reply=turn.reply_id,
        attempt=turn.attempt,
        text=text,
        memory_note=memory_note,
        lease=timezone.now() + LEASE,
    )
    return bool(write_once(turn.scope, _KEEP, given))


_KEEP = f"""
with kept as (
  update chatapp_message set text = %(text)s, lease_until = %(lease)s, memory_note = %(memory_note)s
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(reply)s
    and status = 'streaming' and attempt = %(attempt)s and {WELCOMED}
  returning id
), due as (
  update chatapp_replyticket set due_at = %(lease)s where reply_id in (select id from kept)
)
select id from kept
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class Acts:
    """Where the acts of a turn are written down: with its reply, while that is this process's."""

    turn: Turn

    def hold(self) -> bool:
        """Lock the reply until the transaction ends; False if it is no longer ours."""
        return _ours(self.turn).select_for_update().values_list("pk").first() is not None

    def write(self, acts: Sequence[Mapping[str, Any]]) -> None:
        """Keep these acts with the reply."""
        _ours(self.turn).update(tool_calls=list(acts))


def _ours(turn: Turn) -> Any:
    return Message.objects.within(turn.scope).filter(
        pk=turn.reply_id, status=Status.STREAMING, attempt=turn.attempt
    )


def finish(
    turn: Turn,
    *,
    status: str,
    text: str,
    problem: AppError | None = None,
    memory_note: str = "",
    model: str = "",
    tokens: tuple[int | None, int | None] = (None, None),
    question: Embedded | None = None,
    claiming: bool = True,
) -> Ended | None:
    """Store how the reply ended, with the job to remember it, and claim the session's next one.

    The job is handed the question's vector, where there is one: a worker need not make it again.
    None if the reply is no longer ours: it was erased, or taken for lost.
    """
    end = _end_of(status, text, problem)
    given = _given(
        turn.scope,
        session=turn.session_id,
        reply=turn.reply_id,
        attempt=turn.attempt,
        memory_note=memory_note,
        model=cut(model, 120),
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        **end,
    )
    # The session's row first, as everywhere: two that meet do not wait in a ring.
    with entered_with(turn.scope, f"{_LOCK};{_FINISH}", given) as rows:
        if not rows:
            return None
        *found, position, created_at, tool_calls = rows[0]
        session = _session(found)
        learning = status in REMEMBERED and bool(text.strip())
        if learning:
            remember.enqueue_exchange(
                turn.scope,
                reply_id=turn.reply_id,
                session_key=turn.session_id,
                question=question,
                auto_store=session.auto_store,
            )
        reply = Message(
            id=turn.reply_id,
            tenant_id=turn.scope.tenant_id,
            user_id=turn.scope.user_id,
            session_id=turn.session_id,
            role=Message.Role.ASSISTANT,
            position=position,
            created_at=created_at,
            memory_note=memory_note,
            model=model,
            attempt=turn.attempt,
            tool_calls=_calls_in(tool_calls) or None,
            **end,
        )
        return _ended(turn.scope, session, reply, claiming=claiming, learning=learning)


_FINISH = f"""
with written as (
  update chatapp_message set status = %(status)s, text = %(text)s, error_code = %(error_code)s,
    error = %(error)s, lease_until = null, finished_at = %(finished_at)s,
    memory_note = %(memory_note)s, model = %(model)s,
    tokens_in = %(tokens_in)s, tokens_out = %(tokens_out)s
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(reply)s
    and status = 'streaming' and attempt = %(attempt)s
  returning position, created_at, tool_calls
)
select {_COLUMNS}, written.* from chatapp_chatsession s cross join written
where s.tenant_id = %(tenant)s and s.user_id = %(user)s and s.id = %(session)s
"""  # noqa: S608 - constants

_END = """
delete from chatapp_replyticket where reply_id = %(reply)s;
select exists (select 1 from chatapp_replyticket where session_id = %(session)s),
  exists (select 1 from memory_memory where tenant_id = %(tenant)s and user_id = %(user)s
    and session_key = %(session)s and kind <> 'exchange' and status = 'current'
    and (expires_at is null or expires_at > now()))
"""


def _end_of(status: str, text: str, problem: AppError | None) -> dict[str, Any]:
    return {
        "status": str(status),
        "text": text,
        "error_code": problem.code[:40] if problem else "",
        "error": cut(str(problem), 300) if problem else "",
        "lease_until": None,
        "finished_at": timezone.now(),
    }


def _ended(
    scope: Scope,
    session: ChatSession,
    reply: Message,
    *,
    claiming: bool = True,
    learning: bool = False,
) -> Ended:
    with connection.cursor() as cursor:
        cursor.execute(_END, _given(scope, reply=reply.pk, session=session.pk))
        cursor.nextset()
        more, learnt = cursor.fetchone()
    following = _claim_next(scope, session.pk) if more and claiming else None
    acts = tools.shown_acts(scope, {reply.pk: reply.tool_calls or []}).get(reply.pk, ())
    return Ended(session, reply, following, learning, learnt, acts)


def interrupt(scope: Scope, reply_id: UUID, *, text: str = "") -> Ended | None:
    """End a reply whose lease has run out, with the longer of `text` and what is stored.

    None if it is not lost: its process lives, or it has ended. The session's next reply is
    claimed with it.
    """
    with entered(scope):
        replies = Message.objects.within(scope).filter(pk=reply_id)
        found = replies.values_list("session_id").first()
        if found is None:
            ReplyTicket.objects.filter(pk=reply_id).delete()
            return None
        session = _locked(scope, found[0])
        over = replies.filter(status=Status.STREAMING, lease_until__lt=timezone.now())
        lost = over.first()
        if lost is None:
            return None
        text = text if len(text) > len(lost.text) else lost.text
        # Its process may have come back meanwhile, and have renewed the lease.
        if not over.filter(attempt=lost.attempt).update(**_end_of(Status.INTERRUPTED, text, None)):
            return None
        return _ended(scope, session, replies.get())


def stop(scope: Scope, reply_id: UUID, *, session_id: UUID | None) -> Ended | str:
    """End a reply that still waits; return the status of any other: `streaming` is stopped by the
    process that writes it. Raises NotFound for a reply that isn't in the scope and session.
    """
    with entered(scope):
        replies = Message.objects.within(scope).replies().filter(pk=reply_id, session_id=session_id)
        found = replies.values_list("session_id").first()
        if found is None:
            raise NotFound
        session = _locked(scope, found[0])
        if replies.filter(status=Status.WAITING).update(
            status=Status.STOPPED, lease_until=None, finished_at=timezone.now()
        ):
            return _ended(scope, session, replies.get())
        return str(replies.values_list("status", flat=True).get())


def unwelcome(scopes: Collection[Scope]) -> set[Scope]:
    """Return those of these scopes whose person was disabled or has left the tenant."""
    gone = set()
    for scope in scopes:
        with entered(scope):
            if not welcomed(scope).exists():
                gone.add(scope)
    return gone


def begun(scope: Scope, message_id: UUID) -> Begun | None:
    """Return a stored question with its reply and session; None if it is gone."""
    with entered(scope):
        messages = Message.objects.within(scope).select_related("session")
        message = messages.filter(pk=message_id).first()
        reply = messages.replies().filter(question_id=message_id).first()
    if message is None or reply is None:
        return None
    return Begun(message.session, message, reply, fresh=False)


@dataclass(frozen=True, slots=True)
class Again:
    """A reply that waits once more, and the turn if it was claimed at once."""

    session: ChatSession
    reply: Message
    turn: Turn | None


def retry(scope: Scope, reply_id: UUID, *, session_id: UUID | None, keeping: bool = False) -> Again:
    """Answer the same question again in the same row; `keeping` goes on from the text so far.

    Raises NotFound for a reply that isn't in the scope and session, InvalidInput for one that is
    running or complete.
    """
    with entered(scope):
        replies = Message.objects.within(scope).replies().filter(pk=reply_id, session_id=session_id)
        found = replies.values_list("session_id").first()
        if found is None:
            raise NotFound
        session = _locked(scope, found[0])
        reply = replies.get()
        if reply.status not in ENDED:
            raise InvalidInput("This reply is not one to try again.", code="not_ended")
        reply.status, reply.text = Status.WAITING, reply.text if keeping else ""
        reply.error = reply.error_code = reply.memory_note = ""
        reply.finished_at = None
        reply.save(
            update_fields=["status", "text", "error", "error_code", "memory_note", "finished_at"]
        )
        _ticket(reply, timezone.now() + PATIENCE)
        return Again(session, reply, _claim_next(scope, session.pk))


@dataclass(frozen=True, slots=True)
class Overdue:
    """A reply that somebody should have claimed, renewed or ended by now."""

    reply_id: UUID
    session_id: UUID
    scope: Scope


def overdue(limit: int = 50) -> list[Overdue]:
    """Return what recovery should look at, and let nobody else look for a few seconds."""
    now = timezone.now()
    with transaction.atomic():
        due = ReplyTicket.objects.filter(due_at__lt=now).order_by("due_at")
        rows = list(due.select_for_update(skip_locked=True)[:limit])
        ReplyTicket.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=now + PATIENCE)
    return [Overdue(row.pk, row.session_id, Scope(row.tenant_id, row.user_id)) for row in rows]
