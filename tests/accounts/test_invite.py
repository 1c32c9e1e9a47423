from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import invite as invitations
from accounts.door import memberships_of
from accounts.errors import InvalidInput, NotFound
from accounts.invite import accept, invite, look, revoke
from accounts.join import change_role, disable, leave, new_organisation, new_person
from accounts.models import AuditEntry, Invitation, Membership, Tenant, User
from accounts.scope import entered_tenant
from tests.accounts.conftest import at_once, personal


@pytest.fixture
def token(acme: Tenant, mara: User) -> str:
    return invite(acme, actor=mara, role="member", days=7)


def members(tenant: Tenant) -> int:
    with entered_tenant(tenant.pk):
        return Membership.objects.filter(tenant=tenant).count()


def actions(tenant: Tenant) -> list[str]:
    with entered_tenant(tenant.pk):
        return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_a_link_lets_one_person_in_with_its_role(acme: Tenant, mara: User, bob: User) -> None:
    token = invite(acme, actor=mara, role="admin", days=1, email="Bob@Example.org")
    membership = accept(token, user=bob)
    assert (membership.tenant, membership.role) == (acme, "admin")
    assert look(token).state == "used"
    kept = Invitation.objects.get()
    assert kept.accepted_by == bob
    assert kept.email == "Bob@example.org"
    assert actions(acme)[1:] == ["invitation.made_admin", "invitation.accepted"]


def test_the_store_does_not_know_the_link(token: str) -> None:
    kept = Invitation.objects.get()
    assert token not in str(vars(kept))
    assert len(kept.token_hash) == 64


def test_a_link_works_once(token: str, acme: Tenant, bob: User, operator: User) -> None:
    accept(token, user=bob)
    with pytest.raises(NotFound):
        accept(token, user=operator)
    assert members(acme) == 2


@pytest.mark.parametrize(("days", "works"), [(1, 1), (7, 7), (30, 30)])
def test_a_link_works_until_it_expires(
    acme: Tenant, mara: User, bob: User, days: int, works: int
) -> None:
    token = invite(acme, actor=mara, role="member", days=days)
    left = Invitation.objects.get().expires_at - timezone.now()
    assert timedelta(days=works, minutes=-1) < left <= timedelta(days=works)
    Invitation.objects.update(expires_at=timezone.now())
    assert look(token).state == "expired"
    with pytest.raises(NotFound):
        accept(token, user=bob)
    assert members(acme) == 1


def test_a_revoked_link_lets_nobody_in(token: str, acme: Tenant, mara: User, bob: User) -> None:
    revoke(acme, invitation_id=Invitation.objects.get().pk, actor=mara)
    assert look(token).state == "expired"
    with pytest.raises(NotFound):
        accept(token, user=bob)
    assert actions(acme)[-1] == "invitation.revoked"


def test_links_of_others_and_used_ones_can_not_be_revoked(
    token: str, acme: Tenant, mara: User, bob: User
) -> None:
    other = new_organisation(bob, name="Beta").tenant
    with pytest.raises(NotFound):
        revoke(other, invitation_id=Invitation.objects.get().pk, actor=bob)
    assert look(token).state == "ok"
    accept(token, user=bob)
    with pytest.raises(NotFound):
        revoke(acme, invitation_id=Invitation.objects.get().pk, actor=mara)


@pytest.mark.parametrize("token", ["", "nonsense", "x" * 500])
def test_an_unknown_link_leads_nowhere(bob: User, token: str) -> None:
    assert look(token).state == "unknown"
    with pytest.raises(NotFound):
        accept(token, user=bob)


def test_a_member_keeps_the_link_open_for_another(
    token: str, acme: Tenant, mara: User, bob: User
) -> None:
    assert accept(token, user=mara).is_admin
    assert look(token).state == "ok"
    accept(token, user=bob)
    assert members(acme) == 2


def test_a_member_becomes_an_admin_by_a_link_for_one(
    token: str, acme: Tenant, mara: User, bob: User
) -> None:
    accept(token, user=bob)
    link = invite(acme, actor=mara, role="admin", days=1)
    assert accept(link, user=bob).is_admin
    assert look(link).state == "used"
    assert [m.role for m in memberships_of(bob.pk) if m.tenant == acme] == ["admin"]


@pytest.mark.parametrize(
    ("role", "days", "email"), [("owner", 7, ""), ("member", 365, ""), ("member", 7, "nonsense")]
)
def test_a_link_is_for_a_known_role_and_time(
    acme: Tenant, mara: User, role: str, days: int, email: str
) -> None:
    with pytest.raises(InvalidInput):
        invite(acme, actor=mara, role=role, days=days, email=email)
    assert not Invitation.objects.exists()


def test_nobody_is_invited_into_a_personal_space(mara: User) -> None:
    with pytest.raises(InvalidInput):
        invite(personal(mara).tenant, actor=mara, role="member", days=7)


def test_a_space_has_not_endless_open_links(
    acme: Tenant, mara: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invitations, "MOST_OPEN", 1)
    invite(acme, actor=mara, role="member", days=7)
    with pytest.raises(InvalidInput):
        invite(acme, actor=mara, role="member", days=7)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_follow_one_link_at_once_one_gets_in(mara: User) -> None:
    acme = new_organisation(mara, name="Acme").tenant
    link = invite(acme, actor=mara, role="member", days=7)
    people = [
        new_person(email=f"p{number}@example.org", password=None, name=f"P{number}")
        for number in range(5)
    ]
    results = at_once(*[lambda person=person: accept(link, user=person) for person in people])
    assert sum(isinstance(result, Membership) for result in results) == 1
    assert sum(isinstance(result, NotFound) for result in results) == 4
    assert members(acme) == 2


@pytest.mark.parametrize("role", ["member", ""])
def test_who_is_no_admin_any_more_makes_no_link(
    bob_in_acme: Membership, bob: User, mara: User, role: str
) -> None:
    """Their request passed the door, and then waited for the one that removed them."""
    change_role(bob_in_acme.scope, role="admin", actor=mara)
    if role:
        change_role(bob_in_acme.scope, role=role, actor=mara)
    else:
        leave(bob_in_acme.scope, actor=mara)
    with pytest.raises(NotFound):
        invite(bob_in_acme.tenant, actor=bob, role="admin", days=7)
    assert not Invitation.objects.exists()


def test_who_is_disabled_does_not_come_back_by_a_link_of_their_own(
    bob_in_acme: Membership, bob: User, mara: User, token: str
) -> None:
    change_role(bob_in_acme.scope, role="admin", actor=mara)
    own = invite(bob_in_acme.tenant, actor=bob, role="admin", days=7)
    disable(bob)
    assert look(own).state == "expired"
    assert look(token).state == "ok"
