"""What a memory was before: kept, compared word by word, brought back."""

import pytest

import memory
from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope
from memory.history import diff

pytestmark = pytest.mark.django_db


def test_any_version_can_be_brought_back_and_that_be_undone(mara: Scope) -> None:
    note = memory.remember(mara, text="I own a bike.")
    for text in ("I own two bikes.", "I own three bikes."):
        memory.edit(mara, memory=note.pk, text=text)
    history = memory.versions(mara, memory=note.pk)
    assert [one.text for one in history] == ["I own two bikes.", "I own a bike."]
    assert history[0].diff == [
        ("same", "I own"),
        ("gone", "two"),
        ("new", "three"),
        ("same", "bikes."),
    ]
    first = history[-1]
    assert memory.restore(mara, memory=note.pk, version=first.number).text == "I own a bike."
    assert [one.text for one in memory.search(mara, "a bike")] == ["I own a bike."]
    assert memory.undo(mara, memory=note.pk).text == "I own three bikes."
    assert len(memory.versions(mara, memory=note.pk)) == 2


def test_a_version_comes_back_from_the_trash_too(mara: Scope) -> None:
    note = memory.remember(mara, text="I own a bike.")
    memory.edit(mara, memory=note.pk, text="I own two bikes.")
    memory.forget(mara, memory=note.pk)
    bike = memory.versions(mara, memory=note.pk)[-1]
    assert memory.restore(mara, memory=note.pk, version=bike.number).status == "current"
    assert [one.text for one in memory.list(mara)] == ["I own a bike."]


def test_a_version_of_another_memory_is_none(mara: Scope, bob: Scope) -> None:
    note, other = (memory.remember(mara, text=f"I own a {what}.") for what in ("bike", "boat"))
    his = memory.remember(bob, text="I own a bus.")
    memory.edit(bob, memory=his.pk, text="I own two buses.")
    memory.edit(mara, memory=other.pk, text="I own two boats.")
    for owner, pk in ((mara, other.pk), (bob, his.pk)):
        (version,) = memory.versions(owner, memory=pk)
        with pytest.raises(NotFound):
            memory.restore(mara, memory=note.pk, version=version.number)
    with pytest.raises(InvalidInput):
        memory.restore(mara, memory=note.pk)  # it is not in the trash


def test_a_version_that_is_remembered_elsewhere_is_not_brought_back(mara: Scope) -> None:
    note = memory.remember(mara, text="I own a bike.")
    memory.edit(mara, memory=note.pk, text="I own two bikes.")
    memory.remember(mara, text="I own a bike.")
    (bike,) = memory.versions(mara, memory=note.pk)
    with pytest.raises(InvalidInput):
        memory.restore(mara, memory=note.pk, version=bike.number)


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "all new"), ("all gone", ""), ("a b c", "a x c"), ("a b", "b a"), ("同じ", "同じ 違う")],
)
def test_a_diff_leads_from_the_one_to_the_other(before: str, after: str) -> None:
    parts = diff(before, after)
    assert " ".join(words for sort, words in parts if sort != "new") == before
    assert " ".join(words for sort, words in parts if sort != "gone") == after


def test_a_very_long_text_is_compared_as_a_whole() -> None:
    long = "word " * 50_000
    assert [sort for sort, _words in diff(long, f"{long} more")] == ["gone", "new"]
    assert [sort for sort, _words in diff(long, long)] == ["same"]
