"""What an address says that it offers."""

from typing import Any

import pytest

from accounts.errors import Misconfigured, Unavailable
from memory.model_list import list_models
from tests.stub_model import StubModel


def test_the_models_of_an_address() -> None:
    with StubModel(models=["b", "a"], api_key="right") as stub:
        assert list_models(stub.base_url, "right") == ["b", "a"]
        with pytest.raises(Misconfigured) as refused:
            list_models(stub.base_url, "wrong")
        assert str(refused.value) == "The server at this address refuses the key."
        with pytest.raises(Misconfigured) as wanted:
            list_models(stub.base_url, "")
        assert str(wanted.value) == "The server at this address wants a key."


@pytest.mark.parametrize(
    "scripted",
    [
        {"body": "<html>Welcome</html>"},
        {"body": "{}"},
        {"body": "[]"},
        {"body": '{"data": 3}'},
        {"body": '{"object": "list", "data": [{"name": "a"}]}'},
        {"status": 404, "body": "not found"},
    ],
)
def test_what_lists_no_models_is_no_model_server(stub: StubModel, scripted: dict[str, Any]) -> None:
    stub.script(**scripted)
    with pytest.raises(Misconfigured) as wrong:
        list_models(stub.base_url, "")
    assert "No model server answers at this address" in str(wrong.value)


def test_an_address_where_nobody_is(stub: StubModel) -> None:
    stub.stop()
    with pytest.raises(Unavailable) as away:
        list_models(stub.base_url, "")
    assert str(away.value) == "Nothing answers at this address."


def test_no_models_yet_is_an_empty_list(stub: StubModel) -> None:
    stub.script(body='{"object": "list", "data": null}')
    assert list_models(stub.base_url, "") == []
