"""The reading of a stream, without a network."""

import json
import random
from typing import Any

import orjson
import pytest

from accounts.text import clean_text
from memory.wire import (
    ARGUMENT_CHARS,
    LONGEST_LINE,
    MOST_BEGUN,
    MOST_CALLS,
    EventReader,
    ReplyReader,
    ShownText,
    TooLong,
    Usage,
    decode_json,
)

EVENTS = (
    b'\xef\xbb\xbf: a comment\n\nevent: message\ndata: {"a": 1}\n\nid: 7\ndata:second\n\n'
    b"data: two\ndata: lines\n\nevent: error\ndata: gone\n\n"
)
READ = [("message", b'{"a": 1}'), ("", b"second"), ("", b"two\nlines"), ("error", b"gone")]


def pieces(whole: Any, seed: int) -> list[Any]:
    """Cut a text or bytes at random places."""
    chance = random.Random(seed)
    places = sorted(chance.sample(range(len(whole) + 1), min(len(whole), 1 + seed % 12)))
    return [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]


def chunk(content: Any, finish: Any = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def read(*received: bytes) -> ReplyReader:
    reader = ReplyReader()
    for part in received:
        reader.feed(part)
    reader.end()
    return reader


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("seed", range(30))
def test_events_are_the_same_however_the_bytes_are_cut(line_end: bytes, seed: int) -> None:
    stream = EVENTS.removeprefix(b"\xef\xbb\xbf").replace(b"\n", line_end)
    reader = EventReader()
    events = [event for piece in pieces(stream, seed) for event in reader.feed(piece)]
    assert events + reader.end() == READ


def test_the_last_event_needs_no_blank_line() -> None:
    reader = EventReader()
    assert reader.feed(b"data: one\n\ndata: two") == [("", b"one")]
    assert reader.end() == [("", b"two")]


def test_a_line_without_end_is_refused() -> None:
    reader = EventReader()
    reader.feed(b"data: " + b"x" * (LONGEST_LINE - 10))
    with pytest.raises(TooLong):
        reader.feed(b"x" * 10)


def test_data_lines_without_end_are_refused() -> None:
    reader = EventReader()
    line = b"data: " + b"x" * (LONGEST_LINE // 2 + 1) + b"\n"
    reader.feed(line)
    with pytest.raises(TooLong):
        reader.feed(line)


@pytest.mark.parametrize("seed", range(60))
def test_text_in_pieces_is_the_clean_text_of_the_whole(seed: int) -> None:
    chance = random.Random(seed)
    alphabet = ["a", " ", "\n", "\r", "\r\n", "\x00", "\x1b", "é", "😀", "\ud83d", "\ude00", "\x7f"]
    whole = "x" + "".join(chance.choices(alphabet, k=40))
    shown = ShownText()
    parts = [shown.push(piece) for piece in pieces(whole, seed)]
    assert "".join(parts) + shown.end() == clean_text(whole)


def test_a_pair_split_over_two_pieces_is_joined() -> None:
    shown = ShownText()
    assert shown.push("ok \ud83d") == "ok "
    assert shown.push("\ude00!") == "😀!"


@pytest.mark.parametrize("seed", range(20))
def test_thoughts_that_open_the_text_are_left_out(seed: int) -> None:
    shown = ShownText()
    whole = "\n<think>\nhe asks </thin about tea\n</think>\n\nTea, then. <think> stays"
    parts = [shown.push(piece) for piece in pieces(whole, seed)]
    assert "".join(parts) + shown.end() == "Tea, then. <think> stays"
    assert shown.thought


def test_text_that_only_begins_like_a_thought_is_shown() -> None:
    for text in ("<thin ice", "<", "  <th", "<thinker>"):
        shown = ShownText()
        assert shown.push(text) + shown.end() == text


def test_thoughts_without_end_show_nothing() -> None:
    shown = ShownText()
    assert shown.push("<think>on and on") + shown.end() == ""


def test_white_space_alone_is_no_text() -> None:
    reader = read(chunk("\n\n"), chunk(" ", "stop"))
    assert (reader.length, reader.take()) == (0, "")


def test_json_with_lone_surrogates_and_broken_bytes_is_read() -> None:
    assert decode_json(rb'{"a": "\ud83d"}') == {"a": "\ud83d"}
    assert decode_json(b'{"a": "\xff\n"}') == {"a": "\ufffd\n"}
    with pytest.raises(json.JSONDecodeError):
        decode_json(b'{"a": ')


def test_a_reply_with_its_end_and_its_count() -> None:
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}\n\n'
    reader = read(chunk("Hel"), chunk("lo"), chunk("", "stop"), usage, b"data: [DONE]\n\n")
    assert reader.take() == "Hello"
    assert (reader.finish, reader.done, reader.usage) == ("stop", True, Usage(9, 2))


@pytest.mark.parametrize(
    "usage", ["many", {"prompt_tokens": True, "completion_tokens": 1}, {"prompt_tokens": -1}, {}]
)
def test_a_count_that_is_none_is_left_out(usage: Any) -> None:
    reader = read(chunk("Hi"), b"data: " + orjson.dumps({"usage": usage}) + b"\n\n")
    assert reader.usage is None


@pytest.mark.parametrize(
    "strange",
    [
        b"data: null\n\n",
        b"data: 7\n\n",
        b"data: []\n\n",
        b'data: {"choices": null}\n\n',
        b'data: {"choices": [null]}\n\n',
        b'data: {"choices": [{"delta": null}]}\n\n',
        b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": [null, {"type": "text"}]}}]}\n\n',
        b'data: {"choices": [{"delta": {}, "finish_reason": 3}]}\n\n',
        b"data\n\n",
        b"retry: 10\n\n",
    ],
)
def test_chunks_of_a_strange_shape_change_nothing(strange: bytes) -> None:
    reader = read(chunk("a"), strange, chunk("b", "stop"))
    assert (reader.take(), reader.finish, reader.over) == ("ab", "stop", False)


def test_what_follows_a_line_that_is_no_json_is_not_trusted() -> None:
    reader = read(chunk("a"), b"data: {oops\n\n", chunk("b", "stop"))
    assert (reader.take(), reader.broken, reader.finish) == ("a", True, None)


def test_json_nested_without_measure_is_no_crash() -> None:
    reader = read(chunk("a"), b"data: " + b"[" * 200_000 + b"\n\n")
    assert (reader.take(), reader.broken) == ("a", True)


def test_what_is_sniffed_decides_and_not_its_name() -> None:
    assert read(b" \n<!doctype html>").page
    whole = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    reader = read(*pieces(orjson.dumps(whole), 5))
    assert (reader.take(), reader.finish, reader.done) == ("Hi", "stop", True)
    assert read(b'{"error": "no"}').error == "no"
    assert read(b'{"choices": [{"mess').broken
    assert read(b"\xef\xbb\xbf" + chunk("Hi", "stop")).take() == "Hi"


@pytest.mark.parametrize("seed", range(20))
def test_calls_are_the_same_however_the_bytes_are_cut(seed: int) -> None:
    given = [
        {"index": 0, "id": "a", "function": {"name": "save_memory", "arguments": ""}},
        {"index": 1, "id": "b", "function": {"name": "search_memory", "arguments": '{"q'}},
        {"index": 0, "function": {"arguments": '{"text": "Gr'}},
        {"index": 1, "function": {"arguments": 'uery": 1}'}},
        {"index": 0, "function": {"arguments": 'öße"}'}},
    ]
    stream = b"".join(
        b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [one]}}]}).encode() + b"\n\n"
        for one in given
    )
    reader = read(*pieces(stream, seed))
    assert [(call.id, call.name, call.arguments) for call in reader.calls] == [
        ("a", "save_memory", '{"text": "Größe"}'),
        ("b", "search_memory", '{"query": 1}'),
    ]


@pytest.mark.parametrize(
    "odd", [None, 7, "x", [], {}, {"function": 3}, {"function": {"name": 5}}, {"id": "a"}]
)
def test_what_is_no_call_is_none(odd: Any) -> None:
    chunk = {"choices": [{"delta": {"content": "Hi", "tool_calls": [odd]}}]}
    reader = read(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    assert reader.take() == "Hi"
    assert reader.calls == ()


def calling(pieces: list[dict[str, Any]]) -> bytes:
    chunk = {"choices": [{"delta": {"tool_calls": pieces}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@pytest.mark.parametrize("sign", ["index", "id"])
def test_of_many_calls_the_first_are_taken_and_no_piece_of_another_gets_into_them(
    sign: str,
) -> None:
    many: list[dict[str, Any]] = []
    for n in range(100):
        marked = {"index": n} if sign == "index" else {}
        begins = {**marked, "id": f"c{n}", "function": {"name": "f", "arguments": '{"n": '}}
        many += [begins, {**marked, "function": {"arguments": f"{n}}}"}}]
    calls = read(calling(many)).calls
    assert len(calls) == MOST_CALLS
    assert [json.loads(call.arguments) for call in calls] == [{"n": n} for n in range(MOST_CALLS)]


@pytest.mark.parametrize(("count", "chars"), [(MOST_BEGUN + 1, 0), (20, ARGUMENT_CHARS)])
def test_more_calls_than_anything_honest_are_too_long(count: int, chars: int) -> None:
    function = {"name": "f", "arguments": "x" * chars}
    with pytest.raises(TooLong):
        read(b"".join(calling([{"id": str(n), "function": function}]) for n in range(count)))


def test_a_calls_name_has_only_what_every_server_takes_back() -> None:
    odd = {"id": "a", "function": {"name": " functions.sävé memory ", "arguments": "{}"}}
    chunk = {"choices": [{"delta": {"tool_calls": [odd]}}]}
    (call,) = read(b"data: " + json.dumps(chunk).encode() + b"\n\n").calls
    assert call.name == "functions_s_v__memory"
