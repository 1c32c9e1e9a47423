"""A provider in the memory of one process: exact, small, and an example for writing another.

For tests and experiments. It forgets everything when the process ends, and two processes know
nothing of each other.
"""

import threading
from collections.abc import Collection, Sequence
from uuid import UUID

import numpy as np

from accounts.scope import Scope
from memory.exchange import Speaker
from memory.providers.base import TEXT_CHARS, Entry, Found


class PlainProvider:
    """Keeps entries in dictionaries, one for each scope, and compares with all of them."""

    def __init__(self) -> None:
        self._kept: dict[Scope, dict[UUID, Entry]] = {}
        self._lock = threading.Lock()

    def remember(self, scope: Scope, *, entry: Entry) -> None:
        with self._lock:
            self._kept.setdefault(scope, {})[entry.memory] = entry

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
        excluded = frozenset(exclude_sources)
        with self._lock:
            entries = list(self._kept.get(scope, {}).values())
        found = [
            _best(entry, np.asarray(vector))
            for entry in entries
            if entry.model == model and entry.source not in excluded
        ]
        found.sort(key=lambda one: (not one.pinned, -one.score, one.memory))
        return found[:limit]

    def list(self, scope: Scope, *, model: str) -> set[UUID]:
        with self._lock:
            entries = self._kept.get(scope, {})
            return {memory for memory, entry in entries.items() if entry.model == model}

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        with self._lock:
            entries = self._kept.get(scope, {})
            gone = [entries.pop(memory) for memory in memories if memory in entries]
        return sum(len(entry.keys) for entry in gone)

    def purge(self, scope: Scope) -> int:
        with self._lock:
            gone = self._kept.pop(scope, {})
        return sum(len(entry.keys) for entry in gone.values())


def _best(entry: Entry, vector: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Found:
    scores = np.asarray([key.vector for key in entry.keys]) @ vector
    best = int(scores.argmax())
    return Found(
        memory=entry.memory,
        kind=entry.kind,
        text=entry.text[:TEXT_CHARS],
        answer=entry.answer[:TEXT_CHARS],
        source=entry.source,
        session_key=entry.session_key,
        at=entry.at,
        pinned=entry.pinned,
        score=min(1.0, max(0.0, float(scores[best]))),
        position=entry.keys[best].position,
        speaker=Speaker(entry.keys[best].speaker),
    )
