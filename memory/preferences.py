"""How one person's memory works: read it, change it, refuse nonsense in a sentence."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy

from accounts.errors import InvalidInput
from accounts.scope import Scope, entered
from memory.models import BOUNDS, MemorySettings

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_OUT_OF_BOUNDS: "dict[str, StrOrPromise]" = {
    "top_k": gettext_lazy("Give a whole number from %(least)s to %(most)s, or leave it empty."),
    "min_score": gettext_lazy("Give a number from %(least)s to %(most)s, or leave it empty."),
    "token_budget": gettext_lazy(
        "Give a whole number of tokens from %(least)s to %(most)s, or leave it empty."
    ),
    "deadline_ms": gettext_lazy(
        "Give a whole number of milliseconds from %(least)s to %(most)s, or leave it empty."
    ),
}


class InvalidPreferences(InvalidInput):
    """Some settings can't be so; `errors` has a sentence for each by its field's name."""

    def __init__(self, errors: "dict[str, StrOrPromise]") -> None:
        super().__init__(next(iter(errors.values())))
        self.errors = errors


def preferences_of(scope: Scope) -> MemorySettings:
    """Return the person's settings; the defaults, not stored, while they set none."""
    with entered(scope):
        kept = MemorySettings.objects.within(scope).first()
    return kept or MemorySettings(tenant_id=scope.tenant_id, user_id=scope.user_id)


def change_preferences(
    scope: Scope,
    *,
    recall_on: bool,
    auto_store_on: bool,
    tools_on: bool = True,
    top_k: object = None,
    min_score: object = None,
    token_budget: object = None,
    deadline_ms: object = None,
) -> MemorySettings:
    """Return the person's settings after the change; InvalidPreferences changes nothing.

    The numbers are within memory.models.BOUNDS and may come as text; blank is as the tenant has
    it. What is learnt is set apart (memory.learn.set_learning).
    """
    numbers = read_numbers(
        {
            "top_k": top_k,
            "min_score": min_score,
            "token_budget": token_budget,
            "deadline_ms": deadline_ms,
        }
    )
    with entered(scope):
        changed, _made = MemorySettings.objects.within(scope).update_or_create(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            defaults={
                "recall_on": recall_on,
                "auto_store_on": auto_store_on,
                "tools_on": tools_on,
                **numbers,
            },
        )
    return changed


def read_numbers(given: Mapping[str, object]) -> dict[str, int | float | None]:
    """Return the settings of recall as numbers, None for blank ones, by the names in BOUNDS.

    Raises InvalidPreferences with a sentence for each that is no number or out of its bounds.
    """
    numbers: dict[str, int | float | None] = {}
    errors: dict[str, StrOrPromise] = {}
    for name, value in given.items():
        least, most = BOUNDS[name]
        text = "" if value is None else str(value).strip()
        number = _fraction(value, text) if name == "min_score" else _whole(value, text)
        if not text:
            numbers[name] = None
        elif least <= number <= most:  # NaN is not
            numbers[name] = number
        else:
            bounds = {"least": f"{least:,}", "most": f"{most:,}"}
            errors[name] = str(_OUT_OF_BOUNDS[name]) % bounds
    if errors:
        raise InvalidPreferences(errors)
    return numbers


def _whole(given: object, text: str) -> int | float:
    """Return the number; NaN for what is no whole number."""
    digits = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if digits and not isinstance(given, bool) else math.nan


def _fraction(given: object, text: str) -> float:
    """Return the number, also with a decimal comma; NaN for what is none."""
    try:
        return math.nan if isinstance(given, bool) else float(text.replace(",", "."))
    except ValueError:
        return math.nan
