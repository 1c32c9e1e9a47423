from http import HTTPStatus

import pytest
from django.contrib.auth import HASH_SESSION_KEY
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from accounts import throttle
from accounts.door import memberships_of
from accounts.join import disable, join, new_organisation
from accounts.models import Attempt, Tenant, User
from tests.accounts.conftest import PASSWORD, personal

UNKNOWN = "There is no account with this address and password."


def logged_in_as(client: Client) -> str | None:
    return client.session.get("_auth_user_id")


# Logging in


@pytest.mark.parametrize("typed", ["mara@example.org", " MARA@Example.ORG "])
def test_a_person_logs_in_by_address_in_any_case(client: Client, mara: User, typed: str) -> None:
    response = client.post(reverse("login"), {"email": typed, "password": PASSWORD})
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert response["Location"] == reverse("home")
    assert logged_in_as(client) == str(mara.pk)


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("mara@example.org", "wrong horse battery"),
        ("nobody@example.org", PASSWORD),
        ("no address at all", PASSWORD),
        ("m\u0131ra@example.org", PASSWORD),
        ("bob@example.org", PASSWORD),  # who is disabled
    ],
)
def test_a_stranger_gets_the_same_answer_whatever_is_wrong(
    client: Client, mara: User, bob: User, email: str, password: str
) -> None:
    disable(bob)
    response = client.post(reverse("login"), {"email": email, "password": password})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.context["form"].non_field_errors() == [UNKNOWN]
    assert logged_in_as(client) is None


@pytest.mark.parametrize("email", ["mara@example.org", "nobody@example.org", "no address"])
def test_one_hash_is_made_whoever_is_asked_for(
    client: Client, mara: User, email: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib.auth.hashers import Argon2PasswordHasher

    made: list[str] = []
    for work in ("encode", "verify"):
        real = getattr(Argon2PasswordHasher, work)

        def count(self: object, *args: object, real: object = real, **kwargs: object) -> object:
            made.append(email)
            return real(self, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(Argon2PasswordHasher, work, count)
    client.post(reverse("login"), {"email": email, "password": "wrong horse battery"})
    assert len(made) == 1


def test_passwords_are_kept_by_argon2id(mara: User) -> None:
    assert mara.password.startswith("argon2$argon2id$")


def test_logging_in_makes_a_new_login_session_and_token(client: Client, mara: User) -> None:
    client.get(reverse("login"))
    session = client.session
    session["planted"] = "by somebody else"
    session.save()
    fixed = session.session_key
    assert fixed
    client.cookies["recollect_login"] = fixed
    client.post(reverse("login"), {"email": mara.email, "password": PASSWORD})
    assert client.session.session_key != fixed
    assert logged_in_as(client) == str(mara.pk)


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/account/", "/account/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_after_logging_in_one_goes_on_to_pages_of_ours_only(
    client: Client, mara: User, wanted: str, reached: str
) -> None:
    data = {"email": mara.email, "password": PASSWORD, "next": wanted}
    assert client.post(reverse("login"), data)["Location"] == reached
    assert client.get(reverse("login"), {"next": wanted})["Location"] == reached


def test_a_page_that_needs_a_login_leads_back_to_itself(client: Client, mara: User) -> None:
    response = client.get(reverse("account"))
    assert response["Location"] == f"{reverse('login')}?next=/account/"
    page = client.get(response["Location"])
    assert '<input type="hidden" name="next" value="/account/">' in page.content.decode()


def test_after_ten_wrong_tries_even_the_right_password_must_wait(
    client: Client, mara: User
) -> None:
    for _number in range(throttle.LOGIN_ACCOUNT.most):
        client.post(reverse("login"), {"email": mara.email.upper(), "password": "wrong"})
    response = client.post(reverse("login"), {"email": mara.email, "password": PASSWORD})
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert 0 < int(response["Retry-After"]) <= throttle.LOGIN_ACCOUNT.seconds
    assert "Too many tries. Try again in 15 minutes." in response.content.decode()
    elsewhere = Client(REMOTE_ADDR="203.0.113.5")
    response = elsewhere.post(reverse("login"), {"email": mara.email, "password": PASSWORD})
    assert response.status_code == HTTPStatus.SEE_OTHER


def test_unknown_addresses_are_throttled_like_known_ones(client: Client, db: None) -> None:
    for _number in range(throttle.LOGIN_ACCOUNT.most):
        client.post(reverse("login"), {"email": "nobody@example.org", "password": "wrong"})
    response = client.post(reverse("login"), {"email": "nobody@example.org", "password": "wrong"})
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS


def test_one_network_can_not_try_address_after_address(
    client: Client, mara: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = throttle.Limit("login, network", 3, 900)
    monkeypatch.setattr("accounts.identify.LOGIN_NETWORK", few)
    for number in range(3):
        client.post(reverse("login"), {"email": f"p{number}@example.org", "password": "wrong"})
    response = client.post(reverse("login"), {"email": mara.email, "password": PASSWORD})
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS


def test_the_right_password_clears_what_was_counted(client: Client, mara: User) -> None:
    for _number in range(throttle.LOGIN_ACCOUNT.most - 1):
        client.post(reverse("login"), {"email": mara.email, "password": "wrong"})
    client.post(reverse("login"), {"email": mara.email, "password": PASSWORD})
    network = throttle.Try(throttle.LOGIN_NETWORK, "127.0.0.1")
    account = throttle.Try(throttle.LOGIN_ACCOUNT, f"{mara.email}\0" + "127.0.0.1")
    assert Attempt.objects.filter(key=network.key).count() == throttle.LOGIN_ACCOUNT.most - 1
    assert not Attempt.objects.filter(key=account.key).exists()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"email": "", "password": ""},
        {"email": "mara@example.org\x00", "password": PASSWORD},
        {"email": "m" * 255, "password": PASSWORD},
        {"email": "mara@example.org", "password": "p" * 1_001},
    ],
)
def test_a_login_form_filled_with_nonsense_is_shown_again(
    client: Client, mara: User, data: dict[str, str]
) -> None:
    assert client.post(reverse("login"), data).status_code == HTTPStatus.BAD_REQUEST


# Logging out


def test_logging_out_ends_this_login_and_has_the_browser_forget(
    mara: User,
    ended: list[dict[str, object]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    client, other = Client(), Client()
    client.force_login(mara)
    other.force_login(mara)
    key = client.session.session_key
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(reverse("logout"))
    assert response["Location"] == reverse("login")
    assert response["Clear-Site-Data"] == '"cache", "storage"'
    assert ended == [{"user_id": mara.pk, "tenant_id": None, "session_key": key}]
    assert client.get(reverse("account")).status_code == HTTPStatus.FOUND
    assert other.get(reverse("account")).status_code == HTTPStatus.OK


def test_logging_out_takes_more_than_a_link(as_mara: Client) -> None:
    assert as_mara.get(reverse("logout")).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    checking = Client(enforce_csrf_checks=True)
    checking.cookies = as_mara.cookies
    response = checking.post(reverse("logout"))
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert "This page was too old" in response.content.decode()
    assert as_mara.get(reverse("account")).status_code == HTTPStatus.OK


def test_logging_out_without_a_login_is_no_error(client: Client, db: None) -> None:
    assert client.post(reverse("logout")).status_code == HTTPStatus.SEE_OTHER


# Signing up

NEW = {"email": "Ines@Example.org", "name": "Ines", "password": PASSWORD}


def test_signing_up_makes_a_person_with_a_space_of_their_own(client: Client, db: None) -> None:
    response = client.post(reverse("signup"), NEW | {"time_zone": "Europe/Lisbon"})
    assert response["Location"] == reverse("home")
    ines = User.objects.get()
    assert (ines.email, ines.name, ines.time_zone) == ("Ines@example.org", "Ines", "Europe/Lisbon")
    assert not ines.is_operator
    assert logged_in_as(client) == str(ines.pk)
    membership = personal(ines)
    assert membership.is_admin
    assert membership.tenant.personal
    assert membership.tenant.slug.startswith("ines-")


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "UTC\x00", "x" * 64])
def test_a_time_zone_that_nobody_lives_in_becomes_utc(client: Client, db: None, zone: str) -> None:
    client.post(reverse("signup"), NEW | {"time_zone": zone.replace("\x00", "")})
    assert User.objects.get().time_zone == "UTC"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "ines"),
        ("email", ""),
        ("email", "ines\x00@example.org"),
        ("name", ""),
        ("name", " \u200b\u2060 "),
        ("name", "n" * 81),
        ("password", "short"),
        ("password", "password123"),
        ("password", "ines@example.org"),
        ("password", "p" * 1_001),
    ],
)
def test_signing_up_says_at_the_field_what_can_not_be_used(
    client: Client, db: None, field: str, value: str
) -> None:
    response = client.post(reverse("signup"), NEW | {field: value})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert list(response.context["form"].errors) == [field]
    assert not User.objects.exists()


@pytest.mark.parametrize("email", ["mara@example.org", "MARA@EXAMPLE.ORG"])
def test_an_address_has_one_account(client: Client, mara: User, email: str) -> None:
    response = client.post(reverse("signup"), NEW | {"email": email})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "already an account" in response.context["form"].errors["email"][0]
    assert User.objects.count() == 1
    assert Tenant.objects.count() == 1


def test_one_network_can_not_sign_up_without_end(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "SIGN_UP_NETWORK", throttle.Limit("sign-up", 1, 600))
    client.post(reverse("signup"), NEW)
    response = Client().post(reverse("signup"), NEW | {"email": "two@example.org"})
    assert response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert User.objects.count() == 1


def test_people_of_the_same_name_share_nothing(client: Client, mara: User) -> None:
    client.post(reverse("signup"), NEW | {"name": "Mara"})
    other = User.objects.exclude(pk=mara.pk).get()
    assert personal(other).tenant_id != personal(mara).tenant_id
    assert personal(other).tenant.slug != personal(mara).tenant.slug


# The way home


def test_home_leads_a_stranger_to_the_login(client: Client, db: None) -> None:
    assert client.get(reverse("home"))["Location"].startswith(reverse("login"))


def test_home_leads_to_the_personal_space_at_first(as_mara: Client, mara: User) -> None:
    new_organisation(mara, name="Acme")
    slug = personal(mara).tenant.slug
    assert as_mara.get(reverse("home"))["Location"] == reverse("new_session", args=[slug])


def test_home_leads_to_the_space_that_this_browser_used_last(
    as_mara: Client, mara: User, acme: Tenant
) -> None:
    as_mara.get(reverse("tenant_settings", args=[acme.slug]))
    assert as_mara.get(reverse("home"))["Location"] == reverse("new_session", args=[acme.slug])
    other = Client()
    other.force_login(mara)
    assert other.get(reverse("home"))["Location"] == reverse("new_session", args=[acme.slug])
    own = personal(mara).tenant.slug
    as_mara.get(reverse("tenant_settings", args=[own]))
    assert as_mara.get(reverse("home"))["Location"] == reverse("new_session", args=[own])


def test_home_leads_to_no_space_that_is_not_ones_own(
    as_bob: Client, bob: User, acme: Tenant
) -> None:
    as_bob.cookies["tenant"] = acme.slug
    slug = personal(bob).tenant.slug
    assert as_bob.get(reverse("home"))["Location"] == reverse("new_session", args=[slug])


def test_a_refused_page_leaves_no_trace_of_a_visit(as_bob: Client, bob: User, acme: Tenant) -> None:
    join(acme, bob)
    assert as_bob.get(reverse("tenant_settings", args=[acme.slug])).status_code == 404
    assert "tenant" not in as_bob.cookies
    assert all(membership.last_active_at is None for membership in memberships_of(bob.pk))


# The theme


def test_the_theme_is_kept_for_the_person_and_for_the_browser(as_mara: Client, mara: User) -> None:
    response = as_mara.post(reverse("theme"), {"theme": "dark", "next": "/account/"})
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert response["Location"] == "/account/"
    assert response.cookies["theme"].value == "dark"
    mara.refresh_from_db()
    assert mara.theme == "dark"
    assert 'data-theme="dark"' in as_mara.get(reverse("account")).content.decode()


def test_a_stranger_may_choose_a_theme_and_scripts_get_no_page(client: Client, db: None) -> None:
    response = client.post(reverse("theme"), {"theme": "light"}, headers={"HX-Request": "true"})
    assert response.status_code == HTTPStatus.NO_CONTENT
    assert response.cookies["theme"].value == "light"


@pytest.mark.parametrize("theme", ["", "purple", '"><script>'])
def test_there_are_three_themes_and_no_others(as_mara: Client, mara: User, theme: str) -> None:
    assert as_mara.post(reverse("theme"), {"theme": theme}).status_code == HTTPStatus.BAD_REQUEST
    mara.refresh_from_db()
    assert mara.theme == "system"


def test_the_theme_leads_back_to_pages_of_ours_only(client: Client, db: None) -> None:
    response = client.post(reverse("theme"), {"theme": "dark", "next": "https://evil.example/"})
    assert response["Location"] == reverse("home")


# Keys


def test_a_new_secret_key_logs_nobody_out(as_mara: Client, settings: Settings) -> None:
    before = as_mara.session[HASH_SESSION_KEY]
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, and long enough to be one, made for this test"
    assert as_mara.get(reverse("account")).status_code == HTTPStatus.OK
    assert as_mara.session[HASH_SESSION_KEY] != before


# Every page that needs no login


@pytest.mark.parametrize(
    "name",
    ["login", "signup", "password_reset", "password_reset_done", "password_reset_complete"],
)
def test_a_page_for_strangers_opens_and_is_kept_by_no_cache(
    client: Client, db: None, name: str
) -> None:
    response = client.get(reverse(name))
    assert response.status_code == HTTPStatus.OK
    assert response["Cache-Control"] == "no-store"
    assert "script-src 'self'" in response["Content-Security-Policy"]


@pytest.mark.parametrize("name", ["login", "signup"])
def test_who_is_logged_in_needs_no_login_page(as_mara: Client, name: str) -> None:
    assert as_mara.get(reverse(name))["Location"] == reverse("home")


@pytest.mark.parametrize("name", ["account", "account_delete", "password_change", "tenant_new"])
def test_a_page_of_ones_own_opens_and_for_strangers_leads_to_the_login(
    client: Client, as_mara: Client, name: str
) -> None:
    assert as_mara.get(reverse(name)).status_code == HTTPStatus.OK
    assert client.get(reverse(name))["Location"].startswith(reverse("login"))
