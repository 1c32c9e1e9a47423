import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from accounts.seal import seal, unseal


def test_what_is_sealed_opens_again_and_shows_nothing() -> None:
    sealed = seal("sk-secret")
    assert "sk-secret" not in sealed
    assert unseal(sealed) == "sk-secret"
    assert seal("sk-secret") != sealed


def test_nothing_stays_nothing() -> None:
    assert seal("") == ""
    assert unseal("") == ""


def test_an_older_key_still_opens_and_a_lost_one_opens_nothing(settings: Settings) -> None:
    sealed = seal("sk-secret")
    settings.FIELD_KEYS = [Fernet.generate_key().decode(), *settings.FIELD_KEYS]
    assert unseal(sealed) == "sk-secret"
    settings.FIELD_KEYS = settings.FIELD_KEYS[:1]
    assert unseal(sealed) == ""
    assert unseal("nonsense") == ""


def test_without_keys_nothing_is_kept_in_the_open(settings: Settings) -> None:
    settings.FIELD_KEYS = []
    with pytest.raises(ImproperlyConfigured):
        seal("sk-secret")
