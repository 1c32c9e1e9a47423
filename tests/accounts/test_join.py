from typing import Any

import pytest
from django.db import IntegrityError
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.door import memberships_of
from accounts.errors import InvalidInput, NotFound
from accounts.invite import invite, look
from accounts.join import (
    AddressTaken,
    change_person,
    change_role,
    disable,
    join,
    leave,
    new_organisation,
    new_person,
    new_tenant,
    rename_tenant,
)
from accounts.models import AuditEntry, Departure, Membership, Tenant, User
from accounts.scope import Scope, entered_person, entered_tenant
from tests.accounts.conftest import at_once, personal


def roles(tenant: Tenant) -> dict[str, str]:
    with entered_tenant(tenant.pk):
        members = Membership.objects.select_related("user").filter(tenant=tenant)
        return {membership.user.name: membership.role for membership in members}


def actions(tenant: Tenant) -> list[str]:
    with entered_tenant(tenant.pk):
        return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_a_person_belongs_to_a_space_of_their_own_only(mara: User) -> None:
    [membership] = memberships_of(mara.pk)
    assert membership.is_admin
    assert membership.tenant.personal
    assert membership.tenant.name == "Mara"


def test_addresses_of_spaces_can_not_be_guessed_from_their_names(db: None) -> None:
    one, two = new_tenant(name="Acme GmbH & Co."), new_tenant(name="Acme GmbH & Co.")
    assert one.slug != two.slug
    assert one.slug.startswith("acme-gmbh-co-")
    assert new_tenant(name="日本").slug.startswith("space-")
    assert len(new_tenant(name="n" * 80).slug) <= 40


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "n" * 81, "\x00"])
def test_blank_and_endless_names_are_refused(mara: User, name: str) -> None:
    with pytest.raises(InvalidInput):
        new_organisation(mara, name=name)
    with pytest.raises(InvalidInput):
        rename_tenant(personal(mara).tenant, name=name, actor=mara)
    assert len(memberships_of(mara.pk)) == 1


def test_an_address_is_taken_in_any_case(mara: User) -> None:
    with pytest.raises(AddressTaken):
        new_person(email="MARA@EXAMPLE.ORG", password=None, name="Other")
    assert User.objects.count() == 1


def test_another_fault_of_the_store_is_not_taken_for_a_taken_address(mara: User) -> None:
    with pytest.raises(IntegrityError):
        new_person(email="ines@example.org", password=None, name="Ines", pk=mara.pk)


@pytest.mark.django_db(transaction=True)
def test_two_who_sign_up_with_one_address_at_once_become_one_person() -> None:
    results = at_once(
        *[lambda: new_person(email="mara@example.org", password=None, name="Mara")] * 4
    )
    assert sum(isinstance(result, User) for result in results) == 1
    assert sum(isinstance(result, AddressTaken) for result in results) == 3
    assert Tenant.objects.count() == 1


def test_a_personal_space_takes_its_persons_new_name_unless_it_had_another(mara: User) -> None:
    change_person(mara, name="Mara Lind", time_zone="UTC", theme="dark")
    assert personal(mara).tenant.name == "Mara Lind"
    rename_tenant(personal(mara).tenant, name="My desk", actor=mara)
    change_person(mara, name="Mara", time_zone="UTC", theme="dark")
    assert personal(mara).tenant.name == "My desk"


def test_who_makes_a_shared_space_is_its_admin(mara: User) -> None:
    made = new_organisation(mara, name="Acme", ip="203.0.113.5")
    assert made.is_admin
    assert not made.tenant.personal
    with entered_tenant(made.tenant_id):
        entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor_label, entry.ip) == ("tenant.made", "Mara", "203.0.113.5")


def test_joining_twice_is_once_and_changes_no_role(mara: User, acme: Tenant) -> None:
    assert join(acme, mara).is_admin
    assert roles(acme) == {"Mara": "admin"}


def test_an_admin_makes_another_and_may_then_step_back(
    mara: User,
    bob: User,
    acme: Tenant,
    bob_in_acme: Membership,
    ended: list[dict[str, Any]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        change_role(bob_in_acme.scope, role="admin", actor=mara)
    assert ended == [{"user_id": bob.pk, "tenant_id": acme.pk, "session_key": None}]
    change_role(Scope(acme.pk, mara.pk), role="member", actor=mara)
    assert roles(acme) == {"Mara": "member", "Bob": "admin"}
    assert actions(acme)[1:] == ["member.made_admin", "member.made_member"]


def test_the_last_admin_stays_one(mara: User, acme: Tenant, bob_in_acme: Membership) -> None:
    mine = Scope(acme.pk, mara.pk)
    with pytest.raises(InvalidInput, match="has to be the admin"):
        change_role(mine, role="member", actor=mara)
    with pytest.raises(InvalidInput, match="has to be the admin"):
        leave(mine, actor=mara)
    assert roles(acme) == {"Mara": "admin", "Bob": "member"}


def test_an_admin_who_is_disabled_does_not_count(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    change_role(bob_in_acme.scope, role="admin", actor=mara)
    disable(bob)
    with pytest.raises(InvalidInput, match="has to be the admin"):
        leave(Scope(acme.pk, mara.pk), actor=mara)


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_step_back_at_once_do_not_leave_a_space_without_any(
    mara: User, bob: User
) -> None:
    acme = new_organisation(mara, name="Acme").tenant
    join(acme, bob, role="admin")
    one, two = Scope(acme.pk, mara.pk), Scope(acme.pk, bob.pk)
    results = at_once(
        lambda: leave(one, actor=mara),
        lambda: change_role(two, role="member", actor=bob),
    )
    assert sum(isinstance(result, InvalidInput) for result in results) == 1
    assert "admin" in roles(acme).values()


def test_leaving_ends_the_membership_and_remembers_that_rows_may_remain(
    mara: User,
    bob: User,
    acme: Tenant,
    bob_in_acme: Membership,
    ended: list[dict[str, Any]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        leave(bob_in_acme.scope, actor=bob)
    assert roles(acme) == {"Mara": "admin"}
    assert ended == [{"user_id": bob.pk, "tenant_id": acme.pk, "session_key": None}]
    assert actions(acme)[-1] == "member.left"
    with entered_person(bob.pk):
        assert Departure.objects.get().scope == bob_in_acme.scope
    with entered_person(mara.pk):
        assert not Departure.objects.exists()
    join(acme, bob)
    with entered_person(bob.pk):
        assert not Departure.objects.exists()


def test_removing_says_who_did_it(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    leave(bob_in_acme.scope, actor=mara, ip="203.0.113.5")
    with entered_tenant(acme.pk):
        entry = AuditEntry.objects.order_by("-pk")[0]
    assert (entry.action, entry.actor_id, entry.subject_id, entry.ip) == (
        "member.removed",
        mara.pk,
        bob.pk,
        "203.0.113.5",
    )


def test_who_is_no_member_can_neither_be_removed_nor_raised(
    mara: User, bob: User, acme: Tenant
) -> None:
    for scope in (Scope(acme.pk, bob.pk), Scope(acme.pk + 1_000, mara.pk)):
        with pytest.raises(NotFound):
            leave(scope, actor=mara)
        with pytest.raises(NotFound):
            change_role(scope, role="admin", actor=mara)


def test_a_personal_space_can_not_be_left(mara: User) -> None:
    with pytest.raises(InvalidInput, match="can't be left"):
        leave(personal(mara).scope, actor=mara)
    assert len(memberships_of(mara.pk)) == 1


def test_there_are_two_roles(mara: User, bob_in_acme: Membership) -> None:
    with pytest.raises(InvalidInput):
        change_role(bob_in_acme.scope, role="owner", actor=mara)


@pytest.mark.parametrize("end", ["leave", "step back"])
def test_an_admin_who_goes_can_not_come_back_by_a_link_of_their_own(
    mara: User, bob: User, acme: Tenant, bob_in_acme: Membership, end: str
) -> None:
    change_role(bob_in_acme.scope, role="admin", actor=mara)
    bobs = invite(acme, actor=bob, role="admin", days=30)
    maras = invite(acme, actor=mara, role="member", days=30)
    if end == "leave":
        leave(bob_in_acme.scope, actor=mara)
    else:
        change_role(bob_in_acme.scope, role="member", actor=mara)
    assert look(bobs).state == "expired"
    assert look(maras).state == "ok"
