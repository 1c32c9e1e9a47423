"""A scope entered in one round trip: the same walls, and nothing left behind."""

from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError, connection

from accounts.join import new_person
from accounts.models import Membership, User
from accounts.scope import Scope, entered, entered_person, read_once, write_once

COUNT = "select count(*) from memory_memorysettings"
INSERT = (
    "insert into memory_memorysettings (tenant_id, user_id, recall_on, auto_store_on, learn, top_k,"
    " token_budget, deadline_ms, generation)"
    " values (%(tenant)s, %(user)s, true, true, 'off', 8, 1500, 1000, 0) returning id"
)


def scope_of(user: User) -> Scope:
    with entered_person(user.pk):
        return Membership.objects.get(user=user).scope


def owner(scope: Scope) -> dict[str, Any]:
    return {"tenant": scope.tenant_id, "user": scope.user_id}


def settings_now() -> tuple[str, str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select coalesce(current_setting('app.tenant_id', true), ''),"
            " coalesce(current_setting('app.user_id', true), ''),"
            " current_setting('statement_timeout')"
        )
        tenant, user, timeout = cursor.fetchone()
    return str(tenant), str(user), str(timeout)


def people() -> tuple[Scope, Scope]:
    return (
        scope_of(new_person(email="mara@example.org", password=None, name="Mara")),
        scope_of(new_person(email="bob@example.org", password=None, name="Bob")),
    )


def check_walls(mara: Scope, bob: Scope) -> None:
    before = settings_now()
    assert len(write_once(mara, INSERT, owner(mara))) == 1
    assert read_once(mara, COUNT, {}) == [(1,)]
    assert read_once(bob, COUNT, {}, within_ms=5_000) == [(0,)]
    assert read_once(Scope(bob.tenant_id, mara.user_id), COUNT, {}) == [(0,)]
    assert settings_now() == before


@pytest.mark.django_db
def test_inside_a_transaction_the_outer_scope_is_back_afterwards() -> None:
    mara, bob = people()
    check_walls(mara, bob)
    with entered(bob):
        assert read_once(mara, COUNT, {}) == [(1,)]
        write_once(bob, INSERT, owner(bob))
        assert settings_now()[:2] == (str(bob.tenant_id), str(bob.user_id))
        assert read_once(bob, COUNT, {}) == [(1,)]


@pytest.mark.django_db
def test_a_write_in_the_scope_that_stands_goes_nowhere_else() -> None:
    mara, bob = people()
    with entered(mara):
        with entered(bob):
            assert len(write_once(mara, INSERT, owner(mara))) == 1  # not bob's, who stands
            assert read_once(bob, COUNT, {}) == [(0,)]
        with pytest.raises(ProgrammingError), entered(bob):
            write_once(bob, INSERT, owner(mara))  # the policy refuses it
        assert settings_now()[:2] == (str(mara.tenant_id), str(mara.user_id))
        assert write_once(mara, f"{COUNT} where user_id <> %(user)s", owner(mara)) == [(0,)]
        assert write_once(mara, COUNT, {}) == [(1,)]
    assert write_once(bob, COUNT, {}) == [(0,)]


@pytest.mark.django_db
def test_inside_a_transaction_a_slow_query_breaks_only_itself() -> None:
    mara, _bob = people()
    with pytest.raises(OperationalError):
        read_once(mara, "select 1 from pg_sleep(5)", {}, within_ms=20)
    assert read_once(mara, COUNT, {}) == [(0,)]


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_is_one_of_its_own() -> None:
    mara, bob = people()
    check_walls(mara, bob)
    assert settings_now()[:2] == ("", "")
    with pytest.raises(OperationalError):
        read_once(mara, "select 1 from pg_sleep(5)", {}, within_ms=20)
    assert read_once(mara, COUNT, {}) == [(1,)]
    with entered(mara), connection.cursor() as cursor:
        cursor.execute("delete from memory_memorysettings")
