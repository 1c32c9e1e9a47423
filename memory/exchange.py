"""What memory is told of a conversation: plain data, so that it knows nothing of chats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from accounts.scope import Scope


class Speaker(StrEnum):
    """Whose words these are."""

    PERSON = "person"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message: its id, its words, when it was said (aware), and by whom.

    `position` is its place in its session, where it has one: neighbours differ by 1. `name` says
    who speaks, where that may be several people.
    """

    id: UUID
    text: str
    at: datetime
    speaker: Speaker = Speaker.PERSON
    position: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of the person's with its reply, and what was said just before, oldest first.

    A memory of it names the id of `question` as its source. The reply stands right behind it.
    `forgets`: something was forgotten in the reply, and either half may say what. `saved` are the
    memories that the model kept by itself while it replied.
    """

    question: Utterance
    reply: Utterance
    session_key: UUID
    tail: Sequence[Utterance] = ()
    forgets: bool = False
    saved: Sequence[UUID] = ()


type ReadExchange = Callable[[Scope, UUID], Exchange | None]


def read_exchange(scope: Scope, reply_id: UUID) -> Exchange | None:
    """Return the exchange that ends in this reply, or None if it is gone.

    Read by the function that settings.MEMORY_EXCHANGES names, which enters the scope itself.
    """
    read: ReadExchange = import_string(settings.MEMORY_EXCHANGES)
    return read(scope, reply_id)


@dataclass(frozen=True, slots=True)
class SessionLabel:
    """What a link to a session needs."""

    id: UUID
    title: str


type ReadSessions = Callable[[Scope, Sequence[UUID]], dict[UUID, SessionLabel]]


def read_sessions(scope: Scope, keys: Sequence[UUID]) -> dict[UUID, SessionLabel]:
    """Return the label of each of these sessions that is still there, in one query.

    Read by the function that settings.MEMORY_SESSIONS names; without one there are none.
    """
    if not settings.MEMORY_SESSIONS or not keys:
        return {}
    read: ReadSessions = import_string(settings.MEMORY_SESSIONS)
    return read(scope, keys)
