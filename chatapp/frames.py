"""The frames of a websocket: read with care, built in one place.

From the browser:  message, attach, stop, retry, ping
To the browser:    hello, stored, started, recalled, acted, delta, snapshot, finished, learnt,
                   memory, session, session_gone, error, pong, resync
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from accounts.errors import AppError, InvalidInput
from accounts.text import MESSAGE_BYTES, required_text

LARGEST_FRAME = 512 * 1024
NOT_LOGGED_IN, UNKNOWN, LOGIN_ENDED = 4401, 4404, 4001
LOGIN_RENEWED = 4002  # come back with the new cookie, which the browser has or gets in a moment
# Not 1013: Daphne (autobahn) can only send 1000 and 3000 to 4999 and ends the socket with 1011.
TOO_SLOW = AGAIN_LATER = 4013


@dataclass(frozen=True, slots=True)
class SendMessage:
    text: str
    client_id: UUID


@dataclass(frozen=True, slots=True)
class Attach:
    reply: UUID
    after: int


@dataclass(frozen=True, slots=True)
class Stop:
    reply: UUID


@dataclass(frozen=True, slots=True)
class Retry:
    reply: UUID
    keep: bool


@dataclass(frozen=True, slots=True)
class Ping:
    pass


type Action = SendMessage | Attach | Stop | Retry | Ping


def message_text(text: object) -> str:
    """Return a message's text, clean; InvalidInput if it is blank or over 64 KiB of UTF-8."""
    return required_text(text, what="The message", max_chars=MESSAGE_BYTES, max_bytes=MESSAGE_BYTES)


def uuid_of(value: object, what: str) -> UUID:
    """Return the id; InvalidInput if it is none."""
    if isinstance(value, str) and len(value) <= 36:
        try:
            return UUID(value)
        except ValueError:
            pass
    raise InvalidInput(f"{what} is not an id.")


def client_id_in(text: str) -> str | None:
    """Return the client_id that a frame names, if it can be made out, to tell which one failed."""
    try:
        content = _decoded(text)
    except InvalidInput:
        return None
    given = content.get("client_id")
    # Nothing else can be an id, and a lone surrogate could not be sent back.
    return given if isinstance(given, str) and len(given) <= 36 and given.isascii() else None


def _decoded(text: str) -> dict[str, Any]:
    if len(text) > LARGEST_FRAME:
        raise InvalidInput("The frame is too long.")
    try:
        content = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        content = _forgiving(text)
    if not isinstance(content, dict):
        raise InvalidInput("The frame is not a JSON object.")
    return content


def _forgiving(text: str) -> Any:
    # orjson refuses lone surrogates, which browsers send for half an emoji: cleaned further on.
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The frame is not JSON.") from None


def parse(text: str | None, content: bytes | None = None) -> Action:
    """Return what a frame asks for; InvalidInput says what is wrong with it."""
    if text is None:
        raise InvalidInput("Binary frames are not understood.")
    match _decoded(text):
        case {"type": "message", "text": body, "client_id": client_id}:
            return SendMessage(message_text(body), uuid_of(client_id, "client_id"))
        case {"type": "attach", "reply": reply, "after": after}:
            if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after < 2**53:
                raise InvalidInput("after is not a frame's number.")
            return Attach(uuid_of(reply, "reply"), after)
        case {"type": "stop", "reply": reply}:
            return Stop(uuid_of(reply, "reply"))
        case {"type": "retry", "reply": reply, **rest}:
            keep = rest.get("keep", False)
            if not isinstance(keep, bool):
                raise InvalidInput("keep is not true or false.")
            return Retry(uuid_of(reply, "reply"), keep)
        case {"type": "ping"}:
            return Ping()
        case _:
            raise InvalidInput("The frame is of no known type, or lacks a part.")


def build(kind: str, **fields: Any) -> str:
    """Return a frame as text. UUIDs become strings."""
    return orjson.dumps({"type": kind} | fields).decode()


def delta(reply: UUID, n: int, text: str, closed: str, drawn: str | None) -> str:
    """Return frame `n` of a reply: the added text, blocks that it finished, the open block."""
    return build("delta", reply=reply, n=n, text=text, closed=closed, open=drawn)


def snapshot(
    reply: UUID, n: int, text: str, *, closed: str, drawn: str, recalled: str | None = None
) -> str:
    """Return all of a reply up to frame `n` as one."""
    return build(
        "snapshot", reply=reply, n=n, text=text, closed=closed, open=drawn, recalled=recalled
    )


def hello(
    running: Sequence[tuple[UUID, str]], learnt_pending: Sequence[UUID], messages: int = 0
) -> str:
    """Return the first frame: what runs or waits in the session, what is still being learnt, and
    how many messages there are.
    """
    shown = [{"reply": reply, "status": status} for reply, status in running]
    return build("hello", running=shown, learnt_pending=list(learnt_pending), messages=messages)


def error(problem: AppError, client_id: str | None = None) -> str:
    """Return the error as a frame: a code for machines, a sentence for people."""
    more = {} if client_id is None else {"client_id": client_id}
    return build("error", code=problem.code, message=str(problem), **more)
