"""A language model that does what a test tells it to, over real HTTP.

It speaks the OpenAI protocol (models, chat completions, embeddings), can deviate from it in every
way that compatible servers are known to, and records each request. In a test:

    with StubModel() as stub:
        stub.script(text="Hello Ada.", per_token=0.01)
        stub.script(shape="cut", tokens=["Once", " upon"], contains="a story")
        ...
        assert "vegetarian" in stub.requests[-1].prompt

By itself, for the load generator or by hand: `python -m tests.stub_model --port 9999`. Then
POST /control/script takes the same fields as JSON, POST /control/reset forgets rules and records,
GET /control/requests shows the records.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import numpy
import orjson

MODEL = "stub-model"

# How a streamed reply may deviate. What each looks like on the wire: `_Wire`.
SHAPES = frozenset(
    {
        "plain",
        "cut",  # ends cleanly without finish_reason
        "abort",  # the connection is reset
        "hang",  # falls silent, stays open
        "comments",  # keep-alive comments for ever
        "blanks",  # chunks with empty content for ever
        "flood",  # tokens without end, as fast as they are read
        "nothing",  # status 200, no body
        "html",  # status 200, a web page
        "error_event",  # event: error, with an error object
        "error_message",  # event: error, with only a message, so that choices are missing
        "error_data",  # an error object as data
        "null_choices",  # chunks whose choices are null or []
        "azure",  # prompt_filter_results first, content filters last
        "null_content",  # content null between the tokens
        "empty_finish",  # finish_reason "" on every chunk, then "stop"
        "finish_with_text",  # the last token in the finishing chunk
        "text_after_finish",  # finish_reason first, a token after it
        "half_json",  # ends within a line of JSON
        "broken_json",  # a line that is no JSON, then more tokens
        "split_lines",  # every line in two writes
        "ollama",  # finish_reason stays null, then [DONE]
        "after_done",  # [DONE], then a chunk with a null finish_reason
        "no_done",  # finish_reason, then the end
        "lingering",  # finish_reason, then open and silent
        "crlf",  # CRLF line ends
        "no_space",  # data:{...}
        "json_body",  # a whole completion although a stream was asked for
        "wrong_type",  # events, said to be text/plain
        "parts",  # content as a list of typed parts
        "whole_calls",  # each call in one piece, without an index
        "bare_calls",  # each call in one piece, with neither index nor id
        "index_zero",  # calls in pieces, all of them with index 0
        "value_calls",  # arguments as a value instead of text
        "old_call",  # function_call, as it was before there were tools
    }
)
# How embeddings may be wrong.
EMBEDDING_SHAPES = frozenset(
    {"shuffled", "missing", "doubled", "nan", "zero", "ragged", "strings", "long"}
)


@dataclass(slots=True)
class Reply:
    """One answer of the stub. Times are in seconds; None takes the server's default."""

    text: str = "Hello from the stub model."
    tokens: list[str] | None = None  # instead of text; may hold NUL and surrogates
    count: int = 0  # instead of text: so many tokens, tagged with the question's first word
    words: list[str] = field(default_factory=list)  # with count: these, from the tag's number on
    echo: str = ""  # instead of text: "question" or "prompt" (every message)
    answer: Any = None  # instead of text: a JSON value
    # Behind the text: tools to call, {name, arguments (a value, or text as it is), id (optional)}.
    calls: list[dict[str, Any]] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    shape: str = "plain"
    finish: str | None = "stop"  # with calls "tool_calls", unless another is given
    first_token: float | None = None
    per_token: float | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None  # the whole body, as it is, for any status
    error: dict[str, Any] | None = None  # what the error object holds
    dims: int | None = None  # of embeddings


@dataclass(slots=True)
class Rule:
    """Which requests get a reply: the newest rule that fits wins.

    Without a kind, a reply is for chat requests, an `answer` also for extraction (json), wrong
    vectors for embeddings, and a failure (status, body) for all of them but extraction, unless
    `contains` picks the request.
    """

    reply: Reply
    contains: str = ""  # somewhere in the prompt, or in the texts to embed
    kind: str = ""  # chat, json (a response_format was asked for), embeddings, models
    times: int | None = None  # how often it still applies

    def fits(self, request: "Request") -> bool:
        if self.times == 0 or self.contains not in request.prompt:
            return False
        if self.kind:
            return self.kind == request.kind
        reply = self.reply
        fails = reply.status != 200 or reply.body is not None
        if request.kind == "json":
            return reply.answer is not None or (fails and bool(self.contains))
        if request.kind == "embeddings":
            return fails or reply.dims is not None or reply.shape in EMBEDDING_SHAPES
        return fails or request.kind == "chat"


@dataclass(slots=True)
class Request:
    """One request as it arrived, and how its answer ended."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float = field(default_factory=time.time)
    status: str = "open"  # open, finished, gone (the client left before the end)
    ended_at: float | None = None
    writes: int = 0  # pieces of the answer that were sent
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def kind(self) -> str:
        if self.path.endswith("/embeddings"):
            return "embeddings"
        if self.path.endswith("/models"):
            return "models"
        if isinstance(self.body, dict) and self.body.get("response_format"):
            return "json"
        return "chat"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages", []) if isinstance(self.body, dict) else []

    @property
    def prompt(self) -> str:
        """Every word that reached the model."""
        if self.kind == "embeddings":
            return "\n".join(_texts(self.body))
        return "\n".join(str(message.get("content")) for message in self.messages)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model was offered."""
        offered = self.body.get("tools") or [] if isinstance(self.body, dict) else []
        return [tool["function"]["name"] for tool in offered]

    @property
    def results(self) -> list[str]:
        """What came of the tools that the model called, oldest first."""
        told = [message for message in self.messages if message.get("role") == "tool"]
        return [str(message.get("content")) for message in told]

    @property
    def question(self) -> str:
        users = [message for message in self.messages if message.get("role") == "user"]
        return str(users[-1].get("content")) if users else ""

    @property
    def disconnected(self) -> bool:
        return self.status == "gone"

    def wait(self, seconds: float = 10) -> bool:
        """Wait until the answer has ended or the client has left."""
        return self.ended.wait(seconds)

    def close(self, status: str) -> None:
        if self.status == "open":
            self.status = status
            self.ended_at = time.time()
            self.ended.set()

    def shown(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": self.body,
            "at": self.at,
            "status": self.status,
            "ended_at": self.ended_at,
            "writes": self.writes,
        }


def _texts(body: Any) -> list[str]:
    given = body.get("input", []) if isinstance(body, dict) else []
    return [given] if isinstance(given, str) else [str(text) for text in given]


class Script:
    """What the stub will say, and what it was asked; used from any thread."""

    def __init__(
        self,
        *,
        first_token: float = 0.0,
        per_token: float = 0.0,
        models: Sequence[str] = (MODEL,),
        dims: int = 384,
        api_key: str = "",
        kept: int = 2_000,
    ) -> None:
        self.first_token = first_token
        self.per_token = per_token
        self.models = list(models)
        self.dims = dims
        self.api_key = api_key
        self.default = Reply()
        self.refused: set[str] = set()
        self.names_what_it_refuses = True
        self.extract: Callable[[Request], Any] | None = None
        self.requests: deque[Request] = deque(maxlen=kept)
        self.transports: set[asyncio.Transport] = set()
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def script(
        self,
        reply: Reply | None = None,
        *,
        contains: str = "",
        kind: str = "",
        times: int | None = None,
        **given: Any,
    ) -> None:
        """Answer like this from now on: every request, or those that a rule names."""
        reply = reply or Reply(**given)
        if reply.shape not in SHAPES | EMBEDDING_SHAPES:
            raise ValueError(f"unknown shape {reply.shape!r}")
        with self._lock:
            self._rules.append(Rule(reply, contains, kind, times))

    def refuse(self, *names: str, silently: bool = False) -> None:
        """Answer 400 to requests that use these: json_schema, json_object, stream_options, ..."""
        self.refused = set(names)
        self.names_what_it_refuses = not silently

    def reset(self) -> None:
        """Forget the rules and the records."""
        with self._lock:
            self._rules.clear()
            self.requests.clear()
        self.refused = set()
        self.default = Reply()
        self.extract = None

    def wait_for_request(self, seconds: float = 10) -> Request:
        """Return the newest request, once there is one."""
        until = time.monotonic() + seconds
        while not self.requests and time.monotonic() < until:
            time.sleep(0.01)
        return self.requests[-1]

    def asked(self, kind: str) -> list[Request]:
        """Return the recorded requests of one kind, oldest first."""
        return [request for request in list(self.requests) if request.kind == kind]

    def choose(self, request: Request) -> Reply:
        with self._lock:
            for rule in reversed(self._rules):
                if rule.fits(request):
                    if rule.times is not None:
                        rule.times -= 1
                    return rule.reply
        if request.kind == "json":
            derived = self.extract(request) if self.extract else None
            return Reply(answer=smallest(_schema(request.body)) if derived is None else derived)
        return self.default

    def refusal(self, request: Request) -> str | None:
        body = request.body if isinstance(request.body, dict) else {}
        used = set(body) | {str((body.get("response_format") or {}).get("type"))}
        for name in sorted(self.refused & used):
            return name if self.names_what_it_refuses else ""
        return None


def _schema(body: Any) -> Any:
    wanted = body.get("response_format") or {}
    return (wanted.get("json_schema") or {}).get("schema") or {"type": "object"}


def smallest(schema: Any) -> Any:
    """Return the smallest value that fits a JSON schema: empty lists, empty text, zero."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("anyOf"):
        return smallest(schema["anyOf"][0])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        parts = schema.get("properties", {})
        return {name: smallest(parts.get(name, {})) for name in schema.get("required", parts)}
    empty: dict[str, Any] = {"array": [], "string": "", "boolean": False, "null": None}
    return empty.get(kind, 0)


def vector(text: str, dims: int) -> list[float]:
    """Return a unit vector that depends only on the text; shared words bring texts nearer."""
    total = numpy.zeros(dims)
    for word in re.findall(r"\w+", text.lower()) or [text]:
        seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8])
        total += numpy.random.default_rng(seed).standard_normal(dims)
    unit: list[float] = (total / numpy.linalg.norm(total)).tolist()
    return unit


def tokens_of(reply: Reply, request: Request) -> list[str]:
    if reply.tokens is not None:
        return reply.tokens
    if reply.count:
        tag = (request.question.split() or ["token"])[0][:32]
        if reply.words:
            start = reply.count * int(re.sub(r"\D", "", tag) or 0)
            places = range(start, start + reply.count)
            return [reply.words[place % len(reply.words)] + " " for place in places]
        return [f"{tag}-{number} " for number in range(1, reply.count + 1)]
    text = reply.text
    if reply.echo:
        text = request.question if reply.echo == "question" else request.prompt
    if reply.answer is not None:
        text = json.dumps(reply.answer, ensure_ascii=False)
    return re.findall(r"\s*\S+|\s+$", text)


@dataclass(slots=True)
class _Wire:
    """What to write and when: (seconds from the start, bytes), and how to end."""

    content_type: str = "text/event-stream; charset=utf-8"
    parts: list[tuple[float, bytes]] = field(default_factory=list)
    end: str = "end"  # end, abort, hang, or a name that repeats for ever


def _chunk(delta: Any, finish: Any = None, **more: Any) -> bytes:
    return _event(
        {
            "id": "chatcmpl-stub",
            "object": "chat.completion.chunk",
            "created": 1_800_000_000,
            "model": MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        | more
    )


def _event(value: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    # ensure_ascii, so that a lone surrogate travels as an escape, as real servers send it.
    return f"{head}data: {json.dumps(value)}\n\n".encode()


_BEFORE, _AFTER = _chunk({"content": "?"}).split(b"?", 1)
DONE = b"data: [DONE]\n\n"
_ROLE = _chunk({"role": "assistant", "content": ""})
_ERROR = {"message": "the model runner has stopped", "type": "server_error", "code": "overloaded"}
_PAGE = b"<!doctype html><title>Sign in</title><p>Welcome to the hotel's network.</p>"


def _token(text: str) -> bytes:
    return _BEFORE + json.dumps(text)[1:-1].encode() + _AFTER


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def streamed(reply: Reply, request: Request, first: float, per: float) -> _Wire:
    """Lay a reply out on the wire, with its deviation."""
    tokens = tokens_of(reply, request)
    shape = reply.shape
    wire = _Wire()
    if shape in {"html", "nothing"}:
        wire.content_type = "text/html; charset=utf-8"
        wire.parts = [(0, _PAGE)] if shape == "html" else []
        return wire
    if shape == "json_body":
        wire.content_type = "application/json"
        wire.parts = [(first, orjson.dumps(whole(reply, request)))]
        return wire
    if shape == "wrong_type":
        wire.content_type = "text/plain"

    at = first
    parts = wire.parts
    if shape == "azure":
        parts.append((0, _event({"id": "", "choices": [], "prompt_filter_results": [{}]})))
    parts.append((at if first else 0, _ROLE))
    for thought in reply.reasoning:
        parts.append((at, _chunk({"content": None, "reasoning_content": thought})))
        at += per
    for number, token in enumerate(tokens):
        last = number == len(tokens) - 1
        if shape == "null_content":
            parts.append((at, _chunk({"content": None})))
        if shape == "null_choices":
            parts.append((at, _event({"id": "x", "choices": None if number % 2 else []})))
        if shape == "empty_finish":
            parts.append((at, _chunk({"content": token}, "")))
        elif shape == "finish_with_text" and last:
            parts.append((at, _chunk({"content": token}, reply.finish)))
        elif shape == "text_after_finish" and last:
            parts.append((at, _chunk({}, reply.finish) + _token(token)))
        elif shape == "parts":
            kinds = [{"type": "thinking", "thinking": []}, {"type": "text", "text": token}]
            parts.append((at, _chunk({"content": kinds})))
        elif shape == "broken_json" and last:
            parts.append((at, b'data: {"choices":[{"delta":{"content": oops\n\n' + _token(token)))
        else:
            parts.append((at, _token(token)))
        at += per

    for delta in call_deltas(reply):
        parts.append((at, _chunk(delta)))
        at += per

    usage = _usage(len(request.prompt) // 4, len(tokens))
    finish = _chunk({}, ending(reply))
    asked = request.body.get("stream_options") or {}
    counted = _event({"id": "x", "choices": [], "usage": usage}) if asked else b""
    ends: dict[str, tuple[bytes, str]] = {
        "cut": (b"", "end"),
        "abort": (b"", "abort"),
        "hang": (b"", "hang"),
        "comments": (b"", "comments"),
        "blanks": (b"", "blanks"),
        "flood": (b"", "flood"),
        "error_event": (_event({"error": _ERROR}, "error"), "end"),
        "error_message": (_event({"message": _ERROR["message"]}, "error"), "end"),
        "error_data": (_event({"error": _ERROR}), "end"),
        "azure": (
            _chunk({}, reply.finish, choices_filter={"hate": {"filtered": False}})
            + _event({"id": "", "choices": [], "content_filter_offsets": {}})
            + counted
            + DONE,
            "end",
        ),
        "finish_with_text": (counted + DONE, "end"),
        "text_after_finish": (counted + DONE, "end"),
        "half_json": (b'data: {"id":"x","choices":[{"index":0,"delta":{"conte', "end"),
        "ollama": (_chunk({"content": ""}) + counted + DONE, "end"),
        "after_done": (DONE + _chunk({"content": ""}), "end"),
        "no_done": (finish, "end"),
        "lingering": (finish, "hang"),
    }
    tail, wire.end = ends.get(shape, (finish + counted + DONE, "end"))
    if tail:
        parts.append((at, tail))
    if shape == "crlf":
        wire.parts = [(due, part.replace(b"\n", b"\r\n")) for due, part in parts]
    elif shape == "no_space":
        wire.parts = [(due, part.replace(b"data: ", b"data:")) for due, part in parts]
    elif shape == "split_lines":
        halves = []
        clock = 0.0
        for due, part in parts:
            clock = max(clock, due) + 0.001
            middle = len(part) // 2
            halves += [(clock, part[:middle]), (clock + 0.001, part[middle:])]
            clock += 0.001
        wire.parts = halves
    return wire


def ending(reply: Reply) -> str | None:
    """Return why a reply ends."""
    return "tool_calls" if reply.calls and reply.finish == "stop" else reply.finish


def _call(reply: Reply, number: int) -> tuple[str, str, str]:
    """Return a call's id, name and arguments as text."""
    call = reply.calls[number]
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return str(call.get("id", f"call_{number}")), str(call["name"]), text


def call_deltas(reply: Reply) -> list[dict[str, Any]]:
    """Return the pieces in which a reply's calls of tools come, by its shape."""
    deltas: list[dict[str, Any]] = []
    for number in range(len(reply.calls)):
        id, name, text = _call(reply, number)
        function: dict[str, Any] = {"name": name, "arguments": text}
        whole = {"id": id, "type": "function", "function": function}
        if reply.shape == "whole_calls":
            deltas.append({"tool_calls": [whole]})
        elif reply.shape == "bare_calls":
            deltas.append({"tool_calls": [{"function": function}]})
        elif reply.shape == "value_calls":
            function["arguments"] = reply.calls[number].get("arguments", {})
            deltas.append({"tool_calls": [{"index": number, **whole}]})
        elif reply.shape == "old_call":
            deltas.append({"function_call": function})
        else:
            index = 0 if reply.shape == "index_zero" else number
            begin = whole | {"index": index, "function": {"name": name, "arguments": ""}}
            deltas.append({"tool_calls": [begin]})
            for start in range(0, len(text), 7):
                piece = {"index": index, "function": {"arguments": text[start : start + 7]}}
                deltas.append({"tool_calls": [piece]})
    return deltas


def whole(reply: Reply, request: Request) -> dict[str, Any]:
    """Return a reply as one completion."""
    tokens = tokens_of(reply, request)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(tokens)}
    if reply.calls:
        made = [_call(reply, number) for number in range(len(reply.calls))]
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": text}}
            for id, name, text in made
        ]
    if reply.reasoning:
        message["reasoning_content"] = "".join(reply.reasoning)
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": ending(reply)}],
        "usage": _usage(len(request.prompt) // 4, len(tokens)),
    }


def embedded(reply: Reply, request: Request, dims: int) -> bytes:
    """Return the vectors of a request's texts, with their deviation."""
    wanted = request.body.get("dimensions") or reply.dims or dims
    rows: list[list[Any]] = [list(vector(text, wanted)) for text in _texts(request.body)]
    if reply.shape == "nan":
        rows[-1][0] = float("nan")
    elif reply.shape == "zero":
        rows[-1] = [0.0] * wanted
    elif reply.shape == "ragged":
        rows[-1] = rows[-1][:-1]
    elif reply.shape == "strings":
        rows[-1] = ["0.1"] * wanted
    elif reply.shape == "long":
        rows[-1] = [value * 7 for value in rows[-1]]
    entries: list[dict[str, Any]] = [
        {"object": "embedding", "index": number, "embedding": row}
        for number, row in enumerate(rows)
    ]
    if reply.shape == "shuffled":
        entries.reverse()
    elif reply.shape == "missing":
        entries.pop()
    elif reply.shape == "doubled":
        entries[-1]["index"] = 0
    if request.body.get("encoding_format") == "base64":
        for entry in entries:
            packed = numpy.asarray(entry["embedding"], dtype="<f4").tobytes()
            entry["embedding"] = base64.b64encode(packed).decode()
    answer = {"object": "list", "model": MODEL, "data": entries, "usage": _usage(1, 0)}
    return json.dumps(answer).encode()


REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class Connection(asyncio.Protocol):
    """One client's connection: a request at a time, an answer by the clock."""

    def __init__(self, script: Script, loop: asyncio.AbstractEventLoop) -> None:
        self.script = script
        self.loop = loop
        self.buffer = bytearray()
        self.request: Request | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.script.transports.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.script.transports.discard(self.transport)
        if self.timer:
            self.timer.cancel()
        if self.request:
            self.request.close("gone")

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.read()

    def read(self) -> None:
        if self.request is not None:
            return
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        line, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {}
        for header in lines:
            name, _, value = header.partition(":")
            headers[name.strip().lower()] = value.strip()
        size = int(headers.get("content-length", "0"))
        if len(self.buffer) < end + 4 + size:
            return
        raw = bytes(self.buffer[end + 4 : end + 4 + size])
        del self.buffer[: end + 4 + size]
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = raw.decode("utf-8", "replace")
        self.answer(Request(method, path, headers, body))

    def answer(self, request: Request) -> None:
        script = self.script
        if request.path.startswith("/control/"):
            self.request = request
            self.control(request)
            return
        self.request = request
        script.requests.append(request)
        if script.api_key and request.headers.get("authorization") != f"Bearer {script.api_key}":
            self.refuse(401, {"message": "Incorrect API key provided", "code": "invalid_api_key"})
            return
        reply = script.choose(request)
        if reply.status != 200 or reply.body is not None:
            self.fixed(reply)
        elif request.kind == "models":
            models = [{"id": name, "object": "model", "owned_by": "stub"} for name in script.models]
            self.whole(200, orjson.dumps({"object": "list", "data": models}))
        elif request.kind == "embeddings":
            self.later(reply, embedded(reply, request, script.dims))
        elif request.path.endswith("/chat/completions"):
            self.chat(reply, request)
        else:
            self.refuse(404, {"message": "no such address"})

    def chat(self, reply: Reply, request: Request) -> None:
        refused = self.script.refusal(request)
        if refused is not None:
            message = f"Unsupported parameter: {refused}" if refused else "Bad request."
            self.refuse(400, {"message": message, "type": "invalid_request_error"})
        elif request.body.get("stream"):
            first = self.script.first_token if reply.first_token is None else reply.first_token
            per = self.script.per_token if reply.per_token is None else reply.per_token
            self.stream(streamed(reply, request, first, per))
        elif reply.shape == "html":
            self.whole(200, _PAGE, "text/html")
        elif reply.shape == "hang":
            return
        elif reply.shape == "nothing":
            self.whole(200, b"")
        elif reply.shape == "half_json":
            self.later(reply, json.dumps(whole(reply, request)).encode()[:-20])
        else:
            self.later(reply, json.dumps(whole(reply, request)).encode())

    def control(self, request: Request) -> None:
        script = self.script
        match request.path:
            case "/control/script":
                given = dict(request.body)
                rule = {
                    name: given.pop(name) for name in ("contains", "kind", "times") if name in given
                }
                known = {item.name for item in fields(Reply)}
                if set(given) - known:
                    self.refuse(400, {"message": f"unknown: {sorted(set(given) - known)}"})
                    return
                script.script(Reply(**given), **rule)
                self.whole(200, orjson.dumps({"rules": len(script._rules)}))
            case "/control/default":
                script.default = Reply(**request.body)
                self.whole(200, json.dumps(asdict(script.default)).encode())
            case "/control/reset":
                script.reset()
                self.whole(200, b"{}")
            case "/control/requests":
                shown = [seen.shown() for seen in list(script.requests)]
                self.whole(200, json.dumps(shown).encode())
            case _:
                self.refuse(404, {"message": "no such address"})

    def refuse(self, status: int, error: dict[str, Any]) -> None:
        self.whole(status, orjson.dumps({"error": error}))

    def fixed(self, reply: Reply) -> None:
        error = reply.error or {"message": "scripted", "type": "error", "code": None}
        body = reply.body if reply.body is not None else json.dumps({"error": error})
        kind = "text/html" if body.lstrip().startswith("<") else "application/json"
        self.later(reply, body.encode(), kind)

    def later(self, reply: Reply, body: bytes, kind: str = "application/json") -> None:
        def send() -> None:
            self.whole(reply.status, body, kind, reply.headers)

        if reply.first_token:
            self.timer = self.loop.call_later(reply.first_token, send)
        else:
            send()

    def whole(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(body)}\r\n{more}\r\n"
        )
        self.transport.write(head.encode() + body)
        self.finished()

    def finished(self) -> None:
        if self.request:
            self.request.close("finished")
        self.request = self.timer = None
        if self.buffer:
            self.loop.call_soon(self.read)

    def stream(self, wire: _Wire) -> None:
        head = (
            f"HTTP/1.1 200 OK\r\ncontent-type: {wire.content_type}\r\n"
            "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        self.transport.write(head.encode())
        self.wire = wire
        self.sent = 0
        self.began = self.loop.time()
        self.tick()

    def tick(self) -> None:
        # By absolute times: a late tick catches up, so that 200 tokens take as long as they should.
        wire, sent, now = self.wire, self.sent, self.loop.time() - self.began + 0.0002
        parts = wire.parts
        ready = []
        while sent < len(parts) and parts[sent][0] <= now:
            piece = parts[sent][1]
            ready.append(b"%x\r\n%b\r\n" % (len(piece), piece))
            sent += 1
        assert self.request is not None
        self.request.writes += sent - self.sent
        self.sent = sent
        if sent == len(parts) and wire.end == "end":
            ready.append(b"0\r\n\r\n")
        if ready:
            self.transport.write(b"".join(ready))
        if sent < len(parts):
            self.timer = self.loop.call_at(self.began + parts[sent][0], self.tick)
        elif wire.end == "end":
            self.finished()
        elif wire.end == "abort":
            self.timer = self.loop.call_later(0.05, self.abort)
        elif wire.end != "hang":
            self.repeat()

    def abort(self) -> None:
        if self.request:
            self.request.close("finished")
        self.transport.abort()

    def repeat(self) -> None:
        pieces = {
            "comments": b": keep-alive\n\n",
            "blanks": _chunk({"content": ""}),
            "flood": _token("flood " * 400) * 8,
        }
        piece = pieces[self.wire.end]
        if not self.paused:
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        pause = 0.001 if self.wire.end == "flood" else 0.02
        self.timer = self.loop.call_later(pause, self.repeat)


async def listen(script: Script, host: str, port: int) -> asyncio.Server:
    """Return a server that answers by the script."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: Connection(script, loop), host, port, backlog=1024)


class StubModel(Script):
    """The stub in a thread of this process, on a free port of the loopback."""

    def __init__(self, *, port: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._failed: OSError | None = None
        self._wanted = port
        self._thread = threading.Thread(target=self._run, name="stub-model", daemon=True)
        self._thread.start()
        self._started.wait(10)
        if self._failed:
            raise self._failed

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            self._started.set()

    async def _serve(self) -> None:
        try:
            server = await listen(self, "127.0.0.1", self._wanted)
        except OSError as error:
            self._failed = error
            return
        self.port: int = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stopping.wait()
        server.close()
        for transport in list(self.transports):
            transport.abort()
        await asyncio.sleep(0)  # lets the aborted connections record that they are gone
        await server.wait_closed()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        """Close the port and every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


async def serve_for_ever(options: argparse.Namespace) -> None:
    script = Script(
        first_token=options.first_token,
        per_token=options.per_token,
        dims=options.dims,
        api_key=options.api_key,
        models=options.models.split(","),
        kept=options.kept,
    )
    script.default = Reply(count=options.tokens) if options.tokens else Reply(echo="question")
    server = await listen(script, options.host, options.port)
    port = server.sockets[0].getsockname()[1]
    print(f"http://{options.host}:{port}/v1", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first-token", type=float, default=0.05, help="seconds")
    parser.add_argument("--per-token", type=float, default=0.005, help="seconds")
    parser.add_argument("--tokens", type=int, default=200, help="0 echoes the question")
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--api-key", default="", help="refuse every other key")
    parser.add_argument("--models", default=MODEL, help="names, with commas")
    parser.add_argument("--kept", type=int, default=2_000, help="requests to remember")
    try:
        asyncio.run(serve_for_ever(parser.parse_args()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
