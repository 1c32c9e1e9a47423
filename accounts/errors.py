"""The errors that a person may be told.

    AppError                 500  the message is safe to show, and translated
    +-- InvalidInput         400  what was sent can't be used, and why
    +-- NotFound             404  missing or not yours: the same words
    +-- TooMuch              429  too often or too many; retry_after says when
    +-- ProviderError        502  the language model or the embedder
        +-- Unavailable      502  slow, away or overloaded: trying again may help
        +-- Rejected         502  it refused, or its answer can't be used: trying again won't help
        +-- Misconfigured    500  the address, key or model is wrong: the operator must act

Mistakes in the program are not in the tree. They are caught only where a background task ends.
"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class AppError(Exception):
    """Something went wrong that a person can be told in one sentence."""

    code = "error"
    http_status = 500
    message: "StrOrPromise" = _("Something went wrong on our side. Nothing was lost. Try again.")

    def __init__(self, message: "StrOrPromise | None" = None, *, code: str | None = None) -> None:
        if message is not None:
            self.message = message
        if code is not None:
            self.code = code
        super().__init__(self.code)

    def __str__(self) -> str:
        return str(self.message)


class InvalidInput(AppError):
    """What was sent can't be used."""

    code = "invalid_input"
    http_status = 400
    message = _("That can't be used as it is.")


class NotFound(AppError):
    """It does not exist, or is not yours; nobody learns which."""

    code = "not_found"
    http_status = 404
    message = _("It does not exist, or it is not yours.")


class TooMuch(AppError):
    """Too often or too many; `retry_after` says in how many seconds to try again."""

    code = "too_much"
    http_status = 429
    message = _("That was too often. Wait a moment and try again.")

    def __init__(self, message: "StrOrPromise | None" = None, *, retry_after: int = 60) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderError(AppError):
    """The language model or the embedder did not do its part."""

    code = "provider"
    http_status = 502
    message = _("The language model did not answer.")


class Unavailable(ProviderError):
    """Slow, away or overloaded: trying again may help."""

    code = "provider_unavailable"
    message = _("The language model can't be reached right now. Try again.")


class Rejected(ProviderError):
    """It refused, or gave what can't be used: trying the same again won't help."""

    code = "provider_rejected"
    message = _("The language model refused this request.")


class Misconfigured(ProviderError):
    """The address, the key or the model's name is wrong: the operator must act."""

    code = "provider_misconfigured"
    http_status = 500
    message = _("The language model isn't set up correctly. Your operator can mend it.")
