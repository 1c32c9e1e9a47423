"""Rank what both arms found: one formula over words, meaning, neighbours and sessions.

first_stage    every unit of a person, by what its vectors and postings say
second_stage   the best of them again, with what is known of each; scores that mean something

A message's `place` is an int64: its session << SESSION_BITS | its position there, so that the
messages before and after it are at place - 1 and place + 1. A fact's is negative: it has neither
neighbours nor a session.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memory.folding import folded
from memory.terms import ASKS, TELLS_TIME, Question

type Array = np.ndarray[tuple[int], np.dtype[Any]]
type Posting = tuple[Array, Array, Array]  # places, tf, dl

SESSION_BITS = 18
KEEP = 150
# Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework": the usual two.
K1, B = 1.2, 0.75

# What each thing adds, a cosine of 1 adding 1. Set by hand on the ten conversations of LoCoMo
# (Maharana et al. 2024) and BEAM, the same for both, and rounded: each alone may be three tenths
# more or less for at most 1 point of recall at 10. Searched for on nine of the ten and tried on
# the tenth, such constants had recall at 10 of 0.82 and 0.64; searched for on one set alone they
# lose 8 to 10 points on the other.
WORDS = 0.25  # the best BM25
COVERAGE = 0.15  # all of the question's words, weighed by rarity: for the scores of facts
FLOOR = 0.4  # of what the words could reach: the best BM25 counts as no less, so that one stray
# word that only one memory has does not make that one a match
BEFORE, AFTER = 0.2, 0.35  # of what the message before, and the one after, have by themselves
LONE = 0.5  # a fact has no neighbours: those of a message have about half of what it has
WINDOW = 0.4  # the best BM25 of the words of a message and of those around it
REACH, DECAY = 6, 0.9  # a word n messages away counts 0.9 ** n, up to 6 away
SPEAKER = 0.2  # who speaks is named in the question
LENGTH, LENGTH_CHARS = 0.07, 200  # each e-fold of characters, up to 200: short ones say little
QUESTION_MARK = -0.05
DATE = 0.4  # a day that the question names
TIME = 0.15  # the question asks when, and the message has a word of time
ASSISTANT = -0.3  # the assistant's words, unless the question is about them: it is long and repeats

# Slope and offset of the score's logistic, with vectors and without: see _probability.
SEEING, BLIND = (5.0, -10.5), (8.0, -11.2)
FEW, FEWEST = 200, 3


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best units of the first stage, best first; arrays of one length.

    `score` is `vector` + `text` + `dated`'s: what comes of cosines and of words, neighbours' share
    included. `cosine` is its own, NaN for a unit without vector. `bm25` is its own too, `share`
    that over the most that the question's words could reach, `coverage` the part of the question's
    words that occur, weighed by rarity. `around` is what the neighbours added to `score`, `window`
    the BM25 of the words around over the best one's. `matched` has bit i for the question's word i
    (the first 63).
    """

    places: Array
    score: Array
    vector: Array
    text: Array
    cosine: Array
    bm25: Array
    share: Array
    coverage: Array
    around: Array
    window: Array
    dated: Array
    matched: Array
    n: int = FEW  # the owner's units


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of units besides, in any order; arrays of one length.

    `speaker` is which of the names in `speakers` said it, `assistant` tells which are the
    assistant's words, `flags` is flags_of. Of units at one place the last counts.
    """

    places: Array
    speakers: Sequence[str]
    speaker: Array
    assistant: Array
    chars: Array
    flags: Array


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a unit was found: the question's words in it as asked, and what spoke for it besides."""

    words: tuple[str, ...]
    meaning: bool
    day: bool
    neighbour: bool
    session: bool
    speaker: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Units best first; arrays of one length.

    `score` is in [0, 1]; `vector_part` and `text_part` say what each arm had in it and add up to
    it, less what came from neither. `rows` are theirs among the candidates, `spoken` tells who was
    named in the question.
    """

    question: Question
    candidates: Candidates
    rows: Array
    places: Array
    score: Array
    vector_part: Array
    text_part: Array
    spoken: Array

    def reasons(self, number: int) -> Reasons:
        """Return why the unit at this place of the ranking was found."""
        found, row = self.candidates, self.rows[number]
        in_session = bool(found.places[row] >= 0)
        return Reasons(
            words=_words(self.question, int(found.matched[row])),
            meaning=bool(found.cosine[row] >= NEAR),
            day=bool(found.dated[row]),
            neighbour=in_session and bool(found.around[row] >= HELPED),
            session=in_session
            and bool(found.window[row] >= SHARED)
            and bool(found.coverage[row] < SHARED),
            speaker=bool(self.spoken[number]),
        )


def first_stage(
    question: Question,
    *,
    places: Array,
    cosines: Array,
    postings: Mapping[int, Posting],
    n: int,
    total_dl: int,
    keep: int = KEEP,
) -> Candidates:
    """Return the best `keep` units, by all that is known of every unit.

    `places` ascend, and repeat where a unit has several vectors; both arrays are empty when the
    embedder is away. `postings` has the question's terms that occur; `n` and `total_dl` are the
    owner's units and terms.
    """
    units, cosine = _nearest(places, cosines)
    units, cosine, rows_of = _with_text_alone(units, cosine, postings)
    words = _bm25_by_word(question, len(units), postings, rows_of, n, total_dl)
    bm25 = words.bm25
    coverage = _shares(words.covered, words.weight)
    most = words.weight * (K1 + 1)
    top = max(float(bm25.max(initial=0.0)), FLOOR * most)
    own_vector = np.where(np.isnan(cosine), np.float32(0), cosine)
    own_text = np.float32(WORDS) * _shares(bm25, top) + np.float32(COVERAGE) * coverage
    dated = np.zeros(len(units), bool)
    for term in question.of_days:
        if term in rows_of:
            dated[rows_of[term]] = True
    near_by = (units[1:] == units[:-1] + 1) & (units[:-1] >= 0)
    vector = own_vector + _around(units, near_by, own_vector)
    text = own_text + _around(units, near_by, own_text)
    day = np.float32(DATE) * dated
    # The window looks at every word by itself, so only at those that may still be among the best.
    some = _best(vector + text + day, WIDE * keep)
    near = _window(units, words.values, some)
    window = _shares(near, max(float(near.max(initial=0.0)), FLOOR * most))
    window = np.where(units[some] < 0, coverage[some], window)
    full = text[some] + WINDOW * window
    score = vector[some] + full + day[some]
    order = np.argsort(-score, kind="stable")[:keep]
    best = some[order]
    return Candidates(
        places=units[best],
        score=score[order],
        vector=vector[best],
        text=full[order],
        cosine=cosine[best],
        bm25=bm25[best],
        share=_shares(bm25[best], most),
        coverage=coverage[best],
        around=vector[best] + text[best] - own_vector[best] - own_text[best],
        window=window[order],
        dated=dated[best],
        matched=_bits(words.values[:, best], words.numbers),
        n=max(n, len(units)),
    )


WIDE = 4  # times as many units as are kept, for what is too dear to do for all


def _shares(values: Array, most: float) -> Array:
    return values / np.float32(most) if most > 0 else np.zeros_like(values, np.float32)


def _nearest(places: Array, cosines: Array) -> tuple[Array, Array]:
    """Return each unit once, with the cosine of its nearest vector."""
    if not len(places):
        return np.empty(0, np.int64), np.empty(0, np.float32)
    starts = np.flatnonzero(places[1:] != places[:-1]) + 1
    if len(starts) == len(places) - 1:
        return places, cosines
    starts = np.concatenate([[0], starts])
    return places[starts], np.maximum.reduceat(cosines, starts)


def _with_text_alone(
    units: Array, cosine: Array, postings: Mapping[int, Posting]
) -> tuple[Array, Array, dict[int, Array]]:
    """Add the units that have terms and no vector; return also each posting's rows."""
    rows_of = {term: np.searchsorted(units, posting[0]) for term, posting in postings.items()}
    lacking = []
    for term, rows in rows_of.items():
        places = postings[term][0]
        if len(units):
            places = places[units[np.minimum(rows, len(units) - 1)] != places]
        if len(places):
            lacking.append(places)
    if not lacking:
        return units, cosine, rows_of
    textual = np.unique(np.concatenate(lacking))
    every = np.concatenate([units, textual])
    order = np.argsort(every, kind="stable")
    none = np.full(len(textual), np.nan, np.float32)
    units, cosine = every[order], np.concatenate([cosine, none])[order]
    return (
        units,
        cosine,
        {term: np.searchsorted(units, posting[0]) for term, posting in postings.items()},
    )


@dataclass(frozen=True, slots=True)
class _Words:
    """BM25 of the question's words that occur: values of shape (words, units), and their sum."""

    values: Any
    bm25: Array
    covered: Array  # the sum of the rarities of those that occur
    numbers: Sequence[int]  # of these words in the question
    weight: float  # of all its words


def _bm25_by_word(
    question: Question,
    count: int,
    postings: Mapping[int, Posting],
    rows_of: Mapping[int, Array],
    n: int,
    total_dl: int,
) -> _Words:
    mean = total_dl / n if n and total_dl else 1.0
    weight = 0.0
    found: list[tuple[int, float, Posting]] = []
    for number, word in enumerate(question.words):
        one = _merged([(rows_of[t], *postings[t][1:]) for t in word.terms if t in postings])
        many = len(one[0])
        idf = float(np.log1p((max(n, many) - many + 0.5) / (many + 0.5)))
        if many or not word.may_be_stop:
            weight += idf
        if many:
            found.append((number, idf, one))
    values = np.zeros((len(found), count), np.float32)
    bm25, covered = np.zeros(count, np.float32), np.zeros(count, np.float32)
    for line, (_number, idf, (rows, tf, dl)) in zip(values, found, strict=True):
        value = idf * (K1 + 1) * tf / (tf + K1 * (1 - B + B * dl / mean))
        line[rows] = value
        bm25[rows] += value
        covered[rows] += np.float32(idf)
    return _Words(values, bm25, covered, [number for number, _idf, _one in found], weight)


def _merged(postings: list[Posting]) -> Posting:
    """Return the rows of the units that have the word in any of its forms, tf, and dl."""
    if not postings:
        return np.empty(0, np.intp), np.empty(0, np.float32), np.empty(0, np.float32)
    rows, tf, dl = (np.concatenate(parts) for parts in zip(*postings, strict=True))
    if len(postings) > 1:  # one word, two forms: the form that occurs most counts
        order = np.lexsort((-tf.astype(np.int32), rows))
        rows, tf, dl = rows[order], tf[order], dl[order]
        first = np.ones(len(rows), bool)
        first[1:] = rows[1:] != rows[:-1]
        rows, tf, dl = rows[first], tf[first], dl[first]
    return rows, tf.astype(np.float32), dl.astype(np.float32)


def _around(units: Array, near_by: Array, own: Array) -> Array:
    """Return what each unit has from the one before and the one after.

    `near_by` is, for each unit but the last, whether the next one follows it in its session.
    """
    added = np.where(units < 0, np.float32((BEFORE + AFTER) * LONE) * own, np.float32(0))
    added[1:] += np.where(near_by, np.float32(BEFORE) * own[:-1], np.float32(0))
    added[:-1] += np.where(near_by, np.float32(AFTER) * own[1:], np.float32(0))
    return added


def _window(units: Array, values: Any, some: Array) -> Array:
    """Return for some rows the BM25 of the words there and near by, each word where it is best."""
    if not len(values) or not len(some):
        return np.zeros(len(some), np.float32)
    steps = np.array([*range(-REACH, 0), *range(1, REACH + 1)])
    rows = some[:, None] + steps
    inside = (rows >= 0) & (rows < len(units)) & (units[some] >= 0)[:, None]
    rows = np.where(inside, rows, 0)
    # A message may be missing between: what counts is the distance of the places.
    away = np.abs(units[rows] - units[some][:, None])
    decay = np.where(inside & (away <= REACH), np.float32(DECAY) ** np.minimum(away, REACH + 1), 0)
    near = np.zeros(len(some), np.float32)
    for line in values:
        near += np.maximum(line[some], (line[rows] * decay).max(axis=1)).astype(np.float32)
    return near


def _bits(values: Any, numbers: Sequence[int]) -> Array:
    matched = np.zeros(values.shape[1], np.int64)
    for line, number in zip(values, numbers, strict=True):
        if number < 63:
            matched |= (line > 0).astype(np.int64) << number
    return matched


def _best(score: Array, keep: int) -> Array:
    """Return the rows of the best scores, best first; of equals the earlier first."""
    if keep < len(score):
        some = np.sort(np.argpartition(-score, keep - 1)[:keep])
    else:
        some = np.arange(len(score))
    return some[np.argsort(-score[some], kind="stable")]


def second_stage(question: Question, candidates: Candidates, traits: Traits) -> Ranking:
    """Return the candidates that the traits know, ranked by the whole formula, with scores.

    A score of s says: of memories with such a score about that share were relevant, on the
    conversations that the formula was calibrated on (docs have the table; text alone says too
    little of a person's long talks with an assistant). Within a question it falls with the rank.
    """
    kept, rows = _known(candidates.places, traits.places)
    named = np.array([folded(name) in question.named for name in traits.speakers], bool)
    spoken = named[traits.speaker[rows]]
    flags = traits.flags[rows]
    rest = DATE * candidates.dated[kept] + SPEAKER * spoken
    rest = rest + LENGTH * np.log1p(np.minimum(traits.chars[rows], LENGTH_CHARS))
    rest = rest + QUESTION_MARK * ((flags & ASKS) > 0)
    if question.asks_when:
        rest = rest + TIME * ((flags & TELLS_TIME) > 0)
    if not question.asks_assistant:
        rest = rest + ASSISTANT * traits.assistant[rows]
    total = candidates.vector[kept] + candidates.text[kept] + rest
    order = np.argsort(-total, kind="stable")
    kept = kept[order]
    score = _probability(candidates, total[order], candidates.n)
    vector = np.maximum(candidates.vector[kept], 0)
    text = np.maximum(candidates.text[kept], 0)
    both = np.maximum(vector + text, 1e-6)
    return Ranking(
        question=question,
        candidates=candidates,
        rows=kept,
        places=candidates.places[kept],
        score=score,
        vector_part=score * vector / both,
        text_part=score * text / both,
        spoken=spoken[order],
    )


def _known(wanted: Array, known: Array) -> tuple[Array, Array]:
    """Return the rows of those wanted places that are known, and the last row of each there."""
    if not len(known):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    order = np.argsort(known, kind="stable")
    last = order[np.searchsorted(known[order], wanted, side="right") - 1]
    kept = np.flatnonzero(known[last] == wanted)
    return kept, last[kept]


# From where on a reason is told.
NEAR, HELPED, SHARED = 0.3, 0.2, 0.5


def _probability(candidates: Candidates, total: Array, n: int) -> Array:
    """Return how likely units of these sums are relevant.

    Read off the share of relevant units by their sum on LoCoMo and BEAM, where the two agree from
    0.01 up: at sums of 1.3, 1.7, 2.1 and 2.3 it was 0.02 and 0.04, 0.16 and 0.12, 0.39 and 0.47,
    0.60 and 0.88; without vectors, at 1.1, 1.3 and 1.5, 0.09 and 0.23, 0.25 and 0.50, 0.59 and 1.
    Fewer units than the smallest conversation there had raise the odds in proportion: there are
    fewer that could be meant.
    """
    slope, offset = BLIND if np.isnan(candidates.cosine).all() else SEEING
    fewer = np.log(FEW / min(max(n, FEWEST), FEW))
    likely: Array = 1 / (1 + np.exp(-(slope * total + offset + fewer)))
    return likely


def _words(question: Question, matched: int) -> tuple[str, ...]:
    written = (word.written for number, word in enumerate(question.words) if matched >> number & 1)
    return tuple(written)
