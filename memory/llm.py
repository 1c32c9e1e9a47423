"""A reply of the language model, piece by piece, from any address that is OpenAI-compatible."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from accounts.errors import ProviderError
from memory import refusals
from memory.model_server import (
    Client,
    Endpoint,
    Failed,
    Tools,
    by_deadline,
    client_of,
    opened,
    piece_of,
)
from memory.wire import ReplyReader, ToolCall, TooLong, Usage

if TYPE_CHECKING:  # importing them takes a second, which most commands need not spend
    import httpx2

logger = logging.getLogger(__name__)

type Message = Mapping[str, Any]

REPLY_CHARS = 400_000
AFTER_FINISH = 1.0  # seconds for the usage and [DONE] that may follow the finish
WITHOUT_TOOLS = 3_600.0  # seconds for which an endpoint that refused tools is not asked again


class Finish(StrEnum):
    """How a reply ended."""

    COMPLETE = "complete"
    LENGTH = "length"
    FILTERED = "filtered"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply; the last one, and only that, has a finish.

    thinking says that the model reasons, which is not shown. error says why a reply was
    interrupted. calls are the tools that the model wants used before it goes on; only the last
    piece of a whole answer has them.
    """

    text: str = ""
    finish: Finish | None = None
    usage: Usage | None = None
    thinking: bool = False
    error: ProviderError | None = None
    calls: tuple[ToolCall, ...] = ()


_FINISHES = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_length": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "content_filter": Finish.FILTERED,
    "safety": Finish.FILTERED,
    "recitation": Finish.FILTERED,
    "prohibited_content": Finish.FILTERED,
    "sensitive": Finish.FILTERED,
    "refusal": Finish.FILTERED,
    "error": Finish.INTERRUPTED,
    "abort": Finish.INTERRUPTED,
    "cancelled": Finish.INTERRUPTED,
    "network_error": Finish.INTERRUPTED,
    "insufficient_system_resource": Finish.INTERRUPTED,
}  # any other word is some reason to have stopped: complete


async def stream(
    endpoint: Endpoint,
    messages: Sequence[Message],
    *,
    first_token_timeout: float = 60,
    silence_timeout: float = 30,
    total_timeout: float = 600,
    pace: Callable[[], float] = lambda: 0.05,
    tools: Sequence[Mapping[str, Any]] = (),
    calling: bool = True,
) -> AsyncGenerator[Delta]:
    """Yield the reply as it comes, its last Delta with the finish; iterate within `aclosing`.

    `tools` are what the model may call, as JSON schemas of functions; not `calling` shows them to
    it for what it called before, and asks for words now. An endpoint that refuses them is asked
    without, and without the calls among the messages; for an hour it is not asked with them again.

    The first piece comes at once, further ones at most every `pace()` seconds with all that came
    meanwhile: it is asked anew each time. Raises a ProviderError if there was nothing to show; once
    there was, the reply ends as interrupted instead. Closing the generator closes the connection:
    the provider stops.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    last = began + total_timeout
    deadline = min(began + first_token_timeout, last)
    reader = ReplyReader()
    failure: ProviderError | None = None
    pending: asyncio.Task[bytes | None] | None = None
    async with client_of(endpoint.base_url, endpoint.api_key) as client:
        asked = _Asked(endpoint, messages, tools, calling)
        response = await by_deadline(deadline, first_token_timeout, _begin(client, asked))
        received = response.aiter_bytes()
        try:
            try:
                while not reader.over and reader.length <= REPLY_CHARS:
                    # Eager: what has arrived is read at once, up to where it would have to wait.
                    pending = asyncio.Task(piece_of(received), loop=loop, eager_start=True)
                    if not pending.done():
                        text, thought = reader.take(), reader.took_thought()
                        if text or thought:
                            yield Delta(text, thinking=thought and not text)
                            # Nothing is read meanwhile: waking for every token is what costs.
                            await asyncio.sleep(pace())
                        await asyncio.wait((pending,), timeout=max(0.0, deadline - loop.time()))
                        if not pending.done() or loop.time() >= deadline:
                            if loop.time() >= last:
                                failure = refusals.took_too_long(total_timeout)
                            elif reader.progress:
                                failure = refusals.fell_silent(silence_timeout)
                            else:
                                failure = refusals.too_late(first_token_timeout)
                            break
                    piece = pending.result()
                    if piece is None:
                        break
                    progress, finished = reader.progress, reader.finish
                    reader.feed(piece)
                    if reader.finish and not finished:
                        deadline = min(loop.time() + AFTER_FINISH, last)
                    elif reader.progress != progress and not finished:
                        deadline = min(loop.time() + silence_timeout, last)
            except Failed as failed:
                failure = failed.error
            except TooLong:
                failure = refusals.garbled()
            reader.end()
            yield _conclusion(reader, failure)
        finally:
            await _close(pending, received, response, keep=reader.done)


def _conclusion(reader: ReplyReader, failure: ProviderError | None) -> Delta:
    """Return the last Delta, or raise why there is nothing to show."""
    finish = finish_of(reader) if reader.finish else None
    calls = reader.calls
    if reader.length > REPLY_CHARS:
        finish = Finish.LENGTH
    if finish is None and reader.done:
        finish = Finish.COMPLETE  # Ollama may give no reason, only [DONE]
    if finish is None or finish is Finish.INTERRUPTED:
        finish = Finish.INTERRUPTED
        failure = trouble_shown(reader) or failure or refusals.broke_off()
    elif reader.length or (calls and finish is Finish.COMPLETE):
        failure = None
    else:
        failure = trouble_shown(reader) or _wordless(finish)
    if failure:
        logger.warning("a reply ended with %s", failure.code)
        if not reader.length:
            raise failure
    if finish is not Finish.COMPLETE:
        calls = ()  # the last of them may be half of one
    return Delta(reader.take(), finish, reader.usage, error=failure, calls=calls)


def finish_of(reader: ReplyReader) -> Finish:
    """Return what the server's word for the end means; no word is complete."""
    return _FINISHES.get((reader.finish or "").lower(), Finish.COMPLETE)


def trouble_shown(reader: ReplyReader) -> ProviderError | None:
    """Return the trouble that the server itself showed, if it did."""
    if reader.page:
        return refusals.web_page()
    if reader.error is not None:
        return refusals.refusal(None, reader.error)
    return refusals.garbled() if reader.broken else None


def _wordless(finish: Finish) -> ProviderError:
    if finish is Finish.FILTERED:
        return refusals.filtered()
    return refusals.no_room() if finish is Finish.LENGTH else refusals.empty()


_no_usage: set[tuple[str, str]] = set()  # endpoints that refuse to count tokens
_no_tools: dict[tuple[str, str], float] = {}  # endpoints that refuse tools, and since when


def knows_tools(endpoint: Endpoint) -> bool:
    """Tell whether the endpoint may be offered tools: it has not refused them of late."""
    refused = _no_tools.get((endpoint.base_url, endpoint.model))
    return refused is None or time.monotonic() - refused > WITHOUT_TOOLS


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a reply is asked for with."""

    endpoint: Endpoint
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    calling: bool = True

    def body(self, *, tools: bool, usage: bool) -> dict[str, Any]:
        """Return the request, with or without what a server may refuse."""
        body: dict[str, Any] = {"model": self.endpoint.model, "stream": True}
        body["messages"] = list(self.messages) if tools else without_calls(self.messages)
        if tools:
            body["tools"] = list(self.tools)
            if not self.calling:
                body["tool_choice"] = "none"
        if usage:
            body["stream_options"] = {"include_usage": True}
        return body


async def _begin(client: Client, asked: _Asked) -> "httpx2.Response":
    """Return the response to a request that leaves out what the server was found to refuse."""
    place = asked.endpoint.base_url, asked.endpoint.model
    with_tools = bool(asked.tools) and knows_tools(asked.endpoint)
    counting = place not in _no_usage
    ways = [
        (tools, usage)
        for tools, usage in ((True, True), (False, True), (True, False), (False, False))
        if tools <= with_tools and usage <= counting
    ]
    lasting = True
    while True:
        tools, usage = ways.pop(0)
        try:
            response = await opened(
                client, "/chat/completions", asked.body(tools=tools, usage=usage)
            )
        except Failed as failed:
            if tools and failed.tools:
                lasting = failed.tools is Tools.REFUSED
                ways = [way for way in ways if not way[0]]
            elif not failed.may_be_a_parameter:
                raise
            if not ways:
                raise
        else:
            break
    if with_tools and not tools:
        if lasting and usage == counting:
            _no_tools[place] = time.monotonic()
        logger.info("a reply goes on without tools")
    if counting and not usage:
        _no_usage.add(place)
    return response


def without_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages as a model without tools may read them: words, and no calls."""
    kept: list[Message] = []
    for message in messages:
        if message.get("role") == "tool":
            continue
        if message.get("tool_calls"):
            if not message.get("content"):
                continue
            message = {"role": message["role"], "content": message["content"]}
        if kept and message["role"] == kept[-1]["role"] == "assistant":
            text = f"{kept[-1]['content']}\n\n{message['content']}"
            kept[-1] = {"role": "assistant", "content": text}
        else:
            kept.append(message)
    return kept


async def _close(
    pending: "asyncio.Task[bytes | None] | None",
    received: AsyncGenerator[bytes],
    response: "httpx2.Response",
    *,
    keep: bool = False,
) -> None:
    """Close the response; with `keep`, first read the end of one that has all but ended."""
    if keep and pending is not None and pending.done() and not response.is_closed:
        # The connection serves again only if the response was read to its end.
        pending = asyncio.create_task(piece_of(received))
        await asyncio.wait((pending,), timeout=0.05)
    if pending is not None:
        if not pending.done():
            pending.cancel()
            await asyncio.wait((pending,), timeout=1)
        if pending.done() and not pending.cancelled():
            pending.exception()  # seen, so that asyncio does not report it as forgotten
    await received.aclose()
    await response.aclose()
