"""The seam behind which memories are found: a provider ranks, and Postgres says what is true.

What is remembered, its history and its state are in Postgres, and only there. A provider keeps
what a memory is found by, and tells which are the nearest to a question. Whether one of them is
current, trusted, within reach, and not in front of the model anyway, is asked of Postgres
afterwards (memory.find). So a provider needs no filters, and one that lags behind brings back
nothing that was superseded or forgotten.

It is called with the scope first, inside or outside a transaction; one that lives in the same
database takes part in the caller's transaction, another keeps to its deadline. Each method may be
called twice with the same effect as once.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from accounts.scope import Scope
from memory.exchange import Speaker
from memory.terms import Question


class Ability(StrEnum):
    """What a provider may be able to do; what it lacks is named where it is chosen."""

    VECTOR = "vector"  # finds by meaning
    TEXT = "text"  # finds by words, also without a vector
    NEIGHBOURS = "neighbours"  # what stands beside a message in its session counts
    DATES = "dates"  # days that the question names count
    EXACT = "exact"  # the nearest are found, all of them, always
    MODELS = "models"  # keeps vectors of several embedders and lengths apart
    TRANSACTIONAL = "transactional"  # takes part in the caller's transaction
    DURABLE = "durable"  # survives the process


@dataclass(frozen=True, slots=True)
class Unit:
    """What is found by itself: one message of an exchange, or a whole fact.

    `place` says where it stands (memory.places); `day` when it was said, where the person is;
    `name` who speaks, where several people do. `vectors`, of norm 1, are of its passages; there
    are none while the embedder is away, or where there is nothing to embed.
    """

    place: int
    speaker: Speaker
    name: str
    day: date
    text: str
    vectors: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory as a provider is told of it. `source` is the message that it came from."""

    memory: UUID
    kind: str
    at: datetime
    source: UUID | None
    session_key: UUID | None
    model: str
    units: Sequence[Unit]


class Why(StrEnum):
    """What speaks for a memory."""

    MEANING = "meaning"
    WORDS = "words"
    DAY = "day"
    NEIGHBOUR = "neighbour"
    SESSION = "session"
    SPEAKER = "speaker"


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that speaks for a memory; of WORDS, which words of the question occur."""

    code: Why
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that was found, by the best of its units.

    The score, from 0 to 1, and what each arm had in it; `speaker` says whose words were near, and
    `cosine` how near its vector was, where it has one.
    """

    memory: UUID
    speaker: Speaker
    place: int
    score: float
    vector_part: float
    text_part: float
    because: tuple[Reason, ...]
    cosine: float | None = None


class MemoryProvider(Protocol):
    """Keeps what one person's memories are found by, and finds them."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do."""

    def remember(self, scope: Scope, *, entry: Entry, fresh: bool = False) -> None:
        """Make a memory findable by these units; those that it had are replaced.

        `fresh` tells that it had none: there is nothing to look for.
        """

    def recall(
        self,
        scope: Scope,
        *,
        question: Question,
        vector: Sequence[float] | None,
        model: str,
        limit: int,
        deadline_ms: int | None = None,
    ) -> list[Found]:
        """Return the best min(limit, all there are) for the question, the best first, each once.

        With a vector, all there are is every memory that has vectors of this embedding model;
        without one, those that share a word with the question (none, if it lacks TEXT). Raises
        Unavailable when the deadline is over.
        """

    def list(self, scope: Scope, *, model: str, dims: int | None = None) -> set[UUID]:
        """Return the memories that have vectors of this embedding model, of `dims` if given."""

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        """Make these memories unfindable; return how many rows or documents that erased."""

    def purge(self, scope: Scope) -> int:
        """Erase everything of this scope; return how many rows or documents that were."""


_made: dict[str, MemoryProvider] = {}


def mark_of_provider() -> str:
    """Return what tells the provider in force from another, or from the same elsewhere."""
    return hashlib.sha256(_key_of(settings.MEMORY_PROVIDER).encode()).hexdigest()


def _key_of(chosen: Mapping[str, Any]) -> str:
    return repr([chosen["BACKEND"], sorted(chosen.get("OPTIONS", {}).items())])


def provider() -> MemoryProvider:
    """Return the provider that settings.MEMORY_PROVIDER names (BACKEND, OPTIONS).

    One that takes no part in transactions is told after the commit (memory.providers.later).
    """
    chosen: Mapping[str, Any] = settings.MEMORY_PROVIDER
    key = _key_of(chosen)
    if key not in _made:
        made: MemoryProvider = import_string(chosen["BACKEND"])(**chosen.get("OPTIONS", {}))
        if Ability.TRANSACTIONAL not in made.abilities:
            from memory.providers.later import AfterCommit

            made = AfterCommit(made)
        _made[key] = made
    return _made[key]
