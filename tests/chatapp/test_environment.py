"""Addresses as the installation is told them: taken whole, and refused by their variable's name."""

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from chatapp.environment import Environment, database, mailer, memory_provider


def test_a_databases_address_is_taken_whole() -> None:
    address = "postgres://me:p%40ss@db.example:5433/chat?sslmode=verify-full&sslrootcert=/ca.pem"
    taken = database(address, "DATABASE_URL")
    assert (taken["USER"], taken["PASSWORD"], taken["HOST"]) == ("me", "p@ss", "db.example")
    assert (taken["PORT"], taken["NAME"]) == ("5433", "chat")
    assert taken["OPTIONS"] == {"sslmode": "verify-full", "sslrootcert": "/ca.pem"}


@pytest.mark.parametrize(
    "address", ["mysql://h/n", "postgres://h", "postgres://h:port/n", "postgres://h:70000/n"]
)
def test_what_is_no_databases_address_is_refused_by_its_name(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must look like"):
        database(address, "DATABASE_URL")


@pytest.mark.parametrize("address", ["http://h", "smtp://", "smtp://h:port"])
def test_what_is_no_mail_servers_address_is_refused(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL must be"):
        mailer(address)


def test_a_key_that_seals_nothing_is_refused_before_it_is_needed() -> None:
    good = Fernet.generate_key().decode()
    assert Environment({"FIELD_KEYS": f"{good}, {good}"}).fernet_keys("FIELD_KEYS") == [good] * 2
    assert Environment({}).fernet_keys("FIELD_KEYS") == []
    for bad in ("nonsense", f"{good},x", good[:-4]):
        with pytest.raises(ImproperlyConfigured, match="FIELD_KEYS must hold Fernet keys"):
            Environment({"FIELD_KEYS": bad}).fernet_keys("FIELD_KEYS")


@pytest.mark.parametrize(
    ("address", "backend", "options"),
    [
        ("pgvector:", "memory.providers.pgvector.PgvectorProvider", {}),
        ("pgvector", "memory.providers.pgvector.PgvectorProvider", {}),
        (
            "chroma://127.0.0.1:8766",
            "memory.providers.chroma.ChromaProvider",
            {"host": "127.0.0.1", "port": 8766},
        ),
        (
            "chromas://chroma.example/staging",
            "memory.providers.chroma.ChromaProvider",
            {"host": "chroma.example", "port": 8000, "ssl": True, "namespace": "staging"},
        ),
        ("ours.store.Provider?folder=/srv/x", "ours.store.Provider", {"folder": "/srv/x"}),
    ],
)
def test_a_memory_provider_is_chosen_by_one_address(
    address: str, backend: str, options: dict[str, object]
) -> None:
    assert memory_provider(address) == {"BACKEND": backend, "OPTIONS": options}


@pytest.mark.parametrize("address", ["", "chroma", "chroma://", "chroma://h:x", "mem0://h", "a..b"])
def test_what_is_no_memory_provider_is_refused(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MEMORY_PROVIDER must be"):
        memory_provider(address)
