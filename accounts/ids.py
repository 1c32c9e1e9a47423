"""Unguessable ids."""

import secrets
from uuid import UUID


def random_id() -> UUID:
    """Return 128 random bits in a UUID's clothes: no version bits, so that none are lost."""
    return UUID(bytes=secrets.token_bytes(16))
