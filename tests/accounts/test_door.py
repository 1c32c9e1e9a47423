import re
from collections.abc import Callable

import pytest
from django.contrib.auth import HASH_SESSION_KEY
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.door import last_used, memberships_of, still_member
from accounts.erase import erase_account
from accounts.join import disable, enable, leave
from accounts.models import Membership, Tenant, User
from accounts.scope import Scope


@pytest.fixture
def login(bob: User, bob_in_acme: Membership, as_bob: Client) -> dict[str, object]:
    """What a socket of Bob's in Acme remembers of the login that it began with."""
    return {
        "user_id": bob.pk,
        "auth_hash": as_bob.session[HASH_SESSION_KEY],
        "tenant_id": bob_in_acme.tenant_id,
    }


def test_a_member_is_still_one(login: dict[str, object], as_bob: Client) -> None:
    assert still_member(**login)  # type: ignore[arg-type]
    key = as_bob.session.session_key
    assert still_member(**login, session_key=key)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "end",
    [
        disable,
        lambda bob: bob.set_password("another one") or bob.save(),
        erase_account,
    ],
    ids=["disabled", "new password", "account erased"],
)
def test_a_login_that_ended_opens_nothing(
    login: dict[str, object], bob: User, end: Callable[[User], None]
) -> None:
    end(bob)
    assert not still_member(**login)  # type: ignore[arg-type]


def test_who_left_is_no_member_there_any_more_but_elsewhere(
    login: dict[str, object], bob: User, mara: User, acme: Tenant
) -> None:
    leave(Scope(acme.pk, bob.pk), actor=mara)
    assert not still_member(**login)  # type: ignore[arg-type]
    own = memberships_of(bob.pk)[0].tenant_id
    assert still_member(**login | {"tenant_id": own})  # type: ignore[arg-type]


def test_a_logout_ends_the_sockets_of_that_browser_only(
    login: dict[str, object], as_bob: Client
) -> None:
    key = as_bob.session.session_key
    as_bob.post(reverse("logout"))
    assert not still_member(**login, session_key=key)  # type: ignore[arg-type]
    assert still_member(**login)  # type: ignore[arg-type]


def test_a_forged_hash_and_a_foreign_tenant_open_nothing(
    login: dict[str, object], mara: User
) -> None:
    assert not still_member(**login | {"auth_hash": ""})  # type: ignore[arg-type]
    own = memberships_of(mara.pk)[0].tenant_id
    assert not still_member(**login | {"tenant_id": own})  # type: ignore[arg-type]


def test_a_new_secret_key_ends_no_socket(login: dict[str, object], settings: Settings) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, and long enough to be one, made for this test"
    assert still_member(**login)  # type: ignore[arg-type]


def test_the_check_is_one_query_beside_entering_the_scope(
    login: dict[str, object], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(5):  # a savepoint and its release, the scope set and put back
        assert still_member(**login, session_key="none") is False  # type: ignore[arg-type]


def test_a_disabled_person_is_out_and_comes_back(as_bob: Client, bob: User) -> None:
    disable(bob)
    assert as_bob.get(reverse("account")).status_code == 302
    enable(bob)
    assert as_bob.get(reverse("account")).status_code == 200


def test_a_foreign_space_and_an_unknown_one_get_the_same_answer(
    as_bob: Client, acme: Tenant
) -> None:
    answers = []
    for address in (acme.slug, "no-such-space-0000000000"):
        response = as_bob.get(reverse("tenant_settings", args=[address]))
        body = response.content.decode().replace(address, "SLUG")
        body = re.sub(r'(value|content|nonce)="[\w-]{22,64}"', "TOKEN", body)
        answers.append((response.status_code, sorted(response.headers), body))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert "Acme" not in answers[0][2]


def test_scripts_of_strangers_get_a_status_and_no_page(client: Client, acme: Tenant) -> None:
    address = reverse("tenant_settings", args=[acme.slug])
    assert client.get(address, headers={"Accept": "application/json"}).status_code == 401
    response = client.get(address, headers={"HX-Request": "true"})
    assert response.status_code == 401
    assert response["HX-Redirect"].startswith(reverse("login"))
    assert client.get(address)["Location"] == f"{reverse('login')}?next={address}"
    assert client.post(address)["Location"] == f"{reverse('login')}?next=/"


def test_of_several_spaces_the_one_of_this_browser_comes_first(
    mara: User, acme: Tenant, as_mara: Client
) -> None:
    own = memberships_of(mara.pk)[0].tenant
    as_mara.get(reverse("tenant_settings", args=[acme.slug]))
    assert last_used(memberships_of(mara.pk), "").tenant == acme
    assert last_used(memberships_of(mara.pk), own.slug).tenant == own
    assert last_used(memberships_of(mara.pk), "somebody-elses").tenant == acme
