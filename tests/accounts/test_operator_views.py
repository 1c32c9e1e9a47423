"""The operator's list of people, and who may log in."""

from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts import operator_views
from accounts.models import User
from tests.accounts.conftest import PASSWORD, person


@pytest.fixture
def as_operator(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


def names(client: Client, **given: str) -> list[str]:
    page = client.get(reverse("operator_people"), given)
    return [one.name for one in page.context["people"]]


def test_the_list_is_found_by_name_or_address_the_newest_first(
    as_operator: Client, mara: User, bob: User
) -> None:
    assert names(as_operator) == ["Bob", "Mara", "Olga"]
    for query, found in (("mar", ["Mara"]), ("BOB@", ["Bob"]), ("%", []), ("\0Bo\0b", ["Bob"])):
        assert names(as_operator, q=query) == found


def test_the_list_goes_on_by_a_cursor(
    as_operator: Client, mara: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_views, "PAGE", 2)
    page = as_operator.get(reverse("operator_people"))
    assert [one.name for one in page.context["people"]] == ["Bob", "Mara"]
    assert names(as_operator, before=page.context["next"]) == ["Olga"]
    assert as_operator.get(reverse("operator_people"), {"before": "x"}).status_code == (
        HTTPStatus.BAD_REQUEST
    )


def test_a_disabled_person_is_logged_out_everywhere_until_they_are_enabled(
    as_operator: Client,
    as_mara: Client,
    mara: User,
    client: Client,
    ended: list[dict[str, Any]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_operator.post(reverse("person_disable", args=[mara.pk]), {"q": "ma&r a"})
    assert answer["Location"] == f"{reverse('operator_people')}?q=ma%26r+a"
    assert ended == [{"user_id": mara.pk, "tenant_id": None, "session_key": None}]
    assert as_mara.get(reverse("account")).status_code == HTTPStatus.FOUND
    login = {"email": mara.email, "password": PASSWORD}
    assert client.post(reverse("login"), login).status_code == HTTPStatus.BAD_REQUEST
    assert "disabled" in as_operator.get(reverse("operator_people")).content.decode()
    as_operator.post(reverse("person_enable", args=[mara.pk]))
    assert client.post(reverse("login"), login).status_code == HTTPStatus.SEE_OTHER


def test_the_only_operator_is_told_why_they_can_not_be_disabled(
    as_operator: Client, operator: User
) -> None:
    answer = as_operator.post(reverse("person_disable", args=[operator.pk]), follow=True)
    assert "Nobody else runs this installation" in answer.content.decode()
    person("otto@example.org", "Otto", is_operator=True)
    as_operator.post(reverse("person_disable", args=[operator.pk]))
    operator.refresh_from_db()
    assert not operator.is_active


@pytest.mark.parametrize("name", ["operator_people", "person_disable", "person_enable"])
def test_the_list_is_for_operators_and_for_others_it_is_not_there(
    as_operator: Client, as_bob: Client, mara: User, name: str
) -> None:
    path = reverse(name) if name == "operator_people" else reverse(name, args=[mara.pk])
    ask = "get" if name == "operator_people" else "post"
    assert getattr(as_bob, ask)(path).status_code == HTTPStatus.NOT_FOUND
    assert getattr(Client(), ask)(path)["Location"].startswith(reverse("login"))
    mara.refresh_from_db()
    assert mara.is_active
    if ask == "post":
        for nobody in (0, 2**40, 2**63):
            answer = as_operator.post(reverse(name, args=[nobody]))
            assert answer.status_code == HTTPStatus.NOT_FOUND
