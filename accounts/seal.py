"""Secrets at rest: sealed with the installation's keys, opened by the newest that fits."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def _keys() -> MultiFernet:
    if not settings.FIELD_KEYS:
        raise ImproperlyConfigured("FIELD_KEYS is not set; script/server makes it.")
    return MultiFernet([Fernet(key) for key in settings.FIELD_KEYS])


def seal(secret: str) -> str:
    """Return the secret encrypted (Fernet, with the first key); empty stays empty."""
    return _keys().encrypt(secret.encode()).decode() if secret else ""


def unseal(sealed: str) -> str:
    """Return the secret; empty if there is none, or if no key opens it any more."""
    if not sealed:
        return ""
    try:
        return _keys().decrypt(sealed.encode()).decode()
    except InvalidToken:
        return ""
