from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse

from accounts import throttle
from accounts.models import Membership, Tenant, User
from tests.accounts.conftest import PASSWORD

ABOUT = {"name": "Mara Lind", "time_zone": "Europe/Lisbon", "theme": "dark"}


def test_a_person_changes_their_name_zone_and_theme(as_mara: Client, mara: User) -> None:
    page = as_mara.get(reverse("account")).content.decode()
    assert 'value="Mara"' in page
    response = as_mara.post(reverse("account"), ABOUT)
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert response.cookies["theme"].value == "dark"
    mara.refresh_from_db()
    assert (mara.name, mara.time_zone, mara.theme) == ("Mara Lind", "Europe/Lisbon", "dark")
    page = as_mara.get(reverse("account")).content.decode()
    assert "Saved." in page
    assert '<option value="Europe/Lisbon" selected>' in page


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "\u200b"),
        ("name", "n" * 81),
        ("time_zone", "Mars/Olympus"),
        ("time_zone", ""),
        ("theme", "purple"),
    ],
)
def test_what_can_not_be_used_is_said_at_its_field(
    as_mara: Client, mara: User, field: str, value: str
) -> None:
    response = as_mara.post(reverse("account"), ABOUT | {field: value})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert list(response.context["form"].errors) == [field]
    mara.refresh_from_db()
    assert mara.name == "Mara"


def test_the_account_page_cannot_change_what_one_is(as_mara: Client, mara: User) -> None:
    as_mara.post(
        reverse("account"),
        ABOUT | {"is_operator": "1", "email": "eve@example.org", "is_active": "0"},
    )
    mara.refresh_from_db()
    assert (mara.is_operator, mara.email, mara.is_active) == (False, "mara@example.org", True)


def test_the_account_page_lists_ones_own_spaces(
    as_bob: Client, as_mara: Client, bob_in_acme: Membership
) -> None:
    page = as_bob.get(reverse("account")).content.decode()
    assert "Acme" in page
    assert reverse("tenant_leave", args=[bob_in_acme.tenant.slug]) in page


def test_markup_in_a_name_is_shown_as_text(as_mara: Client, mara: User) -> None:
    as_mara.post(reverse("account"), ABOUT | {"name": "<script>alert(1)</script>"})
    page = as_mara.get(reverse("account")).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


# The end of an account


def test_the_page_counts_first_and_deletes_nothing(as_mara: Client, mara: User) -> None:
    response = as_mara.get(reverse("account_delete"))
    assert response.status_code == HTTPStatus.OK
    counted = [(row.label, row.count) for row in response.context["counts"]]
    assert counted == [("sessions", 0), ("messages", 0), ("memories", 0)]
    assert "mara@example.org" in response.content.decode()
    assert User.objects.count() == 1


def test_with_the_address_typed_and_the_password_the_account_is_gone(
    as_mara: Client, mara: User
) -> None:
    elsewhere = Client()
    elsewhere.force_login(mara)
    data = {"confirm": " MARA@example.org ", "password": PASSWORD}
    response = as_mara.post(reverse("account_delete"), data)
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert response["Location"] == reverse("login")
    assert response["Clear-Site-Data"] == '"cache", "storage"'
    assert not User.objects.exists()
    assert not Tenant.objects.exists()
    assert "is deleted" in as_mara.get(response["Location"]).content.decode()
    assert elsewhere.get(reverse("account")).status_code == HTTPStatus.FOUND
    again = Client().post(reverse("login"), {"email": "mara@example.org", "password": PASSWORD})
    assert again.status_code == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("confirm", "password"),
    [
        ("mara@example.org", "wrong horse battery"),
        ("mara@example.org", ""),
        ("bob@example.org", PASSWORD),
        ("", PASSWORD),
    ],
)
def test_without_the_address_or_the_password_nothing_is_deleted(
    as_mara: Client, mara: User, confirm: str, password: str
) -> None:
    data = {"confirm": confirm, "password": password}
    response = as_mara.post(reverse("account_delete"), data)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert User.objects.filter(pk=mara.pk).exists()
    assert as_mara.get(reverse("account")).status_code == HTTPStatus.OK


def test_the_password_can_not_be_guessed_here(as_mara: Client, mara: User) -> None:
    wrong = {"confirm": mara.email, "password": "wrong"}
    for _number in range(throttle.CONFIRM.most):
        as_mara.post(reverse("account_delete"), wrong)
    response = as_mara.post(reverse("account_delete"), wrong | {"password": PASSWORD})
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert User.objects.filter(pk=mara.pk).exists()


def test_the_only_admin_of_others_is_told_what_to_do_first(
    as_mara: Client, mara: User, bob_in_acme: Membership
) -> None:
    page = as_mara.get(reverse("account_delete")).content.decode()
    assert "You are the only admin of Acme" in page
    data = {"confirm": mara.email, "password": PASSWORD}
    response = as_mara.post(reverse("account_delete"), data)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "Make somebody else an admin first." in response.content.decode()
    assert User.objects.filter(pk=mara.pk).exists()
