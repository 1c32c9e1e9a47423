"""A new address: asked for with the password, proved by a link, told to the old one."""

import re
from http import HTTPStatus

import pytest
from django.core import signing
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse

from accounts import address, throttle
from accounts.join import AddressTaken
from accounts.models import User
from tests.accounts.conftest import PASSWORD, person

ASKED = {"email": "mara@new.example", "password": PASSWORD}


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> list[EmailMessage]:
    """The mail that would be sent, in place of the thread that sends it."""
    sent: list[EmailMessage] = []
    monkeypatch.setattr("accounts.address.send_later", sent.append)
    return sent


def asked(client: Client, post: list[EmailMessage]) -> str:
    """Ask for the new address; return the path of the link in the mail."""
    response = client.post(reverse("email_change"), ASKED)
    assert response.status_code == HTTPStatus.SEE_OTHER
    found = re.search(r"http://testserver(\S+)", str(post[-1].body))
    assert found
    return found[1]


def email_of(user: User) -> str:
    user.refresh_from_db()
    return user.email


def test_the_link_in_a_mail_to_the_new_address_changes_it_and_the_old_one_is_told(
    as_mara: Client, mara: User, post: list[EmailMessage], client: Client
) -> None:
    link = asked(as_mara, post)
    assert post[0].to == ["mara@new.example"]
    assert email_of(mara) == "mara@example.org"
    shown = as_mara.get(link)  # as a program that looks for viruses does
    assert "mara@new.example" in shown.content.decode()
    assert email_of(mara) == "mara@example.org"
    done = as_mara.post(link)
    assert done["Location"] == reverse("account")
    assert email_of(mara) == "mara@new.example"
    assert post[1].to == ["mara@example.org"]
    assert "mara@new.example" in str(post[1].body)
    assert as_mara.get(reverse("account")).status_code == HTTPStatus.OK
    login = client.post(reverse("login"), ASKED)
    assert login.status_code == HTTPStatus.SEE_OTHER
    assert as_mara.post(link).status_code == HTTPStatus.NOT_FOUND  # it works once


def test_without_the_password_no_link_is_sent(as_mara: Client, post: list[EmailMessage]) -> None:
    for password in ("", "wrong horse battery"):
        response = as_mara.post(reverse("email_change"), ASKED | {"password": password})
        assert response.status_code == HTTPStatus.BAD_REQUEST
        assert "password" in response.context["form"].errors
    assert post == []


@pytest.mark.parametrize("email", ["mara", "", "mara@example.org", "BOB@example.org"])
def test_what_is_no_address_or_in_use_is_said_at_the_field(
    as_mara: Client, mara: User, bob: User, post: list[EmailMessage], email: str
) -> None:
    response = as_mara.post(reverse("email_change"), ASKED | {"email": email})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "email" in response.context["form"].errors
    assert post == []


def test_one_may_write_ones_own_address_in_other_letters(
    as_mara: Client, mara: User, post: list[EmailMessage]
) -> None:
    as_mara.post(reverse("email_change"), ASKED | {"email": "Mara@example.org"})
    found = re.search(r"http://testserver(\S+)", str(post[-1].body))
    assert found
    as_mara.post(found[1])
    assert email_of(mara) == "Mara@example.org"


def test_somebody_elses_link_opens_nothing(
    as_mara: Client, as_bob: Client, mara: User, bob: User, post: list[EmailMessage], client: Client
) -> None:
    link = asked(as_mara, post)
    assert as_bob.get(link).status_code == HTTPStatus.NOT_FOUND
    assert as_bob.post(link).status_code == HTTPStatus.NOT_FOUND
    assert client.post(link)["Location"].startswith(reverse("login"))
    assert (email_of(mara), email_of(bob)) == ("mara@example.org", "bob@example.org")


@pytest.mark.parametrize("salt", [None, "", "another"])
def test_a_forged_link_opens_nothing(as_mara: Client, salt: str | None) -> None:
    token = "a:b:c" if salt is None else signing.dumps({"user": 1}, salt=salt)
    response = as_mara.get(reverse("email_confirm", args=[token]))
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "This link does not work" in response.content.decode()


def test_a_link_is_void_after_four_hours_and_after_a_new_password(
    as_mara: Client, mara: User, post: list[EmailMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = asked(as_mara, post)
    with monkeypatch.context() as later:
        later.setattr(address, "LIFE", -1)
        assert as_mara.post(link).status_code == HTTPStatus.NOT_FOUND
    mara.set_password("staple battery horse")
    mara.save()
    as_mara.force_login(mara)
    assert as_mara.post(link).status_code == HTTPStatus.NOT_FOUND
    assert email_of(mara) == "mara@example.org"


def test_an_address_that_somebody_got_meanwhile_is_not_taken_from_them(
    as_mara: Client, mara: User, post: list[EmailMessage]
) -> None:
    link = asked(as_mara, post)
    other = person("MARA@new.example", "Other")
    response = as_mara.post(link)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "already an account" in response.content.decode()
    assert email_of(mara) == "mara@example.org"
    assert len(post) == 1
    with pytest.raises(AddressTaken):
        address.ask(mara, email=other.email, site=address.Site("testserver", secure=False))


def test_nobody_is_flooded_with_links(as_mara: Client, post: list[EmailMessage]) -> None:
    for _number in range(throttle.NEW_ADDRESS.most):
        asked(as_mara, post)
    response = as_mara.post(reverse("email_change"), ASKED | {"email": "other@new.example"})
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert len(post) == throttle.NEW_ADDRESS.most


def test_links_in_a_mail_lead_back_the_way_that_was_taken() -> None:
    assert address.Site("chat.example", secure=True).url("/x/") == "https://chat.example/x/"
