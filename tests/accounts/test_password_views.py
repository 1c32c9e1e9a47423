import re
from http import HTTPStatus
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts import throttle
from accounts.door import still_member
from accounts.join import disable
from accounts.models import User
from tests.accounts.conftest import PASSWORD, personal

NEW = "staple battery horse"
CHANGE = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> list[EmailMessage]:
    """The mail that would be sent, in place of the thread that sends it."""
    sent: list[EmailMessage] = []
    monkeypatch.setattr("accounts.reset.send_later", sent.append)
    return sent


def link_in(message: EmailMessage) -> str:
    found = re.search(r"http://testserver(\S+)", str(message.body))
    assert found
    return found.group(1)


def follow(client: Client, link: str) -> str:
    """Open the link as a browser does; return the address of the form behind it."""
    response = client.get(link)
    assert response.status_code == HTTPStatus.FOUND
    assert response["Location"].endswith("/set-password/")
    return str(response["Location"])


# A forgotten password


def test_a_forgotten_password_is_set_anew_by_the_link_in_a_mail(
    client: Client,
    mara: User,
    post: list[EmailMessage],
    ended: list[dict[str, Any]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    elsewhere = Client()
    elsewhere.force_login(mara)
    response = client.post(reverse("password_reset"), {"email": "MARA@example.org"})
    assert response["Location"] == reverse("password_reset_done")
    assert client.get(response["Location"]).status_code == HTTPStatus.OK
    [message] = post
    assert message.to == ["mara@example.org"]
    assert message.subject == "Set a new password for Recollect"
    form = follow(client, link_in(message))
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(form, {"new_password1": NEW, "new_password2": NEW})
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert client.get(response["Location"]).status_code == HTTPStatus.OK
    assert ended == [{"user_id": mara.pk, "tenant_id": None, "session_key": None}]
    assert elsewhere.get(reverse("account")).status_code == HTTPStatus.FOUND
    login = client.post(reverse("login"), {"email": mara.email, "password": NEW})
    assert login.status_code == HTTPStatus.SEE_OTHER


def test_a_new_password_by_mail_ends_the_waiting_of_who_tried_too_often(
    client: Client, mara: User, post: list[EmailMessage]
) -> None:
    elsewhere = Client(REMOTE_ADDR="203.0.113.5")
    wrong = {"email": mara.email, "password": "wrong"}
    for _number in range(throttle.LOGIN_ACCOUNT.most):
        client.post(reverse("login"), wrong)
        elsewhere.post(reverse("login"), wrong)
    right = {"email": mara.email, "password": PASSWORD}
    for browser in (client, elsewhere):
        waits = browser.post(reverse("login"), right)
        assert waits.status_code == HTTPStatus.TOO_MANY_REQUESTS
    client.post(reverse("password_reset"), {"email": mara.email})
    client.post(follow(client, link_in(post[0])), {"new_password1": NEW, "new_password2": NEW})
    for browser in (client, elsewhere):
        login = browser.post(reverse("login"), {"email": mara.email, "password": NEW})
        assert login.status_code == HTTPStatus.SEE_OTHER


def test_a_link_works_once(client: Client, mara: User, post: list[EmailMessage]) -> None:
    client.post(reverse("password_reset"), {"email": mara.email})
    link = link_in(post[0])
    client.post(follow(client, link), {"new_password1": NEW, "new_password2": NEW})
    page = Client().get(link)
    assert page.status_code == HTTPStatus.OK
    assert "This link does not work" in page.content.decode()


def test_a_weak_new_password_is_refused(
    client: Client, mara: User, post: list[EmailMessage]
) -> None:
    client.post(reverse("password_reset"), {"email": mara.email})
    form = follow(client, link_in(post[0]))
    response = client.post(form, {"new_password1": "short", "new_password2": "short"})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    mara.refresh_from_db()
    assert mara.check_password(PASSWORD)


@pytest.mark.parametrize("email", ["nobody@example.org", "bob@example.org"])
def test_who_has_no_account_gets_no_mail_and_the_same_answer(
    client: Client, mara: User, bob: User, post: list[EmailMessage], email: str
) -> None:
    disable(bob)
    known = client.post(reverse("password_reset"), {"email": mara.email})
    assert len(post) == 1
    unknown = Client().post(reverse("password_reset"), {"email": email})
    assert len(post) == 1
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])


def test_the_same_work_is_done_for_an_unknown_address(
    client: Client,
    mara: User,
    post: list[EmailMessage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from accounts import reset

    made: list[str] = []
    real = reset._message

    def count(user: User, *args: Any) -> EmailMessage:
        made.append(user.email)
        return real(user, *args)

    monkeypatch.setattr(reset, "_message", count)
    for email in (mara.email, "nobody@example.org"):
        client.post(reverse("password_reset"), {"email": email})
    assert made == [mara.email, "nobody@example.org"]


def test_nobody_is_flooded_with_mail(client: Client, mara: User, post: list[EmailMessage]) -> None:
    for _number in range(throttle.RESET_ACCOUNT.most):
        client.post(reverse("password_reset"), {"email": mara.email})
    response = Client(REMOTE_ADDR="203.0.113.5").post(
        reverse("password_reset"), {"email": mara.email.upper()}
    )
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert len(post) == throttle.RESET_ACCOUNT.most


def test_what_is_no_address_is_said_at_the_field(client: Client, db: None) -> None:
    response = client.post(reverse("password_reset"), {"email": "nonsense"})
    assert response.status_code == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("uid", "token"), [("MQ", "abc-def"), ("%20", "x"), ("AAAA", "set-password"), ("_", "-")]
)
def test_a_forged_link_opens_nothing(client: Client, mara: User, uid: str, token: str) -> None:
    response = client.get(f"/password/reset/{uid}/{token}/")
    assert response.status_code == HTTPStatus.OK
    assert "This link does not work" in response.content.decode()


# A changed password


def test_changing_the_password_ends_every_other_login(
    as_mara: Client,
    mara: User,
    ended: list[dict[str, Any]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    elsewhere = Client()
    elsewhere.force_login(mara)
    before = as_mara.session.session_key
    with django_capture_on_commit_callbacks(execute=True):
        response = as_mara.post(reverse("password_change"), CHANGE)
    assert response["Location"] == reverse("account")
    assert ended == [{"user_id": mara.pk, "tenant_id": None, "session_key": None}]
    assert as_mara.get(reverse("account")).status_code == HTTPStatus.OK
    assert as_mara.session.session_key != before
    assert elsewhere.get(reverse("account")).status_code == HTTPStatus.FOUND


def test_a_socket_of_the_old_password_opens_nothing_any_more(as_mara: Client, mara: User) -> None:
    login = {
        "user_id": mara.pk,
        "tenant_id": personal(mara).tenant_id,
        "auth_hash": as_mara.session["_auth_user_hash"],
    }
    assert still_member(**login)
    as_mara.post(reverse("password_change"), CHANGE)
    assert not still_member(**login)
    assert still_member(**login | {"auth_hash": as_mara.session["_auth_user_hash"]})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("old_password", "wrong horse battery"),
        ("old_password", ""),
        ("new_password1", ""),
        ("new_password2", "another horse battery"),
        ("new_password2", "short"),
    ],
)
def test_a_password_is_changed_only_by_who_knows_it_and_to_a_good_one(
    as_mara: Client, mara: User, field: str, value: str
) -> None:
    data = CHANGE | {field: value}
    if value == "short":
        data["new_password1"] = value
    response = as_mara.post(reverse("password_change"), data)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert field in response.context["form"].errors
    mara.refresh_from_db()
    assert mara.check_password(PASSWORD)


def test_a_stolen_login_is_no_place_to_guess_the_password(as_mara: Client, mara: User) -> None:
    for _number in range(throttle.CONFIRM.most):
        as_mara.post(reverse("password_change"), CHANGE | {"old_password": "wrong"})
    response = as_mara.post(reverse("password_change"), CHANGE)
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert int(response["Retry-After"]) > 0


def test_changing_a_password_takes_a_login(client: Client, mara: User) -> None:
    response = client.post(reverse("password_change"), CHANGE)
    assert response["Location"].startswith(reverse("login"))
    mara.refresh_from_db()
    assert mara.check_password(PASSWORD)
