"""A session is remembered or not by its own choice, made in its menu, whatever else is set."""

from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse

from accounts.scope import entered
from memory.models import Memory, MemorySettings
from tests.chatapp.conftest import Person, chat, fresh, new_chat, work
from tests.stub_model import StubModel

pytestmark = pytest.mark.django_db


def kept(who: Person) -> list[str]:
    with entered(who.scope):
        found = Memory.objects.within(who.scope).filter(kind="exchange")
        return list(found.order_by("created_at").values_list("text", flat=True))


def choose(who: Person, session: object, choice: str) -> int:
    path = reverse("session_remember", args=[who.tenant.slug, session])
    return who.client.post(path, {"auto_store": choice}).status_code


def test_a_session_that_is_not_remembered_leaves_nothing(mara: Person, model: StubModel) -> None:
    session, other = new_chat(mara), new_chat(mara)
    assert choose(mara, session.pk, "off") == HTTPStatus.SEE_OTHER
    chat(mara, session, "My house is yellow.")
    chat(mara, other, "I own a boat.")
    work(mara)
    assert kept(mara) == ["I own a boat."]
    assert [request for request in model.asked("json") if "yellow" in request.prompt] == []


def test_a_session_may_be_remembered_though_the_person_has_it_off(
    mara: Person, model: StubModel
) -> None:
    with entered(mara.scope):
        MemorySettings.objects.within(mara.scope).update_or_create(
            tenant_id=mara.scope.tenant_id,
            user_id=mara.scope.user_id,
            defaults={"auto_store_on": False},
        )
    session = new_chat(mara)
    choose(mara, session.pk, "on")
    chat(mara, session, "My house is yellow.")
    choose(mara, session.pk, "")
    chat(mara, session, "My roof is red.")
    work(mara)
    assert kept(mara) == ["My house is yellow."]


def test_the_menu_offers_the_other_choice(mara: Person, model: StubModel) -> None:
    session = new_chat(mara)
    page = reverse("session", args=[mara.tenant.slug, session.pk])
    assert "Do not remember this session" in mara.client.get(page).content.decode()
    choose(mara, session.pk, "off")
    shown = mara.client.get(page).content.decode()
    assert 'name="auto_store" value="on"' in shown
    assert "Recalls, stores nothing" in shown


def test_another_choice_is_refused_and_a_strangers_session_unknown(
    mara: Person, bob: Person
) -> None:
    session = new_chat(mara)
    assert choose(mara, session.pk, "maybe") == HTTPStatus.BAD_REQUEST
    assert choose(bob, session.pk, "off") == HTTPStatus.NOT_FOUND
    path = reverse("session_remember", args=[mara.tenant.slug, session.pk])
    assert Client().post(path, {"auto_store": "off"}).status_code != HTTPStatus.OK
    assert fresh(mara, session).auto_store is None
