"""Connections to a model's server: refusals, second tries, addresses, and their end."""

import asyncio
import logging
import os
import signal
import time
from contextlib import aclosing
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from accounts.errors import Misconfigured, ProviderError, Rejected, Unavailable
from memory import llm, loops, model_server
from memory.answers import complete_json
from memory.llm import Finish
from memory.model_list import list_models
from memory.model_server import Endpoint
from tests.memory.asking import ASKED, SCHEMA, ask, endpoint, outcome
from tests.stub_model import StubModel


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
    assert len(stub.requests) == model_server.ATTEMPTS


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
        list_models(address, "")
    assert wrong.value.code == "provider_address"


def test_a_key_that_is_none_is_said_to_be(stub: StubModel) -> None:
    with pytest.raises(Misconfigured) as wrong:
        list_models(stub.base_url, "sk-…\n")
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


def test_clients_are_shared_on_a_loop_and_closed_with_it(stub: StubModel) -> None:
    @async_to_sync
    async def clients() -> Any:
        loop = asyncio.get_running_loop()
        for key in ("a", "b", "a"):
            other = Endpoint(stub.base_url, key, "stub-model")
            async with aclosing(llm.stream(other, ASKED)) as deltas:
                async for _delta in deltas:
                    pass
        kept = model_server._by_loop[loop].kept
        assert len(kept) == 2
        return loop, [entry.client for entry in kept.values()]

    loop, closed = clients()
    assert loop not in model_server._by_loop
    assert all(client.is_closed() for client in closed)


def test_clients_of_many_endpoints_are_not_kept_for_ever(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_server, "CLIENTS", 2)

    @async_to_sync
    async def kept() -> int:
        for number in range(5):
            other = Endpoint(stub.base_url, f"key{number}", "stub-model")
            async with aclosing(llm.stream(other, ASKED)) as deltas:
                async for _delta in deltas:
                    pass
        return len(model_server._by_loop[asyncio.get_running_loop()].kept)

    assert kept() == 2


def test_an_interrupted_worker_closes_the_request(stub: StubModel) -> None:
    stub.script(kind="json", body="{}", first_token=30)

    class SoftTimeLimit(Exception):
        pass

    def ring(number: int, frame: Any) -> None:
        raise SoftTimeLimit

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(SoftTimeLimit):
            complete_json(endpoint(stub), ASKED, SCHEMA)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stub.requests[-1].wait()
    assert stub.requests[-1].disconnected


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_clients_of_its_own(stub: StubModel) -> None:
    assert complete_json(endpoint(stub), ASKED, SCHEMA)
    child = os.fork()
    if not child:
        try:
            os._exit(0 if complete_json(endpoint(stub), ASKED, SCHEMA) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert complete_json(endpoint(stub), ASKED, SCHEMA)


def test_the_loop_of_workers_can_be_stopped_and_starts_again(stub: StubModel) -> None:
    assert complete_json(endpoint(stub), ASKED, SCHEMA)
    loops.stop()
    assert complete_json(endpoint(stub), ASKED, SCHEMA)
