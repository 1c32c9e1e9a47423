import pytest
from django.db import IntegrityError
from pytest_django import Settings

from memory import model_choice
from memory.model_choice import (
    OPENAI,
    Refused,
    choose_embeddings,
    choose_model,
    clean_address,
    current_embeddings,
    current_endpoint,
    embeddings_key_for,
    go_without,
    key_for,
    overview,
    same_server,
)
from memory.models import ModelSettings

pytestmark = pytest.mark.django_db

LOCAL = "http://127.0.0.1:11434/v1"


@pytest.fixture(autouse=True)
def _bare_environment(settings: Settings) -> None:
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = settings.CHAT_MODEL = ""
    settings.EMBEDDINGS = "local"
    settings.EMBEDDINGS_MODEL = settings.EMBEDDINGS_BASE_URL = settings.EMBEDDINGS_API_KEY = ""


@pytest.fixture
def environment(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "sk-environment"
    settings.CHAT_MODEL = "big"


def test_without_any_word_there_is_no_model() -> None:
    assert current_endpoint() is None
    assert not overview().without


def test_the_environment_is_used_where_the_operator_said_nothing(environment: None) -> None:
    endpoint = current_endpoint()
    assert endpoint
    assert (endpoint.base_url, endpoint.api_key, endpoint.model) == (
        OPENAI,
        "sk-environment",
        "big",
    )
    assert overview().from_environment


@pytest.mark.parametrize(
    ("key", "address", "model", "usable"),
    [
        ("sk", "", "", False),  # which model is not for us to guess
        ("", "", "big", False),
        ("", LOCAL, "big", True),
        ("sk", "", "big", True),
    ],
)
def test_the_environment_needs_a_model_and_a_place(
    settings: Settings, key: str, address: str, model: str, usable: bool
) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = key, address
    settings.CHAT_MODEL = model
    assert (current_endpoint() is not None) == usable


def test_the_operators_choice_wins(environment: None) -> None:
    choose_model(base_url=LOCAL + "/", chat_model=" small ", api_key=" sk-local ")
    endpoint = current_endpoint()
    assert endpoint
    assert (endpoint.base_url, endpoint.api_key, endpoint.model) == (LOCAL, "sk-local", "small")
    assert not overview().from_environment


def test_a_key_is_sealed_at_rest() -> None:
    choose_model(base_url="", chat_model="big", api_key="sk-secret")
    row = ModelSettings.objects.get()
    assert "sk-secret" not in str(vars(row))
    assert row.base_url == OPENAI
    assert key_for(OPENAI) == "sk-secret"
    assert "sk-secret" not in repr(current_endpoint())
    assert "sk-secret" not in repr(current_embeddings())
    assert "sk-secret" not in repr(overview())


def test_an_empty_key_keeps_the_one_for_the_same_server_only() -> None:
    choose_model(base_url="https://one.example/v1", chat_model="a", api_key="sk-one")
    choose_model(base_url="https://one.example/v2", chat_model="b")
    assert key_for("https://one.example/v2") == "sk-one"
    choose_model(base_url="https://other.example/v1", chat_model="b")
    assert key_for("https://other.example/v1") == ""
    assert not overview().has_key


def test_a_key_can_be_erased() -> None:
    choose_model(base_url=LOCAL, chat_model="a", api_key="sk-one")
    choose_model(base_url=LOCAL, chat_model="a", clear_key=True)
    assert not overview().has_key


def test_the_environments_key_goes_only_where_it_belongs(environment: None) -> None:
    choose_model(base_url=LOCAL, chat_model="small")
    endpoint = current_endpoint()
    assert endpoint
    assert endpoint.api_key == ""
    choose_model(base_url="", chat_model="other")
    endpoint = current_endpoint()
    assert endpoint
    assert endpoint.api_key == "sk-environment"


def test_going_on_without_a_model_holds_until_one_is_chosen(environment: None) -> None:
    go_without()
    assert current_endpoint() is None
    assert overview().without
    choose_model(base_url=LOCAL, chat_model="small")
    assert current_endpoint() is not None
    assert not overview().without


def test_there_is_one_choice_for_the_installation() -> None:
    go_without()
    choose_model(base_url=LOCAL, chat_model="small")
    assert ModelSettings.objects.count() == 1
    with pytest.raises(IntegrityError):
        ModelSettings.objects.bulk_create([ModelSettings(only=False)])


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.org",
        "example.org/v1",
        "http://",
        "http://[::1",
        "http://example.org:99999/",
        "http://user:secret@example.org/v1",
        "http://example.org/v1?key=1",
        "http://example.org/v1#x",
        "http://example.org/a b",
        "http://example.org/\x00",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://" + "e" * 300,
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(Refused) as refused:
        choose_model(base_url=address, chat_model="small")
    assert refused.value.field == "base_url"
    assert not ModelSettings.objects.exists()


@pytest.mark.parametrize(
    "address", [LOCAL, "http://[::1]:8080/v1", "https://api.example.org", "http://10.0.0.5/v1"]
)
def test_an_address_may_be_local(address: str) -> None:
    assert clean_address(address, where="base_url") == address


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"chat_model": ""}, "chat_model"),
        ({"chat_model": "m" * 121}, "chat_model"),
        ({"api_key": "sk-ünïcode"}, "api_key"),
        ({"api_key": "sk-two words"}, "api_key"),
        ({"api_key": "sk\nHost: evil"}, "api_key"),
        ({"api_key": "k" * 2_001}, "api_key"),
    ],
)
def test_what_can_not_be_used_is_told_by_its_field(data: dict[str, str], field: str) -> None:
    with pytest.raises(Refused) as refused:
        choose_model(**{"base_url": LOCAL, "chat_model": "small"} | data)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_embeddings_come_from_the_environment_until_chosen(settings: Settings) -> None:
    settings.EMBEDDINGS, settings.EMBEDDINGS_MODEL = "openai", "embed-1"
    settings.EMBEDDINGS_BASE_URL, settings.EMBEDDINGS_API_KEY = LOCAL, "sk-embed"
    choice = current_embeddings()
    assert (choice.kind, choice.model, choice.base_url, choice.api_key) == (
        "openai",
        "embed-1",
        LOCAL,
        "sk-embed",
    )
    choose_embeddings(kind="local", model="", base_url="")
    assert current_embeddings().is_local


def test_an_embeddings_key_stays_with_its_server() -> None:
    choose_embeddings(kind="openai", model="e", base_url=LOCAL, api_key="sk-embed")
    choose_embeddings(kind="openai", model="f", base_url=LOCAL)
    assert current_embeddings().api_key == "sk-embed"
    assert embeddings_key_for("https://other.example") == ""
    choose_embeddings(kind="openai", model="f", base_url="https://other.example")
    assert current_embeddings().api_key == ""
    choose_embeddings(kind="local", model="", base_url="")
    assert not overview().embeddings_has_key


def test_there_are_two_ways_to_make_embeddings() -> None:
    with pytest.raises(Refused) as refused:
        choose_embeddings(kind="magic", model="", base_url="")
    assert refused.value.field == "embeddings"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example", "https://a.example:443/v1", True),
        ("http://a.example", "https://a.example", False),
        ("https://a.example", "https://b.example", False),
        ("http://a.example:8080", "http://a.example:8081", False),
        ("http://[::1", "http://[::1", True),
    ],
)
def test_a_server_is_its_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert same_server(one, other) is same


def test_the_environments_key_for_embeddings_serves_its_own_server_only(
    settings: Settings,
) -> None:
    settings.EMBEDDINGS, settings.EMBEDDINGS_API_KEY = "openai", "sk-env"
    settings.EMBEDDINGS_BASE_URL = "https://embeddings.example/v1"
    assert model_choice.overview().embeddings_has_key
    for address, key in (("https://embeddings.example/v1", "sk-env"), ("https://x.example", "")):
        assert model_choice.embeddings_key_for(address) == key
        model_choice.choose_embeddings(kind="openai", model="m", base_url=address)
        assert model_choice.current_embeddings().api_key == key
