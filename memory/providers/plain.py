"""A provider in the memory of one process: exact, small, and an example for writing another.

For tests and experiments. It forgets everything when the process ends, and two processes know
nothing of each other.
"""

import threading
from collections import defaultdict
from collections.abc import Collection, Sequence
from uuid import UUID

import numpy as np

from accounts.scope import Scope
from memory.exchange import Speaker
from memory.providers.base import Ability, Entry, Found, Unit
from memory.providers.hits import ID, Known, hits
from memory.ranking import Array, Posting, Traits, first_stage
from memory.terms import Question, flags_of, terms_of


class PlainProvider:
    """Keeps entries in dictionaries, one for each scope, and compares with all of them."""

    abilities = frozenset(Ability) - {Ability.TRANSACTIONAL, Ability.DURABLE}

    def __init__(self) -> None:
        self._kept: dict[Scope, dict[UUID, Entry]] = {}
        self._lock = threading.Lock()

    def remember(self, scope: Scope, *, entry: Entry, fresh: bool = False) -> None:
        with self._lock:
            self._kept.setdefault(scope, {})[entry.memory] = entry

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
        with self._lock:
            entries = list(self._kept.get(scope, {}).values())
        units = [(entry, unit) for entry in entries for unit in entry.units]
        terms = [terms_of(unit.text, speaker=unit.name, day=unit.day) for _entry, unit in units]
        lengths = [sum(one.values()) for one in terms]
        compared = [
            unit
            for entry, unit in units
            if vector is not None and entry.model == model and _comparable(unit, vector)
        ]
        places, cosines = _cosines(compared, vector or [])
        candidates = first_stage(
            question,
            places=places,
            cosines=cosines,
            postings={
                term: _posting(
                    [
                        (unit.place, counts[term], length)
                        for (_entry, unit), counts, length in zip(
                            units, terms, lengths, strict=True
                        )
                        if term in counts
                    ]
                )
                for term in question.terms
            },
            n=len(units),
            total_dl=sum(lengths),
            keep=max(1, len(units)),
        )
        known = Known(
            np.array([entry.memory.bytes for entry, _unit in units], ID),
            Traits(
                places=np.array([unit.place for _entry, unit in units], np.int64),
                speakers=[unit.name for _entry, unit in units],
                speaker=np.arange(len(units)),
                assistant=np.array(
                    [unit.speaker is Speaker.ASSISTANT for _entry, unit in units], bool
                ),
                chars=np.array([len(unit.text) for _entry, unit in units], np.int64),
                flags=np.array([flags_of(unit.text) for _entry, unit in units], np.int64),
            ),
        )
        return hits(question, candidates, known, limit=limit)

    def list(self, scope: Scope, *, model: str, dims: int | None = None) -> set[UUID]:
        with self._lock:
            return {
                memory
                for memory, entry in self._kept.get(scope, {}).items()
                if entry.model == model
                and any(dims in {None, len(one)} for unit in entry.units for one in unit.vectors)
            }

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        with self._lock:
            entries = self._kept.get(scope, {})
            gone = [entries.pop(memory) for memory in memories if memory in entries]
        return sum(len(entry.units) for entry in gone)

    def purge(self, scope: Scope) -> int:
        with self._lock:
            gone = self._kept.pop(scope, {})
        return sum(len(entry.units) for entry in gone.values())


def _comparable(unit: Unit, vector: Sequence[float]) -> bool:
    return any(len(one) == len(vector) for one in unit.vectors)


def _cosines(units: Sequence[Unit], vector: Sequence[float]) -> tuple[Array, Array]:
    """Return the units' places, ascending, and the cosine of the nearest of their vectors."""
    nearest: defaultdict[int, float] = defaultdict(lambda: -1.0)
    for unit in units:
        cosine = float((np.asarray(unit.vectors) @ np.asarray(vector)).max())
        nearest[unit.place] = max(nearest[unit.place], cosine)
    places = np.array(sorted(nearest), np.int64)
    return places, np.array([nearest[place] for place in sorted(nearest)], np.float32)


def _posting(rows: Sequence[tuple[int, int, int]]) -> Posting:
    places, tf, dl = (np.array(column) for column in zip(*rows, strict=True)) if rows else [[]] * 3
    return np.asarray(places, np.int64), np.asarray(tf, np.int16), np.asarray(dl, np.int16)
