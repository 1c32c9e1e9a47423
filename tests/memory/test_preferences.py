"""Settings that make sense are kept; others are refused in a sentence."""

from typing import Any

import pytest

from accounts.scope import Scope
from memory.limits import limits_of
from memory.preferences import InvalidPreferences, change_preferences, preferences_of

pytestmark = pytest.mark.django_db

GOOD: dict[str, Any] = {
    "recall_on": True,
    "auto_store_on": False,
    "top_k": "3",
    "min_score": "0.25",
}


def test_the_defaults_are_there_before_anything_is_set(mara: Scope) -> None:
    settings = preferences_of(mara)
    assert (settings.recall_on, settings.auto_store_on) == (True, True)
    assert (settings.top_k, settings.min_score) == (None, None)  # as the tenant has it


def test_a_change_is_kept_for_this_person_alone(mara: Scope, bob: Scope) -> None:
    change_preferences(mara, **GOOD)
    change_preferences(mara, **GOOD | {"min_score": "0,5"})
    settings = preferences_of(mara)
    assert (settings.top_k, settings.min_score, settings.auto_store_on) == (3, 0.5, False)
    assert preferences_of(bob).top_k is None
    assert (limits_of(mara).top_k, limits_of(mara).chosen) == (3, True)
    assert (limits_of(bob).top_k, limits_of(bob).chosen) == (8, False)
    assert change_preferences(mara, **GOOD | {"min_score": ""}).min_score is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("top_k", value) for value in ("0", "51", "-1", "3.5", "many", "٣", "9" * 40)),
        *(("min_score", value) for value in ("-0.1", "1.01", "nan", "inf", "x", "1e9")),
    ],
)
def test_nonsense_is_refused_in_a_sentence_and_changes_nothing(
    mara: Scope, field: str, value: object
) -> None:
    with pytest.raises(InvalidPreferences) as refused:
        change_preferences(mara, **GOOD | {field: value})
    assert list(refused.value.errors) == [field]
    assert str(refused.value).endswith(".")
    assert refused.value.http_status == 400
    assert preferences_of(mara).top_k is None
