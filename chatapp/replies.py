"""The replies that this process is writing. They belong to it, not to the sockets that asked.

A socket's end only detaches it. A reply runs in a task of its own, keeps its text in a journal and,
every two seconds, in its row, and goes to every page that shows its session. Stop reaches the
process that writes, wherever it was asked for. What no process writes any more is found by a look
at the table of tickets every few seconds (`_recover`), in every web process.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import Error as DatabaseError

from accounts.errors import AppError, ProviderError, Unavailable
from accounts.models import Tenant, User
from accounts.scope import Scope
from chatapp import frames, sessions, shown, turn, without_model
from chatapp.bells import group_of
from chatapp.hub import Hub, Page
from chatapp.journal import Journal, Shelf
from chatapp.journal import client as redis_client
from chatapp.markdown import Blocks
from chatapp.models import Message
from chatapp.prompts import prompt
from chatapp.steps import step
from chatapp.turn import Ended, Turn
from chatapp.visitor import LoginEnded, Visitor, zone_of
from memory import embedder, llm
from memory.learnt import learnt_for_replies
from memory.model_choice import current_endpoint
from memory.prompts import memory_block, new_fence
from memory.recall import Recall, counts_for_replies, recall, record

logger = logging.getLogger(__name__)

FRAME_SECONDS = 0.05
SLOWEST_FRAMES = 0.25
EASILY = 10  # so many replies at once leave the process time to spare
KEEP_SECONDS = 2.0
RENEW_SECONDS = 5.0
RECOVER_SECONDS = 3.0
CHECK_SECONDS = 60.0
VECTOR_SECONDS = 1.0
CLOSING_SECONDS = 2.0
SHUTDOWN_SECONDS = 5.0
REPLAYED = 100
FINISH_TRIES = 6

Status = Message.Status


class Away(AppError):
    """The database does not answer."""

    code = "database_away"
    http_status = 503
    message = "The database can't be reached right now. Nothing was lost. Try again in a moment."


@dataclass(eq=False)
class Stream:
    """What the pages of one running reply have been sent: numbered, and the same for each."""

    scope: Scope
    session_id: UUID
    reply_id: UUID
    journal: Journal = field(default_factory=Journal)
    blocks: Blocks = field(default_factory=Blocks)
    pages: set[Page] = field(default_factory=set)
    # HTML that a frame finished, by the frame's number: for pages that come back.
    finished: dict[int, str] = field(default_factory=dict)
    recalled: tuple[int, str, str] | None = None  # number, frame, html

    def push(self, text: str, now: float) -> None:
        """Number the text and send it."""
        n = self.journal.push(text)
        closed, drawn = self.blocks.feed(text, now)
        if closed:
            self.finished[n] = closed
        self.send(frames.delta(self.reply_id, n, text, closed, drawn))

    def tell_recalled(self, count: int, html: str) -> str:
        """Number and send what was recalled; return the frame."""
        n = self.journal.push("")
        frame = frames.build("recalled", reply=self.reply_id, n=n, count=count, html=html)
        self.recalled = n, frame, html
        self.send(frame)
        return frame

    def send(self, frame: str) -> None:
        for page in self.pages:
            page.put(frame)

    def attach(self, page: Page, after: int) -> None:
        """Send a page what it lacks behind frame `after`, and from now on everything."""
        self.pages.add(page)
        n = self.journal.n
        if after == n and n:
            return
        if not 0 < after < n or n - after > REPLAYED:
            page.put(self.snapshot())
            return
        for number in range(after + 1, n + 1):
            if self.recalled and self.recalled[0] == number:
                page.put(self.recalled[1])
                continue
            closed = self.finished.get(number, "")
            drawn = self.blocks.now() if number == n else ("" if closed else None)
            text = self.journal.texts[number - 1]
            page.put(frames.delta(self.reply_id, number, text, closed, drawn))

    def snapshot(self) -> str:
        """Return everything so far as one frame."""
        return frames.build(
            "snapshot",
            reply=self.reply_id,
            n=self.journal.n,
            text=self.journal.text(),
            closed=self.blocks.closed,
            open=self.blocks.now(),
            recalled=self.recalled[2] if self.recalled else None,
        )


@dataclass(eq=False)
class Running(Stream):
    """A reply that this process writes."""

    turn: Turn = field(kw_only=True)
    tenant: Tenant = field(kw_only=True)
    task: "asyncio.Task[None] | None" = None
    work: "asyncio.Task[_End] | None" = None
    ending: str = ""  # why the work was cancelled: stopped, interrupted, or lost
    note: str = ""
    count: int = 0
    kept: int = 0
    kept_at: float = 0.0


@dataclass(slots=True)
class _End:
    status: str
    problem: AppError | None = None
    model: str = ""
    tokens: tuple[int | None, int | None] = (None, None)


type Vector = "asyncio.Task[Any] | None"


class Replies:
    """One event loop's running replies, and what pages ask of them."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.shelf = Shelf(redis_client())
        self.running: dict[UUID, Running] = {}
        # Replies that other processes write and pages here follow.
        self.followed: dict[UUID, Stream] = {}
        self.checked: dict[Page, float] = {}
        self.stopping = False
        self._reading: set[UUID] = set()
        self._arriving = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.hub.hearers |= {
            "waiting": self._hear_waiting,
            "started": self._hear_started,
            "frames": self._hear_frames,
            "ended": self._hear_ended,
            "stop": self._hear_stop,
            "learnt": self._hear_learnt,
            "session": self._hear_session,
            "session_gone": self._hear_session_gone,
            "erased": self._hear_erased,
        }

    def start(self) -> None:
        """Begin to listen, to keep and to recover; called once, in the loop."""
        self.hub.start()
        self.shelf.readable = self._readable
        for work in (self.shelf.run, self._keep, self._recover):
            self.hub.spawn(work())

    async def close(self) -> None:
        """Let go of everything; what still runs here is left to recovery."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.hub.close()
        await self.shelf.flush()
        await self.shelf.close()
        _by_loop.pop(self.hub.loop, None)

    # What pages ask for. Each checks the login again, in the same step as the work.

    async def begin(self, page: Page, session_id: UUID, text: str, client_id: UUID) -> None:
        """Store a message and see to its reply; `stored` goes to every page of the session."""
        visitor = page.visitor
        vector = self._vector(text)
        self._arriving += 1
        try:
            begun = await step(
                visitor.checked,
                partial(
                    turn.begin,
                    visitor.scope,
                    session_id,
                    text=text,
                    client_id=client_id,
                    claiming=not self.stopping,
                ),
            )
        except BaseException:
            _drop(vector)
            raise
        finally:
            self._arriving -= 1
        if begun.turn is not None:
            # First of all the request to the provider; what pages show of it follows meanwhile.
            self._run(begun.turn, visitor.tenant, vector, begun=begun)
            return
        _drop(vector)
        if begun.fresh:
            self._show_begun(visitor.scope, visitor.tenant, begun)
        else:
            page.put(await self._stored_again(visitor, begun))

    async def attach(self, page: Page, reply_id: UUID, after: int) -> None:
        """Let a page follow a reply from frame `after` on; the end of one that has ended."""
        visitor = page.visitor
        read = partial(sessions.reply_of, visitor.scope, reply_id, session_id=page.session_id)
        reply = await step(visitor.checked, read)
        here = self.running.get(reply_id)
        if here is not None:
            here.attach(page, after)
        elif reply.status == Status.STREAMING:
            await self._follow(page, reply, after)
        elif reply.status != Status.WAITING:
            page.put(await self._finished_frame(visitor.scope, visitor.tenant, reply))

    async def stop(self, page: Page, reply_id: UUID) -> None:
        """Stop a reply wherever it is written; one that waits is not begun."""
        visitor = page.visitor
        ended = await step(
            visitor.checked,
            partial(turn.stop, visitor.scope, reply_id, session_id=page.session_id),
        )
        if isinstance(ended, Ended):
            await self._show_ended(visitor.scope, visitor.tenant, ended)
        elif ended == Status.STREAMING:
            here = self.running.get(reply_id)
            if here is not None:
                self._end(here, Status.STOPPED)
            else:
                self._publish(visitor.scope, "stop", reply=str(reply_id))

    async def retry(self, page: Page, reply_id: UUID, *, keeping: bool) -> None:
        """Answer a question again in the same place."""
        visitor = page.visitor
        again = await step(
            visitor.checked,
            partial(
                turn.retry,
                visitor.scope,
                reply_id,
                session_id=page.session_id,
                keeping=keeping,
            ),
        )
        if again.turn is not None:
            self._run(again.turn, visitor.tenant, self._vector(again.turn.question.text))
        if again.turn is None or again.turn.reply_id != reply_id:
            # It waits its turn: pages show it so until it starts.
            reply = shown.reply_html(shown.shown_reply(again.reply), visitor.tenant)
            self.hub.tell_session(
                visitor.scope,
                again.session.pk,
                frames.build("finished", reply=reply_id, n=0, status="waiting", html=reply),
            )
        self._show_row_of(again.session, visitor.scope, running=True)

    async def hello(self, page: Page) -> str:
        """Return a page's first frame. Raises NotFound for a session that isn't theirs."""
        if page.session_id is None:
            return frames.hello([], [])
        found = await step(sessions.pending, page.visitor.scope, page.session_id)
        return frames.hello(found.running, found.learning, found.messages)

    async def check(self, page: Page) -> None:
        """Raise LoginEnded unless the login behind the page still holds."""
        await step(page.visitor.check)
        self.checked[page] = self.hub.loop.time()

    def add(self, page: Page) -> None:
        """Let a page hear of its person."""
        self.hub.add(page)
        self.checked[page] = self.hub.loop.time()

    def detach(self, page: Page) -> None:
        """Forget a page. Nothing else changes: replies run on."""
        self.hub.discard(page)
        self.checked.pop(page, None)
        for running in self.running.values():
            running.pages.discard(page)
        for reply_id, stream in list(self.followed.items()):
            stream.pages.discard(page)
            if not stream.pages:
                del self.followed[reply_id]

    # The reply itself

    def _vector(self, text: str) -> Vector:
        return asyncio.ensure_future(embedder.embed_one(text, within=VECTOR_SECONDS))

    def _run(
        self, claimed: Turn, tenant: Tenant, vector: Vector, *, begun: turn.Begun | None = None
    ) -> None:
        """Write a reply that was claimed, in a task of its own."""
        running = Running(
            claimed.scope,
            claimed.session_id,
            claimed.reply_id,
            Journal([claimed.so_far]),
            turn=claimed,
            tenant=tenant,
        )
        running.kept_at = self.hub.loop.time()
        if claimed.so_far:
            running.blocks.feed(claimed.so_far, self.hub.loop.time())
        self.running[claimed.reply_id] = running
        self.followed.pop(claimed.reply_id, None)
        self.hub.join(group_of(claimed.scope))
        self.shelf.add(claimed.reply_id, running.journal)
        running.task = asyncio.ensure_future(self._life(running, vector, begun))
        self._tasks.add(running.task)
        running.task.add_done_callback(self._tasks.discard)

    async def _life(self, running: Running, vector: Vector, begun: turn.Begun | None) -> None:
        """Write a reply and see to its end. Nobody awaits this task: it speaks for itself."""
        try:
            running.work = asyncio.ensure_future(self._write(running, vector))
            # The work has made its first step when this goes on.
            await asyncio.sleep(0)
            if begun is not None:
                self._show_begun(running.scope, running.tenant, begun)
            self._show_started(running)
            await asyncio.wait({running.work})
            end = self._end_of(running)
            if end is not None:
                await self._finish(running, end)
        except Exception as error:
            # Its end could not be stored. The journal stays: recovery stores it, as interrupted.
            logger.exception("a reply was lost", extra={"reply": str(running.reply_id)})
            running.send(frames.error(Away() if isinstance(error, DatabaseError) else AppError()))
        else:
            self._drop_journal(running)
        finally:
            self._forget(running)

    def _end_of(self, running: Running) -> _End | None:
        """Return how the work ended; None when there is nobody to tell and nothing to store."""
        work = running.work
        if work is None or running.ending == "lost":
            return None
        if work.cancelled():
            return _End(running.ending or Status.INTERRUPTED)
        error = work.exception()
        if error is None:
            return work.result()
        if not isinstance(error, AppError):
            logger.error("a reply failed", exc_info=error, extra={"reply": str(running.reply_id)})
            error = Away() if isinstance(error, DatabaseError) else AppError()
        if running.ending:
            return _End(running.ending)
        status = Status.INTERRUPTED if running.journal.text().strip() else Status.FAILED
        return _End(status, error)

    async def _write(self, running: Running, vector: Vector) -> _End:
        """Recall, ask the model, and send what it says; raise what goes wrong."""
        claimed = running.turn
        try:
            question = await vector if vector is not None else None
        except Exception as error:
            # InvalidInput (nothing to look for), a ProviderError, or a fault of the embedder: the
            # reply goes without memory, and says so.
            logger.warning("no vector for a question: %s", type(error).__name__)
            question = None
        found, endpoint = await step(_recalled, claimed, question)
        self._show_recalled(running, found)
        end = _End(Status.COMPLETE, model=endpoint.model if endpoint else "")
        if endpoint is None:
            pieces = without_model.pieces(await step(_without_model, claimed, found))
        else:
            block = memory_block(found.memories, new_fence())
            messages = prompt(
                claimed.history, claimed.question, memory=block, so_far=claimed.so_far
            )
            pieces = llm.stream(
                endpoint,
                messages,
                first_token_timeout=settings.FIRST_TOKEN_TIMEOUT,
                silence_timeout=settings.SILENCE_TIMEOUT,
                total_timeout=settings.REPLY_TIMEOUT,
                pace=self._pace(),
            )
        self.hub.spawn(self._note_recalled(running, found))
        await self._relay(running, pieces, end)
        return end

    def _pace(self) -> float:
        """Return how far apart frames are: the more replies at once, the fewer of each.

        When many begin together, the first words of all go before the next words of some.
        """
        many = len(self.running) + self._arriving
        return min(SLOWEST_FRAMES, FRAME_SECONDS * max(1.0, many / EASILY))

    async def _relay(self, running: Running, pieces: AsyncGenerator[llm.Delta], end: _End) -> None:
        async with aclosing(pieces) as deltas:
            async for delta in deltas:
                if delta.text:
                    running.push(delta.text, self.hub.loop.time())
                    self.shelf.touch(soon=self.hub.has_peers)
                if delta.finish:
                    end.status = str(delta.finish)
                    end.problem = delta.error
                    if delta.usage:
                        end.tokens = (delta.usage.tokens_in, delta.usage.tokens_out)

    async def _note_recalled(self, running: Running, found: Recall) -> None:
        if found.memories or found.passed_over:
            await step(record, running.scope, reply=running.reply_id, recall=found)

    def _end(self, running: Running, reason: str) -> None:
        """Stop a reply that runs here; the provider's connection is closed on the way out."""
        running.ending = running.ending or reason
        if running.work is not None:
            running.work.cancel()

    async def _finish(self, running: Running, end: _End) -> None:
        text = running.journal.text()
        work = partial(
            turn.finish,
            running.turn,
            status=end.status,
            text=text,
            problem=end.problem,
            memory_note=running.note,
            model=end.model,
            tokens=end.tokens,
            claiming=not self.stopping,
        )
        ended = await self._insist(work)
        if ended is None:
            return
        html = running.blocks.whole()
        reply = shown.shown_reply(
            ended.reply,
            recalled=running.count or None,
            learnt=shown.LEARNING if ended.learning else None,
            html=html,
        )
        frame = frames.build(
            "finished",
            reply=running.reply_id,
            n=running.journal.n,
            status=ended.reply.status,
            html=shown.reply_html(reply, running.tenant),
        )
        self._after(running.scope, running.tenant, ended, frame)

    async def _insist[R](self, work: Callable[[], R]) -> R:
        """Return what the step returns; try again while the database is away."""
        for tried in range(FINISH_TRIES):
            try:
                return await step(work)
            except DatabaseError:
                if tried == FINISH_TRIES - 1 or self.stopping:
                    raise
                logger.warning("a reply's end can't be stored yet: the database is away")
                await asyncio.sleep(0.5 * 2**tried)
        raise AssertionError("unreachable")

    def _after(self, scope: Scope, tenant: Tenant, ended: Ended, frame: str) -> None:
        """Show that a reply has ended, and write the one that was claimed with its end."""
        self.running.pop(ended.reply.pk, None)
        self.hub.tell_session(scope, ended.session.pk, frame)
        if self.hub.has_peers:
            self._publish(scope, "ended", reply=str(ended.reply.pk))
        if ended.next is not None:
            self._run(ended.next, tenant, self._vector(ended.next.question.text))
        self._show_row_of(ended.session, scope, running=ended.next is not None, learnt=ended.learnt)

    def _drop_journal(self, running: Running) -> None:
        if self.running.get(running.reply_id, running) is running:  # it is not tried again already
            self.shelf.drop(running.reply_id)

    def _forget(self, running: Running) -> None:
        if self.running.get(running.reply_id) is running:
            del self.running[running.reply_id]
        self.hub.leave(group_of(running.scope))

    # What pages are shown

    def _show_begun(self, scope: Scope, tenant: Tenant, begun: turn.Begun) -> None:
        reply = shown.shown_reply(begun.reply)
        self.hub.tell_session(scope, begun.session.pk, _stored_frame(begun, reply, tenant))
        self._show_row_of(begun.session, scope, running=True)

    async def _stored_again(self, visitor: Visitor, begun: turn.Begun) -> str:
        reply = await step(_shown_with_memory, visitor.scope, begun.reply)
        return _stored_frame(begun, reply, visitor.tenant)

    def _show_started(self, running: Running) -> None:
        running.pages |= set(self.hub.of_session(running.scope, running.session_id))
        running.send(frames.build("started", reply=running.reply_id))
        if self.hub.has_peers:
            self._publish(
                running.scope,
                "started",
                session=str(running.session_id),
                reply=str(running.reply_id),
            )
        if running.journal.n:
            running.send(running.snapshot())

    def _show_recalled(self, running: Running, found: Recall) -> None:
        running.count, running.note = len(found.memories), found.note or ""
        if not (running.count or running.note):
            return
        html = shown.recalled_html(running.reply_id, running.count, running.note, running.tenant)
        frame = running.tell_recalled(running.count, html)
        if self.hub.has_peers:
            person = [running.scope.tenant_id, running.scope.user_id]
            self._publish(
                running.scope,
                "frame",
                person=person,
                session=str(running.session_id),
                frame=frame,
            )

    async def _show_ended(self, scope: Scope, tenant: Tenant, ended: Ended) -> None:
        frame = await self._finished_frame(scope, tenant, ended.reply)
        self._after(scope, tenant, ended, frame)

    async def _finished_frame(self, scope: Scope, tenant: Tenant, reply: Message) -> str:
        view = await step(_shown_with_memory, scope, reply)
        html = shown.reply_html(view, tenant)
        return frames.build("finished", reply=reply.pk, n=0, status=reply.status, html=html)

    def _show_row_of(
        self, session: Any, scope: Scope, *, running: bool, learnt: bool = False
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
        if self.hub.has_peers:
            person = [scope.tenant_id, scope.user_id]
            self._publish(scope, "session", person=person, session=str(session.pk))

    def _put_row(self, scope: Scope, row: shown.SessionRow, tenant: Tenant) -> None:
        frame = frames.build("session", session=row.id, html=shown.row_html(row, tenant))
        for page in self.hub.of_person(scope):
            page.put(frame)

    async def _show_row(self, scope: Scope, session_id: UUID) -> None:
        """Read a session's row and send it to the sidebars here."""
        zone, tenant = self.hub.zone_of(scope), self.hub.tenant_of(scope)
        if zone is None or tenant is None:
            return
        row = await step(sessions.row, scope, session_id, zone=zone)
        if row is not None:
            self._put_row(scope, row, tenant)

    # Other processes

    def _publish(self, scope: Scope, kind: str, **fields: Any) -> None:
        self.hub.publish(
            group_of(scope),
            {"type": "bell", "kind": kind, "person": [scope.tenant_id, scope.user_id]} | fields,
        )

    def _readable(self, reply_id: UUID, n: int) -> None:
        running = self.running.get(reply_id)
        if running is not None and self.hub.has_peers:
            self._publish(running.scope, "frames", reply=str(reply_id), n=n)

    async def _follow(self, page: Page, reply: Message, after: int) -> None:
        """Let a page follow a reply that another process writes, by its journal."""
        stream = self.followed.get(reply.pk)
        if stream is None:
            stream = self.followed[reply.pk] = Stream(
                page.visitor.scope, reply.session_id, reply.pk
            )
        await self._read_on(stream)
        if stream.journal.n:
            stream.attach(page, after)
        else:
            # Nothing in the journal (Redis is away, or nothing was said yet): what the row has.
            stream.pages.add(page)
            blocks = Blocks()
            blocks.feed(reply.text, 0)
            page.put(
                frames.build(
                    "snapshot",
                    reply=reply.pk,
                    n=0,
                    text=reply.text,
                    closed=blocks.closed,
                    open=blocks.open,
                    recalled=None,
                )
            )

    async def _read_on(self, stream: Stream) -> None:
        """Send what another process has added to a reply's journal."""
        if stream.reply_id in self._reading:
            return
        self._reading.add(stream.reply_id)
        try:
            texts = await self.shelf.read(stream.reply_id, stream.journal.n)
            now = self.hub.loop.time()
            for text in texts:
                if text:
                    stream.push(text, now)
                else:
                    stream.journal.push("")  # what was recalled: its frame comes by itself
        finally:
            self._reading.discard(stream.reply_id)

    def _hear_started(self, bell: Mapping[str, Any]) -> None:
        scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
        pages = self.hub.of_session(scope, session_id)
        if not pages:
            return
        reply_id = UUID(bell["reply"])
        stream = self.followed[reply_id] = Stream(scope, session_id, reply_id, pages=set(pages))
        stream.send(frames.build("started", reply=reply_id))

    def _hear_frames(self, bell: Mapping[str, Any]) -> None:
        stream = self.followed.get(UUID(bell["reply"]))
        if stream is not None and bell["n"] > stream.journal.n:
            self.hub.spawn(self._read_on(stream))

    def _hear_ended(self, bell: Mapping[str, Any]) -> None:
        self.followed.pop(UUID(bell["reply"]), None)

    def _hear_stop(self, bell: Mapping[str, Any]) -> None:
        running = self.running.get(UUID(bell["reply"]))
        if running is not None and running.scope == Scope(*bell["person"]):
            self._end(running, Status.STOPPED)

    def _hear_stored(self, bell: Mapping[str, Any]) -> None:
        scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
        if self.hub.of_person(scope):
            self.hub.spawn(self._read_stored(scope, session_id, UUID(bell["message"])))

    async def _read_stored(self, scope: Scope, session_id: UUID, message_id: UUID) -> None:
        tenant = self.hub.tenant_of(scope)
        if tenant is not None and self.hub.of_session(scope, session_id):
            begun = await step(turn.begun, scope, message_id)
            if begun is not None:
                frame = _stored_frame(begun, shown.shown_reply(begun.reply), tenant)
                for page in self.hub.of_session(scope, session_id):
                    page.put(frame)
        await self._show_row(scope, session_id)

    def _hear_waiting(self, bell: Mapping[str, Any]) -> None:
        """A view stored a question: show it, and if it is in this process, answer it."""
        self._hear_stored(bell)
        if "from" not in bell:
            scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
            self.hub.spawn(self._claim(scope, session_id))

    def _hear_learnt(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        if bell["session"] and self.hub.of_person(scope):
            self.hub.spawn(self._show_learnt(scope, UUID(bell["session"]), UUID(bell["reply"])))

    async def _show_learnt(self, scope: Scope, session_id: UUID, reply_id: UUID) -> None:
        tenant, zone = self.hub.tenant_of(scope), self.hub.zone_of(scope)
        if tenant is None or zone is None:
            return
        learnt, row = await step(_learnt_and_row, scope, session_id, reply_id, zone)
        if learnt is not None:
            html = shown.learnt_html(reply_id, learnt, tenant)
            frame = frames.build("learnt", reply=reply_id, html=html)
            for page in self.hub.of_session(scope, session_id):
                page.put(frame)
        if row is not None:
            self._put_row(scope, row, tenant)

    def _hear_session(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        if self.hub.of_person(scope):
            self.hub.spawn(self._show_row(scope, UUID(bell["session"])))

    def _hear_session_gone(self, bell: Mapping[str, Any]) -> None:
        scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
        for running in list(self.running.values()):
            if running.scope == scope and running.session_id == session_id:
                self._end(running, "lost")
        frame = frames.build("session_gone", session=session_id)
        for page in self.hub.of_person(scope):
            page.put(frame)
            if page.session_id == session_id:
                page.end(frames.UNKNOWN)

    def _hear_erased(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        for running in list(self.running.values()):
            if running.scope == scope:
                self._end(running, "lost")
        for page in self.hub.of_person(scope):
            page.put(frames.build("resync"))
            if page.session_id is not None:
                page.end(frames.UNKNOWN)

    # Keeping and recovering

    async def _claim(self, scope: Scope, session_id: UUID) -> None:
        """Write the session's next reply, if one waits and none runs."""
        if self.stopping:
            return
        claimed = await step(turn.claim, scope, session_id)
        if claimed is not None:
            tenant = self.hub.tenant_of(scope)
            if tenant is None:
                tenant = await step(_tenant, scope.tenant_id)
            self._run(claimed, tenant, self._vector(claimed.question.text))

    async def _keep(self) -> None:
        """Store the running texts every two seconds, and lengthen their leases."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            now = self.hub.loop.time()
            for running in list(self.running.values()):
                fresh = running.journal.n > running.kept
                if running.ending or not (fresh or now - running.kept_at > RENEW_SECONDS):
                    continue
                await self._keep_one(running)

    async def _keep_one(self, running: Running) -> None:
        n = running.journal.n
        try:
            held = await step(
                turn.keep, running.turn, text=running.journal.text(), memory_note=running.note
            )
        except DatabaseError:
            logger.warning("a running reply can't be kept: the database is away")
            return
        running.kept, running.kept_at = n, self.hub.loop.time()
        if not held and self.running.get(running.reply_id) is running and not running.ending:
            logger.warning("a reply is no longer ours", extra={"reply": str(running.reply_id)})
            self._end(running, "lost")

    async def _recover(self) -> None:
        """Claim what waits for nobody, and end what nobody writes any more."""
        while True:
            try:
                await self._recover_once()
            except (DatabaseError, AppError) as error:
                logger.warning("recovery waits: %s", type(error).__name__)
            except Exception:
                logger.exception("recovery failed")
            await asyncio.sleep(RECOVER_SECONDS)
            await self._check_logins()

    async def _recover_once(self) -> None:
        if self.stopping:
            return
        for due in await step(turn.overdue):
            if due.reply_id in self.running:
                continue
            texts = await self.shelf.read(due.reply_id)
            ended = await step(turn.interrupt, due.scope, due.reply_id, text="".join(texts))
            if ended is not None:
                self.shelf.drop(due.reply_id)
                self.shelf.erase(due.reply_id)
                logger.warning("a reply was interrupted", extra={"reply": str(due.reply_id)})
                tenant = await step(_tenant, due.scope.tenant_id)
                await self._show_ended(due.scope, tenant, ended)
            else:
                await self._claim(due.scope, due.session_id)

    async def _check_logins(self) -> None:
        """Check the logins of pages that have not asked for anything for a while."""
        oldest = self.hub.loop.time() - CHECK_SECONDS
        for page in [page for page, at in self.checked.items() if at < oldest][:20]:
            try:
                await self.check(page)
            except LoginEnded:
                page.end(frames.LOGIN_ENDED)
            except DatabaseError:
                return

    async def shut_down(self) -> None:
        """Mark what runs here as interrupted, with its text, before the process ends."""
        self.stopping = True
        for running in list(self.running.values()):
            self._end(running, Status.INTERRUPTED)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=SHUTDOWN_SECONDS)
        await self.shelf.flush()


def _stored_frame(begun: turn.Begun, reply: shown.ShownReply, tenant: Tenant) -> str:
    return frames.build(
        "stored",
        client_id=begun.message.client_id,
        message=begun.message.pk,
        reply=begun.reply.pk,
        position=begun.message.position,
        html=shown.exchange_html(begun.message, reply, tenant),
    )


def _drop(vector: Vector) -> None:
    """Give up a vector that nobody will use; what went wrong with it is of no interest."""
    if vector is not None:
        vector.add_done_callback(lambda task: task.cancelled() or task.exception())
        vector.cancel()


# Steps: run in a thread, with a connection.


def _recalled(claimed: Turn, question: Any) -> tuple[Recall, llm.Endpoint | None]:
    found = recall(
        claimed.scope,
        question=claimed.question.text,
        vector=question,
        exclude_sources=claimed.sources,
        session_key=claimed.session_id,
    )
    return found, current_endpoint()


def _without_model(claimed: Turn, found: Recall) -> str:
    user = User.objects.get(pk=claimed.scope.user_id)
    return without_model.text(
        found.memories,
        note=found.note or "",
        zone=zone_of(user.time_zone),
        is_operator=user.is_operator,
    )


def _shown_with_memory(scope: Scope, reply: Message) -> shown.ShownReply:
    counts = counts_for_replies(scope, [reply.pk])
    learnt = learnt_for_replies(scope, [reply.pk])
    return shown.shown_reply(reply, recalled=counts.get(reply.pk), learnt=learnt.get(reply.pk))


def _learnt_and_row(
    scope: Scope, session_id: UUID, reply_id: UUID, zone: Any
) -> tuple[Mapping[str, Any] | None, shown.SessionRow | None]:
    learnt = learnt_for_replies(scope, [reply_id]).get(reply_id)
    return learnt, sessions.row(scope, session_id, zone=zone)


def _tenant(tenant_id: int) -> Tenant:
    return Tenant.objects.get(pk=tenant_id)


warming = False


async def warm() -> None:
    """Load the embedder and the model's client before somebody waits for them."""
    global warming
    loop = asyncio.get_running_loop()
    warming = True
    try:
        for work in (llm.warm, embedder.warm):
            with suppress(ProviderError, Unavailable):
                await loop.run_in_executor(None, work)
    finally:
        warming = False


_by_loop: "WeakKeyDictionary[asyncio.AbstractEventLoop, Replies]" = WeakKeyDictionary()


def here() -> Replies:
    """Return the running event loop's replies; they begin to listen with the first call."""
    loop = asyncio.get_running_loop()
    replies = _by_loop.get(loop)
    if replies is None:
        replies = _by_loop[loop] = Replies()
        replies.start()
    return replies


async def shut_down() -> None:
    """Mark what this loop runs as interrupted."""
    replies = _by_loop.get(asyncio.get_running_loop())
    if replies is not None:
        await replies.shut_down()
