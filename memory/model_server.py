"""A model's server: connections that are kept, a bounded number of tries, errors for people.

The `openai` package's client keeps the connections and signs the requests; the answers are read by
memory/wire.py, because the package's own decoder hides [DONE], trips over half a line of JSON, and
costs several times as much for each token. Deadlines are ours too: comments that keep a connection
alive defeat a read timeout. Whatever goes wrong becomes a ProviderError (memory/refusals.py), its
cause cut off with `from None`: a provider's message may quote the prompt or the key.
"""

import asyncio
import logging
import random
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import orjson
from django.utils.translation import gettext_lazy as _

from accounts.errors import ProviderError, Rejected, Unavailable
from accounts.text import clean_text
from memory import refusals
from memory.loops import wait_for
from memory.wire import decode_json

if TYPE_CHECKING:  # importing them takes a second, which most commands need not spend
    import httpx2
    from openai import AsyncOpenAI

type Client = AsyncOpenAI

logger = logging.getLogger(__name__)

ATTEMPTS = 3
LONGEST_PAUSE = 10.0  # seconds that a server may ask us to wait before we try again
CLIENTS = 32


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is: the address (it usually ends in /v1), the key, the model's name."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


@dataclass(slots=True)
class _Kept:
    client: Client
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
async def client_of(base_url: str, api_key: str) -> AsyncIterator[Client]:
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


def _new_client(base_url: str, api_key: str) -> Client:
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


class Failed(Exception):
    """An error for people on its way out of this module, with what decides about another try."""

    def __init__(
        self,
        error: ProviderError,
        status: int | None = None,
        pause: float | None = None,
        *,
        tools: "Tools | None" = None,
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


async def opened(
    client: Client, path: str, body: Mapping[str, Any] | None, *, attempts: int = ATTEMPTS
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


async def _send(client: Client, path: str, body: Mapping[str, Any] | None) -> "httpx2.Response":
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


class Tools(Enum):
    """What a server has against tools."""

    REFUSED = "it knows none"
    SPOILT = "the model made a call that the server can't read"


def _said_of_tools(status: int, said: str) -> Tools | None:
    if status not in _NO_TOOLS or not _TOOLS.search(said):
        return None
    return Tools.SPOILT if "tool_use_failed" in said else Tools.REFUSED


def _failed(error: Exception) -> Failed:
    """Return what an exception of the client means; raises it again if it is none."""
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        meant = refusals.refusal(error.status_code, error.body)
        pause = None
        tools = _said_of_tools(error.status_code, str(error.body)[:2_000])
        if tools:
            return Failed(meant, error.status_code, tools=tools)
        if isinstance(meant, Unavailable):
            pause = _retry_after(error.response.headers.get("retry-after"))
        return Failed(meant, error.status_code, pause)
    if isinstance(error, openai.APIConnectionError):
        return Failed(refusals.unreachable(), pause=0.0)
    if isinstance(error, _transport_errors()):
        return Failed(refusals.broke_off())
    if isinstance(error, httpx2.InvalidURL | UnicodeError):
        return Failed(refusals.bad_address())
    raise error


def _retry_after(header: str | None) -> float | None:
    """Return the seconds to wait before another try; None where that is too long."""
    try:
        seconds = float(header or 0)
    except ValueError:  # a date
        return None
    return seconds if 0 <= seconds <= LONGEST_PAUSE else None


async def by_deadline[T](deadline: float, seconds: float, work: Awaitable[T]) -> T:
    """Return what the work returns; its failures, lateness included, as errors for people."""
    try:
        async with asyncio.timeout_at(deadline):
            return await work
    except TimeoutError:
        raise refusals.too_late(seconds) from None
    except Failed as failed:
        raise failed.error from None


async def fetched(
    client: Client,
    path: str,
    body: Mapping[str, Any] | None,
    *,
    most: int,
    attempts: int = ATTEMPTS,
) -> Any:
    """Return the JSON of a response that is not streamed, of at most `most` bytes."""
    response = await opened(client, path, body, attempts=attempts)
    read = bytearray()
    received = response.aiter_bytes()
    try:
        while (piece := await piece_of(received)) is not None:
            read += piece
            if len(read) > most:
                raise Failed(refusals.unusable(_("The model's answer is too long.")))
    finally:
        await received.aclose()
        await response.aclose()
    if read.lstrip()[:1] == b"<":
        raise Failed(refusals.web_page())
    try:
        return decode_json(bytes(read))
    except (ValueError, RecursionError):
        raise Failed(refusals.unusable(_("The model's server sent no JSON."))) from None


def waited[T](
    base_url: str, api_key: str, seconds: float, work: Callable[[Client], Awaitable[T]]
) -> T:
    """Return what the work with a client returns; for code without an event loop."""

    async def done() -> T:
        async with client_of(base_url, api_key) as client:
            deadline = asyncio.get_running_loop().time() + seconds
            return await by_deadline(deadline, seconds, work(client))

    return wait_for(done())


async def piece_of(received: AsyncIterator[bytes]) -> bytes | None:
    """Return the next bytes of a response, None at its end."""
    try:
        return await anext(received, None)
    except _transport_errors():
        raise Failed(refusals.broke_off()) from None
