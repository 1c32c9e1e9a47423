"""What goes wrong with a model's server, as errors with sentences for people.

The server's own words decide which error it is and are never passed on: they may quote the prompt
or the key. The codes are for machines; all begin with `provider_`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import Misconfigured, ProviderError, Rejected, Unavailable

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_NO_CREDIT = ("insufficient_quota", "billing", "credit balance", "insufficient balance")
_BAD_KEY = ("invalid_api_key", "incorrect api key")
_TOO_LONG = (
    "context_length",
    "context length",
    "context size",
    "context window",
    "maximum context",
    "too long",
    "too large to process",
    "too many tokens",
)
_FILTER = ("content_filter", "content_policy", "responsibleaipolicy", "content management policy")
_UNKNOWN = ("model_not_found", "model not found")


def refusal(status: int | None, error: Any) -> ProviderError:
    """Return what an HTTP status (None within a stream) and the server's own words mean."""
    said = _said(error)
    if status == 402 or _any(_NO_CREDIT, said):
        return Misconfigured(
            _("The account at the model's provider has no credit left."), code="provider_credit"
        )
    if status in {401, 403} or _any(_BAD_KEY, said):
        return Misconfigured(
            _("The model's provider refused the key. Your operator can mend it."),
            code="provider_key",
        )
    if status == 413 or _any(_TOO_LONG, said):
        return Rejected(
            _("This is too long for the model. Start a new session."), code="provider_too_long"
        )
    if _any(_FILTER, said):
        return Rejected(
            _("The model's provider refused this for its content."), code="provider_filter"
        )
    if status in {404, 405} or _any(_UNKNOWN, said):
        return Misconfigured(
            _("The model or its address is unknown to the provider. Your operator can mend it."),
            code="provider_unknown",
        )
    if status == 429 or "rate_limit" in said:
        return Unavailable(
            _("The model's provider has too much to do. Try again in a minute."),
            code="provider_busy",
        )
    if status is None:
        return Unavailable(_("The model reported an error. Try again."), code="provider_error")
    if status >= 500 or status in {408, 409, 425}:
        return Unavailable()
    return Rejected()


def _any(words: tuple[str, ...], said: str) -> bool:
    return any(word in said for word in words)


def _said(error: Any) -> str:
    if isinstance(error, Mapping):
        inner = error.get("error")
        if isinstance(inner, Mapping | str):
            return _said(inner)
        parts = (str(error.get(name, ""))[:2000] for name in ("code", "type", "message"))
        return " ".join(parts).lower()
    return str(error)[:2000].lower()


def too_late(seconds: float) -> Unavailable:
    """Nothing came in time."""
    sentence = _("The model did not answer within {seconds} seconds. Try again.")
    return Unavailable(format_lazy(sentence, seconds=f"{seconds:g}"), code="provider_timeout")


def fell_silent(seconds: float) -> Unavailable:
    """It began, then nothing came for so long."""
    sentence = _("The model fell silent: nothing came for {seconds} seconds.")
    return Unavailable(format_lazy(sentence, seconds=f"{seconds:g}"), code="provider_silent")


def took_too_long(seconds: float) -> Unavailable:
    """The whole reply took longer than allowed."""
    sentence = _("The reply was stopped: it took more than {seconds} seconds.")
    return Unavailable(format_lazy(sentence, seconds=f"{seconds:g}"), code="provider_slow")


def broke_off() -> Unavailable:
    """The connection ended before the reply did."""
    return Unavailable(
        _("The connection to the model broke off before the reply was complete."),
        code="provider_broke_off",
    )


def unreachable() -> Unavailable:
    """No connection at all."""
    return Unavailable(code="provider_unreachable")


def garbled() -> Unavailable:
    """A line of the stream that no one can read."""
    return Unavailable(_("The model's answer can't be read."), code="provider_garbled")


def empty() -> Unavailable:
    """An answer without words."""
    return Unavailable(_("The model sent an empty reply. Try again."), code="provider_empty")


def filtered() -> Rejected:
    """The content filter took all of it."""
    return Rejected(_("The model's content filter withheld the reply."), code="provider_filter")


def no_room() -> Rejected:
    """It ended for its length before the first word."""
    return Rejected(
        _("The model used all the room it had before it said anything."), code="provider_length"
    )


def unusable(sentence: "StrOrPromise") -> Rejected:
    """An answer came that is not what was asked for."""
    return Rejected(sentence, code="provider_unusable")


def web_page() -> Misconfigured:
    """HTML where a model was expected."""
    return Misconfigured(
        _("The model's address answers with a web page. Your operator can mend the address."),
        code="provider_page",
    )


def bad_address() -> Misconfigured:
    """An address that no request can be sent to."""
    return Misconfigured(
        _("The model's address must begin with http:// or https:// and name a host."),
        code="provider_address",
    )


def bad_key() -> Misconfigured:
    """A key that can't stand in a header."""
    return Misconfigured(
        _("The model's key holds characters that no key has."), code="provider_key"
    )


def no_models() -> Misconfigured:
    """Whatever answers there is no model server."""
    return Misconfigured(
        _("No model server answers at this address. Addresses usually end in /v1."),
        code="provider_unknown",
    )
