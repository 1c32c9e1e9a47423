"""What is embedded of a memory."""

from typing import Any

import pytest

from memory import embedder
from memory.keys import ANSWER_CHARS, PASSAGE_CHARS, entries_of, parts_of, passages
from memory.models import Memory
from memory.vectors import Embedded


def test_a_fact_is_embedded_in_the_first_person() -> None:
    fact = Memory(kind="fact", text="The user is vegetarian.", first_person="I am vegetarian.")
    assert [part.passages for part in parts_of(fact)] == [["I am vegetarian."]]
    note = Memory(kind="note", text="I am vegetarian.")
    assert [part.passages for part in parts_of(note)] == [["I am vegetarian."]]


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
    said, reply = parts_of(exchange)
    assert (said.speaker, said.passages, reply.speaker) == ("person", ["Where to?"], "assistant")
    (answered,) = reply.passages
    assert 120 < len(answered) <= ANSWER_CHARS
    assert answered.endswith("cape.")


@pytest.mark.django_db
@pytest.mark.parametrize("same", [True, False])
def test_a_vector_that_is_known_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    asked: list[str] = []
    chosen = embedder.current()
    real = chosen.embed

    def counted(texts: Any) -> Any:
        asked.extend(texts)
        return real(texts)

    monkeypatch.setattr(chosen, "embed", counted)
    known = Embedded(chosen.name if same else "another", [1.0] + [0.0] * 383)
    memory = Memory(
        kind="exchange", text="Where to?", answer="To the far cape.", tenant_id=1, user_id=1
    )
    (entry,) = entries_of([memory], known={"Where to?": known})
    assert asked == (["To the far cape."] if same else ["Where to?", "To the far cape."])
    said, answered = entry.units
    assert (said.vectors == [known.vector]) is same
    assert len(answered.vectors) == 1
