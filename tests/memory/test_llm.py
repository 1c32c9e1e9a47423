"""Replies of a server that misbehaves in every known way."""

import asyncio
import gzip
import json
import time
from contextlib import aclosing
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from accounts.errors import ProviderError, Rejected, Unavailable
from memory import llm
from memory.llm import Delta, Finish
from memory.model_server import Endpoint
from memory.wire import Usage
from tests.memory.asking import ASKED, ask, endpoint, outcome
from tests.stub_model import StubModel


def test_a_reply_comes_with_its_end_and_its_count(stub: StubModel) -> None:
    stub.script(text="Hello Ada.")
    deltas = ask(stub)
    assert outcome(deltas) == ("Hello Ada.", Finish.COMPLETE)
    assert deltas[-1].usage == Usage(5, 2)
    sent = stub.requests[-1]
    assert sent.messages == ASKED
    assert sent.headers["authorization"] == "Bearer sk-secret"
    assert (sent.body["model"], sent.body["stream"]) == ("stub-model", True)


@pytest.mark.parametrize(
    "shape",
    [
        "plain",
        "azure",
        "null_choices",
        "null_content",
        "empty_finish",
        "finish_with_text",
        "text_after_finish",
        "split_lines",
        "no_done",
        "crlf",
        "no_space",
        "json_body",
        "wrong_type",
        "parts",
        "ollama",
        "after_done",
    ],
)
def test_every_known_way_to_reply_is_a_complete_reply(stub: StubModel, shape: str) -> None:
    stub.script(shape=shape, tokens=["One", " two", " thrée 😀", " end"])
    assert outcome(ask(stub)) == ("One two thrée 😀 end", Finish.COMPLETE)


@pytest.mark.parametrize("shape", ["cut", "abort", "half_json", "error_event", "error_message",
                                   "error_data", "broken_json"])  # fmt: skip
def test_a_reply_that_breaks_off_keeps_its_text_and_says_so(stub: StubModel, shape: str) -> None:
    tokens = ["One", " two", " three"] if shape == "broken_json" else ["One", " two"]
    stub.script(shape=shape, tokens=tokens)
    deltas = ask(stub)
    assert outcome(deltas) == ("One two", Finish.INTERRUPTED)
    assert isinstance(deltas[-1].error, Unavailable)
    assert len(stub.requests) == 1  # nothing is asked twice once there was text


@pytest.mark.parametrize(
    ("scripted", "code"),
    [
        ({"shape": "html"}, "provider_page"),
        ({"shape": "nothing"}, "provider_broke_off"),
        ({"shape": "cut", "tokens": []}, "provider_broke_off"),
        ({"shape": "abort", "tokens": []}, "provider_broke_off"),
        ({"tokens": []}, "provider_empty"),
        ({"tokens": ["\n", "  "]}, "provider_empty"),
        ({"shape": "ollama", "tokens": []}, "provider_empty"),
        ({"tokens": [], "finish": "length"}, "provider_length"),
        ({"tokens": [], "finish": "content_filter"}, "provider_filter"),
        ({"tokens": ["<think>long", " thoughts"], "finish": "length"}, "provider_length"),
        ({"shape": "error_event", "tokens": []}, "provider_error"),
        ({"shape": "error_message", "tokens": []}, "provider_error"),
        ({"body": "Service temporarily odd"}, "provider_broke_off"),
        ({"body": '{"error": {"message": "maximum context length is 8192"}}'}, "provider_too_long"),
    ],
)
def test_a_reply_without_words_has_failed(
    stub: StubModel, scripted: dict[str, Any], code: str
) -> None:
    stub.script(**scripted)
    with pytest.raises(ProviderError) as failed:
        ask(stub)
    assert failed.value.code == code
    assert str(failed.value).endswith(".")


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("length", Finish.LENGTH),
        ("MAX_TOKENS", Finish.LENGTH),
        ("content_filter", Finish.FILTERED),
        ("SAFETY", Finish.FILTERED),
        ("error", Finish.INTERRUPTED),
        ("eos", Finish.COMPLETE),
        ("tool_calls", Finish.COMPLETE),
    ],
)
def test_the_reason_for_the_end_is_kept(stub: StubModel, word: str, finish: Finish) -> None:
    stub.script(text="Once upon", finish=word)
    assert outcome(ask(stub)) == ("Once upon", finish)


def test_reasoning_is_signalled_and_never_text(stub: StubModel) -> None:
    stub.script(text="Tea.", reasoning=["He", " likes", " tea"], per_token=0.03)
    deltas = ask(stub, pace=lambda: 0.01)
    assert outcome(deltas) == ("Tea.", Finish.COMPLETE)
    assert deltas[0] == Delta(thinking=True)
    assert not any("like" in delta.text for delta in deltas)


def test_thoughts_within_the_text_are_left_out(stub: StubModel) -> None:
    stub.script(tokens=["<th", "ink>", "\nshe wants", " tea</th", "ink>\n\n", "Tea", "."])
    assert outcome(ask(stub)) == ("Tea.", Finish.COMPLETE)


def test_text_is_fit_to_be_stored(stub: StubModel) -> None:
    stub.script(tokens=["a\x00b ", "\ud83d", "\ude00", " lone \ud83d", " end\udc00", "\r", "\nz"])
    assert outcome(ask(stub)) == ("ab 😀 lone \ufffd end\ufffd\nz", Finish.COMPLETE)


def test_the_first_piece_does_not_wait_for_a_second(stub: StubModel) -> None:
    stub.script(tokens=["First", " second"], per_token=30)

    @async_to_sync
    async def first() -> Delta:
        async with aclosing(llm.stream(endpoint(stub), ASKED)) as deltas:
            return await anext(deltas)

    began = time.monotonic()
    assert first() == Delta("First")
    assert time.monotonic() - began < 20


def test_tokens_are_bundled_by_the_pace_and_none_is_lost(stub: StubModel) -> None:
    stub.script(count=100, per_token=0.005)
    deltas = ask(stub, pace=lambda: 0.05)
    text, _ = outcome(deltas)
    assert text == "".join(f"Hello,-{number} " for number in range(1, 101))
    assert len(deltas) < 60


def test_a_long_reply_all_at_once_is_whole(stub: StubModel) -> None:
    stub.script(count=5_000)
    text, finish = outcome(ask(stub, pace=lambda: 0))
    assert text.split() == [f"Hello,-{number}" for number in range(1, 5_001)]
    assert finish is Finish.COMPLETE


def test_a_reply_without_end_is_cut(stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "REPLY_CHARS", 20_000)
    stub.script(shape="flood", tokens=["a"])
    text, finish = outcome(ask(stub, pace=lambda: 0))
    assert finish is Finish.LENGTH
    assert len(text) > 20_000
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


def test_messages_with_lone_surrogates_are_sent_repaired(stub: StubModel) -> None:
    ask(stub, [{"role": "user", "content": "odd \ud83d text"}])
    assert stub.requests[-1].question == "odd \ufffd text"


def told(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def zipped(body: bytes) -> bytes:
    packed = gzip.compress(body)
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (
        len(packed),
        packed,
    )


OLD = b"HTTP/1.0 200 OK\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (zipped(told("Hi") + told("", "stop")), "complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", ""),
        (OLD + told("Hi") + told("", "stop"), "complete"),
        (OLD + told("Hi"), "interrupted"),
        (CHUNKED + b"%x\r\n%b\r\nzz\r\n" % (len(told("Hi")), told("Hi")), "interrupted"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + told("Hi"), "interrupted"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 307 Away\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n\r\n", ""),
        (b"HTTP/1.1 400 No\r\nContent-Length: 3\r\n\r\n\xff\xfe{", ""),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", ""),
        (b"SSH-2.0-OpenSSH\r\n", ""),
    ],
)
def test_http_itself_may_be_odd(answer: bytes, ended: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    @async_to_sync
    async def reply() -> str:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            odd = Endpoint(f"http://127.0.0.1:{port}/v1", "", "m")
            async with aclosing(llm.stream(odd, ASKED)) as deltas:
                text, finish = outcome([delta async for delta in deltas])
        assert text == "Hi"
        return str(finish)

    if ended:
        assert reply() == ended
        return
    with pytest.raises(ProviderError):
        reply()


# Deadlines.


@pytest.mark.parametrize("shape", ["comments", "blanks", "hang"])
def test_keep_alives_do_not_put_off_the_first_token(stub: StubModel, shape: str) -> None:
    stub.script(shape=shape, tokens=[])
    with pytest.raises(Unavailable) as late:
        ask(stub, first_token_timeout=0.5)
    assert late.value.code == "provider_timeout"
    assert str(late.value) == "The model did not answer within 0.5 seconds. Try again."
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


def test_headers_that_never_come_are_a_late_first_token(stub: StubModel) -> None:
    stub.script(body="{}", first_token=30)
    with pytest.raises(Unavailable) as late:
        ask(stub, first_token_timeout=0.5)
    assert late.value.code == "provider_timeout"
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


@pytest.mark.parametrize("shape", ["comments", "blanks", "hang"])
def test_keep_alives_do_not_hide_silence(stub: StubModel, shape: str) -> None:
    stub.script(shape=shape, tokens=["One", " two"])
    deltas = ask(stub, silence_timeout=0.5)
    assert outcome(deltas) == ("One two", Finish.INTERRUPTED)
    assert deltas[-1].error is not None
    assert deltas[-1].error.code == "provider_silent"
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


def test_reasoning_counts_as_a_sign_of_life(stub: StubModel) -> None:
    stub.script(text="Tea.", reasoning=["hm"] * 12, per_token=0.1)
    assert outcome(ask(stub, first_token_timeout=1.0, silence_timeout=1.0))[0] == "Tea."


def test_the_whole_reply_has_a_limit(stub: StubModel) -> None:
    stub.script(count=10_000, per_token=0.02)
    deltas = ask(stub, total_timeout=0.7)
    text, finish = outcome(deltas)
    assert finish is Finish.INTERRUPTED
    assert text.startswith("Hello,-1 Hello,-2 ")
    assert deltas[-1].error is not None
    assert deltas[-1].error.code == "provider_slow"


def test_a_server_that_lingers_after_the_finish_is_not_waited_for(stub: StubModel) -> None:
    stub.script(shape="lingering", tokens=["Done"])
    began = time.monotonic()
    assert outcome(ask(stub)) == ("Done", Finish.COMPLETE)
    assert time.monotonic() - began < 15


# Leaving.


def test_closing_the_generator_closes_the_connection(stub: StubModel) -> None:
    stub.script(count=10_000, per_token=0.01)

    @async_to_sync
    async def leave() -> float:
        async with aclosing(llm.stream(endpoint(stub), ASKED)) as deltas:
            await anext(deltas)
            await anext(deltas)
        return time.time()

    left = leave()
    request = stub.requests[-1]
    assert request.wait(10)
    assert request.disconnected
    assert request.ended_at is not None
    assert request.ended_at - left < 2
    assert request.writes < 5_000


@pytest.mark.parametrize("first_token", [0.0, 30.0])
def test_cancelling_the_task_closes_the_connection(stub: StubModel, first_token: float) -> None:
    stub.script(count=10_000, first_token=first_token, per_token=0.01)

    @async_to_sync
    async def cancel() -> float:
        async def read() -> None:
            async with aclosing(llm.stream(endpoint(stub), ASKED)) as deltas:
                async for _ in deltas:
                    arrived.set()

        arrived = asyncio.Event()
        task = asyncio.create_task(read())
        if first_token:
            await asyncio.to_thread(stub.wait_for_request)
        else:
            await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.time()

    left = cancel()
    request = stub.requests[-1]
    assert request.wait(10)
    assert request.disconnected
    assert request.ended_at is not None
    assert request.ended_at - left < 2


def test_a_connection_serves_again_after_a_whole_reply(stub: StubModel) -> None:
    @async_to_sync
    async def twice() -> int:
        for _ in range(3):
            async with aclosing(llm.stream(endpoint(stub), ASKED)) as deltas:
                async for _delta in deltas:
                    pass
        return len(stub.transports)

    assert twice() == 1


def test_many_replies_at_once_are_not_mixed(stub: StubModel) -> None:
    stub.default.count = 60
    stub.per_token = 0.002

    async def one(number: int) -> tuple[str, Finish | None]:
        asked = [{"role": "user", "content": f"q{number} hi"}]
        async with aclosing(llm.stream(endpoint(stub), asked)) as deltas:
            return outcome([delta async for delta in deltas])

    @async_to_sync
    async def all_of_them() -> list[tuple[str, Finish | None]]:
        return await asyncio.gather(*(one(number) for number in range(30)))

    for number, (text, finish) in enumerate(all_of_them()):
        assert text.split() == [f"q{number}-{token}" for token in range(1, 61)]
        assert finish is Finish.COMPLETE


# Tools.

TOOLS = [
    {"type": "function", "function": {"name": "save_memory", "parameters": {"type": "object"}}}
]
CALLS = [
    {"name": "save_memory", "arguments": {"text": "Größe 42"}, "id": "call_a"},
    {"name": "search_memory", "arguments": {"query": "shoes"}, "id": "call_b"},
]


@pytest.mark.parametrize(
    "shape", ["plain", "whole_calls", "bare_calls", "index_zero", "value_calls", "json_body"]
)
def test_calls_are_put_together_however_they_come(stub: StubModel, shape: str) -> None:
    stub.script(text="One moment.", calls=CALLS, shape=shape)
    deltas = ask(stub, tools=TOOLS)
    assert outcome(deltas) == ("One moment.", Finish.COMPLETE)
    calls = deltas[-1].calls
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("save_memory", {"text": "Größe 42"}),
        ("search_memory", {"query": "shoes"}),
    ]
    ids = [call.id for call in calls]
    if shape == "bare_calls":
        assert len(set(ids)) == 2
        assert all(len(id) == 9 and id.isalnum() for id in ids)
    else:
        assert ids == ["call_a", "call_b"]
    assert stub.requests[-1].tools == ["save_memory"]


def test_the_older_form_of_a_call_is_understood(stub: StubModel) -> None:
    stub.script(tokens=[], calls=CALLS[:1], shape="old_call", finish="function_call")
    (call,) = ask(stub, tools=TOOLS)[-1].calls
    assert (call.name, json.loads(call.arguments)) == ("save_memory", {"text": "Größe 42"})


def test_calls_without_words_are_no_empty_reply(stub: StubModel) -> None:
    stub.script(tokens=[], calls=CALLS, reasoning=["Let me", " see"])
    deltas = ask(stub, tools=TOOLS)
    assert outcome(deltas) == ("", Finish.COMPLETE)
    assert len(deltas[-1].calls) == 2


@pytest.mark.parametrize("how", [{"finish": "length"}, {"shape": "cut"}, {"shape": "abort"}])
def test_half_a_call_is_none(stub: StubModel, how: dict[str, Any]) -> None:
    stub.script(text="Well", calls=CALLS, **how)
    assert ask(stub, tools=TOOLS)[-1].calls == ()


def test_arguments_without_end_are_not_kept(stub: StubModel) -> None:
    stub.script(text="Well", calls=[{"name": "save_memory", "arguments": "x" * 70_000}])
    last = ask(stub, tools=TOOLS)[-1]
    assert last.finish is Finish.INTERRUPTED
    assert last.calls == ()


CALLED = [
    *ASKED,
    {"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]},
    {"role": "tool", "tool_call_id": "a", "content": "saved"},
    {"role": "assistant", "content": "I will."},
    {"role": "user", "content": "Thanks"},
]


@pytest.mark.parametrize(
    "refusal",
    [
        (400, "registry.ollama.ai/library/tiny does not support tools"),
        (404, "No endpoints found that support tool use."),
        (500, "tools param requires --jinja flag"),
    ],
)
def test_a_server_without_tools_is_asked_without_and_remembered(
    stub: StubModel, refusal: tuple[int, str]
) -> None:
    stub.script(status=refusal[0], error={"message": refusal[1]}, times=1)
    text, finish = outcome(ask(stub, CALLED, tools=TOOLS))
    assert (text, finish) == ("Hello from the stub model.", Finish.COMPLETE)
    with_tools, without = stub.requests
    assert with_tools.tools
    assert with_tools.results == ["saved"]
    assert not without.tools
    assert [message["role"] for message in without.messages] == [
        *("system", "user", "assistant", "user")
    ]
    assert "stream_options" in without.body
    assert not llm.knows_tools(endpoint(stub))
    ask(stub, CALLED, tools=TOOLS)
    assert len(stub.requests) == 3
    assert not stub.requests[-1].tools


@pytest.mark.parametrize("silently", [True, False])
def test_a_server_that_knows_neither_tools_nor_counting_is_found_out(
    stub: StubModel, silently: bool
) -> None:
    stub.refuse("tools", "stream_options", silently=silently)
    for _again in range(3):
        assert outcome(ask(stub, tools=TOOLS))[1] is Finish.COMPLETE
    assert not {"tools", "stream_options"} & set(stub.requests[-1].body)
    asked = len(stub.requests)
    ask(stub, tools=TOOLS)
    assert len(stub.requests) == asked + 1


def test_a_server_that_only_cannot_count_keeps_its_tools(stub: StubModel) -> None:
    stub.refuse("stream_options", silently=True)
    ask(stub, tools=TOOLS)
    assert stub.requests[-1].tools
    assert llm.knows_tools(endpoint(stub))


def test_a_call_that_the_server_could_not_read_costs_the_tools_only_once(stub: StubModel) -> None:
    error = {"message": "Failed to call a function.", "code": "tool_use_failed"}
    stub.script(status=400, error=error, times=1)
    assert outcome(ask(stub, tools=TOOLS))[1] is Finish.COMPLETE
    assert not stub.requests[-1].tools
    assert llm.knows_tools(endpoint(stub))


def test_tools_are_offered_again_after_a_while(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.refuse("tools")
    ask(stub, tools=TOOLS)
    stub.refuse()
    monkeypatch.setattr(llm, "WITHOUT_TOOLS", -1.0)
    ask(stub, tools=TOOLS)
    assert stub.requests[-1].tools


def test_what_is_wrong_for_another_reason_stays_wrong(stub: StubModel) -> None:
    stub.script(status=400, error={"message": "bad message"})
    with pytest.raises(Rejected):
        ask(stub, tools=TOOLS)
    assert llm.knows_tools(endpoint(stub))


def test_a_server_that_cannot_count_is_asked_without(stub: StubModel) -> None:
    stub.refuse("stream_options", silently=True)
    for _ in range(2):
        assert outcome(ask(stub))[1] is Finish.COMPLETE
    asked = ["stream_options" in request.body for request in stub.requests]
    assert asked == [True, False, False]
