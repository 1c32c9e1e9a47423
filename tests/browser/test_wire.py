"""What comes over the wire, past the pages: many at once, strangers, and nonsense; real Daphne."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import expect
from websockets.exceptions import ConnectionClosed

from tests.browser.people import Person, Watch
from tests.browser.wire import Wire, until, until_silent
from tests.stub_model import Reply, StubModel

MESSAGE = {"type": "message", "text": "hi", "client_id": "7"}


def test_messages_and_a_strangers_at_once_are_each_stored_once_or_not_at_all(
    mara: Person, bob: Person, stub: StubModel
) -> None:
    """A22, A31: M and B post at once to M's fresh session, over HTTP and sockets: M's four parallel
    messages and their replies are there exactly once, question before reply; B gets what an unknown
    id gets; nothing is mixed or lost."""
    stub.script(echo="question")
    mara.ask("First.")
    path = urlsplit(mara.page.url).path
    session = path.split("/")[-2]
    unknown = f"{bob.home}sessions/{uuid4()}/"
    bob.new_session()
    start = Barrier(9)
    her_wire, his_wire = Wire(mara), Wire(bob)
    _, nobodys = his_wire.post(unknown, {"text": "x"})

    def hers(number: int) -> int:
        start.wait()
        given = {"text": f"Hers {number}.", "client_id": str(uuid4())}
        return her_wire.post(path, given)[0]

    def his(number: int) -> tuple[int, str]:
        start.wait()
        there = path if number % 2 else f"{bob.home}sessions/{session}/"
        return his_wire.post(there, {"text": f"His {number}.", "client_id": str(uuid4())})

    def his_socket(_number: int) -> int | None:
        start.wait()
        there = f"{bob.home}sessions/{session}/"
        with his_wire.socket(there) as socket, suppress(ConnectionClosed):
            socket.recv(timeout=20)
        return socket.close_code

    with ThreadPoolExecutor(9) as threads:
        told = [threads.submit(hers, number) for number in range(4)]
        strange = [threads.submit(his, number) for number in range(4)]
        closed = threads.submit(his_socket, 0)
    assert [one.result() for one in told] == [200] * 4
    assert {one.result()[0] for one in strange} == {404}
    assert {without_ids(one.result()[1]) for one in strange} == {without_ids(nobodys)}
    assert closed.result() == 4404
    expect(mara.exchanges).to_have_count(5)
    expect(mara.page.locator('.reply[data-status="complete"]')).to_have_count(5)
    rows = mara.stored()
    assert [row[:2] for row in rows] == [("user", "complete"), ("assistant", "complete")] * 5
    said = [text for role, _, text in rows if role == "user"]
    assert sorted(said) == ["First.", *(f"Hers {number}." for number in range(4))]
    assert [text for role, _, text in rows if role == "assistant"] == said  # each its own echo
    assert bob.stored() == []


def without_ids(page: str) -> str:
    """Return the page without what is masked anew each time (token, nonce) and its own id."""
    return re.sub(r"[A-Za-z0-9]{64}|nonce=\"[^\"]+\"|[0-9a-f-]{36}", "", page)


def frame(**given: Any) -> str:
    return json.dumps(MESSAGE | {"client_id": str(uuid4())} | given)


NONSENSE: list[Callable[[], str | bytes]] = [
    lambda: "{",
    lambda: "",
    lambda: "[]",
    lambda: "null",
    lambda: '{"type": "dance"}',
    lambda: '{"type": "message"}',
    lambda: "[" * 100_000,
    lambda: b"\x00\xff",
    lambda: b"{}",
    lambda: frame(text="x" * 65_537),
    lambda: frame(text="\x00" * 65_537),  # six times as long in JSON
    lambda: frame(text="\x00"),
    lambda: frame(text=" \n"),
    lambda: frame(text=7),
    lambda: frame(client_id="7"),
    lambda: json.dumps({"type": "attach", "reply": "no id", "after": 0}),
    lambda: json.dumps({"type": "attach", "reply": str(uuid4()), "after": 0}),
    lambda: json.dumps({"type": "attach", "reply": str(uuid4()), "after": -1}),
    lambda: json.dumps({"type": "stop", "reply": str(uuid4())}),
    lambda: json.dumps({"type": "retry", "reply": str(uuid4()), "keep": False}),
]


def test_nonsense_over_a_socket_is_answered_in_words_and_the_socket_goes_on(
    mara: Person, bob: Person, stub: StubModel
) -> None:
    """Bad input: malformed and binary frames, a message of more than 64 KiB, NUL, lone surrogates,
    unknown and foreign ids: each a clear sentence, no socket closed, nothing lost."""
    bob.ask("His own words.")
    foreign = bob.reply.get_attribute("data-reply")
    stub.reset()
    stub.script(echo="question")
    mara.ask("First.")
    with Wire(mara).socket() as socket:
        until(socket, "hello")
        foreigners: list[Callable[[], str | bytes]] = [
            lambda: json.dumps({"type": "attach", "reply": foreign, "after": 0}),
            lambda: json.dumps({"type": "stop", "reply": foreign}),
            lambda: json.dumps({"type": "retry", "reply": foreign, "keep": True}),
        ]
        for nonsense in NONSENSE + foreigners:
            socket.send(nonsense())
            told = json.loads(socket.recv(timeout=20))
            assert told["type"] == "error", nonsense()[:80]
            assert re.fullmatch(r"\w.* .*\.", told["message"], re.S), told
        for odd in (frame(text="a\x00 \ud83d"), frame(text="ü" * 32_768)):
            socket.send(odd)
            until(socket, "finished", status="complete")
        socket.send('{"type": "ping"}')
        until(socket, "pong")
        assert socket.close_code is None
    assert [text for role, _, text in mara.stored() if role == "user"] == [
        *("First.", "a \ufffd", "ü" * 32_768)
    ]
    assert bob.stored()[0][2] == "His own words."


def test_a_frame_beyond_every_limit_ends_only_its_own_socket(mara: Person, stub: StubModel) -> None:
    """Bad input: what Daphne itself refuses closes that socket, not with 1011; the page comes back
    and nothing that was said is lost."""
    mara.ask("First.")
    with Wire(mara).socket() as socket:
        until(socket, "hello")
        with suppress(ConnectionClosed, OSError):
            socket.send("x" * 2_000_000)
            for _frame in socket:
                pass
        assert socket.close_code not in {None, 1011}
    mara.ask("Second.")
    assert [text for role, _, text in mara.stored() if role == "user"] == ["First.", "Second."]


@pytest.mark.parametrize("where", ["", "sessions/{session}/", "memory/add/", "no/such/address/"])
def test_nonsense_over_http_is_no_fault_of_the_server(mara: Person, where: str) -> None:
    """Bad input by HTTP: NUL, lone surrogates, broken bytes, too much of it: a 4xx, never a 5xx."""
    mara.ask("First.")
    path = mara.home + where.format(session=urlsplit(mara.page.url).path.split("/")[-2])
    wire = Wire(mara)
    bodies = (
        b"text=%00",
        b"text=%ED%A0%BD&client_id=%ff",
        b"text=\xff\xfe\x00",
        b"text=" + b"x" * 65_537,
        b"text=" + b"x" * 3_000_000,
        b"client_id=7&text=x",
        b"&&&===%%%",
        b"",
    )
    for body in bodies:
        status, page = wire.post(path, body)
        assert status in range(400, 500) or (where and status < 400), (status, body[:40])
        assert "Traceback" not in page
    assert mara.stored()[0][2] == "First."


BAD = {
    "down": Reply(status=503),
    "refuses": Reply(status=401),
    "html": Reply(shape="html"),
    "nothing": Reply(shape="nothing"),
    "error event": Reply(shape="error_event"),
    "cut off": Reply(tokens=["Once ", "upon"], shape="abort"),
}


def test_whatever_the_models_server_does_is_told_in_a_sentence(
    mara: Person, stub: StubModel, watch: Watch
) -> None:
    """Bad input: a provider that is down or lies: a clear message under each question, which stands
    once; the same page goes on, and Retry brings the replies."""
    for number, (name, reply) in enumerate(BAD.items(), 1):
        stub.reset()
        stub.script(reply)
        mara.say(f"Question {number}: {name}.")
        expect(mara.replies).to_have_count(number)
        expect(mara.reply).to_have_attribute(
            "data-status", re.compile("failed|interrupted"), timeout=40_000
        )
        expect(mara.reply.locator(".reply-end p")).to_have_text(re.compile(r"^[A-Z].*\.$", re.S))
        expect(mara.reply.get_by_role("button", name="Retry")).to_be_visible()
    stub.reset()
    mara.reply.get_by_role("button", name="Retry").click()
    mara.ended()
    asked = [text for role, _, text in mara.stored() if role == "user"]
    assert asked == [f"Question {number}: {name}." for number, name in enumerate(BAD, 1)]


def test_a_socket_that_says_nothing_for_a_while_stays_open(mara: Person) -> None:
    """Point 4: an idle page keeps its socket: one library of this stack closes it after six
    seconds."""
    mara.ask("First.")
    with Wire(mara).socket() as socket:
        until(socket, "hello")
        until_silent(socket, seconds=8)
        socket.send('{"type": "ping"}')
        until(socket, "pong")
