"""HTTP and websockets; refuses to start behind a database wall that does not stand."""

import asyncio
import os
import signal
import threading
from types import FrameType
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
http = get_asgi_application()

from accounts.wall import check_role  # noqa: E402 - needs the apps that are loaded above
from chatapp import replies  # noqa: E402
from chatapp.routing import sockets  # noqa: E402
from memory import embedder  # noqa: E402

check_role()


class Awake:
    """Starts the process's replies, and their recovery, with the first request or socket."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.awake = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not self.awake:
            self.awake = True
            replies.here().warming.start()
            embedder.keep_following()
            _end_replies_first()
        if scope.get("path") == "/healthz":
            # Well means ready: nobody is sent here who would have to wait.
            await replies.here().warming.loaded()
        await self.application(scope, receive, send)


def _end_replies_first() -> None:
    """On SIGTERM and SIGINT store what is being written, then let the server stop as it does.

    Not ASGI's lifespan: Daphne has none, and both servers cut their sockets before they would ask.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, _first(loop, before))


def _first(loop: asyncio.AbstractEventLoop, before: Any) -> Any:
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:  # the second time at once
            before(number, frame)
            return
        asked = True

        async def end() -> None:
            try:
                await replies.shut_down()
            finally:
                before(number, None)

        loop.call_soon_threadsafe(lambda: _ending.append(loop.create_task(end())))

    return stop


_ending: list["asyncio.Task[None]"] = []

application = Awake(ProtocolTypeRouter({"http": http, "websocket": sockets}))
