"""The second wall: what Postgres itself refuses, whatever the code asks for."""

from uuid import UUID

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from accounts.join import new_person
from accounts.models import AuditEntry, Membership, User
from accounts.owned import OwnedModel
from accounts.scope import Scope, entered, entered_person, entered_tenant, reviewing
from accounts.wall import wall_faults
from chatapp.models import ChatSession, Message
from memory.models import Memory

pytestmark = pytest.mark.django_db

# Tables without a person's content: why each needs no row of its own wall (docs/security.md).
WITHOUT_A_WALL = {
    "accounts_attempt": "keyed hashes of what was tried",
    "accounts_invitation": "hashed tokens; read by whoever holds the link",
    "accounts_operatorlink": "hashed tokens",
    "accounts_tenant": "names and addresses of tenants; opened by membership",
    "accounts_user": "read at login, before anybody is known",
    "chatapp_replyticket": "ids and due times, for recovery",
    "django_content_type": "Django's",
    "django_migrations": "Django's",
    "django_session": "login sessions, found by their secret key",
    "auth_group": "Django's; unused",
    "auth_group_permissions": "Django's; unused",
    "auth_permission": "Django's; unused",
    "memory_jobticket": "ids and due times, for the sweep",
    "memory_modelsettings": "the operator's, no person's",
}


def member_scope(user: User) -> Scope:
    with entered_person(user.pk):
        return Membership.objects.get(user=user).scope


@pytest.fixture
def mara() -> Scope:
    return member_scope(new_person(email="mara@example.org", password=None, name="Mara"))


@pytest.fixture
def bob() -> Scope:
    return member_scope(new_person(email="bob@example.org", password=None, name="Bob"))


def owned_models() -> list[type[models.Model]]:
    return [model for model in apps.get_models() if issubclass(model, OwnedModel)]


def keep(scope: Scope, text: str) -> Memory:
    with entered(scope):
        return Memory.unscoped.create(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            kind=Memory.Kind.NOTE,
            origin=Memory.Origin.PROFILE,
            text=text,
            key=text,
        )


def test_every_table_is_behind_a_wall_or_named_as_an_exception() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "select relname, relrowsecurity and relforcerowsecurity from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = 'public' and relkind in ('r', 'p', 'v', 'm')"
        )
        walls = dict(cursor.fetchall())
    assert {table for table, walled in walls.items() if not walled} == set(WITHOUT_A_WALL)


@pytest.mark.parametrize("model", owned_models(), ids=lambda model: model.__name__)
def test_no_row_of_a_person_can_be_without_its_owner(model: type[models.Model]) -> None:
    """A18: tenant and user are NOT NULL in every table that holds a person's rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select column_name, is_nullable from information_schema.columns"
            " where table_schema = 'public' and table_name = %s"
            " and column_name in ('tenant_id', 'user_id') order by 1",
            [model._meta.db_table],
        )
        assert cursor.fetchall() == [("tenant_id", "NO"), ("user_id", "NO")]


@pytest.mark.parametrize("model", owned_models(), ids=lambda model: model.__name__)
def test_an_owned_table_has_both_policies_and_no_others(model: type[models.Model]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "select policyname, roles::text[], cmd, qual, with_check from pg_policies"
            " where tablename = %s order by 1",
            [model._meta.db_table],
        )
        policies = {row[0]: row[1:] for row in cursor.fetchall()}
    assert set(policies) == {"app", "review"}
    roles, command, using, check = policies["app"]
    assert (roles, command) == (["recollect_app"], "ALL")
    assert "app.tenant_id" in using
    assert "app.user_id" in using
    assert check == using
    assert policies["review"][:2] == (["recollect_review"], "SELECT")


def test_the_application_role_is_what_it_must_be() -> None:
    assert wall_faults() == []


def test_without_a_scope_there_are_no_rows(mara: Scope) -> None:
    keep(mara, "Mara is vegetarian.")
    assert not Memory.unscoped.exists()


def test_inside_a_scope_a_forgotten_filter_shows_only_ones_own(mara: Scope, bob: Scope) -> None:
    """A25: a query that forgot its owner: outside a scope 0 rows, inside one only one's own."""
    keep(mara, "Mara is vegetarian.")
    keep(bob, "Bob eats everything.")
    with entered(bob):
        assert [memory.text for memory in Memory.unscoped.all()] == ["Bob eats everything."]


def test_the_same_person_in_another_tenant_is_somebody_else(mara: Scope, bob: Scope) -> None:
    keep(mara, "Mara is vegetarian.")
    with entered(Scope(bob.tenant_id, mara.user_id)):
        assert not Memory.unscoped.exists()


def test_a_row_can_be_written_for_nobody_else(mara: Scope, bob: Scope) -> None:
    with pytest.raises(DatabaseError, match="row-level security"), entered(bob):
        Memory.unscoped.create(
            tenant_id=mara.tenant_id,
            user_id=mara.user_id,
            kind=Memory.Kind.NOTE,
            origin=Memory.Origin.PROFILE,
            text="Forged.",
            key="forged",
        )


def test_a_row_can_be_handed_to_nobody_else(mara: Scope, bob: Scope) -> None:
    kept = keep(mara, "Mara is vegetarian.")
    with pytest.raises(DatabaseError, match="row-level security"), entered(mara):
        Memory.unscoped.filter(pk=kept.pk).update(user_id=bob.user_id)


def test_a_message_can_not_be_hung_under_somebody_elses_session(mara: Scope, bob: Scope) -> None:
    with entered(mara):
        session = ChatSession.unscoped.create(tenant_id=mara.tenant_id, user_id=mara.user_id)
    with pytest.raises(DatabaseError, match="session_id_owner"):
        hang_under(session.pk, bob)


def hang_under(session_id: UUID, scope: Scope) -> None:
    with entered(scope), connection.cursor() as cursor:
        Message.unscoped.create(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            session_id=session_id,
            position=1,
            role=Message.Role.USER,
            text="hello",
        )
        cursor.execute("set constraints all immediate")


def test_leaving_an_inner_scope_puts_the_outer_one_back(mara: Scope, bob: Scope) -> None:
    keep(mara, "Mara is vegetarian.")
    with entered(mara):
        with entered(bob):
            assert not Memory.unscoped.exists()
        assert Memory.unscoped.count() == 1
        with pytest.raises(RuntimeError), entered(bob):
            raise RuntimeError
        assert Memory.unscoped.count() == 1


def test_the_review_role_reads_its_tenant_and_writes_nothing(mara: Scope, bob: Scope) -> None:
    kept = keep(mara, "Mara is vegetarian.")
    with reviewing(bob.tenant_id):
        assert not Memory.unscoped.exists()
    with reviewing(mara.tenant_id):
        assert Memory.unscoped.count() == 1
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            Memory.unscoped.filter(pk=kept.pk).update(text="Changed.")
    assert wall_faults() == []


def test_the_audit_is_only_added_to(mara: Scope) -> None:
    with entered_tenant(mara.tenant_id):
        entry = AuditEntry.objects.create(tenant_id=mara.tenant_id, action="looked")
        for change in (
            "update accounts_auditentry set action = 'x'",
            "delete from accounts_auditentry",
        ):
            with (
                pytest.raises(DatabaseError, match="permission denied"),
                transaction.atomic(),
                connection.cursor() as cursor,
            ):
                cursor.execute(change)
        assert AuditEntry.objects.get().pk == entry.pk
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    "command",
    [
        "truncate memory_memory",
        "alter table memory_memory disable row level security",
        "drop table memory_memory",
        "create table stolen (id int)",
        "set role recollect_owner",
    ],
)
def test_the_application_may_not_touch_the_house_itself(command: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(command)
