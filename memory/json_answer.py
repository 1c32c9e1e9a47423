"""JSON out of a language model's answer, and whether it fits what was asked for."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accounts.text import clean_text

# What a model thinks aloud, closed or cut off, is no answer. Some servers strip the opening tag.
_THINKS = r"<(?:think|thinking|thought|reasoning|analysis)\b[^>]{0,40}>"
_THOUGHT = r"</(?:think|thinking|thought|reasoning|analysis)>"
_THOUGHTS = re.compile(rf"\A\s*{_THINKS}.*?{_THOUGHT}", re.DOTALL | re.I)
_THOUGHTS_CUT = re.compile(rf"\A\s*{_THINKS}.*\Z", re.DOTALL | re.I)
_LAST_THOUGHT = re.compile(rf"\A[^{{[]*{_THOUGHT}", re.DOTALL | re.I)
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


def json_in(answer: str, schema: Mapping[str, Any] | None = None) -> Any:
    """Return the JSON value in an answer that may wrap it in thoughts, fences or words.

    Of several, the first that fits the schema, where one is given and one does. Commas too many
    and Python's True, False and None are mended; what is cut off is not. Its strings are clean.
    Raises ValueError when there is none.
    """
    first: list[Any] = []
    for value in _values(_without_thoughts(answer)):
        if schema is None or misfit(value, schema) is None:
            return value
        first = first or [value]
    if first:
        return first[0]
    raise ValueError("there is no JSON in it")


def _without_thoughts(answer: str) -> str:
    text = _LAST_THOUGHT.sub("", _THOUGHTS.sub("", answer))
    return _THOUGHTS_CUT.sub("", text).strip()


def _values(text: str) -> Iterator[Any]:
    """Yield each JSON value that a text holds: all of it, what stands in fences, what begins."""
    for candidate in (text, *(fenced.strip() for fenced in _FENCE.findall(text))):
        for spelt in (candidate, _mended(candidate)):
            try:
                yield _cleaned(_decoder.decode(spelt))
                break
            except (ValueError, RecursionError):
                continue
    end = 0
    for opening in [found.start() for found in re.finditer(r"[{\[]", text)][:_TRIES]:
        if opening < end:
            continue  # within a value that was given already
        for spelt in (text, _mended(text)) if opening == 0 else (text,):
            try:
                value, end = _decoder.raw_decode(spelt, opening)
                yield _cleaned(value)
                break
            except (ValueError, RecursionError):
                continue


# Outside strings: a comma before a closing bracket, and how Python writes its constants.
_SLIPS = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])|\b(?:True|False|None)\b', re.DOTALL)
_PYTHONS = {"True": "true", "False": "false", "None": "null", ",": ""}


def _mended(text: str) -> str:
    return _SLIPS.sub(lambda found: _PYTHONS.get(found.group(), found.group()), text)


def numbered(numbers: Sequence[Any], count: int) -> list[int] | None:
    """Return the places in a list that numbers from 1 name, each once; None if one names none."""
    places = []
    for number in numbers:
        spelt = str(number).strip().lstrip("#").rstrip(".")
        if isinstance(number, bool) or not spelt.isascii() or not spelt.isdigit():
            return None
        if not 1 <= int(spelt[:6]) <= count:
            return None
        places.append(int(spelt) - 1)
    return list(dict.fromkeys(places))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _joined(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a name that stands twice loses nothing: lists are put together."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        before = made.get(name)
        if isinstance(before, list) and isinstance(value, list):
            made[name] = before + value
        elif name not in made or value:
            made[name] = value
    return made


_decoder = json.JSONDecoder(strict=False, parse_constant=_no_constant, object_pairs_hook=_joined)


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
