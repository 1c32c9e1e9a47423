"""The list and its search: words as they stand, meaning behind them, stable pages."""

from base64 import urlsafe_b64encode
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.errors import InvalidInput, Unavailable
from accounts.scope import Scope
from memory.edit import forget
from memory.reasons import Reasons
from memory.search import Found, counts, search, usage_of
from tests.memory.conftest import keep, recalled

pytestmark = pytest.mark.django_db


def texts(found: Found) -> list[str]:
    return [memory.text for memory in found.memories]


def test_words_are_found_whatever_their_case_accents_and_width(mara: Scope) -> None:
    kept = ["今日は成語しりとりをした", "我对花生过敏", "Größe 42, café"]
    for text in kept:
        keep(mara, text, kind="note")
    for query, number in (
        ("しりとり", 0),
        ("花生", 1),
        ("CAFE", 2),
        ("grosse", 2),
        ("ＣＡＦÉ", 2),
    ):
        assert texts(search(mara, query=query))[0] == kept[number]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("%", ["100% sure."]),
        ("_", ["snake_case it is."]),
        ("\\", ["a \\ b"]),
        ("0% s", ["100% sure."]),
    ],
)
def test_wildcards_mean_themselves(mara: Scope, query: str, found: list[str]) -> None:
    for text in ("100% sure.", "snake_case it is.", "a \\ b", "Nothing of the sort."):
        keep(mara, text, kind="note")
    assert texts(search(mara, query=query)) == found


def test_meaning_comes_behind_the_words_and_only_when_it_is_near(mara: Scope) -> None:
    keep(mara, "The user is vegetarian.", first_person="I am vegetarian.")
    keep(mara, "The user keeps to a diet plan.")
    keep(mara, "The user owns a car.")
    assert texts(search(mara, query="diet")) == [
        "The user keeps to a diet plan.",
        "The user is vegetarian.",
    ]
    found = texts(search(mara, query="Which diet do I follow?"))
    assert "The user is vegetarian." in found
    assert "The user owns a car." not in found
    assert search(mara, query="xylophone").total == 0


def test_the_assistants_half_of_an_exchange_is_searched_too(mara: Scope) -> None:
    keep(mara, "Where to?", kind="exchange", answer="To Zanzibar.", source=uuid4())
    assert texts(search(mara, query="zanzibar")) == ["Where to?"]


def test_nobody_elses_memories_are_found(mara: Scope, bob: Scope) -> None:
    keep(mara, "The user is vegetarian.")
    for query in ("", "vegetarian", "Which diet do I follow?"):
        assert texts(search(bob, query=query)) == []
    assert counts(bob)[0]["current"] == 0


def test_what_stays_in_one_session_is_found_by_its_owner_too_by_meaning(mara: Scope) -> None:
    kept = keep(
        mara,
        "The user is vegetarian.",
        first_person="I am vegetarian.",
        reach="session",
        reach_key=uuid4(),
    )
    assert texts(search(mara, query="Which diet do I follow?")) == [kept.text]
    assert recalled(mara, "Which diet do I follow?") == []


def test_of_what_is_found_it_is_told_how_near_it_is_and_why(mara: Scope) -> None:
    kept = keep(mara, "The user keeps to a diet plan.")
    found = search(mara, query="diet")
    assert 0 < found.ranked[kept.pk].score <= 1
    assert "same words: diet" in Reasons().of(found.ranked[kept.pk])
    assert not found.by_words


def test_a_state_and_a_kind_narrow_the_list(mara: Scope) -> None:
    keep(mara, "Now.")
    keep(mara, "Once.", status="past")
    keep(mara, "Perhaps.", status="waiting", kind="note")
    keep(mara, "Gone.", status="trash")
    assert texts(search(mara)) == ["Now."]
    assert texts(search(mara, state="past")) == ["Once."]
    assert texts(search(mara, state="waiting", kind="note")) == ["Perhaps."]
    assert texts(search(mara, state="waiting", kind="fact")) == []
    assert texts(search(mara, state="trash", query="gone")) == ["Gone."]
    assert texts(search(mara, query="gone")) == []
    states, kinds = counts(mara, state="waiting")
    assert states == {"current": 1, "past": 1, "waiting": 1, "declined": 0, "trash": 1}
    assert (kinds["note"], kinds["fact"]) == (1, 0)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"kind": "x"},
        {"state": "x"},
        {"before": "x"},
        {"before": "é"},
        {"before": "MjAyNi0wMS0wMXxh"},
        {"before": "fA=="},
        {"before": "fg==", "query": "x"},  # ~ and no ids
        {"before": "fmFiYw==", "query": "x"},  # ~ and half an id
        {"before": "fjAxMjM0NTY3ODlhYmNkZWY="},  # ~ and an id, and nothing that was searched
    ],
)
def test_nonsense_is_refused(mara: Scope, nonsense: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        search(mara, **nonsense)  # type: ignore[arg-type]


def test_pages_are_stable_while_new_memories_arrive(mara: Scope) -> None:
    now = timezone.now()
    for number in range(12):
        # Several at the same moment: the id settles their order.
        keep(mara, f"Memory {number:02}.", created_at=now - timedelta(minutes=number // 3))
    seen: list[str] = []
    cursor = ""
    for _ in range(3):
        page = search(mara, before=cursor, limit=5)
        assert page.total >= 12
        seen += texts(page)
        cursor = page.next
        keep(mara, f"New {uuid4()}.")
    assert cursor == ""
    assert sorted(seen) == [f"Memory {number:02}." for number in range(12)]


def all_pages(scope: Scope, limit: int, **asked: str) -> list[Found]:
    pages = [search(scope, limit=limit, **asked)]
    while pages[-1].next:
        pages.append(search(scope, limit=limit, before=pages[-1].next, **asked))
    return pages


@pytest.mark.parametrize("limit", [1, 3, 5, 50])
def test_a_search_has_pages_that_hold_all_that_it_finds_each_once(mara: Scope, limit: int) -> None:
    for number in range(7):
        keep(mara, f"Diet plan {number}.", kind="note")
    near = ["The user is vegetarian.", "The user eats no meat.", "The user counts calories."]
    for text in near:
        keep(mara, text, first_person=text.replace("The user", "I"))
    keep(mara, "The user owns a car.")
    pages = all_pages(mara, limit, query="diet")
    found = [text for page in pages for text in texts(page)]
    assert found[:7] == [f"Diet plan {number}." for number in reversed(range(7))]
    assert sorted(found[7:]) == sorted(set(near) & set(found))
    assert len(found) == len(set(found)) == pages[0].total
    assert "The user is vegetarian." in found
    assert {len(page.memories) for page in pages[:-1]} <= {limit}
    assert found == texts(search(mara, query="diet"))  # in whatever pages, the same order
    ranked = [page.ranked for page in pages]
    assert all(
        0 < ranked[number][memory.pk].score <= 1
        for number, page in enumerate(pages)
        for memory in page.memories
    )


def test_pages_of_a_search_are_stable_whatever_comes_between_them(mara: Scope) -> None:
    for number in range(6):
        keep(mara, f"Diet plan {number}.", kind="note")
    for number in range(8):
        keep(mara, f"I eat no meat on day {number}.", kind="note")
    at_first = texts(search(mara, query="diet"))
    assert len(at_first) > 10
    seen: list[str] = []
    cursor = ""
    while True:
        page = search(mara, query="diet", before=cursor, limit=3)
        seen += texts(page)
        if not page.next:
            break
        cursor = page.next
        keep(mara, f"A diet of {uuid4()}.")
        keep(mara, f"I eat meat and no bread, and the number {uuid4()}.")
    assert len(seen) == len(set(seen))
    assert seen[:6] == at_first[:6]
    assert set(at_first) <= set(seen)  # and perhaps what came meanwhile


def test_what_is_forgotten_between_two_pages_is_on_none_that_follows(mara: Scope) -> None:
    for number in range(6):
        keep(mara, f"I eat no meat on day {number}.", kind="note")
    whole = search(mara, query="vegetarian")
    assert len(whole.memories) == 6
    first = search(mara, query="vegetarian", limit=2)
    gone = whole.memories[3]
    forget(mara, memory=gone.pk)
    second = search(mara, query="vegetarian", limit=2, before=first.next)
    third = search(mara, query="vegetarian", limit=2, before=second.next)
    left = [one for one in texts(whole)[2:] if one != gone.text]
    assert texts(second) + texts(third) == left
    assert not third.next


def test_a_cursor_opens_nobody_elses_memories(mara: Scope, bob: Scope) -> None:
    for number in range(4):
        keep(mara, f"I eat no meat on day {number}.", kind="note")
    cursor = search(mara, query="vegetarian", limit=1).next
    assert texts(search(bob, query="vegetarian", before=cursor)) == []


def test_what_holds_the_words_is_found_even_where_no_rank_reaches(
    mara: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.search.BY_MEANING", 2)
    for number in range(5):
        keep(mara, f"Diet plan {number}.", kind="note")
    found = search(mara, query="diet")
    assert len(found.memories) == found.total == 5
    assert len(found.ranked) == 2
    why = Reasons()
    said = [why.found(found.ranked.get(one.pk)) for one in found.memories]
    assert [one["because"] for one in said if one["score"] is None] == [
        "it holds what you typed"
    ] * 3


def test_words_are_found_while_the_embedder_is_away(
    mara: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(mara, "The user owns a boat.")

    def away(texts: object, **how: object) -> None:
        raise Unavailable

    monkeypatch.setattr("memory.embedder.embed", away)
    assert texts(search(mara, query="boat")) == ["The user owns a boat."]
    assert search(mara, query="boat").by_words
    assert texts(search(mara, query="what is my ship?")) == []


def test_a_page_costs_the_same_few_queries_however_many_rows(mara: Scope) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            usage_of(mara, search(mara).memories)
        return len(captured)

    keep(mara, "First.")
    few = cost()
    for number in range(20):
        keep(mara, f"Memory {number}.")
    assert cost() == few


@pytest.mark.parametrize(
    "place",
    [
        "",
        "|",
        "2026-01-01T00:00:00|" + "0" * 32,
        "2026-01-01T00:00:00+00:00|nobody",
        "0001-01-01T00:00:00+23:59|" + "0" * 32,
        "9999-12-31T23:59:59-23:59|" + "0" * 32,
    ],
)
def test_a_cursor_that_is_none_is_refused(mara: Scope, place: str) -> None:
    cursor = urlsafe_b64encode(place.encode()).decode() or "%"
    with pytest.raises(InvalidInput):
        search(mara, before=cursor)
