"""The websockets: frames in, frames out. What they ask for is done in chatapp.replies.

SessionSocket   /ws/t/<tenant>/sessions/<session>/   one session, and the sidebar
SidebarSocket   /ws/t/<tenant>/                      the sidebar alone
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseError

from accounts.errors import AppError, NotFound
from chatapp import frames, replies
from chatapp.frames import Attach, Ping, Retry, SendMessage, Stop
from chatapp.outbox import Outbox
from chatapp.steps import Away, step
from chatapp.visitor import LoginEnded, Visitor, login_in, visitor_of

logger = logging.getLogger(__name__)


class SidebarSocket(AsyncWebsocketConsumer):
    """A page of the tenant: hears of the person's sessions, asks for nothing but a pong."""

    channel_layer_alias = "none"  # chatapp.hub listens for all sockets of the process

    visitor: Visitor
    session_id: UUID | None = None
    replies: "replies.Replies | None" = None
    outbox: Outbox | None = None
    sending: "asyncio.Task[None] | None" = None

    async def dispatch(self, message: Any) -> None:
        """Do as Channels does, but for its turn through a thread that has no connection here."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        """Accept, and close again what may not be here: a browser reads no code otherwise."""
        await self.accept()
        try:
            visitor = await step(visitor_of, login_in(self.scope["headers"]), self._slug)
            if visitor is None:
                await self.close(frames.NOT_LOGGED_IN)
                return
            self.visitor = visitor
            await self._enter()
        except NotFound:
            await self.close(frames.UNKNOWN)
        except Exception as error:
            await self._report(error, None)
            await self.close(frames.AGAIN_LATER)

    async def _enter(self) -> None:
        # Channels' types know neither what the routing has added nor plain messages.
        scope: Any = self.scope
        send: Any = self.base_send
        self.outbox = Outbox(send, scope.get("unwritten"), self._overflow)
        here = replies.here()
        # First the page hears, then it reads: nothing happens unnoticed in between.
        here.add(self)
        try:
            hello = await here.hello(self)
        except BaseException:
            here.detach(self)
            raise
        self.replies = here
        self.outbox.release(hello)
        self.sending = asyncio.ensure_future(self.outbox.run())

    @property
    def _slug(self) -> str:
        return str(_address(self)["tenant"])

    def put(self, frame: str) -> None:
        """Send a frame when its turn comes."""
        if self.outbox is not None:
            self.outbox.put(frame)

    def end(self, code: int) -> None:
        """Close the socket from our side."""
        if self.outbox is not None:
            self.outbox.closed = True
        self._detach()
        self._closing = asyncio.ensure_future(self._close_now(code))

    async def _close_now(self, code: int) -> None:
        try:
            await self.close(code)
        except Exception as error:  # the browser was faster; each server says so in its own way
            logger.info("a socket was closed already: %s", type(error).__name__)

    def _overflow(self) -> None:
        logger.info("a page reads too slowly, or not at all")
        self._detach()
        self._closing = asyncio.ensure_future(self._give_up())

    async def _give_up(self) -> None:
        try:
            await self.send(frames.build("resync"))
        except Exception as error:  # the browser has gone
            logger.info("a page was not told to come back: %s", type(error).__name__)
        await self._close_now(frames.TOO_SLOW)

    def _detach(self) -> None:
        if self.replies is not None:
            self.replies.detach(self)
            self.replies = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Do what a frame asks for; whatever goes wrong is an error frame."""
        if self.replies is None or self.outbox is None:
            return
        self.outbox.heard()
        try:
            action = frames.parse(text_data, bytes_data)
            await ACTIONS[type(action)](self, self.replies, action)
        except LoginEnded:
            self.end(frames.LOGIN_ENDED)
        except Exception as error:
            await self._report(error, text_data)

    async def _report(self, error: Exception, text: str | None) -> None:
        if isinstance(error, DatabaseError):
            logger.warning("a frame failed: %s", type(error).__name__)
            error = Away()
        elif not isinstance(error, AppError):
            logger.error("a frame failed", exc_info=error)
            error = AppError()
        frame = frames.error(error, frames.client_id_in(text) if text else None)
        if self.replies is None:
            await self.send(frame)
        else:
            self.put(frame)

    async def disconnect(self, code: int) -> None:
        """Detach. The replies run on."""
        self._detach()
        if self.sending is not None:
            self.sending.cancel()

    def session(self) -> UUID:
        """Return the session that this page shows; NotFound for a page that shows none."""
        raise NotFound


class SessionSocket(SidebarSocket):
    """A page of one session: messages, stop, retry, and every frame of its replies."""

    async def _enter(self) -> None:
        self.session_id = _address(self)["session_id"]
        await super()._enter()

    def session(self) -> UUID:
        if self.session_id is None:
            raise NotFound
        return self.session_id


def _address(socket: AsyncWebsocketConsumer) -> dict[str, Any]:
    scope: Any = socket.scope
    kwargs: dict[str, Any] = scope["url_route"]["kwargs"]
    return kwargs


class NoSocket(AsyncWebsocketConsumer):
    """An address that is none."""

    channel_layer_alias = "none"

    async def connect(self) -> None:
        await self.accept()
        await self.close(frames.UNKNOWN)


async def _message(page: SidebarSocket, here: "replies.Replies", action: SendMessage) -> None:
    await here.begin(page, page.session(), action.text, action.client_id)


async def _attach(page: SidebarSocket, here: "replies.Replies", action: Attach) -> None:
    page.session()
    await here.attach(page, action.reply, action.after)


async def _stop(page: SidebarSocket, here: "replies.Replies", action: Stop) -> None:
    page.session()
    await here.stop(page, action.reply)


async def _retry(page: SidebarSocket, here: "replies.Replies", action: Retry) -> None:
    page.session()
    await here.retry(page, action.reply, keeping=action.keep)


async def _ping(page: SidebarSocket, here: "replies.Replies", action: Ping) -> None:
    await here.logins.check(page)
    page.put(frames.build("pong"))


type Handler = Callable[[SidebarSocket, "replies.Replies", Any], Awaitable[None]]

# Every action of a socket; tests/chatapp/test_strangers.py tries each as every kind of stranger.
ACTIONS: dict[type[Any], Handler] = {
    SendMessage: _message,
    Attach: _attach,
    Stop: _stop,
    Retry: _retry,
    Ping: _ping,
}
