"""The language model's client against a server that misbehaves in every known way."""

import asyncio
import gzip
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from asgiref.sync import async_to_sync

from accounts.errors import Misconfigured, ProviderError, Rejected, Unavailable
from memory import llm, loops
from memory.llm import Delta, Endpoint, Finish
from tests.stub_model import StubModel

ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello, model"}]
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}


@pytest.fixture
def stub() -> Iterator[StubModel]:
    llm._forms.clear()
    llm._no_usage.clear()
    llm._no_tools.clear()
    with StubModel() as running:
        yield running


def endpoint(stub: StubModel, key: str = "sk-secret") -> Endpoint:
    return Endpoint(stub.base_url, key, "stub-model")


def ask(stub: StubModel, messages: Any = ASKED, **options: Any) -> list[Delta]:
    """Return every piece of one reply."""

    async def all_of_it() -> list[Delta]:
        async with aclosing(llm.stream(endpoint(stub), messages, **options)) as deltas:
            return [delta async for delta in deltas]

    return async_to_sync(all_of_it)()


def outcome(deltas: list[Delta]) -> tuple[str, Finish | None]:
    assert [delta.finish for delta in deltas[:-1]] == [None] * (len(deltas) - 1)
    return "".join(delta.text for delta in deltas), deltas[-1].finish


# A reply as it comes.


def test_a_reply_comes_with_its_end_and_its_count(stub: StubModel) -> None:
    stub.script(text="Hello Ada.")
    deltas = ask(stub)
    assert outcome(deltas) == ("Hello Ada.", Finish.COMPLETE)
    assert deltas[-1].usage == llm.Usage(5, 2)
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


def test_clients_are_shared_on_a_loop_and_closed_with_it(stub: StubModel) -> None:
    @async_to_sync
    async def clients() -> Any:
        loop = asyncio.get_running_loop()
        for key in ("a", "b", "a"):
            other = Endpoint(stub.base_url, key, "stub-model")
            async with aclosing(llm.stream(other, ASKED)) as deltas:
                async for _delta in deltas:
                    pass
        kept = llm._by_loop[loop].kept
        assert len(kept) == 2
        return loop, [entry.client for entry in kept.values()]

    loop, closed = clients()
    assert loop not in llm._by_loop
    assert all(client.is_closed() for client in closed)


def test_clients_of_many_endpoints_are_not_kept_for_ever(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "CLIENTS", 2)

    @async_to_sync
    async def kept() -> int:
        for number in range(5):
            other = Endpoint(stub.base_url, f"key{number}", "stub-model")
            async with aclosing(llm.stream(other, ASKED)) as deltas:
                async for _delta in deltas:
                    pass
        return len(llm._by_loop[asyncio.get_running_loop()].kept)

    assert kept() == 2


# Refusals and second tries.


@pytest.mark.parametrize(
    ("status", "error", "kind", "code"),
    [
        (400, {"code": "context_length_exceeded"}, Rejected, "provider_too_long"),
        (400, {"code": "content_filter"}, Rejected, "provider_filter"),
        (401, {"message": "Incorrect API key provided: sk-secret"}, Misconfigured, "provider_key"),
        (402, {}, Misconfigured, "provider_credit"),
        (403, {}, Misconfigured, "provider_key"),
        (404, {"message": 'model "x" not found'}, Misconfigured, "provider_unknown"),
        (413, {}, Rejected, "provider_too_long"),
        (429, {"code": "insufficient_quota"}, Misconfigured, "provider_credit"),
        (418, {}, Rejected, "provider_rejected"),
    ],
)
def test_a_refusal_is_named_and_not_tried_again(
    stub: StubModel, status: int, error: dict[str, Any], kind: type[ProviderError], code: str
) -> None:
    stub.script(status=status, error={"message": "no"} | error)
    with pytest.raises(kind) as refused:
        ask(stub)
    assert refused.value.code == code
    assert "sk-secret" not in str(refused.value)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_passing_trouble_before_the_first_token_is_tried_again(
    stub: StubModel, status: int
) -> None:
    stub.script(status=status, times=1)
    assert outcome(ask(stub))[1] is Finish.COMPLETE
    assert len(stub.requests) == 2


def test_second_tries_have_an_end(stub: StubModel) -> None:
    stub.script(status=503, body="<html>Bad gateway</html>")
    with pytest.raises(Unavailable):
        ask(stub)
    assert len(stub.requests) == llm.ATTEMPTS


def test_a_server_that_asks_for_a_long_wait_is_not_waited_for(stub: StubModel) -> None:
    stub.script(status=429, headers={"retry-after": "3600"})
    with pytest.raises(Unavailable) as busy:
        ask(stub)
    assert busy.value.code == "provider_busy"
    assert len(stub.requests) == 1


def test_a_server_that_is_away_is_unavailable(stub: StubModel) -> None:
    stub.stop()
    began = time.monotonic()
    with pytest.raises(Unavailable) as away:
        ask(stub)
    assert away.value.code == "provider_unreachable"
    assert time.monotonic() - began < 20


def test_a_server_that_cannot_count_is_asked_without(stub: StubModel) -> None:
    stub.refuse("stream_options", silently=True)
    for _ in range(2):
        assert outcome(ask(stub))[1] is Finish.COMPLETE
    asked = ["stream_options" in request.body for request in stub.requests]
    assert asked == [True, False, False]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:11434/v1",
        "ftp://host/v1",
        "http:///v1",
        "http://[::bad/v1",
        "http://h:99999/v1",
    ],
)
def test_an_address_that_is_none_is_said_to_be(address: str) -> None:
    with pytest.raises(Misconfigured) as wrong:
        llm.list_models(address, "")
    assert wrong.value.code == "provider_address"


def test_a_key_that_is_none_is_said_to_be(stub: StubModel) -> None:
    with pytest.raises(Misconfigured) as wrong:
        llm.list_models(stub.base_url, "sk-…\n")
    assert wrong.value.code == "provider_key"


def test_neither_key_nor_words_are_logged(
    stub: StubModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stub.script(status=400, error={"message": "bad prompt: Hello, model with sk-secret"})
    with pytest.raises(Rejected) as refused:
        ask(stub)
    stub.reset()
    stub.script(shape="cut", text="A private answer")
    ask(stub)
    logged = caplog.text + repr(endpoint(stub)) + repr(refused.value)
    for secret in ("sk-secret", "Hello, model", "Be kind", "private answer"):
        assert secret not in logged


# Whole answers.


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


def facts(stub: StubModel, **options: Any) -> Any:
    return llm.complete_json(endpoint(stub), ASKED, SCHEMA, **options)


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
    assert llm._forms == {}


def test_a_whole_answer_has_a_deadline(stub: StubModel) -> None:
    stub.script(kind="json", shape="hang")
    began = time.monotonic()
    with pytest.raises(Unavailable) as late:
        facts(stub, timeout=0.5)
    assert late.value.code == "provider_timeout"
    assert time.monotonic() - began < 15
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


def test_a_short_text(stub: StubModel) -> None:
    stub.script(text=" A title\x00 \n", reasoning=["hm"])
    assert llm.complete_text(endpoint(stub), ASKED) == "A title"
    stub.script(text=" ")
    with pytest.raises(Rejected):
        llm.complete_text(endpoint(stub), ASKED)


# What an address offers.


def test_the_models_of_an_address() -> None:
    with StubModel(models=["b", "a"], api_key="right") as stub:
        assert llm.list_models(stub.base_url, "right") == ["b", "a"]
        with pytest.raises(Misconfigured) as refused:
            llm.list_models(stub.base_url, "wrong")
        assert str(refused.value) == "The server at this address refuses the key."
        with pytest.raises(Misconfigured) as wanted:
            llm.list_models(stub.base_url, "")
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
        llm.list_models(stub.base_url, "")
    assert "No model server answers at this address" in str(wrong.value)


def test_an_address_where_nobody_is(stub: StubModel) -> None:
    stub.stop()
    with pytest.raises(Unavailable) as away:
        llm.list_models(stub.base_url, "")
    assert str(away.value) == "Nothing answers at this address."


def test_no_models_yet_is_an_empty_list(stub: StubModel) -> None:
    stub.script(body='{"object": "list", "data": null}')
    assert llm.list_models(stub.base_url, "") == []


# Embeddings.


def test_remote_vectors_are_units_in_the_order_of_the_texts(stub: StubModel) -> None:
    texts = [f"text {number}" for number in range(150)]
    plain = llm.embed_remote(endpoint(stub), texts)
    assert plain.shape == (150, 384)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, atol=1e-5)
    assert [len(request.body["input"]) for request in stub.requests] == [64, 64, 22]
    stub.script(shape="shuffled")
    np.testing.assert_array_equal(llm.embed_remote(endpoint(stub), texts), plain)
    stub.script(shape="long")
    long = llm.embed_remote(endpoint(stub), texts)
    np.testing.assert_allclose(long, plain, atol=1e-5)


@pytest.mark.parametrize(
    "scripted",
    [
        {"shape": "missing"},
        {"shape": "doubled"},
        {"shape": "nan"},
        {"shape": "zero"},
        {"shape": "ragged"},
        {"shape": "strings"},
        {"body": "{}"},
        {"body": '{"data": [7, 8]}'},
        {"body": '{"data": [{"embedding": []}, {"embedding": []}]}'},
    ],
)
def test_vectors_that_are_none_are_rejected(stub: StubModel, scripted: dict[str, Any]) -> None:
    stub.script(**scripted)
    with pytest.raises(Rejected):
        llm.embed_remote(endpoint(stub), ["one", "two"])


def test_text_too_long_for_the_embedder_is_cut_further(stub: StubModel) -> None:
    stub.script(status=500, error={"message": "input is too large to process"}, times=1)
    llm.embed_remote(endpoint(stub), ["word " * 5_000])
    assert [len(request.body["input"][0]) for request in stub.requests] == [6_000, 1_000]


# Without a loop.


def test_an_interrupted_worker_closes_the_request(stub: StubModel) -> None:
    stub.script(kind="chat", body="{}", first_token=30)

    class SoftTimeLimit(Exception):
        pass

    import signal

    def ring(number: int, frame: Any) -> None:
        raise SoftTimeLimit

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(SoftTimeLimit):
            llm.complete_text(endpoint(stub), ASKED)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_clients_of_its_own(stub: StubModel) -> None:
    assert llm.complete_text(endpoint(stub), ASKED)
    child = os.fork()
    if not child:
        try:
            os._exit(0 if llm.complete_text(endpoint(stub), ASKED) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert llm.complete_text(endpoint(stub), ASKED)


def test_the_loop_of_workers_can_be_stopped_and_starts_again(stub: StubModel) -> None:
    assert llm.complete_text(endpoint(stub), ASKED)
    loops.stop()
    assert llm.complete_text(endpoint(stub), ASKED)
