"""From ranked units to memories that were found: the last step of a provider that ranks here."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from uuid import UUID

import numpy as np

from memory.exchange import Speaker
from memory.folding import folded
from memory.providers.base import Found, Reason, Why
from memory.ranking import Candidates, Ranking, Reasons, Traits, second_stage
from memory.terms import Question

UNITS_PER_MEMORY = 3  # looked at first: an exchange has two, and rarely both lead
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Known:
    """What a provider keeps of a unit for the second stage."""

    memory: UUID
    place: int
    speaker: Speaker
    name: str
    day: date
    chars: int
    flags: int


def hits(
    question: Question, candidates: Candidates, known: Sequence[Known], *, limit: int
) -> list[Found]:
    """Return the best `limit` memories of these candidates, best first, each by its best unit.

    `known` are their units, in any order; two memories may share a place.
    """
    if not known:
        return []
    at_place: dict[int, list[Known]] = {}
    for unit in known:
        at_place.setdefault(unit.place, []).append(unit)
    traits = Traits(
        places=np.array([unit.place for unit in known], np.int64),
        days=[unit.day for unit in known],
        speakers=[unit.name for unit in known],
        assistant=np.array([unit.speaker is Speaker.ASSISTANT for unit in known]),
        chars=np.array([unit.chars for unit in known]),
        flags=np.array([unit.flags for unit in known]),
    )
    question = replace(question, named=named_in(question.text, {unit.name for unit in known}))
    most = UNITS_PER_MEMORY * limit
    found = _found(candidates, second_stage(question, candidates, traits, most=most), at_place)
    if len(found) < limit and most < len(known):
        found = _found(candidates, second_stage(question, candidates, traits), at_place)
    return found[:limit]


def _found(
    candidates: Candidates,
    ranking: Ranking,
    at_place: Mapping[int, Sequence[Known]],
) -> list[Found]:
    cosine_of = dict(zip(candidates.places.tolist(), candidates.cosine.tolist(), strict=True))
    found: dict[UUID, Found] = {}
    for row, place in enumerate(ranking.places.tolist()):
        for unit in at_place[place]:
            if unit.memory not in found:
                found[unit.memory] = Found(
                    memory=unit.memory,
                    speaker=unit.speaker,
                    place=place,
                    score=float(ranking.score[row]),
                    vector_part=float(ranking.vector_part[row]),
                    text_part=float(ranking.text_part[row]),
                    because=tuple(_because(ranking.reasons[row])),
                    cosine=None if math.isnan(cosine_of[place]) else cosine_of[place],
                )
    return list(found.values())


def named_in(text: str, speakers: Collection[str]) -> frozenset[str]:
    """Return those of the speakers, folded, whom a text names."""
    said = set(_WORD.findall(folded(text)))
    names = {folded(speaker) for speaker in speakers if speaker}
    return frozenset(name for name in names if said & set(_WORD.findall(name)))


def _because(reasons: Reasons) -> Iterator[Reason]:
    if reasons.words:
        yield Reason(Why.WORDS, reasons.words)
    for holds, code in (
        (reasons.meaning, Why.MEANING),
        (reasons.day, Why.DAY),
        (reasons.speaker, Why.SPEAKER),
        (reasons.neighbour, Why.NEIGHBOUR),
        (reasons.session, Why.SESSION),
    ):
        if holds:
            yield Reason(code)
