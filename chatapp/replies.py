"""The replies that this process is writing. They belong to it, not to the sockets that asked.

A socket's end only detaches it. A reply runs in a task of its own, keeps its text in a journal and,
every two seconds, in its row, and goes to every page that shows its session. Stop reaches the
process that writes, wherever it was asked for. The parts:

    turn        each step of a reply in the database
    retrieval   what is remembered that bears on the question
    writing     the reply itself, from retrieval to the last piece
    running     one reply in this process's hands; stream: its frames, and who follows them
    news        what pages are told
    following   replies that other processes write
    recovery    keeping what runs, ending what nobody writes any more
    logins      whether the pages may still be here
    warming     what must be loaded before the first question
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import Error as DatabaseError

from accounts.errors import AppError, NotFound
from accounts.models import Tenant
from accounts.scope import Scope
from chatapp import frames, sessions, turn
from chatapp.bells import group_of
from chatapp.following import Following
from chatapp.hub import Hub, Page
from chatapp.journal import Journal, Shelf
from chatapp.journal import client as redis_client
from chatapp.logins import Logins
from chatapp.news import News
from chatapp.recovery import Recovery
from chatapp.retrieval import Vector, drop, vector_of
from chatapp.running import LOST, Ending, Running, Status
from chatapp.steps import Away, insist, step
from chatapp.turn import Begun, Ended, Turn
from chatapp.warming import Warming
from chatapp.writing import Writer

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 5.0


class Replies:
    """One event loop's running replies, and what pages ask of them."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.shelf = Shelf(redis_client())
        self.news = News(self.hub)
        self.writer = Writer(self.hub, self.shelf, self.news)
        self.following = Following(self.hub, self.shelf)
        self.logins = Logins(self.hub)
        self.recovery = Recovery(self)
        self.warming = Warming()
        self.running: dict[UUID, Running] = {}
        self.stopping = False
        self._lives: set[asyncio.Task[None]] = set()
        self.hub.hearers |= {
            "waiting": self._hear_waiting,
            "stop": self._hear_stop,
            "session_gone": self._hear_session_gone,
            "erased": self._hear_erased,
            "login_ended": self._hear_login_ended,
        }

    def start(self) -> None:
        """Begin to listen, to keep and to recover; called once, in the loop."""
        self.hub.start()
        self.shelf.readable = self._readable
        for work in (
            self.shelf.run,
            self.recovery.keep,
            self.recovery.recover,
            self.logins.run,
        ):
            self.hub.spawn(work())

    async def close(self) -> None:
        """Let go of everything; what still runs here is left to recovery."""
        lives = list(self._lives)
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        await self.warming.close()
        await self.hub.close()
        await self.shelf.flush()
        await self.shelf.close()
        _by_loop.pop(self.hub.loop, None)

    # What pages ask for. Each checks the login again, in the same step as the work.

    async def begin(self, page: Page, session_id: UUID, text: str, client_id: UUID) -> None:
        """Store a message and see to its reply; `stored` goes to every page of the session."""
        visitor = page.visitor
        vector = vector_of(text, self.warming)
        self.writer.arriving += 1
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
            drop(vector)
            raise
        finally:
            self.writer.arriving -= 1
        if begun.turn is not None:
            # First of all the request to the provider; what pages show of it follows meanwhile.
            self._run(begun.turn, visitor.tenant, vector, begun=begun)
            return
        drop(vector)
        if begun.fresh:
            self.news.begun(visitor.scope, visitor.tenant, begun)
        else:
            page.put(await self.news.begun_before(visitor.scope, visitor.tenant, begun))

    async def attach(self, page: Page, reply_id: UUID, after: int) -> None:
        """Let a page follow a reply from frame `after` on; the end of one that has ended."""
        visitor = page.visitor
        read = partial(sessions.reply_of, visitor.scope, reply_id, session_id=page.session_id)
        reply = await step(visitor.checked, read)
        running = self.running.get(reply_id)
        if running is None and reply.status == Status.STREAMING:
            # It may have ended here while its row was read; then the row says so now.
            reply = await step(read)
            running = self.running.get(reply_id)
        if not self.hub.has(page):
            return
        if running is not None:
            running.attach(page, after)
        elif reply.status == Status.STREAMING:
            await self.following.follow(page, reply, after)
        elif reply.status != Status.WAITING:
            page.put(await self.news.end_of(visitor.scope, visitor.tenant, reply))

    async def stop(self, page: Page, reply_id: UUID) -> None:
        """Stop a reply wherever it is written; one that waits is not begun."""
        visitor = page.visitor
        ended = await step(
            visitor.checked,
            partial(turn.stop, visitor.scope, reply_id, session_id=page.session_id),
        )
        if isinstance(ended, Ended):
            await self.show_ended(visitor.scope, ended, visitor.tenant)
        elif ended == Status.STREAMING:
            running = self.running.get(reply_id)
            if running is not None:
                running.stop(Status.STOPPED)
            else:
                self.news.ring(visitor.scope, "stop", reply=str(reply_id))

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
            self._run(again.turn, visitor.tenant)
        if again.turn is None or again.turn.reply_id != reply_id:
            # It waits its turn: pages show it so until it starts.
            self.news.waits(visitor.scope, visitor.tenant, again)
        self.news.row(visitor.scope, again.session, running=True)

    async def hello(self, page: Page) -> str:
        """Return a page's first frame. Raises NotFound for a session that isn't theirs."""
        if page.session_id is None:
            return frames.hello([], [])
        found = await step(sessions.pending, page.visitor.scope, page.session_id)
        return frames.hello(found.running, found.learning, found.messages)

    def add(self, page: Page) -> None:
        """Let a page hear of its person."""
        self.hub.add(page)
        self.logins.add(page)

    def detach(self, page: Page) -> None:
        """Forget a page. Nothing else changes: replies run on."""
        self.hub.discard(page)
        self.logins.discard(page)
        self.following.detach(page)
        for running in self.running.values():
            running.pages.discard(page)

    # A reply's life

    async def claim(self, scope: Scope, session_id: UUID) -> None:
        """Write the session's next reply, if one waits and none runs."""
        if self.stopping:
            return
        claimed = await step(turn.claim, scope, session_id)
        if claimed is not None:
            self._run(claimed, await self._tenant_of(scope))

    def _run(
        self,
        claimed: Turn,
        tenant: Tenant,
        vector: Vector | None = None,
        *,
        begun: Begun | None = None,
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
        self.following.forget(claimed.reply_id)
        self.hub.join(group_of(claimed.scope))
        self.shelf.add(claimed.reply_id, running.journal)
        vector = vector or vector_of(claimed.question.text, self.warming)
        running.life = asyncio.ensure_future(self._life(running, vector, begun))
        self._lives.add(running.life)
        running.life.add_done_callback(self._lives.discard)

    async def _life(self, running: Running, vector: Vector, begun: Begun | None) -> None:
        """Write a reply and see to its end. Nobody awaits this task: it speaks for itself."""
        try:
            running.work = asyncio.ensure_future(self.writer.write(running, vector))
            # The work has made its first step when this goes on.
            await asyncio.sleep(0)
            if running.reason:  # stopped before there was work to stop
                running.work.cancel()
            if begun is not None:
                self.news.begun(running.scope, running.tenant, begun)
            self.news.started(running)
            await asyncio.wait({running.work})
            ending = running.ending()
            if ending is not None:
                await self._finish(running, ending)
        except Exception as error:
            # Its end could not be stored. The journal stays: recovery stores it, as interrupted.
            logger.exception("a reply was lost", extra={"reply": str(running.reply_id)})
            running.send(frames.error(Away() if isinstance(error, DatabaseError) else AppError()))
        else:
            if self.running.get(running.reply_id, running) is running:  # not tried again already
                self.shelf.drop(running.reply_id)
        finally:
            if running.work is not None:
                running.work.cancel()
            drop(vector)
            self._forget(running)
            self.hub.leave(group_of(running.scope))

    async def _finish(self, running: Running, ending: Ending) -> None:
        store = partial(
            turn.finish,
            running.turn,
            status=ending.status,
            text=running.journal.text(),
            problem=ending.problem,
            memory_note=running.note,
            model=ending.model,
            tokens=ending.tokens,
            question=running.question,
            claiming=not self.stopping,
        )
        ended = await insist(store, wanted=lambda: not self.stopping)
        if ended is None:
            await self._show_stored_end(running)
            return
        self._forget(running)
        if ended.next is not None:
            self._run(ended.next, running.tenant)
        self.news.finished(running, ended)

    def _forget(self, running: Running) -> None:
        if self.running.get(running.reply_id) is running:
            del self.running[running.reply_id]

    async def _show_stored_end(self, running: Running) -> None:
        """Show the end of a reply that is no longer ours, if it has one.

        It may be the one that we stored: the database can be cut off between that and its answer.
        """
        try:
            reply = await insist(partial(sessions.reply_of, running.scope, running.reply_id))
        except NotFound:  # erased
            return
        if reply.attempt == running.turn.attempt and reply.status != Status.STREAMING:
            self._forget(running)
            await self.news.found_ended(running.scope, running.tenant, reply)

    async def show_ended(self, scope: Scope, ended: Ended, tenant: Tenant | None = None) -> None:
        """Show the end of a reply that nobody writes, and write the next one."""
        self.following.forget(ended.reply.pk)
        tenant = tenant or await self._tenant_of(scope)
        if ended.next is not None:
            self._run(ended.next, tenant)
        await self.news.ended(scope, tenant, ended)

    async def _tenant_of(self, scope: Scope) -> Tenant:
        tenant = self.hub.tenant_of(scope)
        return await step(_tenant, scope.tenant_id) if tenant is None else tenant

    # What other processes and views ring

    def _readable(self, reply_id: UUID, n: int) -> None:
        running = self.running.get(reply_id)
        if running is not None:
            self.news.ring(running.scope, "frames", reply=str(reply_id), n=n)

    def _hear_waiting(self, bell: Mapping[str, Any]) -> None:
        """A view stored a question: show it, and if it is in this process, answer it."""
        scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
        if self.hub.of_person(scope):
            self.hub.spawn(self.news.stored(scope, session_id, UUID(bell["message"])))
        if "from" not in bell:
            self.hub.spawn(self.claim(scope, session_id))

    def _hear_stop(self, bell: Mapping[str, Any]) -> None:
        running = self.running.get(UUID(bell["reply"]))
        if running is not None and running.scope == Scope(*bell["person"]):
            running.stop(Status.STOPPED)

    def _hear_session_gone(self, bell: Mapping[str, Any]) -> None:
        scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
        for running in list(self.running.values()):
            if running.scope == scope and running.session_id == session_id:
                running.stop(LOST)
        frame = frames.build("session_gone", session=session_id)
        for page in self.hub.of_person(scope):
            page.put(frame)
            if page.session_id == session_id:
                page.end(frames.UNKNOWN)

    def _hear_login_ended(self, bell: Mapping[str, Any]) -> None:
        """Close the login's pages; a reply goes on, unless its person may be here no longer."""
        self.hub.hear_login_ended(bell)
        scopes = {
            running.scope
            for running in self.running.values()
            if running.scope.user_id == bell["user"]
            and bell["tenant"] in {None, running.scope.tenant_id}
        }
        if scopes and bell["login"] is None:
            self.hub.spawn(self._stop_unwelcome(scopes))

    async def _stop_unwelcome(self, scopes: set[Scope]) -> None:
        gone = await step(turn.unwelcome, scopes)
        for running in list(self.running.values()):
            if running.scope in gone:
                running.stop(Status.INTERRUPTED)

    def _hear_erased(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        for running in list(self.running.values()):
            if running.scope == scope:
                running.stop(LOST)
        for page in self.hub.of_person(scope):
            page.put(frames.build("resync"))
            if page.session_id is not None:
                page.end(frames.UNKNOWN)

    async def shut_down(self) -> None:
        """Mark what runs here as interrupted, with its text, before the process ends."""
        self.stopping = True
        for running in list(self.running.values()):
            running.stop(Status.INTERRUPTED)
        if self._lives:
            await asyncio.wait(set(self._lives), timeout=SHUTDOWN_SECONDS)
        await self.shelf.flush()


def _tenant(tenant_id: int) -> Tenant:
    return Tenant.objects.get(pk=tenant_id)


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
