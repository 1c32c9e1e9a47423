"""Reads what a model's server streams, however far it strays from the protocol.

Bytes go in as they arrive; text, the reason for the end, and what went wrong come out. Nothing here
waits or touches the network: memory/model_server.py does, and memory/llm.py turns the outcome into
errors for people.
"""

import json
import re
import secrets
from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

from accounts.text import clean_text

LONGEST_LINE = 1024 * 1024
MOST_CALLS = 16  # of tools, that are taken from one answer; what comes behind them is left out
MOST_BEGUN = 256  # an answer with more is no honest one
ARGUMENT_CHARS = 64_000
# Servers refuse a whole prompt in which an earlier call's name has any other character.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")

_OPENS, _CLOSES = "<think>", "</think>"


class TooLong(ValueError):
    """One line, or one whole answer, is longer than anything honest."""


def decode_json(raw: bytes) -> Any:
    """Return the JSON value; forgives lone surrogates, raw controls and broken UTF-8."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(raw.decode("utf-8", "replace"), strict=False)


class EventReader:
    """Cuts a stream of server-sent events into (name, data), by the WHATWG rules."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_return = False
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, received: bytes) -> list[tuple[str, bytes]]:
        """Return the events that are complete with these bytes."""
        if self._after_return and received.startswith(b"\n"):
            received = received[1:]
        self._after_return = received.endswith(b"\r")
        if b"\r" in received:
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = (self._rest + received).split(b"\n")
        self._rest = lines.pop()
        events = self._events(lines)
        if len(self._rest) + sum(map(len, self._data)) > LONGEST_LINE:
            raise TooLong
        return events

    def end(self) -> list[tuple[str, bytes]]:
        """Return the last event of a stream that ends without its blank line."""
        lines = [self._rest, b""]
        self._rest = b""
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[tuple[str, bytes]]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    events.append((self._name, b"\n".join(self._data)))
                    self._data = []
                self._name = ""
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("latin-1")
        return events


class ShownText:
    """Makes a model's text fit to be shown and stored, piece by piece.

    What all pieces make together equals `clean_text` of the whole: pairs that were split over two
    pieces are joined. White space before the first word waits for it. A `<think>` block that opens
    the text is left out.
    """

    def __init__(self) -> None:
        self._held = ""
        self._opening: str | None = ""  # None once the text proper has begun
        self._inside = False
        self.thought = False

    def push(self, piece: str) -> str:
        """Return what can be shown by now."""
        text = self._held + piece
        self._held = ""
        if text and (text[-1] == "\r" or "\ud800" <= text[-1] <= "\udbff"):
            text, self._held = text[:-1], text[-1]
        return self._without_thoughts(clean_text(text))

    def end(self) -> str:
        """Return what was held back for a second half that never came."""
        last, self._held = clean_text(self._held), ""
        shown = self._without_thoughts(last)
        if self._opening is None or self._inside:
            return shown
        waiting, self._opening = self._opening, None
        return waiting if waiting.strip() else ""

    def _without_thoughts(self, text: str) -> str:
        if self._opening is None:
            return text
        seen = self._opening + text
        if not self._inside:
            begins = seen.lstrip()
            if not begins or (len(begins) < len(_OPENS) and _OPENS.startswith(begins)):
                self._opening = seen
                return ""
            if not begins.startswith(_OPENS):
                self._opening = None
                return begins if self.thought else seen
            self._inside = self.thought = True
            seen = begins[len(_OPENS) :]
        _, closed, after = seen.partition(_CLOSES)
        if not closed:
            self._opening = seen[-len(_CLOSES) + 1 :]
            return ""
        self._inside = False
        self._opening = ""
        after = after.lstrip()
        if after:
            self._opening = None
        return after


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks to be done: the arguments are JSON as it wrote it, right or wrong.

    The id is the model's own where it gave one that no other call of this answer has.
    """

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class _Arriving:
    """A call of which not everything may have come."""

    index: object
    id: str = ""
    name: str = ""
    arguments: str = ""

    def begins_another(self, index: object, id: str, name: str) -> bool:
        """Tell whether a piece is no part of this call: servers leave out, or repeat, the index."""
        if id and self.id and id != self.id:
            return True
        if index is not None and self.index is not None:
            return index != self.index
        # No index to go by: a name behind arguments is the next call's.
        return bool(name and self.name and not id and self.arguments)


class ArrivingCalls:
    """Puts together the calls of tools that a model makes, from their pieces."""

    def __init__(self) -> None:
        self._calls: list[_Arriving] = []
        self._length = 0

    def push(self, piece: Any) -> None:
        """Take in one entry of `tool_calls`, or a `function_call` of the older form."""
        if not isinstance(piece, dict):
            return
        function = piece.get("function")
        if not isinstance(function, dict):
            function = piece
        index, id, name = piece.get("index"), _text(piece.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # whole, and not written as text
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = self._call(index, id, name)
        if call is None:
            return
        call.id = call.id or id
        if name and name != call.name:
            call.name += name
        call.arguments += _text(arguments)
        self._length += len(_text(arguments))
        if len(call.arguments) > ARGUMENT_CHARS or self._length > MOST_CALLS * ARGUMENT_CHARS:
            raise TooLong

    def _call(self, index: object, id: str, name: str) -> _Arriving | None:
        for known in reversed(self._calls):
            if not known.begins_another(index, id, name):
                return known
            if index is None and not id:
                break  # a piece without a sign goes to the newest, or begins one
        if not (id or name):
            return None
        if len(self._calls) == MOST_BEGUN:
            raise TooLong
        self._calls.append(_Arriving(index))
        return self._calls[-1]

    def all(self) -> tuple[ToolCall, ...]:
        """Return the first calls, in the order in which they began, each with an id of its own."""
        taken: set[str] = set()
        calls = []
        for call in [call for call in self._calls if call.name.strip()][:MOST_CALLS]:
            id = clean_text(call.id)[:64]
            if not id or id in taken or not id.isascii() or not id.isprintable():
                id = new_call_id()
            taken.add(id)
            name = _NOT_IN_NAMES.sub("_", clean_text(call.name.strip()))[:64]
            calls.append(ToolCall(id, name, clean_text(call.arguments)))
        return tuple(calls)


def new_call_id() -> str:
    """Return an id for a call, in the only form that every server takes: nine letters or digits."""
    return secrets.token_hex(5)[:9]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Usage:
    """How many tokens the provider counted."""

    tokens_in: int
    tokens_out: int


class ReplyReader:
    """Follows one streamed reply.

    finish     the server's own word for why it ended, None if it gave none
    done       [DONE] was seen, or a whole completion
    error      an error that the server sent instead of going on, as it was
    page       it is a web page, no model
    broken     a line was no JSON: what follows can't be trusted
    progress   counts pieces of text or reasoning; comments and empty chunks do not move it
    """

    def __init__(self) -> None:
        self.finish: str | None = None
        self.done = False
        self.error: Any = None
        self.page = False
        self.broken = False
        self.progress = 0
        self.usage: Usage | None = None
        self.length = 0
        self._calls = ArrivingCalls()
        self._events = EventReader()
        self._shown = ShownText()
        self._ready: list[str] = []
        self._body: bytearray | None = None
        self._sniffed = b""
        self._is_events = False
        self._thought = False

    @property
    def over(self) -> bool:
        """Nothing that may follow matters."""
        return self.done or self.page or self.broken or self.error is not None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools that have come, whole only once the answer has ended."""
        return self._calls.all()

    def take(self) -> str:
        """Return the text that came since the last call."""
        text = "".join(self._ready)
        self._ready.clear()
        return text

    def took_thought(self) -> bool:
        """Tell whether the model reasoned since the last call."""
        thought, self._thought = self._thought, False
        return thought

    def feed(self, received: bytes) -> None:
        """Take in bytes as they came from the connection."""
        if not self._is_events and self._body is None:
            received = self._sniff(received)
        if self._body is not None:
            self._body += received
            if len(self._body) > LONGEST_LINE:
                raise TooLong
        elif self._is_events:
            for name, data in self._events.feed(received):
                self._event(name, data)

    def end(self) -> None:
        """Take in that the connection has ended."""
        if self._body is not None and not self.over:
            try:
                self.whole(decode_json(bytes(self._body)))
            except (ValueError, RecursionError):
                self.broken = True
        elif self._is_events and not self.over:
            for name, data in self._events.end():
                self._event(name, data)
            self.broken = False  # half a line at the end: the connection broke off, no more
        self._show(self._shown.end())

    def whole(self, completion: Any) -> None:
        """Take in a completion that came in one piece, streamed or not."""
        if isinstance(completion, dict):
            self._chunk("", completion)
            self.done = self.error is None and bool(completion.get("choices"))
        self._show(self._shown.end())

    def _sniff(self, received: bytes) -> bytes:
        # By what it is, not by what its Content-Type says.
        seen = (self._sniffed + received).removeprefix(b"\xef\xbb\xbf").lstrip()
        self._sniffed = seen
        if seen.startswith(b"<"):
            self.page = True
        elif seen.startswith((b"{", b"[")):
            self._body = bytearray()
        elif seen:
            self._is_events = True
        self._sniffed = b""
        return seen

    def _event(self, name: str, data: bytes) -> None:
        if self.over:
            return
        if data.startswith(b"[DONE]"):
            self.done = True
            return
        try:
            value = decode_json(data)
        except (ValueError, RecursionError):
            if name == "error":
                self.error = {}
            else:
                self.broken = True
            return
        if isinstance(value, dict):
            self._chunk(name, value)

    def _chunk(self, name: str, chunk: dict[str, Any]) -> None:
        self._count(chunk.get("usage"))
        choices = chunk.get("choices")
        error = chunk.get("error")
        if name == "error" or error or (not choices and chunk.get("object") == "error"):
            self.error = error or chunk
            return
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
        if isinstance(delta, dict):
            self._message(delta)
        elif isinstance(choice.get("text"), str):
            self._text(choice["text"])
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self.finish = finish

    def _message(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list):
            kept = [part for part in content if isinstance(part, dict)]
            self._reasoned(any(part.get("type") == "thinking" for part in kept))
            texts = [part.get("text") for part in kept if part.get("type") == "text"]
            content = "".join(text for text in texts if isinstance(text, str))
        self._reasoned(message.get("reasoning_content") or message.get("reasoning"))
        if isinstance(content, str) and content:
            self._text(content)
        calls = message.get("tool_calls")
        for piece in calls if isinstance(calls, list) else [message.get("function_call")]:
            if piece:
                self.progress += 1
                self._calls.push(piece)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._text(refusal)

    def _reasoned(self, thought: object) -> None:
        if thought:
            self._thought = True
            self.progress += 1

    def _text(self, text: str) -> None:
        self.progress += 1
        thought_before = self._shown.thought
        self._show(self._shown.push(text))
        if self._shown.thought and not thought_before:
            self._thought = True

    def _show(self, text: str) -> None:
        if text:
            self._ready.append(text)
            self.length += len(text)

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        asked, said = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if _is_count(asked) and _is_count(said):
            self.usage = Usage(asked, said)


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**31
