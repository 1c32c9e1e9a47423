from datetime import timedelta
from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.errors import InvalidInput, NotFound
from accounts.first import make_operator, new_link, promote, usable
from accounts.join import disable
from accounts.models import OperatorLink, Tenant, User
from tests.accounts.conftest import PASSWORD, at_once, personal

OLGA = {"email": "olga@example.org", "name": "Olga", "password": PASSWORD}


def link() -> str:
    token = new_link()
    assert token
    return token


def test_the_link_makes_an_operator_with_a_space_of_their_own(client: Client, db: None) -> None:
    address = reverse("first", args=[link()])
    assert client.get(address).status_code == HTTPStatus.OK
    response = client.post(address, OLGA | {"time_zone": "Europe/Oslo"})
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert response["Location"] == reverse("operator")
    olga = User.objects.get()
    assert olga.is_operator
    assert olga.time_zone == "Europe/Oslo"
    assert personal(olga).is_admin
    assert client.get(reverse("operator")).status_code == HTTPStatus.OK


def test_the_link_works_once(client: Client, db: None) -> None:
    address = reverse("first", args=[link()])
    client.post(address, OLGA)
    for answer in (Client().get(address), Client().post(address, OLGA | {"email": "x@y.org"})):
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "This link was used already" in answer.content.decode()
    assert User.objects.count() == 1


def test_who_has_an_account_already_becomes_the_operator_with_it(
    as_mara: Client, mara: User
) -> None:
    address = reverse("first", args=[link()])
    assert "Go on as mara@example.org" in as_mara.get(address).content.decode()
    assert as_mara.post(address)["Location"] == reverse("operator")
    mara.refresh_from_db()
    assert mara.is_operator
    assert User.objects.count() == 1


def test_a_refused_form_leaves_the_link_open(client: Client, mara: User) -> None:
    address = reverse("first", args=[link()])
    for wrong in ({"password": "short"}, {"email": "nonsense"}, {"email": mara.email}):
        response = client.post(address, OLGA | wrong)
        assert response.status_code == HTTPStatus.BAD_REQUEST
        assert response.context["form"].errors
    assert not User.objects.filter(is_operator=True).exists()
    client.post(address, OLGA)
    assert User.objects.filter(is_operator=True).count() == 1


def test_a_taken_address_uses_nothing_up(mara: User) -> None:
    token = link()
    with pytest.raises(InvalidInput):
        make_operator(token, email=mara.email, password=PASSWORD, name="Olga")
    assert usable(token)


def test_a_new_link_replaces_the_one_before(db: None) -> None:
    old, new = link(), link()
    assert not usable(old)
    assert usable(new)
    assert OperatorLink.objects.count() == 1


def test_there_is_no_link_once_there_is_an_operator(operator: User) -> None:
    assert new_link() is None
    disable(operator)
    assert new_link() is not None


def test_an_operator_made_otherwise_closes_the_link(db: None) -> None:
    token = link()
    User.objects.create_superuser("olga@example.org", PASSWORD, name="Olga")
    assert not usable(token)
    with pytest.raises(NotFound):
        make_operator(token, email="eve@example.org", password=PASSWORD, name="Eve")


def test_a_link_expires(mara: User) -> None:
    token = link()
    left = OperatorLink.objects.get().expires_at - timezone.now()
    assert timedelta(hours=23, minutes=59) < left <= timedelta(hours=24)
    OperatorLink.objects.update(expires_at=timezone.now())
    assert not usable(token)
    with pytest.raises(NotFound):
        promote(token, user=mara)
    mara.refresh_from_db()
    assert not mara.is_operator


@pytest.mark.parametrize("token", ["nonsense", "x" * 300])
def test_a_guessed_link_makes_nobody_an_operator(client: Client, db: None, token: str) -> None:
    link()
    response = client.post(reverse("first", args=[token]), OLGA)
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_who_use_the_link_at_once_one_becomes_the_operator() -> None:
    token = link()
    results = at_once(
        *[
            lambda number=number: make_operator(
                token, email=f"p{number}@example.org", password=PASSWORD, name="P"
            )
            for number in range(5)
        ]
    )
    assert sum(isinstance(result, User) for result in results) == 1
    assert sum(isinstance(result, NotFound) for result in results) == 4
    assert User.objects.count() == Tenant.objects.count() == 1
