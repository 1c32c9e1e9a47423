"""JSON out of answers."""

from typing import Any

import pytest

from memory.json_answer import asking_for_json, is_strict, json_in, misfit

FACTS = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "sure": {"type": ["number", "null"]}},
                "required": ["text"],
            },
        },
        "kind": {"enum": ["fact", "none"]},
    },
    "required": ["facts"],
}


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts": []}',
        '  {"facts": []}\n',
        '```json\n{"facts": []}\n```',
        'Here it is:\n```\n{"facts": []}\n```\nThat is all.',
        '<think>{"facts": ["no"]}</think>\n{"facts": []}',
        'The answer is {"facts": []}, as you asked.',
        'Not {this}, but {"facts": []}',
    ],
)
def test_json_is_found_in_what_models_wrap_it_in(answer: str) -> None:
    assert json_in(answer) == {"facts": []}


@pytest.mark.parametrize(
    "answer",
    ["", "no", "{", '{"facts": [', "```json\n```", '{"a": NaN}', "[" * 5000, "{" * 100_000],
)
def test_no_json_is_said_to_be_none(answer: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        json_in(answer)


def test_strings_come_out_clean() -> None:
    assert json_in(r'{"a\u0000": "x\u0000\ud83d y"}') == {"a": "x\ufffd y"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"facts": []}, None),
        ({"facts": [{"text": "a", "sure": None, "more": 1}], "kind": "fact"}, None),
        ([], "answer is not of type object"),
        ({}, "answer.facts is missing"),
        ({"facts": {}}, "answer.facts is not of type array"),
        ({"facts": [{"text": 1}]}, "answer.facts[0].text is not of type string"),
        (
            {"facts": [{"text": "a", "sure": True}]},
            "answer.facts[0].sure is not of type number or null",
        ),
        ({"facts": [{"text": "a"}] * 3}, "answer.facts has 3 items"),
        ({"facts": [], "kind": "secret words"}, "answer.kind is none of the values allowed"),
    ],
)
def test_a_misfit_is_named_by_its_place_only(value: Any, reason: str | None) -> None:
    assert misfit(value, FACTS) == reason


def test_one_of_several_choices_is_enough() -> None:
    schema = {"anyOf": [{"type": "string"}, {"const": 3}]}
    assert misfit("a", schema) is None
    assert misfit(3, schema) is None
    assert misfit(4, schema) == "answer fits no choice"


def test_strict_is_what_openai_takes() -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert not is_strict(part)
    closed = part | {"additionalProperties": False}
    assert is_strict(closed)
    assert is_strict({"type": "array", "items": closed})
    assert not is_strict({"type": "array", "items": part})
    assert not is_strict(closed | {"required": []})


def test_the_schema_is_told_in_words_without_a_second_system_message() -> None:
    system = {"role": "system", "content": "Be brief."}
    user = {"role": "user", "content": "Hi"}
    told = asking_for_json([system, user], FACTS)
    assert [message["role"] for message in told] == ["system", "user"]
    assert told[0]["content"].startswith("Be brief.\n\nAnswer with one JSON value")
    assert system["content"] == "Be brief."
    assert [message["role"] for message in asking_for_json([user], FACTS)] == ["system", "user"]


@pytest.mark.parametrize(
    "answer",
    [
        '<think>I should note {"facts": [1]}</think>{"facts": []}',
        '<reasoning>hm</reasoning>\n{"facts": []}',
        'thoughts whose opening tag the server took away</think>{"facts": []}',
        '```json\n{"facts": [],}\n```',
        'As in {"example": 1}, so: {"facts": []}',
    ],
)
def test_the_answer_is_found_behind_thoughts_and_examples(answer: str) -> None:
    schema = {"type": "object", "properties": {"facts": {"type": "array"}}, "required": ["facts"]}
    assert json_in(answer, schema) == {"facts": []}


def test_slips_of_a_python_writer_are_mended_outside_strings() -> None:
    assert json_in('{"a": [True, None,], "b": "None, True,]"}') == {
        "a": [True, None],
        "b": "None, True,]",
    }


@pytest.mark.parametrize(
    "answer", ['<think>so it is {"facts": []}', '{"facts": [{"text": "The user is veg']
)
def test_thoughts_that_never_end_and_what_is_cut_off_hold_no_answer(answer: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        json_in(answer)
