from functools import partial
from threading import Event
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError, OperationalError, connection
from django.test import Client
from psycopg.errors import DeadlockDetected
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from accounts import erase
from accounts.door import memberships_of
from accounts.erase import counts_of, erase_account, erase_organisation, refusal, scopes_of
from accounts.errors import InvalidInput
from accounts.invite import invite, look
from accounts.join import change_role, join, leave, new_organisation
from accounts.models import AuditEntry, Departure, Membership, Tenant, User
from accounts.scope import Scope, entered, entered_tenant
from chatapp.models import ChatSession, Message, ReplyTicket
from memory.models import (
    Job,
    JobTicket,
    Memory,
    MemorySettings,
    Posting,
    SearchKey,
    SearchRow,
    SearchTotals,
    Tombstone,
)
from tests.accounts.conftest import at_once, person, personal
from tests.conftest import as_owner


@pytest.fixture(autouse=True)
def _no_erasers_of_other_parts(settings: Settings) -> None:
    """The tables are erased here by their shape alone, unless a test says otherwise."""
    settings.ACCOUNT_ERASERS = []


def fill(scope: Scope) -> None:
    """Give the person a row in every kind of table."""
    owner = {"tenant_id": scope.tenant_id, "user_id": scope.user_id}
    with entered(scope):
        session = ChatSession.unscoped.create(**owner)
        question = Message.unscoped.create(
            **owner, session=session, position=1, role="user", text="I am vegan."
        )
        reply = Message.unscoped.create(
            **owner, session=session, position=2, role="assistant", question=question
        )
        old, new = (
            Memory.unscoped.create(
                **owner, kind="note", origin="profile", text=text, key=text, source=reply.pk
            )
            for text in ("vegetarian", "vegan")
        )
        Memory.unscoped.filter(pk=old.pk).update(superseded_by=new)
        found_by = owner | {"place": 1}
        SearchKey.unscoped.create(**found_by, memory=new, model="m", dims=2, embedding=[1, 0])
        SearchRow.unscoped.create(**found_by, memory=new, day="2026-01-01", chars=1, total=1)
        Posting.unscoped.create(**found_by, term=1, tf=1, dl=1)
        SearchTotals.unscoped.create(**owner, n=1, terms=1)
        MemorySettings.unscoped.create(**owner)
        Tombstone.unscoped.create(**owner, mark="x")
        job = Job.unscoped.create(**owner, kind="remember", source=reply.pk)
        JobTicket.objects.create(**owner, job_id=job.pk, queue="interactive")
        ReplyTicket.objects.create(**owner, reply_id=reply.pk, session_id=session.pk)


def rows_of(user_id: int) -> dict[str, int]:
    """Return how many rows of the person each table holds, counted behind no wall."""
    counts = {}
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "select relname, relforcerowsecurity from pg_class c join pg_attribute a"
            " on a.attrelid = c.oid and attname = 'user_id'"
            " where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
        for table, forced in cursor.fetchall():
            if forced:
                cursor.execute(f"alter table {table} no force row level security")
            cursor.execute(
                f"select count(*) from {table} where user_id = %s",  # noqa: S608
                [user_id],
            )
            counts[table] = cursor.fetchone()[0]
            if forced:
                cursor.execute(f"alter table {table} force row level security")
    return {table: count for table, count in counts.items() if count}


def test_the_account_and_every_space_that_is_only_theirs_are_erased(
    mara: User, acme: Tenant
) -> None:
    mine = scopes_of(mara.pk)
    for scope in mine:
        fill(scope)
    assert {row.label: row.count for row in counts_of(mine)} == {
        "sessions": 2,
        "messages": 4,
        "memories": 4,
    }
    erase_account(mara)
    connection.check_constraints()
    assert not User.objects.exists()
    assert not Tenant.objects.exists()
    assert not JobTicket.objects.exists()
    assert not ReplyTicket.objects.exists()
    for scope in mine:
        with entered(scope):
            assert not Memory.unscoped.exists()
            assert not Message.unscoped.exists()


@pytest.mark.django_db(transaction=True)
def test_no_table_keeps_a_row_of_theirs_and_none_of_anothers_is_touched() -> None:
    mara, bob = person("mara@example.org", "Mara"), person("bob@example.org", "Bob")
    acme = new_organisation(mara, name="Acme").tenant
    beta = new_organisation(bob, name="Beta").tenant
    join(acme, bob)
    for scope in (*scopes_of(mara.pk), *scopes_of(bob.pk)):
        fill(scope)
    leave(Scope(acme.pk, bob.pk), actor=mara)  # what he wrote there is his still
    kept = rows_of(mara.pk)
    user_id = bob.pk
    assert rows_of(user_id)["memory_memory"] == 6
    erase_account(bob)
    assert rows_of(user_id) == {}
    assert rows_of(mara.pk) == kept
    assert not Tenant.objects.filter(pk=beta.pk).exists()
    assert Tenant.objects.filter(pk=acme.pk).exists()


def test_in_a_space_with_others_only_ones_own_goes(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    for scope in (Scope(acme.pk, mara.pk), Scope(acme.pk, bob.pk)):
        fill(scope)
    erase_account(bob)
    with entered_tenant(acme.pk):
        assert Membership.objects.get().user == mara
        entry = AuditEntry.objects.order_by("-pk")[0]
    assert entry.action == "account.erased"
    with entered(Scope(acme.pk, mara.pk)):
        assert Memory.unscoped.count() == 2


def test_the_only_admin_of_others_stays(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    assert "only admin of Acme" in refusal(mara.pk)
    with pytest.raises(InvalidInput, match="only admin of Acme"):
        erase_account(mara)
    assert refusal(bob.pk) == ""
    change_role(bob_in_acme.scope, role="admin", actor=mara)
    invitation = invite(acme, actor=mara, role="admin", days=30)
    erase_account(mara)
    assert look(invitation).state == "expired"
    assert [m.tenant.name for m in memberships_of(bob.pk)] == ["Bob", "Acme"]


def test_their_logins_end_everywhere_and_nobody_elses(
    mara: User,
    bob: User,
    ended: list[dict[str, Any]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    for somebody in (mara, mara, bob):
        Client().force_login(somebody)
    user_id = mara.pk
    with django_capture_on_commit_callbacks(execute=True):
        erase_account(mara)
    assert ended == [{"user_id": user_id, "tenant_id": None, "session_key": None}]
    [session] = Session.objects.all()
    assert session.get_decoded()["_auth_user_id"] == str(bob.pk)


def test_when_one_eraser_fails_nothing_is_erased(mara: User, settings: Settings) -> None:
    fill(personal(mara).scope)
    settings.ACCOUNT_ERASERS = ["tests.accounts.test_erase.failing"]
    with pytest.raises(DatabaseError):
        erase_account(mara)
    assert {row.count for row in counts_of(scopes_of(mara.pk))} == {1, 2}
    assert User.objects.filter(pk=mara.pk).exists()


def failing(scope: Scope) -> None:
    """An eraser that the database fails under."""
    raise DatabaseError


SEEN: list[Scope] = []


def seeing(scope: Scope) -> None:
    """An eraser that notes whose rows it was asked to erase."""
    SEEN.append(scope)


def test_every_eraser_is_asked_for_every_scope(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership, settings: Settings
) -> None:
    SEEN.clear()
    settings.ACCOUNT_ERASERS = ["tests.accounts.test_erase.seeing"]
    leave(bob_in_acme.scope, actor=bob)
    expected = [personal(bob).scope, bob_in_acme.scope]
    erase_account(bob)
    assert sorted(SEEN, key=str) == sorted(expected, key=str)


def test_a_space_takes_what_former_members_left_there(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    fill(bob_in_acme.scope)
    leave(bob_in_acme.scope, actor=mara)
    erase_organisation(acme, actor=mara)
    connection.check_constraints()
    assert not Tenant.objects.filter(pk=acme.pk).exists()
    with entered(bob_in_acme.scope):
        assert not Memory.unscoped.exists()
        assert not Departure.objects.exists()
    assert len(memberships_of(bob.pk)) == 1


def test_a_space_with_others_and_a_personal_one_are_not_deleted(
    mara: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    for tenant in (acme, personal(mara).tenant):
        with pytest.raises(InvalidInput):
            erase_organisation(tenant, actor=mara)
    assert Tenant.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_the_erasers_of_the_product_leave_nothing_either(settings: Settings) -> None:
    settings.ACCOUNT_ERASERS = ["memory.purge.erase_person"]
    mara = person("mara@example.org", "Mara")
    user_id = mara.pk
    fill(personal(mara).scope)
    erase_account(mara)
    assert rows_of(user_id) == {}
    assert not Tenant.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_a_worker_writes_meanwhile_is_refused_or_erased_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mara = person("mara@example.org", "Mara")
    user_id, scope = mara.pk, personal(mara).scope
    fill(scope)
    locked, wrote = Event(), Event()
    real = erase._erase_scope

    def slow(scope: Scope) -> None:
        real(scope)
        locked.set()
        assert wrote.wait(timeout=20)

    def write_late() -> None:
        assert locked.wait(timeout=20)
        with entered(scope):
            Memory.unscoped.create(
                tenant_id=scope.tenant_id,
                user_id=user_id,
                kind="note",
                origin="profile",
                text="late",
                key="late",
            )
            wrote.set()

    monkeypatch.setattr(erase, "_erase_scope", slow)
    erased, written = at_once(lambda: erase_account(mara), write_late)
    assert erased is None
    assert isinstance(written, DatabaseError)
    assert rows_of(user_id) == {}


@pytest.mark.django_db(transaction=True)
def test_two_who_erase_the_same_account_at_once_do_it_once() -> None:
    mara = person("mara@example.org", "Mara")
    user_id = mara.pk
    again = User.objects.get(pk=user_id)
    results = at_once(lambda: erase_account(mara), lambda: erase_account(again))
    assert results == [None, None]
    assert rows_of(user_id) == {}


@pytest.mark.parametrize("problem", ["moved", "deadlock"])
@pytest.mark.parametrize(("times", "erased"), [(2, True), (3, False)])
def test_what_moved_meanwhile_is_tried_again_and_then_told(
    mara: User, monkeypatch: pytest.MonkeyPatch, problem: str, times: int, erased: bool
) -> None:
    real, failures = erase._erase_account, [problem] * times

    def stumbling(user_id: int, *, ip: str | None) -> None:
        if not failures:
            real(user_id, ip=ip)
        elif failures.pop() == "moved":
            raise erase._Moved
        else:
            raise OperationalError from DeadlockDetected()

    monkeypatch.setattr(erase, "_erase_account", stumbling)
    user_id = mara.pk
    if erased:
        erase_account(mara)
    else:
        with pytest.raises(InvalidInput, match="at the same moment"):
            erase_account(mara)
    assert User.objects.filter(pk=user_id).exists() is not erased


def test_another_fault_of_the_store_is_not_hidden(
    mara: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(user_id: int, *, ip: str | None) -> None:
        raise OperationalError

    monkeypatch.setattr(erase, "_erase_account", fail)
    with pytest.raises(OperationalError):
        erase_account(mara)


def test_the_only_operator_stays_until_there_is_another(operator: User, bob: User) -> None:
    assert "Nobody else runs this installation" in refusal(operator.pk)
    with pytest.raises(InvalidInput, match="Nobody else runs this installation"):
        erase_account(operator)
    assert User.objects.filter(pk=operator.pk).exists()
    person("second@example.org", "Second", is_operator=True, is_active=False)
    with pytest.raises(InvalidInput, match="Nobody else"):  # who can't log in runs nothing
        erase_account(operator)
    User.objects.filter(email="second@example.org").update(is_active=True)
    assert refusal(operator.pk) == ""
    erase_account(operator)
    assert not User.objects.filter(pk=operator.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_who_go_at_once_one_stays() -> None:
    two = [person(f"{name}@example.org", name, is_operator=True) for name in ("Olga", "Otto")]
    results = at_once(*(partial(erase_account, user) for user in two))
    assert [type(result) for result in results if result] == [InvalidInput]
    assert User.objects.filter(is_operator=True).count() == 1
