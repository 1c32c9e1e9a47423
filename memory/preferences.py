"""How one person's memory works: read it, change it, refuse nonsense in a sentence."""

import math
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from accounts.errors import InvalidInput
from accounts.scope import Scope, entered
from memory.models import MemorySettings

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


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
    scope: Scope, *, recall_on: bool, auto_store_on: bool, top_k: object, min_score: object
) -> MemorySettings:
    """Return the person's settings after the change; InvalidPreferences changes nothing.

    `top_k` is a whole number from 1 to 50, `min_score` from 0 to 1; blank is as the tenant has it.
    Both may come as text.
    """
    errors: dict[str, StrOrPromise] = {}
    blank = top_k is None or not str(top_k).strip()
    k = None if blank else _whole(top_k)
    if not blank and (k is None or not 1 <= k <= 50):
        errors["top_k"] = _("Give a whole number from 1 to 50.")
    score = _fraction(min_score)
    if score is not None and not 0 <= score <= 1:
        errors["min_score"] = _("Give a number from 0 to 1, or leave it empty.")
    if errors:
        raise InvalidPreferences(errors)
    with entered(scope):
        changed, _made = MemorySettings.objects.within(scope).update_or_create(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            defaults={
                "recall_on": recall_on,
                "auto_store_on": auto_store_on,
                "top_k": k,
                "min_score": score,
            },
        )
    return changed


def _whole(given: object) -> int | None:
    if isinstance(given, bool):
        return None
    text = str(given).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _fraction(given: object) -> float | None:
    """Return the number; None for blank, NaN for what is no number."""
    text = "" if given is None else str(given).strip().replace(",", ".")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and not isinstance(given, bool) else math.nan
