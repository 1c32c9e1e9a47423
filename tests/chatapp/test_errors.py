from http import HTTPStatus

import pytest
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import OperationalError
from django.http import Http404
from django.test import Client, RequestFactory

from chatapp.errors import bad_request, csrf_failure, forbidden, not_found, server_error
from memory.remember import add
from tests.chatapp.conftest import Person

WAYS = [
    pytest.param(bad_request, [BadRequest("secret")], HTTPStatus.BAD_REQUEST, id="bad_request"),
    pytest.param(forbidden, [PermissionDenied("secret")], HTTPStatus.FORBIDDEN, id="forbidden"),
    pytest.param(not_found, [Http404("secret")], HTTPStatus.NOT_FOUND, id="not_found"),
    pytest.param(server_error, [], HTTPStatus.INTERNAL_SERVER_ERROR, id="server_error"),
    pytest.param(csrf_failure, [], HTTPStatus.FORBIDDEN, id="csrf_failure"),
]


@pytest.mark.parametrize(("view", "more", "status"), WAYS)
@pytest.mark.parametrize(
    ("asking", "kind"),
    [({}, "text/html"), ({"Accept": "application/json"}, "application/json")],
)
def test_an_error_has_a_page_and_an_answer_for_programs(
    view: object, more: list[object], status: int, asking: dict[str, str], kind: str
) -> None:
    request = RequestFactory().get("/nowhere/", headers=asking)
    response = view(request, *more)  # type: ignore[operator]
    assert response.status_code == status
    assert response["Content-Type"].startswith(kind)
    assert "secret" not in response.content.decode()


def test_a_script_of_ours_gets_a_fragment_for_its_notices() -> None:
    request = RequestFactory().get("/nowhere/", headers={"HX-Request": "true"})
    response = not_found(request, Http404())
    assert response["HX-Retarget"] == "#notices"
    assert "<html" not in response.content.decode()


@pytest.mark.parametrize("address", ["/nowhere/", "/t/none/", "/operator/", "/t/a b/"])
def test_what_is_not_there_and_what_is_not_ones_own_look_alike(mara: Person, address: str) -> None:
    response = mara.client.get(address)
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "Nothing is here" in response.content.decode()
    assert response["Cache-Control"] == "no-store"


def test_a_host_that_is_not_ours_is_refused(client: Client, db: None) -> None:
    response = client.get("/login/", headers={"Host": "evil.example"})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "evil" not in response.content.decode()


def test_a_mistake_of_ours_is_a_page_that_needs_nothing(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("accounts.views.LoginForm", fail)
    client.raise_request_exception = False
    response = client.get("/login/")
    assert response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "Something went wrong" in response.content.decode()
    assert "secret" not in response.content.decode()


@pytest.mark.parametrize(
    ("asking", "kind"),
    [({}, "text/html"), ({"Accept": "application/json"}, "json"), ({"HX-Request": "true"}, "html")],
)
def test_while_the_database_is_away_a_page_says_so_and_asks_it_nothing(
    mara: Person, monkeypatch: pytest.MonkeyPatch, asking: dict[str, str], kind: str
) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise OperationalError("secret")

    mara.client.raise_request_exception = False
    with monkeypatch.context() as patched:
        patched.setattr("django.db.backends.utils.CursorWrapper.execute", away)
        response = mara.client.get("/account/", headers=asking)
    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert kind in response["Content-Type"]
    assert response["Retry-After"] == "5"
    assert "Nothing was lost" in response.content.decode().replace("&#x27;", "'")
    assert "secret" not in response.content.decode()


@pytest.mark.parametrize("failure", [OperationalError("secret"), RuntimeError("secret")])
def test_what_was_asked_for_can_be_asked_again_and_what_was_sent_is_looked_after(
    mara: Person, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise failure

    monkeypatch.setattr("memory.views.search", fail)
    monkeypatch.setattr("memory.views.add", fail)
    mara.client.raise_request_exception = False
    page = mara.client.get(mara.url("memory/"), {"q": "a&b"}).content.decode()
    assert f'href="{mara.url("memory/")}?q=a%26b">Try again</a>' in page
    page = mara.client.post(mara.url("memory/add/"), {"text": "I own a boat."}).content.decode()
    assert "Try again</a>" not in page  # it would ask for what only takes forms
    assert "Load this page again" in page
    assert "Nothing was lost" not in page


def test_a_refusal_does_not_claim_that_it_could_not_be_read(mara: Person) -> None:
    note = add(mara.scope, text="I own a boat.")
    response = mara.client.post(mara.url(f"memory/{note.pk}/accept/"))
    assert response.status_code == HTTPStatus.BAD_REQUEST
    page = response.content.decode()
    assert "That did not work" in page
    assert "It does not wait for you." in page
