"""The seam behind which memories are found.

What is remembered, its history and its state are in Postgres, and only there. A provider keeps
what a memory is found by, and finds. It holds entries that may be recalled and no others: when a
memory is superseded, forgotten or waits for review, it is told to forget it; when a memory comes
back, it is told to remember it again.

It is called with the scope first, inside or outside a transaction; one that lives in the same
database takes part in the caller's transaction, another keeps to its deadline. Each method may be
called twice with the same effect as once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from accounts.scope import Scope
from memory.exchange import Speaker

TEXT_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Key:
    """What one part of a memory is found by: a unit vector. Positions count from 0."""

    position: int
    speaker: Speaker
    vector: Sequence[float]


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory as a provider is told of it. `source` is the message that it came from."""

    memory: UUID
    kind: str
    text: str
    answer: str
    source: UUID | None
    session_key: UUID | None
    at: datetime
    pinned: bool
    model: str
    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that was found: by which of its keys, and how near, from 0 to 1.

    Of the texts, the first TEXT_CHARS characters.
    """

    memory: UUID
    kind: str
    text: str
    answer: str
    source: UUID | None
    session_key: UUID | None
    at: datetime
    pinned: bool
    score: float
    position: int
    speaker: Speaker


class MemoryProvider(Protocol):
    """Keeps what one person's memories are found by, and finds them."""

    def remember(self, scope: Scope, *, entry: Entry) -> None:
        """Make a memory findable by these keys of this model; keys that it had are replaced."""

    def recall(
        self,
        scope: Scope,
        *,
        vector: Sequence[float],
        model: str,
        limit: int,
        exclude_sources: Collection[UUID] = (),
        deadline_ms: int | None = None,
    ) -> list[Found]:
        """Return the pinned memories and then the nearest, min(limit, all there are) of them.

        Each once, by its best key; only keys of this embedding model are compared. The score is
        the cosine of the vectors, at least 0. Raises Unavailable when the deadline is over.
        """

    def list(self, scope: Scope, *, model: str) -> set[UUID]:
        """Return the memories that can be found with this embedding model."""

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        """Make these memories unfindable; return how many keys that erased."""

    def purge(self, scope: Scope) -> int:
        """Erase everything of this scope; return how many keys that were."""


_made: dict[str, MemoryProvider] = {}


def provider() -> MemoryProvider:
    """Return the provider that settings.MEMORY_PROVIDER names (BACKEND, OPTIONS)."""
    chosen: Mapping[str, Any] = settings.MEMORY_PROVIDER
    key = repr(sorted(chosen.items(), key=str))
    if key not in _made:
        _made[key] = import_string(chosen["BACKEND"])(**chosen.get("OPTIONS", {}))
    return _made[key]
