"""Writing one reply: what is remembered, then what the model says, piece by piece to its pages."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from django.conf import settings

from chatapp import without_model
from chatapp.hub import Hub
from chatapp.journal import Shelf
from chatapp.news import News
from chatapp.prompts import prompt
from chatapp.retrieval import Retrieved, Vector, reply_without_model, retrieve
from chatapp.running import Ending, Running, Status
from chatapp.steps import step
from memory import llm
from memory.prompts import memory_block, new_fence
from memory.recall import Recall, record

FRAME_SECONDS = 0.075  # 13 a second: text flows, and each frame costs about 1 ms of CPU
SLOWEST_FRAMES = 0.25
EASILY = 5  # so many replies at once leave the process time to spare


class Writer:
    """Writes the replies of one process, and slows down their frames as they become many."""

    def __init__(self, hub: Hub, shelf: Shelf, news: News) -> None:
        self.hub, self.shelf, self.news = hub, shelf, news
        self.arriving = 0  # questions that are being stored
        self.writing = 0

    async def write(self, running: Running, vector: Vector) -> Ending:
        """Return how the reply ended; raises what went wrong before there was anything to show."""
        self.writing += 1
        try:
            return await self._write(running, vector)
        finally:
            self.writing -= 1

    async def _write(self, running: Running, vector: Vector) -> Ending:
        retrieved = await retrieve(running.turn, vector)
        running.question = retrieved.question
        self.news.recalled(running, retrieved.found)
        pieces = await self._pieces(running, retrieved)
        self.hub.spawn(self._record(running, retrieved.found))
        model = retrieved.endpoint.model if retrieved.endpoint else ""
        return await self._relay(running, pieces, Ending(Status.COMPLETE, model=model))

    async def _pieces(self, running: Running, retrieved: Retrieved) -> AsyncGenerator[llm.Delta]:
        claimed, found = running.turn, retrieved.found
        if retrieved.endpoint is None:
            return without_model.pieces(await step(reply_without_model, claimed, found))
        block = memory_block(found.memories, new_fence())
        return llm.stream(
            retrieved.endpoint,
            prompt(claimed.history, claimed.question, memory=block, so_far=claimed.so_far),
            first_token_timeout=settings.FIRST_TOKEN_TIMEOUT,
            silence_timeout=settings.SILENCE_TIMEOUT,
            total_timeout=settings.REPLY_TIMEOUT,
            pace=self.pace,
        )

    def pace(self) -> float:
        """Return how far apart a reply's frames are now, in seconds.

        The more replies at once, the fewer frames of each, so that the first words of all go
        before the next words of some.
        """
        many = self.writing + self.arriving
        return min(SLOWEST_FRAMES, FRAME_SECONDS * max(1.0, many / EASILY))

    async def _relay(
        self, running: Running, pieces: AsyncGenerator[llm.Delta], end: Ending
    ) -> Ending:
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
        return end

    async def _record(self, running: Running, found: Recall) -> None:
        if found.memories or found.passed_over:
            await step(partial(record, running.scope, reply=running.reply_id, recall=found))
