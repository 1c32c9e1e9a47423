"""Why a memory was found is said in words, and there is always a reason."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from memory.exchange import Speaker
from memory.find import Hit, Row
from memory.providers.base import Reason, Why
from memory.reasons import Reasons


def hit(
    *because: Reason,
    kind: str = "fact",
    pinned: bool = False,
    safety: bool = False,
    **given: Any,
) -> Hit:
    row = Row(uuid4(), kind, "Text.", "", None, None, timezone.now(), pinned, safety)
    return Hit(row, because=because, **given)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (hit(), "the nearest there is"),
        (hit(always=True), "there are few memories"),
        (hit(always=True, kind="persona"), "about you"),
        (hit(kind="persona"), "the nearest there is"),
        (hit(always=True, pinned=True), "pinned"),
        (
            hit(Reason(Why.MEANING), pinned=True, safety=True),
            "pinned; about safety; near in meaning",
        ),
        (hit(Reason(Why.WORDS, ("a", "b", "c", "d", "e", "f"))), "same words: a, b, c, d, e"),
        (
            hit(Reason(Why.DAY), Reason(Why.NEIGHBOUR), speaker=Speaker.ASSISTANT),
            "of a day that was asked for; beside a match; in the assistant's words",
        ),
    ],
)
def test_a_reason_is_said_in_words(found: Hit, said: str) -> None:
    assert Reasons().of(found) == said


@pytest.mark.parametrize("code", Why)
def test_every_code_of_a_provider_has_words(code: Why) -> None:
    assert Reasons().of(hit(Reason(code, ("word",))))
