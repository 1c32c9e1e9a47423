"""What is embedded of a memory."""

from memory.keys import ANSWER_CHARS, PASSAGE_CHARS, passages, texts_of
from memory.models import Memory


def test_a_fact_is_found_by_both_its_forms() -> None:
    fact = Memory(kind="fact", text="The user is vegetarian.", first_person="I am vegetarian.")
    assert [text for _speaker, text in texts_of(fact)] == [
        "I am vegetarian.",
        "The user is vegetarian.",
    ]
    note = Memory(kind="note", text="I am vegetarian.")
    assert [text for _speaker, text in texts_of(note)] == ["I am vegetarian."]


def test_a_long_text_is_cut_into_parts_where_it_pauses() -> None:
    text = "One sentence of some length stands here. " * 100
    parts = passages(text)
    assert len(parts) == 5
    assert all(len(part) <= PASSAGE_CHARS for part in parts)
    assert all(part.endswith(".") for part in parts)
    assert " ".join(parts) == text.strip()


def test_a_text_without_pauses_is_cut_all_the_same() -> None:
    assert [len(part) for part in passages("x" * 2_000)] == [900, 900, 200]
    assert len(passages("字" * 100_000)) == 6
    assert passages(" …\n\n ") == []


def test_of_the_assistants_half_the_beginning_is_embedded() -> None:
    exchange = Memory(kind="exchange", text="Where to?", answer="To the far cape. " * 50)
    (speaker, said), (other, answered) = texts_of(exchange)
    assert (speaker, said, other) == ("person", "Where to?", "assistant")
    assert 120 < len(answered) <= ANSWER_CHARS
    assert answered.endswith("cape.")
