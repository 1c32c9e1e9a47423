import re
from collections.abc import Callable
from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse

from accounts.door import memberships_of
from accounts.join import change_role, new_organisation
from accounts.models import Invitation, Membership, Tenant, User
from accounts.scope import Scope, entered_tenant
from accounts.seal import unseal
from accounts.tokens import token_hash
from tests.accounts.conftest import PASSWORD, personal


def role_in(tenant: Tenant, user: User) -> str | None:
    return next((m.role for m in memberships_of(user.pk) if m.tenant == tenant), None)


def test_anybody_makes_a_shared_space_and_runs_it(as_bob: Client, bob: User) -> None:
    assert as_bob.get(reverse("tenant_new")).status_code == HTTPStatus.OK
    response = as_bob.post(reverse("tenant_new"), {"name": "Beta"})
    beta = Tenant.objects.get(name="Beta")
    assert response["Location"] == reverse("tenant_settings", args=[beta.slug])
    assert role_in(beta, bob) == "admin"
    assert "Beta" in as_bob.get(response["Location"]).content.decode()


@pytest.mark.parametrize("name", ["", "  \u200b", "n" * 81])
def test_a_space_needs_a_name(as_bob: Client, name: str) -> None:
    response = as_bob.post(reverse("tenant_new"), {"name": name})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert Tenant.objects.count() == 1


def test_an_admin_renames_the_space(as_mara: Client, acme: Tenant) -> None:
    address = reverse("tenant_settings", args=[acme.slug])
    assert as_mara.post(address, {"name": " Acme\n  Ltd "})["Location"] == address
    acme.refresh_from_db()
    assert acme.name == "Acme Ltd"
    refused = as_mara.post(address, {"name": ""})
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "The name is empty." in refused.content.decode()


# Every door of a space's settings, and how an admin uses it.
DOORS: list[tuple[str, Callable[[Membership], list[object]], dict[str, str]]] = [
    ("tenant_settings", lambda bob: [], {"name": "Taken over"}),
    ("tenant_delete", lambda bob: [], {"confirm": "Acme"}),
    ("member_role", lambda bob: [bob.user_id], {"role": "admin"}),
    ("member_remove", lambda bob: [bob.user_id], {}),
    ("invitation_create", lambda bob: [], {"role": "admin", "days": "30"}),
    ("invitation_revoke", lambda bob: [1], {}),
]


@pytest.mark.parametrize(("name", "more", "data"), DOORS, ids=[door[0] for door in DOORS])
def test_a_door_of_the_settings_is_for_admins_alone(
    bob_in_acme: Membership,
    bob: User,
    operator: User,
    name: str,
    more: Callable[[Membership], list[object]],
    data: dict[str, str],
) -> None:
    acme = bob_in_acme.tenant
    address = reverse(name, args=[acme.slug, *more(bob_in_acme)])
    for somebody in (bob, operator):  # a plain member, and one of another space
        client = Client()
        client.force_login(somebody)
        assert client.post(address, data).status_code == HTTPStatus.NOT_FOUND
    assert Client().post(address, data)["Location"].startswith(reverse("login"))
    acme.refresh_from_db()
    assert acme.name == "Acme"
    assert role_in(acme, bob) == "member"
    assert not Invitation.objects.exists()


def test_an_admin_of_another_space_reaches_nobody_here(
    as_bob: Client, bob: User, mara: User, acme: Tenant
) -> None:
    as_bob.post(reverse("tenant_new"), {"name": "Beta"})
    beta = Tenant.objects.get(name="Beta")
    for name, data in (("member_role", {"role": "admin"}), ("member_remove", {})):
        response = as_bob.post(reverse(name, args=[beta.slug, mara.pk]), data)
        assert response.status_code == HTTPStatus.NOT_FOUND
    assert role_in(acme, mara) == "admin"


def test_the_page_shows_members_and_open_invitations_of_this_space_only(
    as_mara: Client, acme: Tenant, bob_in_acme: Membership, operator: User
) -> None:
    as_mara.post(
        reverse("invitation_create", args=[acme.slug]),
        {"role": "member", "days": "7", "email": "ines@example.org"},
    )
    page = as_mara.get(reverse("tenant_settings", args=[acme.slug])).content.decode()
    assert "bob@example.org" in page
    assert "ines@example.org" in page
    assert "olga@example.org" not in page


def test_an_admin_changes_roles_and_removes(
    as_mara: Client, as_bob: Client, acme: Tenant, bob: User, bob_in_acme: Membership
) -> None:
    settings = reverse("tenant_settings", args=[acme.slug])
    role = reverse("member_role", args=[acme.slug, bob.pk])
    assert as_mara.post(role, {"role": "admin"})["Location"] == settings
    assert as_bob.get(settings).status_code == HTTPStatus.OK
    assert as_mara.post(role, {"role": "owner"}).status_code == HTTPStatus.BAD_REQUEST
    remove = reverse("member_remove", args=[acme.slug, bob.pk])
    assert as_mara.post(remove)["Location"] == settings
    assert as_bob.get(settings).status_code == HTTPStatus.NOT_FOUND
    assert as_mara.post(remove).status_code == HTTPStatus.NOT_FOUND


def test_the_last_admin_is_told_why_they_can_not_step_back(
    as_mara: Client, mara: User, acme: Tenant, bob: User, bob_in_acme: Membership
) -> None:
    for name, data in (("member_role", {"role": "member"}), ("member_remove", {})):
        response = as_mara.post(reverse(name, args=[acme.slug, mara.pk]), data)
        assert response.status_code == HTTPStatus.BAD_REQUEST
        assert "Somebody has to be the admin." in response.content.decode()
    change_role(bob_in_acme.scope, role="admin", actor=mara)
    response = as_mara.post(reverse("member_role", args=[acme.slug, mara.pk]), {"role": "member"})
    assert response["Location"] == reverse("home")
    assert role_in(acme, mara) == "member"


def test_a_member_leaves_by_themselves(
    as_bob: Client, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    leave = reverse("tenant_leave", args=[acme.slug])
    assert as_bob.post(leave)["Location"] == reverse("account")
    assert role_in(acme, bob) is None
    assert as_bob.post(leave).status_code == HTTPStatus.NOT_FOUND
    own = reverse("tenant_leave", args=[personal(bob).tenant.slug])
    as_bob.post(own)
    assert "can&#x27;t be left" in as_bob.get(reverse("account")).content.decode()
    assert len(memberships_of(bob.pk)) == 1


def test_an_admin_deletes_a_space_that_nobody_else_belongs_to(
    as_mara: Client, mara: User, bob: User, acme: Tenant, bob_in_acme: Membership
) -> None:
    address = reverse("tenant_delete", args=[acme.slug])
    response = as_mara.post(address, {"confirm": "Acme"})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "Others are still members." in response.content.decode()
    as_mara.post(reverse("member_remove", args=[acme.slug, bob.pk]))
    assert as_mara.post(address, {"confirm": "acme"}).status_code == HTTPStatus.BAD_REQUEST
    assert as_mara.post(address, {"confirm": "Acme"})["Location"] == reverse("account")
    assert not Tenant.objects.filter(pk=acme.pk).exists()
    assert as_mara.get(reverse("home"))["Location"].endswith(f"{personal(mara).tenant.slug}/")


def test_a_personal_space_can_not_be_deleted_or_opened_to_others(
    as_mara: Client, mara: User
) -> None:
    own = personal(mara).tenant
    page = as_mara.get(reverse("tenant_settings", args=[own.slug]))
    assert page.context["may_invite"] is False
    for name, data in (
        ("tenant_delete", {"confirm": own.name}),
        ("invitation_create", {"role": "member", "days": "7"}),
    ):
        response = as_mara.post(reverse(name, args=[own.slug]), data)
        assert response.status_code == HTTPStatus.BAD_REQUEST
    assert Tenant.objects.filter(pk=own.pk).exists()
    assert not Invitation.objects.exists()


# Invitations


def make_link(client: Client, acme: Tenant, **data: str) -> str:
    """Return the path of a new invitation, as the page shows it once."""
    response = client.post(
        reverse("invitation_create", args=[acme.slug]), {"role": "member", "days": "7"} | data
    )
    assert response.status_code == HTTPStatus.SEE_OTHER
    response = client.get(response["Location"])
    [link] = re.findall(r"http://testserver(/invite/[\w-]+/)", response.content.decode())
    return str(link)


def test_a_link_is_shown_once(as_mara: Client, acme: Tenant) -> None:
    link = make_link(as_mara, acme)
    page = as_mara.get(reverse("tenant_settings", args=[acme.slug])).content.decode()
    assert link not in page
    assert Invitation.objects.count() == 1


def test_a_link_that_waits_to_be_shown_is_sealed_and_shows_in_its_own_space_only(
    as_mara: Client, mara: User, acme: Tenant
) -> None:
    beta = new_organisation(mara, name="Beta").tenant
    as_mara.post(reverse("invitation_create", args=[acme.slug]), {"role": "member", "days": "7"})
    [invitation] = Invitation.objects.all()
    kept = unseal(as_mara.session["new_invitation"]).split()[1]
    assert token_hash(kept) == invitation.token_hash
    assert kept not in str(dict(as_mara.session))
    page = as_mara.get(reverse("tenant_settings", args=[beta.slug])).content.decode()
    assert kept not in page


@pytest.mark.parametrize("data", [{"days": "365"}, {"days": ""}, {"role": "owner"}])
def test_a_link_with_a_made_up_time_or_role_is_not_made(
    as_mara: Client, acme: Tenant, data: dict[str, str]
) -> None:
    response = as_mara.post(
        reverse("invitation_create", args=[acme.slug]), {"role": "member", "days": "7"} | data
    )
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert not Invitation.objects.exists()


def test_somebody_who_is_logged_in_joins_with_one_click(
    as_mara: Client, as_bob: Client, acme: Tenant, bob: User
) -> None:
    link = make_link(as_mara, acme)
    assert "Join Acme" in as_bob.get(link).content.decode()
    assert role_in(acme, bob) is None  # looking is not accepting
    response = as_bob.post(link)
    assert response["Location"] == reverse("new_session", args=[acme.slug])
    assert role_in(acme, bob) == "member"


def test_somebody_new_signs_up_on_the_way(client: Client, as_mara: Client, acme: Tenant) -> None:
    link = make_link(as_mara, acme)
    page = client.get(link).content.decode()
    signup = f"{reverse('signup')}?next={link}"
    assert signup in page
    assert "You are invited to Acme." in client.get(signup).content.decode()
    response = client.post(
        reverse("signup"),
        {"email": "ines@example.org", "name": "Ines", "password": PASSWORD, "next": link},
    )
    assert response["Location"] == link
    client.post(link)
    ines = User.objects.get(email="ines@example.org")
    assert role_in(acme, ines) == "member"
    assert personal(ines).tenant.personal


def test_a_stranger_is_asked_who_they_are_before_a_link_is_used_up(
    client: Client, as_mara: Client, acme: Tenant
) -> None:
    link = make_link(as_mara, acme)
    assert "Log in and join" in client.post(link).content.decode()
    assert Invitation.objects.open().count() == 1


def test_a_link_that_does_not_work_says_so(as_mara: Client, as_bob: Client, acme: Tenant) -> None:
    revoked, used = make_link(as_mara, acme), make_link(as_mara, acme)
    for kept in Invitation.objects.order_by("pk")[:1]:
        as_mara.post(reverse("invitation_revoke", args=[acme.slug, kept.pk]))
    as_bob.post(used)
    for link, status in (
        (revoked, HTTPStatus.GONE),
        (used, HTTPStatus.GONE),
        ("/invite/nonsense/", HTTPStatus.NOT_FOUND),
    ):
        for response in (as_bob.get(link), as_bob.post(link)):
            assert response.status_code == status
            assert "This invitation does not work" in response.content.decode()


def test_a_link_does_not_tell_a_stranger_of_the_space_once_it_is_closed(
    client: Client, as_mara: Client, acme: Tenant
) -> None:
    link = make_link(as_mara, acme)
    Invitation.objects.update(expires_at="2000-01-01T00:00Z")
    assert "Acme" not in client.get(link).content.decode()


def test_the_audit_names_what_was_done_and_holds_no_link(
    as_mara: Client, as_bob: Client, acme: Tenant, bob: User
) -> None:
    from accounts.models import AuditEntry

    link = make_link(as_mara, acme)
    as_bob.post(link)
    as_mara.post(reverse("member_remove", args=[acme.slug, bob.pk]))
    with entered_tenant(acme.pk):
        entries = list(AuditEntry.objects.order_by("pk"))
    assert [entry.action for entry in entries] == [
        "tenant.made",
        "invitation.made_member",
        "invitation.accepted",
        "member.removed",
    ]
    assert all(entry.ip == "127.0.0.1" for entry in entries[1:])
    token = link.split("/")[2]
    assert not any(token in str(vars(entry)) for entry in entries)


def test_a_person_who_was_removed_keeps_what_is_elsewhere(
    as_mara: Client, as_bob: Client, acme: Tenant, bob: User, bob_in_acme: Membership
) -> None:
    as_mara.post(reverse("member_remove", args=[acme.slug, bob.pk]))
    assert as_bob.get(reverse("account")).status_code == HTTPStatus.OK
    assert [m.scope for m in memberships_of(bob.pk)] == [Scope(personal(bob).tenant_id, bob.pk)]


@pytest.mark.parametrize("nobody", [0, 2**63, 10**30])
@pytest.mark.parametrize("name", ["member_role", "member_remove", "invitation_revoke"])
def test_what_can_be_nobodys_id_is_not_there(
    as_mara: Client, acme: Tenant, name: str, nobody: int
) -> None:
    address = reverse(name, args=[acme.slug, nobody])
    assert as_mara.post(address, {"role": "admin"}).status_code == HTTPStatus.NOT_FOUND
