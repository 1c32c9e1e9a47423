from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import pytest

from memory.embedder import LocalEmbedder, default_files
from memory.ranking import (
    SESSION_BITS,
    Candidates,
    Posting,
    Ranking,
    Traits,
    first_stage,
    second_stage,
)
from memory.terms import flags_of, read_question, terms_of

TODAY = date(2026, 11, 30)
MINILM = LocalEmbedder("x", default_files)


@dataclass(frozen=True)
class Said:
    text: str
    place: int
    cosines: tuple[float, ...] = (0.1,)
    day: date = date(2026, 6, 1)
    speaker: str = ""
    assistant: bool = False


def session(number: int, *texts: str | Said) -> list[Said]:
    return [
        replace(one, place=number << SESSION_BITS | position)
        if isinstance(one, Said)
        else Said(one, number << SESSION_BITS | position)
        for position, one in enumerate(texts)
    ]


def fact(number: int, text: str, *cosines: float) -> Said:
    return Said(text, -number * 10**12, cosines)


def staged(
    question: str, units: Sequence[Said], *, keep: int = 300, blind: bool = False
) -> tuple[Candidates, Ranking]:
    asked = read_question(question, today=TODAY, speakers={one.speaker for one in units} - {""})
    units = sorted(units, key=lambda one: one.place)
    indexed = [terms_of(one.text, speaker=one.speaker, day=one.day) for one in units]
    postings: dict[int, Posting] = {}
    for term in asked.terms:
        rows = [
            (one.place, terms[term], sum(terms.values()))
            for one, terms in zip(units, indexed, strict=True)
            if term in terms
        ]
        if rows:
            places, tf, dl = zip(*rows, strict=True)
            postings[term] = (
                np.array(places, np.int64),
                np.array(tf, np.int16),
                np.array(dl, np.int16),
            )
    vectors = [] if blind else [(one.place, cosine) for one in units for cosine in one.cosines]
    candidates = first_stage(
        asked,
        places=np.array([place for place, _cosine in vectors], np.int64),
        cosines=np.array([cosine for _place, cosine in vectors], np.float32),
        postings=postings,
        n=len(units),
        total_dl=sum(sum(terms.values()) for terms in indexed),
        keep=keep,
    )
    traits = Traits(
        places=np.array([one.place for one in units], np.int64),
        speakers=[one.speaker for one in units],
        speaker=np.arange(len(units)),
        assistant=np.array([one.assistant for one in units], bool),
        chars=np.array([len(one.text) for one in units], np.int64),
        flags=np.array([flags_of(one.text) for one in units], np.int64),
    )
    return candidates, second_stage(asked, candidates, traits)


def texts(question: str, units: Sequence[Said], *, blind: bool = False) -> list[str]:
    text_at = {one.place: one.text for one in units}
    ranking = staged(question, units, blind=blind)[1]
    return [text_at[place] for place in ranking.places.tolist()]


def test_words_and_meaning_each_find_what_the_other_does_not() -> None:
    units = [
        fact(1, "I am vegetarian.", 0.6),
        fact(2, "My locker has the number 4711.", 0.1),
        fact(3, "I like jazz.", 0.1),
    ]
    assert texts("Which diet do I follow?", units)[0] == "I am vegetarian."
    assert texts("4711", units)[0] == "My locker has the number 4711."


def test_without_vectors_words_alone_rank_and_without_words_vectors_alone() -> None:
    units = [fact(1, "red cat", 0.2), fact(2, "blue dog", 0.9), fact(3, "green owl", 0.4)]
    assert texts("red cat", units, blind=True) == ["red cat"]
    assert texts("zebra", units) == ["blue dog", "green owl", "red cat"]
    assert texts("zebra", units, blind=True) == []


def test_nothing_is_found_among_nothing() -> None:
    candidates, ranking = staged("Who am I?", [])
    assert len(candidates.places) == len(ranking.places) == len(ranking.score) == 0


def test_every_unit_is_kept_once_up_to_the_limit_and_the_best_survive() -> None:
    units = [fact(number, f"thing {number}", number / 1000, 0.0) for number in range(1, 900)]
    candidates, _ranking = staged("zebra", units, keep=20)
    assert candidates.places.tolist() == [one.place for one in units[:-21:-1]]
    assert len(staged("zebra", units, keep=5000)[0].places) == len(units)


def test_the_nearest_of_several_passages_counts() -> None:
    units = [fact(1, "long text", 0.1, 0.8, 0.2), fact(2, "other text", 0.5)]
    assert staged("zebra", units)[0].cosine.tolist() == pytest.approx([0.8, 0.5])


def test_a_unit_without_a_vector_is_found_by_its_words() -> None:
    units = [fact(1, "red cat"), fact(2, "blue dog", 0.3), fact(3, "pink cow", 0.3)]
    candidates, _ranking = staged("cat", units)
    assert candidates.places[0] == units[0].place
    assert np.isnan(candidates.cosine[0])
    assert sorted(candidates.places.tolist()) == sorted(one.place for one in units)


def test_a_rare_word_says_more_than_a_common_one() -> None:
    units = [fact(number, "tea and honey", 0.1) for number in range(1, 6)]
    units.append(fact(9, "saffron in a jar", 0.1))
    assert texts("tea saffron", units)[0] == "saffron in a jar"


def test_a_neighbour_helps_but_not_across_sessions_nor_facts() -> None:
    near = session(5, "It was wonderful there.", Said("Lisbon in spring", 0, (0.9,)))
    far = session(6, "It was wonderful here.")
    lone = [Said("It was wonderful.", -7), Said("Porto in spring", -6, (0.9,))]
    ranking = staged("zebra", [*near, *far, *lone])[1]
    score = dict(zip(ranking.places.tolist(), ranking.score.tolist(), strict=True))
    reasons = {place: ranking.reasons(row) for row, place in enumerate(ranking.places.tolist())}
    assert score[near[0].place] > 2 * score[far[0].place]
    assert reasons[near[0].place].neighbour
    assert score[lone[0].place] == pytest.approx(score[far[0].place], rel=0.4)
    assert not reasons[lone[0].place].neighbour


def test_words_spread_over_a_few_messages_count_together() -> None:
    talk = session(5, "We saw a lighthouse.", "Nice!", "Then yes.", "The picnic was great.")
    other = session(6, "We saw a bird.", "Nice!", "Then yes.", "The evening was great.")
    candidates, _ranking = staged("lighthouse picnic", [*talk, *other])
    window = dict(zip(candidates.places.tolist(), candidates.window.tolist(), strict=True))
    assert window[talk[1].place] > 0.7
    assert window[other[1].place] == 0
    spread = [Said("We saw a lighthouse.", 5 << SESSION_BITS), Said("Hm.", 5 << SESSION_BITS | 8)]
    candidates, _ranking = staged("lighthouse", spread)
    assert sorted(candidates.window.tolist())[0] == 0  # neighbours in the table, 8 messages apart


def test_the_day_that_is_asked_for_the_speaker_and_words_of_time_count() -> None:
    units = session(
        5,
        Said("I baked bread there once.", 0, day=date(2023, 5, 7), speaker="Anna"),
        Said("I baked bread there once.", 0, day=date(2023, 9, 7), speaker="Ben"),
    )
    units[1] = replace(units[1], place=9 << SESSION_BITS)
    assert staged("bread on 7 May 2023", units)[1].places[0] == units[0].place
    assert staged("bread on 7 May 2023", units)[1].reasons(0).day
    assert staged("bread in September 2023", units)[1].places[0] == units[1].place
    by_ben = staged("What did Ben bake?", units)[1]
    assert by_ben.places[0] == units[1].place
    assert by_ben.reasons(0).speaker
    timed = [fact(1, "I moved house back then.", 0.3), fact(2, "I moved house last week.", 0.3)]
    assert texts("When did I move house?", timed)[0] == "I moved house last week."


def test_the_assistants_words_come_second_unless_they_are_asked_for() -> None:
    said = Said("Rust suits a parser well.", 0, (0.5,), assistant=True)
    units = [replace(said, place=5 << 18), replace(said, place=6 << 18, assistant=False)]
    assert staged("parser in Rust", units)[1].places[0] == units[1].place
    score = staged("What did you recommend for the parser in Rust?", units)[1].score
    assert score[0] == score[1]


def test_scores_fall_with_the_rank_lie_within_bounds_and_are_made_of_both_arms() -> None:
    units = session(
        5, *[Said(f"cat {number} {'x' * number}", 0, (number / 40,)) for number in range(40)]
    )
    ranking = staged("the cat sat 7", units)[1]
    assert (np.diff(ranking.score) <= 0).all()
    assert ((ranking.score >= 0) & (ranking.score <= 1)).all()
    assert ranking.vector_part + ranking.text_part == pytest.approx(ranking.score)
    assert ranking.text_part.min() > 0
    assert staged("zebra", units)[1].text_part.max() == 0
    assert staged("cat", units, blind=True)[1].vector_part.max() == 0


def test_the_reasons_show_the_words_as_they_were_asked() -> None:
    units = [fact(1, "We hiked in the Alps.", 0.5), fact(2, "I like tea.", 0.1)]
    first, second = map(staged("Hiking Zermatt", units)[1].reasons, (0, 1))
    assert first.words == ("hiking",)
    assert first.meaning
    assert second.words == ()
    assert not second.meaning


def test_the_order_of_what_is_equal_does_not_hang_on_chance() -> None:
    units = [fact(number, "the same", 0.5) for number in range(1, 30)]
    orders = {tuple(staged("same", units[::step])[1].places.tolist()) for step in (1, -1)}
    assert len(orders) == 1


def test_traits_that_are_missing_leave_their_candidates_out() -> None:
    units = [fact(1, "red cat", 0.5), fact(2, "blue cat", 0.4)]
    candidates, _ranking = staged("cat", units)
    asked = read_question("cat", today=TODAY)
    known = Traits(
        places=np.array([units[1].place]),
        speakers=[""],
        speaker=np.array([0]),
        assistant=np.array([False]),
        chars=np.array([8]),
        flags=np.array([0]),
    )
    assert second_stage(asked, candidates, known).places.tolist() == [units[1].place]


FACTS = [
    ("I am vegetarian.", "The user is vegetarian."),
    ("I live in Lisbon.", "The user lives in Lisbon."),
    ("My dog is called Rex.", "The user's dog is called Rex."),
    ("I work as a nurse in a hospital.", "The user works as a nurse in a hospital."),
    ("I play the violin on Sundays.", "The user plays the violin on Sundays."),
]


def asked_of_facts(question: str) -> list[tuple[str, float]]:
    """The facts and their scores, with the default embedder's vectors."""
    forms = [form for pair in FACTS for form in pair]
    vectors = MINILM.embed([question, *forms])
    cosines = (vectors[1:] @ vectors[0]).tolist()
    units = [
        fact(number, third, *cosines[2 * number - 2 : 2 * number])
        for number, (_first, third) in enumerate(FACTS, 1)
    ]
    ranking = staged(question, units)[1]
    text_at = {one.place: one.text for one in units}
    return [
        (text_at[place], score)
        for place, score in zip(ranking.places.tolist(), ranking.score.tolist(), strict=True)
    ]


@pytest.mark.parametrize("fact_text", [third for _first, third in FACTS])
def test_the_very_text_of_a_fact_is_sure(fact_text: str) -> None:
    best, *others = asked_of_facts(fact_text)
    assert best[0] == fact_text
    assert best[1] >= 0.8
    assert all(score < 0.3 for _text, score in others)


@pytest.mark.parametrize(
    ("question", "right", "least"),
    [
        ("Am I vegetarian?", "The user is vegetarian.", 0.8),
        ("Which diet do I follow?", "The user is vegetarian.", 0.01),
        ("What can't I eat?", "The user is vegetarian.", 0.01),
        ("Where do I live?", "The user lives in Lisbon.", 0.5),
        ("What is my dog's name?", "The user's dog is called Rex.", 0.3),
        ("Which instrument do I play?", "The user plays the violin on Sundays.", 0.3),
    ],
)
def test_a_related_fact_stands_above_the_others(question: str, right: str, least: float) -> None:
    best, second, *_rest = asked_of_facts(question)
    assert best[0] == right
    assert best[1] >= least
    assert best[1] > 2 * second[1]


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "Write a haiku about autumn leaves.",
        "How do I sort a list in Python?",
        "What's the weather like today?",
        "Recommend me a book.",
        "Explain the second law of thermodynamics.",
    ],
)
def test_unrelated_facts_score_low_and_not_all_the_same(question: str) -> None:
    scores = [score for _text, score in asked_of_facts(question)]
    assert max(scores) < 0.3
    assert min(scores) > 0
    assert len(set(scores)) == len(scores)
