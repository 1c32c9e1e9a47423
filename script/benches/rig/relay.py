"""The second floor: a bare Channels consumer that relays the model's stream to the socket.

Run by Daphne (`daphne benches.rig.relay:application`). No login, no database, no memory: what
Channels and the server cost by themselves.
"""

import asyncio
import os
from typing import Any

import orjson
from django.conf import settings

if not settings.configured:
    settings.configure(CHANNEL_LAYERS={}, INSTALLED_APPS=[], DATABASES={})

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from .stream import Connection


class Relay(AsyncWebsocketConsumer):
    """Answers each message with the model's pieces, one frame for each."""

    async def connect(self) -> None:
        self.model = Connection(os.environ["RELAYED_BASE_URL"])
        await self.model.open()
        self.running: asyncio.Task[None] | None = None
        await self.accept()
        await self.send(text_data='{"type":"hello"}')

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        question = str(orjson.loads(text_data or "{}").get("text", ""))
        self.running = asyncio.create_task(self.relay(question))

    async def relay(self, question: str) -> None:
        """Send the answer's pieces as they come."""
        number = 0
        async for text in self.model.texts(question):
            number += 1
            frame = {"type": "delta", "reply": "", "n": number, "text": text}
            await self.send(text_data=orjson.dumps(frame).decode())
        await self.send(text_data='{"type":"finished","status":"complete","reply":""}')

    async def disconnect(self, code: int) -> None:
        if self.running is not None:
            self.running.cancel()
        await self.model.close()


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Answer any request: the floor of pages."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


routes: Any = [path("", Relay.as_asgi())]  # type: ignore[arg-type]
application = ProtocolTypeRouter({"http": bare, "websocket": URLRouter(routes)})
