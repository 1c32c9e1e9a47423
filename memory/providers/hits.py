"""From ranked units to memories that were found: the last step of a provider that ranks here."""

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from memory.exchange import Speaker
from memory.folding import folded
from memory.providers.base import Found, Reason, Why
from memory.ranking import Array, Candidates, Reasons, Traits, second_stage
from memory.terms import Question

ID = np.dtype("V16")  # a UUID's bytes
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Known:
    """What a provider keeps of units for the second stage, and whose each is (dtype ID)."""

    memories: Array
    traits: Traits


def hits(question: Question, candidates: Candidates, known: Known, *, limit: int) -> list[Found]:
    """Return the best `limit` memories of these candidates, best first, each by its best unit.

    What is known may be in any order; two memories may share a place.
    """
    named = named_in(question.text, known.traits.speakers)
    ranking = second_stage(replace(question, named=named), candidates, known.traits)
    found: dict[bytes, Found] = {}
    for number, row in _units(ranking.places, known.traits.places):
        if len(found) == limit:
            break
        memory = known.memories[row].tobytes()
        if memory not in found:
            assistant = bool(known.traits.assistant[row])
            cosine = float(candidates.cosine[ranking.rows[number]])
            found[memory] = Found(
                memory=UUID(bytes=memory),
                speaker=Speaker.ASSISTANT if assistant else Speaker.PERSON,
                place=int(ranking.places[number]),
                score=float(ranking.score[number]),
                vector_part=float(ranking.vector_part[number]),
                text_part=float(ranking.text_part[number]),
                because=tuple(_because(ranking.reasons(number))),
                cosine=None if math.isnan(cosine) else cosine,
            )
    return list(found.values())


def _units(ranked: Array, places: Array) -> Iterator[tuple[int, int]]:
    """Yield each ranked place's number with the rows that stand there, the best first."""
    order = np.argsort(places, kind="stable")
    ascending = places[order]
    first = np.searchsorted(ascending, ranked, side="left").tolist()
    behind = np.searchsorted(ascending, ranked, side="right").tolist()
    for number in range(len(ranked)):
        for row in order[first[number] : behind[number]].tolist():
            yield number, row


def named_in(text: str, speakers: Collection[str]) -> frozenset[str]:
    """Return those of the speakers, folded, whom a text names."""
    names = {folded(speaker) for speaker in speakers if speaker}
    if not names:
        return frozenset()
    said = set(_WORD.findall(folded(text)))
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
