"""JSON out of a language model's answer, and whether it fits what was asked for."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from accounts.text import clean_text

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\n(.*?)```", re.DOTALL)
_TRIES = 50
_DEEPEST = 64

_KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def json_in(answer: str) -> Any:
    """Return the JSON value in an answer that may wrap it in thoughts, fences or words.

    Its strings are clean. Raises ValueError when there is none.
    """
    text = _THOUGHTS.sub("", answer).strip()
    candidates = [text, *(fenced.strip() for fenced in _FENCE.findall(text))]
    for candidate in candidates:
        try:
            return _cleaned(_decoder.decode(candidate))
        except (ValueError, RecursionError):
            continue
    for opening in [found.start() for found in re.finditer(r"[{\[]", text)][:_TRIES]:
        try:
            value, _ = _decoder.raw_decode(text, opening)
            return _cleaned(value)
        except (ValueError, RecursionError):
            continue
    raise ValueError("there is no JSON in it")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(strict=False, parse_constant=_no_constant)


def _cleaned(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _cleaned(item, depth + 1) for key, item in value.items()}
    return value


def misfit(value: Any, schema: Mapping[str, Any], at: str = "answer") -> str | None:
    """Return where and how a value fails a JSON schema, None if it fits.

    Knows type, enum, const, anyOf, properties, required, items, minItems and maxItems; other words
    of a schema are not checked. Names places, never what stands there.
    """
    if "anyOf" in schema:
        reasons = [misfit(value, choice, at) for choice in schema["anyOf"]]
        return None if None in reasons else f"{at} fits no choice"
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else list(wanted or [])
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{at} is not of type {' or '.join(kinds)}"
    if "const" in schema and value != schema["const"]:
        return f"{at} is not the one value allowed"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is none of the values allowed"
    if isinstance(value, dict):
        return _misfit_object(value, schema, at)
    if isinstance(value, list):
        return _misfit_array(value, schema, at)
    return None


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS.get(kind, object))


def _misfit_object(value: dict[str, Any], schema: Mapping[str, Any], at: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{at}.{name} is missing"
    for name, part in schema.get("properties", {}).items():
        if name in value and (reason := misfit(value[name], part, f"{at}.{name}")):
            return reason
    return None


def _misfit_array(value: list[Any], schema: Mapping[str, Any], at: str) -> str | None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{at} has {len(value)} items"
    part = schema.get("items")
    if isinstance(part, Mapping):
        for number, item in enumerate(value):
            if reason := misfit(item, part, f"{at}[{number}]"):
                return reason
    return None


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Tell whether OpenAI's strict mode takes the schema: closed objects, everything required."""
    parts: list[Any] = [*schema.get("anyOf", ()), *schema.get("properties", {}).values()]
    if isinstance(schema.get("items"), Mapping):
        parts.append(schema["items"])
    if schema.get("type") == "object":
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False:
            return False
        if names != set(schema.get("required", ())):
            return False
    return all(is_strict(part) for part in parts if isinstance(part, Mapping))


def asking_for_json(
    messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the messages with the schema in words, for servers that take none."""
    words = (
        "Answer with one JSON value and nothing else: no explanation, no code fence. "
        f"It must fit this JSON schema: {json.dumps(schema, ensure_ascii=False)}"
    )
    told = [dict(message) for message in messages]
    if told and told[0].get("role") == "system":
        told[0]["content"] = f"{told[0]['content']}\n\n{words}"
        return told
    return [{"role": "system", "content": words}, *told]
