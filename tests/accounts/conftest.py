"""The standing people: Mara and Bob, the team that Mara runs, a stranger, and the operator."""

from collections.abc import Iterator
from functools import cache
from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.db import connection
from django.test import Client

from accounts.door import memberships_of
from accounts.join import join, new_organisation, new_person
from accounts.models import Membership, Tenant, User
from accounts.signals import login_ended

PASSWORD = "correct horse battery"


@cache
def _hashed() -> str:
    """Hashing is slow on purpose; once is enough for all the standing people."""
    return make_password(PASSWORD)


def person(email: str, name: str, **fields: Any) -> User:
    """Return a new person who logs in with PASSWORD."""
    user = new_person(email=email, password=None, name=name, **fields)
    user.password = _hashed()
    user.save(update_fields=["password"])
    return user


@pytest.fixture
def mara(db: None) -> User:
    return person("mara@example.org", "Mara")


@pytest.fixture
def bob(db: None) -> User:
    return person("bob@example.org", "Bob")


@pytest.fixture
def operator(db: None) -> User:
    return person("olga@example.org", "Olga", is_operator=True)


@pytest.fixture
def acme(mara: User) -> Tenant:
    """A team whose only admin is Mara."""
    return new_organisation(mara, name="Acme").tenant


@pytest.fixture
def bob_in_acme(acme: Tenant, bob: User) -> Membership:
    return join(acme, bob)


@pytest.fixture
def as_mara(mara: User) -> Client:
    client = Client()
    client.force_login(mara)
    return client


@pytest.fixture
def as_bob(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def ended() -> Iterator[list[dict[str, Any]]]:
    """What was told of logins that ended. Needs django_capture_on_commit_callbacks."""
    told: list[dict[str, Any]] = []

    def hear(
        *, user_id: int, tenant_id: int | None, session_key: str | None, **kwargs: Any
    ) -> None:
        told.append({"user_id": user_id, "tenant_id": tenant_id, "session_key": session_key})

    login_ended.connect(hear)
    yield told
    login_ended.disconnect(hear)


def personal(user: User) -> Membership:
    return memberships_of(user.pk)[0]


def at_once(*deeds: Any) -> list[Any]:
    """Do all of these at the same moment, each on a connection of its own; return what each gave.

    An exception is returned, not raised.
    """
    start = Barrier(len(deeds))
    results: list[Any] = [None] * len(deeds)

    def run(number: int, deed: Any) -> None:
        try:
            start.wait(timeout=10)
            results[number] = deed()
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [Thread(target=run, args=pair) for pair in enumerate(deeds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results
