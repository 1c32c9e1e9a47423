"""Whole answers, from servers that know JSON schemas and from those that do not."""

import time
from typing import Any

import pytest

from accounts.errors import Misconfigured, Rejected, Unavailable
from memory import answers
from memory.answers import complete_json
from tests.memory.asking import ASKED, SCHEMA, endpoint
from tests.stub_model import StubModel


def facts(stub: StubModel, **options: Any) -> Any:
    return complete_json(endpoint(stub), ASKED, SCHEMA, **options)


def test_json_by_schema(stub: StubModel) -> None:
    stub.extract = lambda request: {"facts": [request.question]}
    assert facts(stub, name="facts") == {"facts": ["Hello, model"]}
    wanted = stub.requests[-1].body["response_format"]
    assert wanted["json_schema"] == {"name": "facts", "schema": SCHEMA, "strict": True}


def test_a_server_without_schemas_is_asked_for_an_object_and_remembered(stub: StubModel) -> None:
    stub.refuse("json_schema")
    stub.script(answer={"facts": ["a"]})
    assert [facts(stub), facts(stub)] == [{"facts": ["a"]}] * 2
    forms = [request.body.get("response_format", {}).get("type") for request in stub.requests]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert '"facts"' in stub.requests[-1].messages[0]["content"]


@pytest.mark.parametrize("silently", [True, False])
def test_a_server_with_neither_is_asked_in_words(stub: StubModel, silently: bool) -> None:
    stub.refuse("json_schema", "json_object", silently=silently)
    stub.script(text='Sure!\n```json\n{"facts": ["a"]}\n```', kind="chat")
    assert [facts(stub), facts(stub)] == [{"facts": ["a"]}] * 2
    assert len(stub.requests) == 4


def test_a_server_that_breaks_on_schemas_is_asked_otherwise(stub: StubModel) -> None:
    stub.script(answer={"facts": []})
    stub.script(status=500, kind="json", times=2)
    assert facts(stub) == {"facts": []}
    assert len(stub.requests) == 3


def test_a_server_that_is_replaced_by_one_that_knows_less_is_asked_otherwise(
    stub: StubModel,
) -> None:
    stub.script(answer={"facts": ["a"]})
    assert facts(stub) == {"facts": ["a"]}
    stub.refuse("json_schema")
    assert [facts(stub), facts(stub)] == [{"facts": ["a"]}] * 2
    assert len(stub.requests) == 4


def test_after_an_answer_of_no_use_a_server_is_asked_in_all_forms(stub: StubModel) -> None:
    stub.script(answer={"facts": ["a"]})
    assert facts(stub) == {"facts": ["a"]}
    stub.script(text="As you wish.", answer=None, kind="json")
    with pytest.raises(Rejected):
        facts(stub)
    stub.script(answer={"facts": ["b"]}, kind="chat")
    assert facts(stub) == {"facts": ["b"]}


def test_a_server_that_fails_and_then_talks_is_one_to_be_asked_again(stub: StubModel) -> None:
    stub.script(text="Hello there!", kind="chat")
    stub.script(status=500, kind="json", times=2)
    with pytest.raises(Unavailable):
        facts(stub)
    stub.reset()
    stub.script(answer={"facts": ["a"]}, kind="json")
    assert facts(stub) == {"facts": ["a"]}


def test_a_server_that_overlooks_the_schema_is_asked_otherwise(stub: StubModel) -> None:
    stub.script(answer={"facts": ["a"]}, kind="chat")
    stub.script(text="I like tea too!", answer=None, kind="json")
    assert facts(stub) == {"facts": ["a"]}


def test_thoughts_before_the_json_are_no_part_of_it(stub: StubModel) -> None:
    stub.script(text='<think>{"facts": ["wrong"]}</think>{"facts": ["right"]}', kind="json")
    assert facts(stub) == {"facts": ["right"]}


@pytest.mark.parametrize(
    ("scripted", "code"),
    [
        ({"text": "No JSON here."}, "provider_unusable"),
        ({"answer": {"facts": [1]}}, "provider_unusable"),
        ({"answer": []}, "provider_unusable"),
        ({"text": ""}, "provider_unusable"),
        ({"text": "x" * 300_000}, "provider_unusable"),
        ({"text": "x" * 3_000_000}, "provider_unusable"),
        ({"shape": "half_json"}, "provider_unusable"),
        ({"shape": "nothing"}, "provider_unusable"),
        ({"answer": {"facts": []}, "finish": "length"}, "provider_length"),
        ({"answer": {"facts": []}, "finish": "content_filter"}, "provider_filtered"),
    ],
)
def test_an_unusable_answer_is_rejected_with_a_reason(
    stub: StubModel, scripted: dict[str, Any], code: str
) -> None:
    for kind in ("json", "chat"):
        stub.script(kind=kind, **scripted)
    with pytest.raises(Rejected) as rejected:
        facts(stub)
    assert rejected.value.code == code
    assert len(stub.requests) <= 3


def test_a_web_page_is_no_answer(stub: StubModel) -> None:
    stub.script(shape="html", kind="json")
    with pytest.raises(Misconfigured):
        facts(stub)


def test_a_server_that_is_down_says_nothing_about_schemas(stub: StubModel) -> None:
    stub.script(status=503, kind="json")
    stub.script(status=503, kind="chat")
    with pytest.raises(Unavailable):
        facts(stub)
    assert answers._forms == {}


def test_a_whole_answer_has_a_deadline(stub: StubModel) -> None:
    stub.script(kind="json", shape="hang")
    began = time.monotonic()
    with pytest.raises(Unavailable) as late:
        facts(stub, timeout=0.5)
    assert late.value.code == "provider_timeout"
    assert time.monotonic() - began < 15
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected
