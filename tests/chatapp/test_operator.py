import logging
import re
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.join import new_person
from accounts.scope import entered
from memory import embedder, model_choice, reembed
from memory.discovery import Found
from memory.models import Job, JobTicket, ModelSettings
from memory.remember import add
from memory.tasks import run_job
from tests.chatapp.conftest import Person
from tests.memory.test_reembed import Wide
from tests.stub_model import MODEL, StubModel

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def _bare_environment(settings: Settings) -> None:
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = settings.CHAT_MODEL = ""
    settings.EMBEDDINGS, settings.EMBEDDINGS_MODEL = "local", ""


@pytest.fixture
def as_operator(db: None) -> Client:
    client = Client()
    client.force_login(
        new_person(email="olga@example.org", password=None, name="Olga", is_operator=True)
    )
    return client


@pytest.fixture
def locked() -> Iterator[StubModel]:
    """A model server that wants a key."""
    with StubModel(api_key=KEY) as model:
        yield model


def chosen() -> tuple[str, str]:
    endpoint = model_choice.current_endpoint()
    return (endpoint.base_url, endpoint.model) if endpoint else ("", "")


# Who may


@pytest.mark.parametrize(
    "name", ["operator", "operator_discover", "operator_test", "operator_embedding"]
)
def test_the_page_is_for_operators_and_for_others_it_is_not_there(
    as_operator: Client, mara: Person, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.operator.find_servers", list)
    address = reverse(name)
    ask = "post" if name == "operator_test" else "get"
    data = {"base_url": "nonsense"}
    assert getattr(as_operator, ask)(address, data).status_code in {200, 303, 400}
    assert getattr(mara.client, ask)(address, data).status_code == HTTPStatus.NOT_FOUND
    assert getattr(Client(), ask)(address, data)["Location"].startswith(reverse("login"))


def test_nobody_but_an_operator_changes_the_model(mara: Person) -> None:
    data = {"action": "save", "base_url": "http://127.0.0.1:1/v1", "chat_model": "m"}
    assert mara.client.post(reverse("operator"), data).status_code == HTTPStatus.NOT_FOUND
    assert not ModelSettings.objects.exists()


# Choosing a model


def test_an_address_a_key_and_a_model_are_kept_and_the_key_is_never_shown_again(
    as_operator: Client, stub: StubModel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        response = as_operator.post(
            reverse("operator"),
            {"action": "save", "base_url": stub.base_url, "chat_model": MODEL, "api_key": KEY},
        )
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert chosen() == (stub.base_url, MODEL)
    page = as_operator.get(response["Location"]).content.decode()
    assert "Saved." in page
    assert stub.base_url in page
    assert "A key is kept." in page
    assert KEY not in page
    assert KEY not in caplog.text
    assert model_choice.key_for(stub.base_url) == KEY


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"base_url": "ftp://x"}, "base_url"),
        ({"base_url": "http://user:pw@host/v1"}, "base_url"),
        ({"chat_model": " "}, "chat_model"),
        ({"api_key": "two words"}, "api_key"),
    ],
)
def test_a_field_that_can_not_be_used_says_why_and_nothing_is_kept(
    as_operator: Client, data: dict[str, str], field: str
) -> None:
    whole = {"action": "save", "base_url": "http://127.0.0.1:1/v1", "chat_model": "m"} | data
    response = as_operator.post(reverse("operator"), whole)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert list(response.context["errors"]) == [field]
    page = response.content.decode()
    assert str(response.context["errors"][field]) in page
    assert whole["base_url"] in page  # what was typed is still there
    assert "two words" not in page  # but a key is not
    assert not ModelSettings.objects.exists()


@pytest.mark.parametrize("action", ["", "erase"])
def test_an_unknown_act_is_refused(as_operator: Client, action: str) -> None:
    response = as_operator.post(reverse("operator"), {"action": action})
    assert response.status_code == HTTPStatus.BAD_REQUEST


def test_one_goes_on_without_a_model(as_operator: Client, stub: StubModel) -> None:
    model_choice.choose_model(base_url=stub.base_url, chat_model=MODEL)
    as_operator.post(reverse("operator"), {"action": "without"})
    assert chosen() == ("", "")
    page = as_operator.get(reverse("operator")).content.decode()
    assert "You chose to go on without a model" in page


def test_what_the_environment_says_is_shown_as_such(
    as_operator: Client, settings: Settings
) -> None:
    settings.OPENAI_API_KEY, settings.CHAT_MODEL = KEY, "big"
    page = as_operator.get(reverse("operator")).content.decode()
    assert "The values come from the environment." in page
    assert "big" in page
    assert KEY not in page


# What runs on this machine


def test_a_server_on_this_machine_is_chosen_with_one_click(
    as_operator: Client, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Found("Ollama", stub.base_url, (MODEL,))]
    monkeypatch.setattr("chatapp.operator.find_servers", lambda: found)
    model_choice.choose_model(base_url="https://far.example", chat_model="big", api_key=KEY)
    scripted = as_operator.get(reverse("operator_discover"), headers={"HX-Request": "true"})
    assert f"Use {MODEL}" in scripted.content.decode()
    assert "<html" not in scripted.content.decode()
    plain = as_operator.get(reverse("operator_discover")).content.decode()
    assert f"Use {MODEL}" in plain
    assert "<html" in plain
    data = {"action": "use", "base_url": stub.base_url, "chat_model": MODEL}
    as_operator.post(reverse("operator"), data)
    assert chosen() == (stub.base_url, MODEL)
    assert model_choice.key_for(stub.base_url) == ""


def test_where_nothing_runs_the_page_says_what_to_start(
    as_operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.operator.find_servers", list)
    page = as_operator.get(reverse("operator_discover")).content.decode()
    assert "No model server answers here." in page
    assert "127.0.0.1:11434" in page


# Testing an address


def test_a_test_tells_which_models_there_are_and_keeps_nothing(
    as_operator: Client, stub: StubModel
) -> None:
    data = {"base_url": stub.base_url, "chat_model": ""}
    response = as_operator.post(reverse("operator_test"), data, headers={"HX-Request": "true"})
    assert response.status_code == HTTPStatus.OK
    assert "It answers." in response.content.decode()
    assert MODEL in response.content.decode()
    plain = as_operator.post(reverse("operator_test"), data).content.decode()
    assert "It answers." in plain
    assert "<html" in plain
    assert not ModelSettings.objects.exists()


def test_a_test_tells_of_a_model_that_is_not_there(as_operator: Client, stub: StubModel) -> None:
    data = {"base_url": stub.base_url, "chat_model": "<b>none</b>"}
    response = as_operator.post(reverse("operator_test"), data)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    page = response.content.decode()
    assert "it has no model of the name &lt;b&gt;none&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("key", "sentence"),
    [("", "wants a key"), ("sk-wrong", "refuses the key"), (KEY, "It answers.")],
)
def test_a_test_tells_whether_the_key_is_right(
    as_operator: Client, locked: StubModel, key: str, sentence: str
) -> None:
    data = {"base_url": locked.base_url, "api_key": key}
    page = as_operator.post(reverse("operator_test"), data).content.decode()
    assert sentence in page
    assert "sk-wrong" not in page
    assert KEY not in page


def test_a_test_uses_the_kept_key_and_only_where_it_belongs(
    as_operator: Client, locked: StubModel, stub: StubModel
) -> None:
    model_choice.choose_model(base_url=locked.base_url, chat_model=MODEL, api_key=KEY)
    ask = reverse("operator_test")
    assert as_operator.post(ask, {"base_url": locked.base_url}).status_code == HTTPStatus.OK
    cleared = {"base_url": locked.base_url, "clear_key": "1"}
    assert as_operator.post(ask, cleared).status_code == HTTPStatus.BAD_REQUEST
    assert as_operator.post(ask, {"base_url": stub.base_url}).status_code == HTTPStatus.OK
    assert all(KEY not in str(request.headers) for request in stub.requests)


@pytest.mark.parametrize("asking", [{}, {"HX-Request": "true"}])
def test_a_test_of_nothing_says_so_in_a_sentence(
    as_operator: Client, asking: dict[str, str]
) -> None:
    nothing = {"base_url": "http://127.0.0.1:9/v1"}
    page = as_operator.post(reverse("operator_test"), nothing, headers=asking)
    assert "Nothing answers at this address." in page.content.decode()


# Embeddings


@pytest.fixture(autouse=True)
def _followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "_followed", None)


def embeddings(stub: StubModel, **data: str) -> dict[str, str]:
    return {
        "action": "embeddings",
        "embeddings": "openai",
        "embeddings_base_url": stub.base_url,
        "embeddings_model": "embed-1",
        "embeddings_api_key": "",
    } | data


def test_an_embeddings_address_is_kept_once_it_has_proved_itself(
    as_operator: Client, locked: StubModel
) -> None:
    refused = as_operator.post(reverse("operator"), embeddings(locked))
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "Nothing was changed." in refused.content.decode()
    assert model_choice.current_embeddings().is_local
    data = embeddings(locked, embeddings_api_key=KEY)
    assert as_operator.post(reverse("operator"), data).status_code == HTTPStatus.SEE_OTHER
    choice = model_choice.current_embeddings()
    assert (choice.base_url, choice.model, choice.api_key) == (locked.base_url, "embed-1", KEY)
    page = as_operator.get(reverse("operator")).content.decode()
    assert KEY not in page
    assert embedder.current().name == "embed-1"  # in this process, which answers questions
    again = as_operator.post(reverse("operator"), embeddings(locked))
    assert again.status_code == HTTPStatus.SEE_OTHER
    assert model_choice.current_embeddings().api_key == KEY


def test_embeddings_go_back_to_the_model_that_came_with_it(
    as_operator: Client, stub: StubModel
) -> None:
    as_operator.post(reverse("operator"), embeddings(stub))
    # The form still holds what the server needed: none of it is the local model's.
    as_operator.post(reverse("operator"), embeddings(stub, embeddings="local"))
    choice = model_choice.current_embeddings()
    assert (choice.is_local, choice.model) == (True, "")
    assert embedder.current().name == "all-MiniLM-L6-v2-int8"
    assert embedder.embed(["A boat."]).shape == (1, 384)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"embeddings": "magic"}, "embeddings"),
        ({"embeddings_model": " "}, "embeddings_model"),
        ({"embeddings_base_url": "nonsense"}, "embeddings_base_url"),
    ],
)
def test_embeddings_say_at_the_field_what_is_wrong(
    as_operator: Client, stub: StubModel, data: dict[str, str], field: str
) -> None:
    response = as_operator.post(reverse("operator"), embeddings(stub, **data))
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert list(response.context["errors"]) == [field]


# How far memories are found by meaning


def test_the_page_shows_how_far_all_memories_are_found_by_meaning(
    as_operator: Client, mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13's progress, where the embedder is chosen: it looks again by itself until all is done."""
    for number in range(10):
        add(mara.scope, text=f"I know a tale of number {number}.")
    reembed.notice_another_embedder()
    page = as_operator.get(reverse("operator")).content.decode()
    assert "All memories are found by meaning." in page
    assert "every 2s" not in page
    wide = Wide()
    monkeypatch.setattr(embedder, "current", lambda: wide)
    assert (
        "What finds by meaning was changed."
        in as_operator.get(reverse("operator")).content.decode()
    )
    reembed.notice_another_embedder()
    again = reverse("operator_embedding")
    shown = as_operator.get(again, headers={"HX-Request": "true"}).content.decode()
    words = " ".join(re.sub("<[^>]+>", "", shown).split())
    assert words.startswith("Embedder in force: wide, 1024 dimensions.")
    assert '<progress id="embedding-bar" max="10" value="0">' in shown
    assert f'hx-get="{again}" hx-trigger="every 2s"' in shown
    assert "tale" not in shown
    JobTicket.objects.update(problem="asleep: The embedder has gone to bed.")
    shown = as_operator.get(again, headers={"HX-Request": "true"}).content.decode()
    assert "The last try failed: The embedder has gone to bed." in shown
    assert as_operator.get(again)["Location"] == reverse("operator")
    with entered(mara.scope):
        [job] = Job.objects.within(mara.scope).filter(kind="embed")
    run_job(str(job.pk))
    shown = as_operator.get(again, headers={"HX-Request": "true"}).content.decode()
    assert "All memories are found by meaning." in shown
    assert "every 2s" not in shown
