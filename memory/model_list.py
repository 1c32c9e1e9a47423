"""What an address offers: the names of its models."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.errors import Misconfigured, ProviderError, Unavailable
from accounts.text import clean_text
from memory import refusals
from memory.model_server import Client, fetched, waited

LIST_BYTES = 4 * 1024 * 1024


def list_models(base_url: str, api_key: str, *, timeout: float = 10) -> list[str]:
    """Return the names of the models at an address, in its order; without an event loop.

    Raises Misconfigured or Unavailable with a sentence for whoever sets the address.
    """

    async def ask(client: Client) -> Any:
        return await fetched(client, "/models", None, most=LIST_BYTES, attempts=1)

    try:
        names = models_in(waited(base_url, api_key, timeout, ask))
    except ProviderError as error:
        match error.code:
            case "provider_unreachable":
                sentence = _("Nothing answers at this address.")
                raise Unavailable(sentence, code=error.code) from None
            case "provider_key" if api_key:
                sentence = _("The server at this address refuses the key.")
                raise Misconfigured(sentence, code=error.code) from None
            case "provider_key":
                sentence = _("The server at this address wants a key.")
                raise Misconfigured(sentence, code=error.code) from None
            case "provider_unknown" | "provider_page" | "provider_unusable":
                raise refusals.no_models() from None
        raise
    if names is None:
        raise refusals.no_models()
    return names


def models_in(answer: Any) -> list[str] | None:
    """Return the names in an answer that lists models, None if it is no such list."""
    if not isinstance(answer, dict) or answer.get("object", "list") != "list":
        return None
    entries = answer.get("data", ...)
    if entries is None:  # Ollama without models
        return []
    if not isinstance(entries, list):
        return None
    names = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    kept = [clean_text(name)[:200] for name in names[:1000] if isinstance(name, str) and name]
    return kept if len(kept) == len(names[:1000]) else None
