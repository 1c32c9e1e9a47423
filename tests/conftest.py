"""The database is made by the owner; every test runs as the application's role."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase

from chatapp.environment import Environment, database
from tests.strict_templates import strict


def _connect_as(*, owner: bool) -> None:
    name = connection.settings_dict["NAME"]
    variable = "DATABASE_OWNER_URL" if owner else "DATABASE_URL"
    address = database(Environment.read().required(variable), variable)
    connection.close()
    connection.close_pool()
    connection.settings_dict.update({key: address[key] for key in ("USER", "PASSWORD")})
    role = settings.OWNER_ROLE if owner else settings.APP_ROLE
    connection.settings_dict["OPTIONS"]["options"] = (
        f"-c role={role} -c jit=off -c max_parallel_workers_per_gather=0"
    )
    connection.settings_dict["NAME"] = name


@contextmanager
def as_owner() -> Iterator[None]:
    """Connect as the owner, who may truncate; not for a test that checks isolation."""
    _connect_as(owner=True)
    try:
        yield
    finally:
        _connect_as(owner=False)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    _connect_as(owner=True)
    name = os.environ.get("RECOLLECT_TEST_DB", "")
    if name:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        connection.settings_dict["TEST"]["NAME"] = f"{name}_{worker}" if worker else name


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        _connect_as(owner=False)
    yield
    with django_db_blocker.unblock():
        _connect_as(owner=True)  # to drop the database


@pytest.fixture(scope="session", autouse=True)
def _flush_as_owner() -> Iterator[None]:
    """Tests with transaction=True end with TRUNCATE, which the application may not."""
    flush = TransactionTestCase._fixture_teardown

    def teardown(self: Any) -> None:
        with as_owner():
            flush(self)

    TransactionTestCase._fixture_teardown = teardown
    yield
    TransactionTestCase._fixture_teardown = flush


@pytest.fixture(autouse=True)
def _templates_are_strict() -> Iterator[None]:
    """A template that names what its view does not give fails, in whichever test renders it."""
    with strict():
        yield
