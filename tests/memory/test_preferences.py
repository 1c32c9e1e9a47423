"""Settings that make sense are kept; others are refused in a sentence."""

from typing import Any

import pytest

from accounts.scope import Scope
from memory.limits import Limits, limits_of
from memory.models import BOUNDS
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
        *(("min_score", value) for value in ("-0.1", "1.01", "nan", "inf", "x", "1e9", True)),
        *(("token_budget", value) for value in ("99", "20001", "1e3", "1,500", "x")),
        *(("deadline_ms", value) for value in ("49", "10001", "1.5", "soon", True)),
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


@pytest.mark.parametrize("name", BOUNDS)
def test_both_bounds_of_each_number_may_be_set_and_empty_is_as_the_tenant_has_it(
    mara: Scope, name: str
) -> None:
    for bound in BOUNDS[name]:
        for given in (bound, str(bound)):
            kept = change_preferences(mara, **GOOD | {name: given})
            assert getattr(kept, name) == getattr(limits_of(mara), name) == bound
    assert getattr(change_preferences(mara, **GOOD | {name: " "}), name) is None
    assert getattr(limits_of(mara), name) == getattr(Limits(), name)


def test_each_number_that_is_nonsense_has_its_own_sentence(mara: Scope) -> None:
    with pytest.raises(InvalidPreferences) as refused:
        change_preferences(mara, **GOOD | {"token_budget": "99", "deadline_ms": "0"})
    assert refused.value.errors == {
        "token_budget": "Give a whole number of tokens from 100 to 20,000, or leave it empty.",
        "deadline_ms": "Give a whole number of milliseconds from 50 to 10,000, or leave it empty.",
    }
