"""Secrets that stand in links; the store keeps only their hashes."""

import hashlib
import secrets


def new_token() -> str:
    """Return 256 random bits, as they may stand in an address."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return what is stored of a token: SHA-256, in hex. The token is random, so no salt."""
    return hashlib.sha256(token.encode()).hexdigest()
