"""Writing one reply: what is remembered, then what the model says, piece by piece to its pages.

Where the model may act, it speaks in rounds: what it asks for is done between them, and shown.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.errors import ProviderError
from chatapp import without_model
from chatapp.hub import Hub
from chatapp.journal import Shelf
from chatapp.news import News
from chatapp.prompts import asked_for, numbered, prompt, result_of
from chatapp.retrieval import Vector, reply_without_model, retrieve
from chatapp.running import LOST, Ending, Running, Status
from chatapp.steps import insist, slow_step, step
from chatapp.turn import Acts, Turn
from memory import llm
from memory.model_server import Endpoint
from memory.prompts import memory_block, new_fence
from memory.recall import Recall, record
from memory.tools import ShownAct, Toolbox, shown_acts
from memory.wire import ToolCall

FRAME_SECONDS = 0.075  # 13 a second: text flows, and each frame costs about 1 ms of CPU
SLOWEST_FRAMES = 0.25
EASILY = 5  # so many replies at once leave the process time to spare
MOST_ROUNDS = 5  # in which the model may act; then it is asked for words
NO_WORDS = "provider_empty"
PARAGRAPH = "\n\n"


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
            self._record(running)

    async def _write(self, running: Running, vector: Vector) -> Ending:
        retrieved = await retrieve(running.turn, vector)
        running.question = retrieved.question
        self.news.recalled(running, retrieved.found)
        running.unrecorded = retrieved.found
        if retrieved.endpoint is None:
            reply = await step(reply_without_model, running.turn, retrieved.found)
            end = Ending(Status.COMPLETE)
            await self._relay(running, without_model.pieces(reply), end)
            return end
        return await self._converse(running, retrieved.found, retrieved.endpoint)

    async def _converse(self, running: Running, found: Recall, endpoint: Endpoint) -> Ending:
        """Let the model speak, and act where it may, until it has answered."""
        claimed = running.turn
        toolbox, handles = None, []
        if claimed.allowed and llm.knows_tools(endpoint):
            toolbox = _toolbox(claimed)
            handles = toolbox.show(found.memories)
        messages = prompt(
            claimed.history,
            claimed.question,
            memory=memory_block(found.memories, new_fence(), zone=found.zone, handles=handles),
            so_far=claimed.so_far,
            calls=claimed.calls,
            acting=toolbox is not None,
            texts=claimed.texts,
            shown={one.id for one in found.memories},
        )
        end = Ending(Status.COMPLETE, model=endpoint.model)
        last = self.hub.loop.time() + settings.REPLY_TIMEOUT
        for round in range(MOST_ROUNDS + 1):
            calling = toolbox is not None and round < MOST_ROUNDS
            pieces = llm.stream(
                endpoint,
                messages,
                first_token_timeout=settings.FIRST_TOKEN_TIMEOUT,
                silence_timeout=settings.SILENCE_TIMEOUT,
                total_timeout=max(1.0, last - self.hub.loop.time()),
                pace=self.pace,
                tools=toolbox.schemas() if toolbox else (),
                calling=calling,
            )
            try:
                said, calls = await self._relay(running, pieces, end, apart=round > 0)
            except ProviderError as error:
                if not (round and error.code == NO_WORDS):
                    raise
                said, calls = "", ()  # it has acted, and finds that this says enough
            if not (calls and calling and toolbox):
                break
            told = numbered(calls, behind=messages)
            messages += asked_for(said, told)
            for call, as_told in zip(calls, told, strict=True):
                messages.append(result_of(as_told, await self._act(running, toolbox, call)))
        if toolbox and end.status == Status.COMPLETE and not running.journal.text().strip():
            running.push(_("Done."), self.hub.loop.time())
        return end

    async def _act(self, running: Running, toolbox: Toolbox, call: ToolCall) -> str:
        """Do what the model asks for and show it; return what the model is told of it."""
        self._record(running)
        told, acts = await slow_step(_used, toolbox, call)
        running.count = len(toolbox.seen)
        self.news.acted(running, acts)
        return told

    def pace(self) -> float:
        """Return how far apart a reply's frames are now, in seconds.

        The more replies at once, the fewer frames of each, so that the first words of all go
        before the next words of some.
        """
        many = self.writing + self.arriving
        return min(SLOWEST_FRAMES, FRAME_SECONDS * max(1.0, many / EASILY))

    async def _relay(
        self,
        running: Running,
        pieces: AsyncGenerator[llm.Delta],
        end: Ending,
        *,
        apart: bool = False,
    ) -> tuple[str, tuple[ToolCall, ...]]:
        """Send the pieces on; return what they say, and the tools that the model calls then.

        What `end` says is brought up to date; `apart` begins a new paragraph.
        """
        said: list[str] = []
        calls: tuple[ToolCall, ...] = ()
        async with aclosing(pieces) as deltas:
            async for delta in deltas:
                if delta.text:
                    before = PARAGRAPH if apart and not said and running.journal.n else ""
                    said.append(delta.text)
                    running.push(before + delta.text, self.hub.loop.time())
                    self.shelf.touch(soon=self.hub.has_peers)
                    self._record(running)
                if delta.finish:
                    end.status = str(delta.finish)
                    end.problem = delta.error
                    calls = delta.calls
                    if delta.usage:
                        tokens_in, tokens_out = (tokens or 0 for tokens in end.tokens)
                        end.tokens = (
                            tokens_in + delta.usage.tokens_in,
                            tokens_out + delta.usage.tokens_out,
                        )
        return "".join(said), calls

    def _record(self, running: Running) -> None:
        """Have it written down what was recalled, once: behind the first words, not before them."""
        found, running.unrecorded = running.unrecorded, None
        if found is not None and (found.memories or found.passed_over) and running.reason != LOST:
            write = partial(record, running.scope, reply=running.reply_id, recall=found)
            self.hub.spawn(insist(write))


def _toolbox(claimed: Turn) -> Toolbox:
    return Toolbox(
        claimed.scope,
        claimed.allowed,
        Acts(claimed),
        reply=claimed.reply_id,
        question=claimed.question.ids[-1],
        said=claimed.question.text,
        session_key=claimed.session_id,
        acts=[dict(call) for call in claimed.calls],
    )


def _used(toolbox: Toolbox, call: ToolCall) -> tuple[str, list[ShownAct]]:
    """Use a tool; return what the model is told, and all that it has done as it is shown."""
    _act, told = toolbox.use(call)
    shown = shown_acts(toolbox.scope, {toolbox.reply: toolbox.acts})
    return told, shown.get(toolbox.reply, [])
