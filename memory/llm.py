"""The language model, through the `openai` package, at any address that is OpenAI-compatible.

stream          a reply, piece by piece, for the web process
complete_json   a value that fits a schema, for workers
complete_text   a short text, for workers
list_models     what an address offers
embed_remote    vectors from an embeddings address

The package's client keeps the connections and signs the requests; the answers are read by
memory/wire.py, because the package's own decoder hides [DONE], trips over half a line of JSON, and
costs several times as much for each token. Deadlines are ours too: comments that keep a connection
alive defeat a read timeout. Whatever goes wrong becomes a ProviderError (memory/refusals.py), its
cause cut off with `from None`: a provider's message may quote the prompt or the key.
"""

import asyncio
import logging
import random
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import numpy as np
import orjson
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import Misconfigured, ProviderError, Rejected, Unavailable
from accounts.text import clean_text
from memory import refusals
from memory.json_answer import asking_for_json, is_strict, json_in, misfit
from memory.loops import wait_for
from memory.vectors import Vectors, in_order
from memory.wire import ReplyReader, ToolCall, TooLong, Usage, decode_json

if TYPE_CHECKING:  # importing them takes a second, which most commands need not spend
    import httpx2
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

type Message = Mapping[str, Any]

REPLY_CHARS = 400_000
ANSWER_BYTES = 200_000
LIST_BYTES = 4 * 1024 * 1024
VECTOR_BYTES = 16 * 1024 * 1024
ATTEMPTS = 3
LONGEST_PAUSE = 10.0  # seconds that a server may ask us to wait before we try again
AFTER_FINISH = 1.0  # seconds for the usage and [DONE] that may follow the finish
CLIENTS = 32
EMBED_CHARS = (6_000, 1_000)
EMBED_BATCH = 64
WITHOUT_TOOLS = 3_600.0  # seconds for which an endpoint that refused tools is not asked again


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is: the address (it usually ends in /v1), the key, the model's name."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


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


# A reply as it comes.


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
    async with _client(endpoint.base_url, endpoint.api_key) as client:
        asked = _Asked(endpoint, messages, tools, calling)
        response = await _by(deadline, first_token_timeout, _begin(client, asked))
        received = response.aiter_bytes()
        try:
            try:
                while not reader.over and reader.length <= REPLY_CHARS:
                    # Eager: what has arrived is read at once, up to where it would have to wait.
                    pending = asyncio.Task(_piece(received), loop=loop, eager_start=True)
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
            except _Failed as failed:
                failure = failed.error
            except TooLong:
                failure = refusals.garbled()
            reader.end()
            yield _conclusion(reader, failure)
        finally:
            await _close(pending, received, response, keep=reader.done)


def _conclusion(reader: ReplyReader, failure: ProviderError | None) -> Delta:
    """Return the last Delta, or raise why there is nothing to show."""
    finish = _FINISHES.get(reader.finish.lower(), Finish.COMPLETE) if reader.finish else None
    calls = reader.calls
    if reader.length > REPLY_CHARS:
        finish = Finish.LENGTH
    if finish is None and reader.done:
        finish = Finish.COMPLETE  # Ollama may give no reason, only [DONE]
    if finish is None or finish is Finish.INTERRUPTED:
        finish = Finish.INTERRUPTED
        failure = _named(reader) or failure or refusals.broke_off()
    elif reader.length or (calls and finish is Finish.COMPLETE):
        failure = None
    else:
        failure = _named(reader) or _wordless(finish)
    if failure:
        logger.warning("a reply ended with %s", failure.code)
        if not reader.length:
            raise failure
    if finish is not Finish.COMPLETE:
        calls = ()  # the last of them may be half of one
    return Delta(reader.take(), finish, reader.usage, error=failure, calls=calls)


def _named(reader: ReplyReader) -> ProviderError | None:
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


async def _begin(client: "AsyncOpenAI", asked: _Asked) -> "httpx2.Response":
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
            response = await _open(
                client, "/chat/completions", asked.body(tools=tools, usage=usage)
            )
        except _Failed as failed:
            if tools and failed.tools:
                lasting = failed.tools is _Tools.REFUSED
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


async def _piece(received: AsyncIterator[bytes]) -> bytes | None:
    """Return the next bytes of a response, None at its end."""
    try:
        return await anext(received, None)
    except _transport_errors():
        raise _Failed(refusals.broke_off()) from None


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
        pending = asyncio.create_task(_piece(received))
        await asyncio.wait((pending,), timeout=0.05)
    if pending is not None:
        if not pending.done():
            pending.cancel()
            await asyncio.wait((pending,), timeout=1)
        if pending.done() and not pending.cancelled():
            pending.exception()  # seen, so that asyncio does not report it as forgotten
    await received.aclose()
    await response.aclose()


# Requests: one client for each address and loop, a bounded number of tries, errors for people.


@dataclass(slots=True)
class _Kept:
    client: "AsyncOpenAI"
    users: int = 0


class _Clients:
    """The clients of one event loop, closed with it."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self.guard = self._until_the_loop_ends()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        # A loop that ends closes its asynchronous generators: the only sign of it that it gives.
        try:
            yield
        finally:
            _by_loop.pop(asyncio.get_running_loop(), None)
            for kept in self.kept.values():
                await kept.client.close()

    async def take(self, base_url: str, api_key: str) -> _Kept:
        key = base_url, api_key
        if key not in self.kept:
            self.kept[key] = _Kept(_new_client(base_url, api_key))
        kept = self.kept[key]
        kept.users += 1
        self.kept.move_to_end(key)
        idle = [old for old, other in self.kept.items() if not other.users]
        for old in idle[: max(0, len(self.kept) - CLIENTS)]:
            await self.kept.pop(old).client.close()
        return kept


_by_loop: dict[asyncio.AbstractEventLoop, _Clients] = {}


@asynccontextmanager
async def _client(base_url: str, api_key: str) -> AsyncIterator["AsyncOpenAI"]:
    loop = asyncio.get_running_loop()
    clients = _by_loop.get(loop)
    if clients is None:
        clients = _by_loop[loop] = _Clients()
        await anext(clients.guard)
    kept = await clients.take(base_url, api_key)
    try:
        yield kept.client
    finally:
        kept.users -= 1


def _new_client(base_url: str, api_key: str) -> "AsyncOpenAI":
    import httpx2
    import openai

    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # what is no port, or no IPv6 address
        usable = False
    if not usable:
        raise refusals.bad_address()
    if not api_key.isascii() or not api_key.isprintable():
        raise refusals.bad_key()
    nearby = parts.hostname in {"localhost", "127.0.0.1", "::1", "host.docker.internal"}
    timeout = httpx2.Timeout(None, connect=10, write=30, pool=30)
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=60)
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=api_key or "none",
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(
            timeout=timeout, limits=limits, trust_env=not nearby, max_redirects=3
        ),
    )


def warm() -> None:
    """Load the client's package, so that the first reply need not wait for it."""
    import openai  # noqa: F401


class _Failed(Exception):
    """An error for people on its way out of this module, with what decides about another try."""

    def __init__(
        self,
        error: ProviderError,
        status: int | None = None,
        pause: float | None = None,
        *,
        tools: "_Tools | None" = None,
    ) -> None:
        super().__init__(error.code)
        self.error = error
        self.status = status
        self.pause = pause
        self.tools = tools

    @property
    def may_be_a_parameter(self) -> bool:
        """The server may only dislike a part of the request that we can leave out."""
        plain = {Rejected.code, Unavailable.code}
        return self.status in {400, 415, 422, 501} and self.error.code in plain


async def _open(
    client: "AsyncOpenAI", path: str, body: Mapping[str, Any] | None, *, attempts: int = ATTEMPTS
) -> "httpx2.Response":
    """Return a response whose body is still to come; tries again where that may help."""
    attempt = 1
    while True:
        try:
            return await _send(client, path, body)
        except Exception as error:
            failed = _failed(error)
        logger.warning("the model's server: %s, status %s", failed.error.code, failed.status)
        if failed.pause is None or attempt >= attempts:
            raise failed from None
        await asyncio.sleep(max(failed.pause, 0.3 * 3 ** (attempt - 1)) * random.uniform(1, 1.3))
        attempt += 1


async def _send(
    client: "AsyncOpenAI", path: str, body: Mapping[str, Any] | None
) -> "httpx2.Response":
    import httpx2

    # The package's typed methods walk through every message first: 6 ms for forty of them.
    sent: Any
    if body is None:
        sent = await client.get(path, cast_to=httpx2.Response, stream=True, stream_cls=_RAW)
    else:
        sent = await client.post(
            path, cast_to=httpx2.Response, content=_packed(body), stream=True, stream_cls=_RAW
        )
    return cast("httpx2.Response", sent)


_RAW = cast("Any", None)  # no decoder of the package


def _packed(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:  # lone surrogates
        return orjson.dumps(_cleaned(body))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part) for part in value]
    return value


def _transport_errors() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.StreamError)


# How servers say that a model has no tools: 400 for most, 404 for routers, 500 for llama.cpp.
_NO_TOOLS = frozenset({400, 404, 405, 415, 422, 500, 501})
_TOOLS = re.compile(r"\btools?\b|tool[ _-]?(?:use|call|choice)|function[ _-]?call", re.I)


class _Tools(Enum):
    """What a server has against tools."""

    REFUSED = "it knows none"
    SPOILT = "the model made a call that the server can't read"


def _said_of_tools(status: int, said: str) -> _Tools | None:
    if status not in _NO_TOOLS or not _TOOLS.search(said):
        return None
    return _Tools.SPOILT if "tool_use_failed" in said else _Tools.REFUSED


def _failed(error: Exception) -> _Failed:
    """Return what an exception of the client means; raises it again if it is none."""
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        meant = refusals.refusal(error.status_code, error.body)
        pause = None
        tools = _said_of_tools(error.status_code, str(error.body)[:2_000])
        if tools:
            return _Failed(meant, error.status_code, tools=tools)
        if isinstance(meant, Unavailable):
            pause = _retry_after(error.response.headers.get("retry-after"))
        return _Failed(meant, error.status_code, pause)
    if isinstance(error, openai.APIConnectionError):
        return _Failed(refusals.unreachable(), pause=0.0)
    if isinstance(error, _transport_errors()):
        return _Failed(refusals.broke_off())
    if isinstance(error, httpx2.InvalidURL | UnicodeError):
        return _Failed(refusals.bad_address())
    raise error


def _retry_after(header: str | None) -> float | None:
    """Return the seconds to wait before another try; None where that is too long."""
    try:
        seconds = float(header or 0)
    except ValueError:  # a date
        return None
    return seconds if 0 <= seconds <= LONGEST_PAUSE else None


async def _by[T](deadline: float, seconds: float, work: Awaitable[T]) -> T:
    """Return what the work returns; its failures, lateness included, as errors for people."""
    try:
        async with asyncio.timeout_at(deadline):
            return await work
    except TimeoutError:
        raise refusals.too_late(seconds) from None
    except _Failed as failed:
        raise failed.error from None


async def _fetch(
    client: "AsyncOpenAI",
    path: str,
    body: Mapping[str, Any] | None,
    *,
    most: int,
    attempts: int = ATTEMPTS,
) -> Any:
    """Return the JSON of a response that is not streamed, of at most `most` bytes."""
    response = await _open(client, path, body, attempts=attempts)
    read = bytearray()
    received = response.aiter_bytes()
    try:
        while (piece := await _piece(received)) is not None:
            read += piece
            if len(read) > most:
                raise _Failed(refusals.unusable(_("The model's answer is too long.")))
    finally:
        await received.aclose()
        await response.aclose()
    if read.lstrip()[:1] == b"<":
        raise _Failed(refusals.web_page())
    try:
        return decode_json(bytes(read))
    except (ValueError, RecursionError):
        raise _Failed(refusals.unusable(_("The model's server sent no JSON."))) from None


def _wait[T](
    base_url: str, api_key: str, seconds: float, work: "Callable[[AsyncOpenAI], Awaitable[T]]"
) -> T:
    """Return what the work with a client returns; for code without an event loop."""

    async def done() -> T:
        async with _client(base_url, api_key) as client:
            deadline = asyncio.get_running_loop().time() + seconds
            return await _by(deadline, seconds, work(client))

    return wait_for(done())


# Whole answers, for workers.


class Form(Enum):
    """How a server is told that JSON is wanted; each asks less of it than the one before."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    WORDS = "words"


_forms: dict[tuple[str, str], Form] = {}  # what each endpoint was found to understand


def complete_json(
    endpoint: Endpoint,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    *,
    timeout: float = 120,
    name: str = "answer",
    accepts: Mapping[str, Any] | None = None,
) -> Any:
    """Return a value that fits the JSON schema; for code without an event loop.

    `accepts` is a schema that asks less, for a caller that checks each part by itself.

    A server that does not know JSON schemas is asked for a JSON object, then in words. Raises
    Rejected when no usable value came, other ProviderErrors as `stream` does.
    """

    async def ask(client: "AsyncOpenAI") -> Any:
        place = endpoint.base_url, endpoint.model
        known = _forms.get(place)
        away: _Failed | None = None
        for form in [known] if known else list(Form):
            last = known is not None or form is Form.WORDS
            # A server may answer 500 to a form that it does not know: then on to the next.
            attempts = ATTEMPTS if last else 1
            wanted = _wanted(form, messages, schema, name)
            try:
                answer = await _answer(client, endpoint, wanted, attempts=attempts)
                value = _fitting(answer, accepts or schema)
            except _Failed as failed:
                unusable = failed.error.code == "provider_unusable"
                if (failed.status or 0) >= 500:
                    away = failed
                if last and unusable and away:
                    # It had no chance to show which form it knows: to be asked again, and not for
                    # good the server whose answers are of no use.
                    raise away from None
                if last or not (unusable or failed.may_be_a_parameter or away is failed):
                    raise
            else:
                _forms[place] = form
                return value
        raise AssertionError("the last form returns or raises")

    return _wait(endpoint.base_url, endpoint.api_key, timeout, ask)


def complete_text(endpoint: Endpoint, messages: Sequence[Message], *, timeout: float = 60) -> str:
    """Return a short answer as clean text; for code without an event loop."""

    async def ask(client: "AsyncOpenAI") -> str:
        return (await _answer(client, endpoint, {"messages": list(messages)})).strip()

    return _wait(endpoint.base_url, endpoint.api_key, timeout, ask)


def _wanted(
    form: Form, messages: Sequence[Message], schema: Mapping[str, Any], name: str
) -> dict[str, Any]:
    if form is Form.SCHEMA:
        described = {"name": name, "schema": schema, "strict": is_strict(schema)}
        return {
            "messages": list(messages),
            "response_format": {"type": "json_schema", "json_schema": described},
        }
    told: dict[str, Any] = {"messages": asking_for_json(messages, schema)}
    if form is Form.OBJECT:
        told["response_format"] = {"type": "json_object"}
    return told


def _fitting(answer: str, schema: Mapping[str, Any]) -> Any:
    try:
        value = json_in(answer, schema)
    except ValueError:
        raise _Failed(refusals.unusable(_("The model's answer holds no JSON."))) from None
    reason = misfit(value, schema)
    if reason:
        sentence = _("The model's answer has the wrong shape: {reason}.")
        raise _Failed(refusals.unusable(format_lazy(sentence, reason=reason)))
    return value


async def _answer(
    client: "AsyncOpenAI",
    endpoint: Endpoint,
    wanted: Mapping[str, Any],
    *,
    attempts: int = ATTEMPTS,
) -> str:
    """Return the text of a whole completion."""
    body = {"model": endpoint.model, **wanted}
    most = 4 * ANSWER_BYTES
    reader = ReplyReader()
    reader.whole(await _fetch(client, "/chat/completions", body, most=most, attempts=attempts))
    text = reader.take()
    named = _named(reader)
    if named:
        raise _Failed(named)
    if len(text.encode()) > ANSWER_BYTES:
        raise _Failed(refusals.unusable(_("The model's answer is too long.")))
    finish = _FINISHES.get((reader.finish or "").lower(), Finish.COMPLETE)
    if finish is not Finish.COMPLETE:
        sentence = _("The model's answer is not whole: {finish}.")
        raise _Failed(
            Rejected(format_lazy(sentence, finish=finish.value), code=f"provider_{finish.value}")
        )
    if not text:
        raise _Failed(refusals.unusable(_("The model's answer is empty.")))
    return text


# What an address offers.


def list_models(base_url: str, api_key: str, *, timeout: float = 10) -> list[str]:
    """Return the names of the models at an address, in its order; without an event loop.

    Raises Misconfigured or Unavailable with a sentence for whoever sets the address.
    """

    async def ask(client: "AsyncOpenAI") -> Any:
        return await _fetch(client, "/models", None, most=LIST_BYTES, attempts=1)

    try:
        names = models_in(_wait(base_url, api_key, timeout, ask))
    except ProviderError as error:
        match error.code:
            case "provider_unreachable":
                sentence = _("Nothing answers at this address.")
                raise Unavailable(sentence, code=error.code) from None
            case "provider_key" if api_key:
                sentence = _("The server at this address refuses the key.")
                raise Misconfigured(sentence, code=error.code) from None
            case "provider_key":
                sentence = _("The server at this address wants a key.")
                raise Misconfigured(sentence, code=error.code) from None
            case "provider_unknown" | "provider_page" | "provider_unusable":
                raise refusals.no_models() from None
        raise
    if names is None:
        raise refusals.no_models()
    return names


def models_in(answer: Any) -> list[str] | None:
    """Return the names in an answer that lists models, None if it is no such list."""
    if not isinstance(answer, dict) or answer.get("object", "list") != "list":
        return None
    entries = answer.get("data", ...)
    if entries is None:  # Ollama without models
        return []
    if not isinstance(entries, list):
        return None
    names = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    kept = [clean_text(name)[:200] for name in names[:1000] if isinstance(name, str) and name]
    return kept if len(kept) == len(names[:1000]) else None


# Embeddings.


def embed_remote(endpoint: Endpoint, texts: Sequence[str], *, timeout: float = 30) -> Vectors:
    """Return a unit vector for each text, float32 (texts, dimensions); without an event loop.

    Texts are cut to what embedding models take. Raises Rejected if what came are no such vectors.
    """

    async def ask(client: "AsyncOpenAI") -> Vectors:
        parts = [
            await _embedded(client, endpoint, texts[start : start + EMBED_BATCH])
            for start in range(0, len(texts), EMBED_BATCH)
        ]
        if len({part.shape[1] for part in parts}) != 1:
            raise _Failed(refusals.unusable(_("The vectors differ in length.")))
        return cast("Vectors", np.concatenate(parts))

    return _wait(endpoint.base_url, endpoint.api_key, timeout, ask)


async def _embedded(client: "AsyncOpenAI", endpoint: Endpoint, texts: Sequence[str]) -> Vectors:
    cleaned = [clean_text(text) for text in texts]
    for chars in EMBED_CHARS:
        body = {
            "model": endpoint.model,
            "input": [text[:chars] for text in cleaned],
            "encoding_format": "float",
        }
        try:
            answer = await _fetch(client, "/embeddings", body, most=VECTOR_BYTES)
        except _Failed as failed:
            if failed.error.code != "provider_too_long" or chars == EMBED_CHARS[-1]:
                raise
        else:
            break
    if isinstance(answer, dict) and answer.get("error"):
        raise _Failed(refusals.refusal(None, answer["error"]))
    try:
        return in_order(answer["data"], len(texts))
    except (LookupError, TypeError, ValueError):
        sentence = _("What the embeddings' server sent is not one vector for each text.")
        raise _Failed(refusals.unusable(sentence)) from None
