"""Vectors of texts from an embeddings address that is OpenAI-compatible."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from django.utils.translation import gettext_lazy as _

from accounts.text import clean_text
from memory import refusals
from memory.model_server import Client, Endpoint, Failed, fetched, waited
from memory.vectors import Vectors, in_order

VECTOR_BYTES = 16 * 1024 * 1024
EMBED_CHARS = (6_000, 1_000)
EMBED_BATCH = 64
MOST_DIMS = 16_000  # that pgvector stores in half precision


def embed_remote(endpoint: Endpoint, texts: Sequence[str], *, timeout: float = 30) -> Vectors:
    """Return a unit vector for each text, float32 (texts, dimensions); without an event loop.

    Texts are cut to what embedding models take. Raises Rejected if what came are no such vectors.
    """

    async def ask(client: Client) -> Vectors:
        parts = [
            await _embedded(client, endpoint, texts[start : start + EMBED_BATCH])
            for start in range(0, len(texts), EMBED_BATCH)
        ]
        if len({part.shape[1] for part in parts}) != 1:
            raise Failed(refusals.unusable(_("The vectors differ in length.")))
        if parts[0].shape[1] > MOST_DIMS:
            sentence = _("The vectors of this model are too long to be stored. Choose another one.")
            raise Failed(refusals.unusable(sentence))
        return cast("Vectors", np.concatenate(parts))

    return waited(endpoint.base_url, endpoint.api_key, timeout, ask)


async def _embedded(client: Client, endpoint: Endpoint, texts: Sequence[str]) -> Vectors:
    cleaned = [clean_text(text) for text in texts]
    for chars in EMBED_CHARS:
        body = {
            "model": endpoint.model,
            "input": [text[:chars] for text in cleaned],
            "encoding_format": "float",
        }
        try:
            answer = await fetched(client, "/embeddings", body, most=VECTOR_BYTES)
        except Failed as failed:
            if failed.error.code != "provider_too_long" or chars == EMBED_CHARS[-1]:
                raise
        else:
            break
    if isinstance(answer, dict) and answer.get("error"):
        raise Failed(refusals.refusal(None, answer["error"]))
    try:
        return in_order(answer["data"], len(texts))
    except (LookupError, TypeError, ValueError):
        sentence = _("What the embeddings' server sent is not one vector for each text.")
        raise Failed(refusals.unusable(sentence)) from None
