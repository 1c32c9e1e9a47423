"""The pages that are open in this process, and the bells between processes.

One hub for each event loop (a web server has one). Frames for pages in this process are handed over
directly; the channel layer carries them to other processes, if there are any: each hub says every
few seconds that it is there, and nobody publishes what nobody could hear.
"""

import asyncio
import logging
import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

from channels.layers import get_channel_layer

from accounts.models import Tenant
from accounts.scope import Scope
from chatapp import bells, frames
from chatapp.bells import EVERYBODY, group_of
from chatapp.visitor import Visitor

logger = logging.getLogger(__name__)

HERE_SECONDS = 5.0
FORGOTTEN_SECONDS = 3 * HERE_SECONDS
LAYER_SECONDS = 2.0
REST_SECONDS = 1.0
MOST_BELLS = 10_000


class Page(Protocol):
    """An open socket."""

    visitor: Visitor
    session_id: UUID | None

    def put(self, frame: str) -> None: ...

    def end(self, code: int) -> None: ...


class Hub:
    """Open pages by person, and the bells that reach them."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.name = secrets.token_hex(8)
        self.pages: dict[Scope, set[Page]] = defaultdict(set)
        self.hearers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "frame": self._hear_frame,
            "login_ended": self.hear_login_ended,
            "here": self._hear_here,
            "missed": self._hear_missed,
        }
        self._groups: dict[str, int] = {EVERYBODY: 1}
        self._joined: set[str] = set()
        self._channel = ""
        self._changed = asyncio.Event()
        self._ready = asyncio.Event()
        self._bells: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MOST_BELLS)
        self._rung = asyncio.Event()
        self._peers: dict[str, float] = {}
        self._echo = self.loop.time()
        self._missed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to listen; called once, in the loop."""
        bells.hubs.append(self)
        for work in (self._listen, self._deliver, self._say_here):
            self.spawn(work())

    async def close(self) -> None:
        """Stop listening, and whatever runs beside."""
        if self in bells.hubs:
            bells.hubs.remove(self)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run something beside; what goes wrong in it is logged."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a task beside the replies failed", exc_info=task.exception())

    # Pages

    def add(self, page: Page) -> None:
        """Let a page hear what happens to its person from now on."""
        scope = page.visitor.scope
        self.pages[scope].add(page)
        self.join(group_of(scope))

    def discard(self, page: Page) -> None:
        """Forget a page."""
        scope = page.visitor.scope
        pages = self.pages.get(scope, set())
        if page in pages:
            pages.discard(page)
            if not pages:
                del self.pages[scope]
            self.leave(group_of(scope))

    def has(self, page: Page) -> bool:
        """Tell whether the page is open still: it may be closed while something is read for it."""
        return page in self.pages.get(page.visitor.scope, ())

    def of_person(self, scope: Scope) -> list[Page]:
        """Return a person's pages in one tenant."""
        return list(self.pages.get(scope, ()))

    def of_session(self, scope: Scope, session_id: UUID) -> list[Page]:
        """Return the pages that show a session."""
        return [page for page in self.pages.get(scope, ()) if page.session_id == session_id]

    def zone_of(self, scope: Scope) -> ZoneInfo | None:
        """Return the person's time zone as one of their pages knows it; None without a page."""
        return next((page.visitor.zone for page in self.pages.get(scope, ())), None)

    def tenant_of(self, scope: Scope) -> Tenant | None:
        """Return the tenant as one of the person's pages knows it; None without a page."""
        return next((page.visitor.tenant for page in self.pages.get(scope, ())), None)

    def all_pages(self) -> Iterable[Page]:
        """Return every page."""
        return [page for pages in self.pages.values() for page in pages]

    def tell_session(self, scope: Scope, session_id: UUID, frame: str) -> None:
        """Send a frame to every page that shows the session, in all processes."""
        for page in self.of_session(scope, session_id):
            page.put(frame)
        if self.has_peers:
            bell = {"type": "bell", "kind": "frame", "person": [scope.tenant_id, scope.user_id]}
            self.publish(group_of(scope), bell | {"session": str(session_id), "frame": frame})

    # Bells

    @property
    def has_peers(self) -> bool:
        """Whether other web processes were heard of lately."""
        oldest = self.loop.time() - FORGOTTEN_SECONDS
        return any(at > oldest for at in self._peers.values())

    def join(self, group: str) -> None:
        """Hear this group's bells; as often as it is left again."""
        self._groups[group] = self._groups.get(group, 0) + 1
        self._changed.set()

    def leave(self, group: str) -> None:
        """Undo one `join`."""
        self._groups[group] -= 1
        if not self._groups[group]:
            del self._groups[group]
        self._changed.set()

    def publish(self, group: str, bell: Mapping[str, Any]) -> None:
        """Ring in all other processes, soon, without waiting for it."""
        self._bells.append((group, {**bell, "from": self.name}))
        self._rung.set()

    def hear(self, bell: Mapping[str, Any]) -> None:
        """Do what a bell asks for; one of our own only shows that the layer works."""
        if bell.get("from") == self.name:
            if bell.get("kind") == "here":
                self._heard_ourselves()
            return
        hearer = self.hearers.get(str(bell.get("kind")))
        if hearer is None:
            logger.warning("a bell of no known kind")
            return
        hearer(bell)

    def _hear_frame(self, bell: Mapping[str, Any]) -> None:
        scope = Scope(*bell["person"])
        for page in self.of_session(scope, UUID(bell["session"])):
            page.put(bell["frame"])

    def hear_login_ended(self, bell: Mapping[str, Any]) -> None:
        """Close the pages of a login that is over."""
        for page in self.all_pages():
            visitor = page.visitor
            if (
                visitor.scope.user_id == bell["user"]
                and bell["tenant"] in {None, visitor.scope.tenant_id}
                and bell["login"] in {None, visitor.login}
            ):
                goes_on = visitor.login == bell.get("renewed")
                page.end(frames.LOGIN_RENEWED if goes_on else frames.LOGIN_ENDED)

    def _hear_here(self, bell: Mapping[str, Any]) -> None:
        name = str(bell["from"])
        if name not in self._peers:
            self.publish(EVERYBODY, {"type": "bell", "kind": "here"})
        self._peers[name] = self.loop.time()

    def _heard_ourselves(self) -> None:
        self._echo = self.loop.time()
        if self._missed:
            # The layer was away: what other processes and workers rang is lost.
            self._missed = False
            logger.info("the channel layer is back")
            self._read_anew()

    def _hear_missed(self, bell: Mapping[str, Any]) -> None:
        """What another process rang did not come: the pages here read what it was about."""
        self._read_anew()

    def _read_anew(self) -> None:
        for page in self.all_pages():
            page.put(frames.build("resync"))

    async def _say_here(self) -> None:
        while True:
            self.publish(EVERYBODY, {"type": "bell", "kind": "here"})
            await asyncio.sleep(HERE_SECONDS)
            if not self._missed and self.loop.time() - self._echo > 2 * HERE_SECONDS:
                self._missed = True
                logger.warning("the channel layer is away; pages in this process are served on")
            horizon = self.loop.time() - FORGOTTEN_SECONDS
            self._peers = {name: at for name, at in self._peers.items() if at > horizon}

    async def _deliver(self) -> None:
        while True:
            await self._rung.wait()
            self._rung.clear()
            while self._bells:
                group, bell = self._bells.popleft()
                layer = get_channel_layer()
                if layer is None:
                    continue
                try:
                    async with asyncio.timeout(LAYER_SECONDS):
                        await layer.group_send(group, bell)
                except Exception as error:  # redis', the socket's or the timeout's
                    if bell["kind"] != "missed":
                        logger.warning("bells are lost: %s", type(error).__name__)
                    self._bells.clear()
                    # In their place, as soon as the layer takes one again.
                    self.publish(EVERYBODY, {"type": "bell", "kind": "missed"})
                    await asyncio.sleep(REST_SECONDS)

    async def _listen(self) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        joining = asyncio.ensure_future(self._keep_joined(layer))
        try:
            await self._ready.wait()
            while True:
                try:
                    self.hear(await layer.receive(self._channel))
                except Exception:
                    logger.exception("a bell was not understood")
                    await asyncio.sleep(0)  # should the layer itself fail, others go on
        finally:
            joining.cancel()
            with suppress(asyncio.CancelledError):
                await joining

    async def _keep_joined(self, layer: Any) -> None:
        while True:
            try:
                async with asyncio.timeout(LAYER_SECONDS):
                    if not self._channel:
                        self._channel = await layer.new_channel("web")
                        self._ready.set()
                    self._changed.clear()
                    for group in [group for group in self._groups if group not in self._joined]:
                        await layer.group_add(group, self._channel)
                        self._joined.add(group)
                    for group in [group for group in self._joined if group not in self._groups]:
                        await layer.group_discard(group, self._channel)
                        self._joined.discard(group)
            except Exception as error:
                logger.warning("the channel layer can't be joined: %s", type(error).__name__)
                self._changed.set()
                await asyncio.sleep(REST_SECONDS)
            await self._changed.wait()
