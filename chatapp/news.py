"""What open pages are told of replies and sessions: frames drawn here, for every process's pages.

Pages of this process are handed their frames; other processes get them, or a bell to read the same
from the database, over the hub.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from accounts.models import Tenant
from accounts.scope import Scope
from chatapp import frames, sessions, shown, turn
from chatapp.bells import group_of
from chatapp.context import memory_counts
from chatapp.hub import Hub
from chatapp.models import ChatSession, Message
from chatapp.running import Running
from chatapp.steps import insist, step
from chatapp.turn import Begun, Ended
from memory.learnt import learnt_for_replies
from memory.recall import Recall, counts_for_replies
from memory.tools import ShownAct, shown_acts


class News:
    """Tells the pages of one hub, and its peers."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        hub.hearers |= {"learnt": self._hear_learnt, "session": self._hear_session}

    def ring(self, scope: Scope, kind: str, **fields: Any) -> None:
        """Tell the other processes, if there are any, of something about this person."""
        if self.hub.has_peers:
            bell = {"type": "bell", "kind": kind, "person": [scope.tenant_id, scope.user_id]}
            self.hub.publish(group_of(scope), bell | fields)

    # Replies, from their beginning to what was learnt

    def begun(self, scope: Scope, tenant: Tenant, begun: Begun) -> None:
        """Show a question that was just stored, with its reply, and its session at the top."""
        frame = _stored_frame(begun, shown.shown_reply(begun.reply), tenant)
        self.hub.tell_session(scope, begun.session.pk, frame)
        self.row(scope, begun.session, running=True)

    async def begun_before(self, scope: Scope, tenant: Tenant, begun: Begun) -> str:
        """Return the frame for who sent a message again: it is stored, and this is its reply."""
        return _stored_frame(begun, await step(_with_memory, scope, begun.reply), tenant)

    def started(self, running: Running) -> None:
        """Show that a reply is being written, to all who show its session; they follow it."""
        running.pages |= set(self.hub.of_session(running.scope, running.session_id))
        running.send(frames.build("started", reply=running.reply_id))
        session, reply = str(running.session_id), str(running.reply_id)
        self.ring(running.scope, "started", session=session, reply=reply)
        if running.journal.n:
            running.send(running.snapshot())

    def waits(self, scope: Scope, tenant: Tenant, again: turn.Again) -> None:
        """Show that a reply that is tried again waits its turn."""
        html = shown.reply_html(shown.shown_reply(again.reply), tenant)
        frame = frames.build("finished", reply=again.reply.pk, n=0, status="waiting", html=html)
        self.hub.tell_session(scope, again.session.pk, frame)

    def recalled(self, running: Running, found: Recall) -> None:
        """Show how many memories the reply was given, or why none."""
        running.count, running.note = len(found.memories), found.note or ""
        if not (running.count or running.note):
            return
        html = shown.recalled_html(running.reply_id, running.count, running.note, running.tenant)
        frame = running.tell_recalled(running.count, html)
        self.ring(running.scope, "frame", session=str(running.session_id), frame=frame)

    def acted(self, running: Running, acts: Sequence[ShownAct]) -> None:
        """Show what the model has done for the reply by now."""
        frame = running.tell_acts(shown.acts_html(running.reply_id, acts, running.tenant))
        self.ring(running.scope, "frame", session=str(running.session_id), frame=frame)

    def finished(self, running: Running, ended: Ended) -> None:
        """Show the end of a reply that this process wrote."""
        reply = shown.shown_reply(
            ended.reply,
            recalled=running.count or None,
            learnt=shown.LEARNING if ended.learning else None,
            html=running.blocks.whole(),
            acts=ended.acts,
        )
        html = shown.reply_html(reply, running.tenant)
        self._ended(running.scope, ended, _finished_frame(ended.reply, running.journal.n, html))

    async def ended(self, scope: Scope, tenant: Tenant, ended: Ended) -> None:
        """Show the end of a reply that nobody wrote, or whose process is gone."""
        self._ended(scope, ended, await self.end_of(scope, tenant, ended.reply))

    def _ended(self, scope: Scope, ended: Ended, frame: str) -> None:
        self.hub.tell_session(scope, ended.session.pk, frame)
        self.ring(scope, "ended", reply=str(ended.reply.pk))
        self.row(scope, ended.session, running=ended.next is not None, learnt=ended.learnt)

    async def found_ended(self, scope: Scope, tenant: Tenant, reply: Message) -> None:
        """Show the end of a reply as it is stored, and its session as it stands."""
        self.hub.tell_session(scope, reply.session_id, await self.end_of(scope, tenant, reply))
        self.ring(scope, "ended", reply=str(reply.pk))
        self.ring(scope, "session", session=str(reply.session_id))
        await self._read_row(scope, reply.session_id)

    async def end_of(self, scope: Scope, tenant: Tenant, reply: Message) -> str:
        """Return the frame that shows a reply as it is stored."""
        view = await step(_with_memory, scope, reply)
        return _finished_frame(reply, 0, shown.reply_html(view, tenant))

    async def stored(self, scope: Scope, session_id: UUID, message_id: UUID) -> None:
        """Show a question that was stored elsewhere, to the pages here."""
        tenant = self.hub.tenant_of(scope)
        if tenant is not None and self.hub.of_session(scope, session_id):
            begun = await insist(partial(turn.begun, scope, message_id))
            if begun is not None:
                frame = _stored_frame(begun, shown.shown_reply(begun.reply), tenant)
                for page in self.hub.of_session(scope, session_id):
                    page.put(frame)
        await self._read_row(scope, session_id)

    def _hear_learnt(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        if bell["session"] and self.hub.of_person(scope):
            self.hub.spawn(self._learnt(scope, UUID(bell["session"]), UUID(bell["reply"])))

    async def _learnt(self, scope: Scope, session_id: UUID, reply_id: UUID) -> None:
        tenant, zone = self.hub.tenant_of(scope), self.hub.zone_of(scope)
        if tenant is None or zone is None:
            return
        read = partial(_learnt_and_row, scope, session_id, reply_id, zone)
        learnt, row, counts = await insist(read)
        count = frames.build("memory", html=shown.memory_count_html(counts))
        for page in self.hub.of_person(scope):
            page.put(count)
        if learnt is not None:
            html = shown.learnt_html(reply_id, learnt, tenant)
            frame = frames.build("learnt", reply=reply_id, html=html)
            for page in self.hub.of_session(scope, session_id):
                page.put(frame)
        if row is not None:
            self._put_row(scope, row, tenant)

    # The sidebar

    def row(
        self, scope: Scope, session: ChatSession, *, running: bool, learnt: bool = False
    ) -> None:
        """Send a session's row, which is known here, to the person's sidebars."""
        zone, tenant = self.hub.zone_of(scope), self.hub.tenant_of(scope)
        if zone is not None and tenant is not None:
            row = shown.SessionRow(
                session.pk,
                session.title,
                session.last_activity_at,
                session.message_count,
                running,
                learnt,
                shown.group_of(session.last_activity_at, zone),
            )
            self._put_row(scope, row, tenant)
        self.ring(scope, "session", session=str(session.pk))

    def _put_row(self, scope: Scope, row: shown.SessionRow, tenant: Tenant) -> None:
        frame = frames.build("session", session=row.id, html=shown.row_html(row, tenant))
        for page in self.hub.of_person(scope):
            page.put(frame)

    def _hear_session(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        if self.hub.of_person(scope):
            self.hub.spawn(self._read_row(scope, UUID(bell["session"])))

    async def _read_row(self, scope: Scope, session_id: UUID) -> None:
        zone, tenant = self.hub.zone_of(scope), self.hub.tenant_of(scope)
        if zone is None or tenant is None:
            return
        row = await insist(partial(sessions.row, scope, session_id, zone=zone))
        if row is not None:
            self._put_row(scope, row, tenant)


def _stored_frame(begun: Begun, reply: shown.ShownReply, tenant: Tenant) -> str:
    return frames.build(
        "stored",
        client_id=begun.message.client_id,
        message=begun.message.pk,
        reply=begun.reply.pk,
        position=begun.message.position,
        html=shown.exchange_html(begun.message, reply, tenant),
    )


def _finished_frame(reply: Message, n: int, html: str) -> str:
    return frames.build("finished", reply=reply.pk, n=n, status=reply.status, html=html)


# Steps: run in a thread, with a connection.


def _with_memory(scope: Scope, reply: Message) -> shown.ShownReply:
    counts = counts_for_replies(scope, [reply.pk])
    learnt = learnt_for_replies(scope, [reply.pk])
    acts = shown_acts(scope, {reply.pk: reply.tool_calls or []})
    return shown.shown_reply(
        reply,
        recalled=counts.get(reply.pk),
        learnt=learnt.get(reply.pk),
        acts=acts.get(reply.pk, ()),
    )


def _learnt_and_row(
    scope: Scope, session_id: UUID, reply_id: UUID, zone: ZoneInfo
) -> tuple[Mapping[str, Any] | None, shown.SessionRow | None, shown.MemoryCounts]:
    learnt = learnt_for_replies(scope, [reply_id]).get(reply_id)
    return learnt, sessions.row(scope, session_id, zone=zone), memory_counts(scope)
