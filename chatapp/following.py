"""Replies that other processes write, for the pages here that show them: read from their journals.

A bell says how far a journal can be read. What is lost on the way is in the frame that shows the
end.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from accounts.scope import Scope
from chatapp import frames
from chatapp.hub import Hub, Page
from chatapp.journal import Shelf
from chatapp.markdown import Blocks
from chatapp.models import Message
from chatapp.stream import Stream


@dataclass(eq=False)
class Followed(Stream):
    """A reply as its journal tells it."""

    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    from_row: bool = False  # pages were shown the row's text, which the journal will tell again
    coming: int = 0  # pages for which it is being read, and which follow it then


class Following:
    """The replies of other processes that pages of this one follow."""

    def __init__(self, hub: Hub, shelf: Shelf) -> None:
        self.hub, self.shelf = hub, shelf
        self.streams: dict[UUID, Followed] = {}
        hub.hearers |= {
            "started": self._hear_started,
            "frames": self._hear_frames,
            "ended": self._hear_ended,
        }

    async def follow(self, page: Page, reply: Message, after: int) -> None:
        """Let a page follow a reply from frame `after` on."""
        stream = self.streams.get(reply.pk)
        if stream is None:
            stream = Followed(page.visitor.scope, reply.session_id, reply.pk)
            self.streams[reply.pk] = stream
        stream.coming += 1
        try:
            await self._read_on(stream)
        finally:
            stream.coming -= 1
        if not self.hub.has(page):
            self.detach(page)
            return
        if stream.journal.n:
            stream.attach(page, after)
            return
        # Nothing in the journal (Redis is away, or nothing was said yet): what the row has.
        stream.pages.add(page)
        stream.from_row = True
        blocks = Blocks()
        blocks.feed(reply.text, 0)
        page.put(frames.snapshot(reply.pk, 0, reply.text, closed=blocks.closed, drawn=blocks.open))

    def detach(self, page: Page) -> None:
        """Forget a page, and what only it followed."""
        for reply_id, stream in list(self.streams.items()):
            stream.pages.discard(page)
            if not (stream.pages or stream.coming):
                del self.streams[reply_id]

    def forget(self, reply_id: UUID) -> None:
        """Follow a reply no longer: it has ended, or is written here now."""
        self.streams.pop(reply_id, None)

    async def _read_on(self, stream: Followed, to: int = 0) -> None:
        """Send what has been added to a reply's journal; nothing if frame `to` was sent before."""
        async with stream.reading:
            if 0 < to <= stream.journal.n:
                return
            texts = await self.shelf.read(stream.reply_id, stream.journal.n)
            now = self.hub.loop.time()
            if texts and stream.from_row:
                stream.from_row = False
                for text in texts:
                    stream.journal.push(text)
                stream.blocks.feed(stream.journal.text(), now)
                stream.send(stream.snapshot())
                return
            for text in texts:
                if text:
                    stream.push(text, now)
                else:
                    stream.journal.push("")  # what was recalled: its frame comes by itself

    def _hear_started(self, bell: Mapping[str, Any]) -> None:
        scope, session_id = Scope(*bell["person"]), UUID(bell["session"])
        pages = self.hub.of_session(scope, session_id)
        if not pages:
            return
        reply_id = UUID(bell["reply"])
        stream = Followed(scope, session_id, reply_id, pages=set(pages))
        self.streams[reply_id] = stream
        stream.send(frames.build("started", reply=reply_id))

    def _hear_frames(self, bell: Mapping[str, Any]) -> None:
        stream = self.streams.get(UUID(bell["reply"]))
        if stream is not None and bell["n"] > stream.journal.n:
            self.hub.spawn(self._read_on(stream, bell["n"]))

    def _hear_ended(self, bell: Mapping[str, Any]) -> None:
        self.forget(UUID(bell["reply"]))
