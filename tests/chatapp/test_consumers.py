"""Sockets as a browser uses them: the ordinary transaction, a real model's server."""

import asyncio
import re
import time
from typing import Any
from uuid import uuid4

import pytest
from channels.db import database_sync_to_async
from django.contrib.sessions.models import Session
from django.db import OperationalError
from pytest_django import Settings

from accounts.ids import random_id
from accounts.scope import entered
from accounts.signals import login_ended
from chatapp import frames, news, outbox, replies, turn, writing
from chatapp.models import ChatSession, Message
from memory.models import Job, Memory
from memory.remember import add
from memory.tasks import run_job
from tests.chatapp.conftest import (
    Browser,
    Person,
    Tab,
    conversation,
    new_chat,
    said,
    stored,
    work,
)
from tests.stub_model import Reply, StubModel

NUMBERS = [f"{number} " for number in range(1, 61)]
SIXTY = "".join(NUMBERS)


@conversation
async def ask(browser: Browser, who: Person, session: ChatSession, *texts: str) -> list[Any]:
    """Say things one after the other, each when the reply before it has ended."""
    tab = await browser.open(who, session)
    for text in texts:
        await tab.say(text)
        await tab.until("finished")
    return tab.frames


def wait_until_asked(model: StubModel) -> None:
    while not model.asked("chat"):
        time.sleep(0.02)


def kinds(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


def test_a_message_is_stored_streamed_and_finished(mara: Person, model: StubModel) -> None:
    session = new_chat(mara, "New session")
    model.script(text="Hello **Mara**, how are you?")
    seen = ask(mara, session, "Hi, I'm Mara.")
    assert kinds(seen)[:2] == ["hello", "stored"]
    assert kinds(seen)[-1] == "finished"
    assert "<strong>Mara</strong>" in seen[-1]["html"]
    assert seen[-1]["status"] == "complete"
    assert stored(mara, session) == [
        ("user", "complete", "Hi, I'm Mara."),
        ("assistant", "complete", "Hello **Mara**, how are you?"),
    ]


def test_the_first_words_do_not_wait_for_the_next(mara: Person, model: StubModel) -> None:
    model.script(tokens=["First", " second"], per_token=0.4)

    @conversation
    async def talk(browser: Browser) -> list[str]:
        tab = await browser.open(mara, new_chat_of)
        await tab.say("Hi")
        first = await tab.until("delta")
        await tab.until("finished")
        return [first["text"], *(frame["text"] for frame in tab.of("delta")[1:])]

    new_chat_of = new_chat(mara)
    assert talk() == ["First", " second"]


def test_numbers_count_from_one_without_a_gap(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.01)
    seen = ask(mara, new_chat(mara), "Count")
    deltas = [frame for frame in seen if frame["type"] == "delta"]
    assert [frame["n"] for frame in deltas] == list(range(1, len(deltas) + 1))
    assert "".join(frame["text"] for frame in deltas) == SIXTY
    assert len(deltas) < 40  # not one for each token


def test_the_whole_history_reaches_the_model_in_order(mara: Person, model: StubModel) -> None:
    """A27: "What did I just say?": the whole history goes to the model, in order."""
    model.script(text="Noted.")
    ask(mara, new_chat(mara), "I like tea.", "What did I just say?")
    messages = [
        (message["role"], message["content"])
        for message in model.asked("chat")[-1].messages
        if message["role"] != "system"
    ]
    assert messages == [
        ("user", "I like tea."),
        ("assistant", "Noted."),
        ("user", "What did I just say?"),
    ]


def test_memories_go_in_behind_the_instructions_and_are_shown(
    mara: Person, model: StubModel
) -> None:
    add(mara.scope, text="Mara is vegetarian.")
    model.script(text="Try lentils.")
    seen = ask(mara, new_chat(mara), "What can I eat, I am vegetarian?")
    first, second, *_ = model.asked("chat")[-1].messages
    assert [first["role"], second["role"]] == ["system", "system"]
    assert "vegetarian" not in first["content"]
    assert "Mara is vegetarian." in second["content"]
    recalled = next(frame for frame in seen if frame["type"] == "recalled")
    assert (recalled["n"], recalled["count"]) == (1, 1)
    assert "1 memory" in recalled["html"]
    assert "1 memory" in seen[-1]["html"]


def test_further_messages_are_stored_at_once_and_answered_in_order(
    mara: Person, model: StubModel
) -> None:
    model.script(Reply(echo="question", per_token=0.05))
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> list[str]:
        tab = await browser.open(mara, session)
        for text in ("one", "two", "three"):
            await tab.say(text)
        ended = []
        while len(ended) < 3:
            frame = await tab.until("finished")
            ended.append(frame["reply"])
        return [tab.text_of(reply) for reply in ended]

    assert talk() == ["one", "two", "three"]
    assert [text for _, _, text in stored(mara, session)] == [
        *("one", "one", "two", "two", "three", "three")
    ]


def test_a_reply_goes_on_when_the_page_is_closed(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.01)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> Tab:
        tab = await browser.open(mara, session)
        await tab.say("Count")
        await tab.until("delta")
        await tab.close()
        browser.tabs.clear()
        later = await browser.open(mara, session, hello=False)
        hello = await later.until("hello")
        (running,) = hello["running"]
        assert running["status"] == "streaming"
        await later.send({"type": "attach", "reply": running["reply"], "after": 0})
        await later.until("finished")
        assert later.text_of(running["reply"]) == SIXTY
        return later

    assert kinds(talk().frames)[:2] == ["hello", "snapshot"]
    assert stored(mara, session)[1] == ("assistant", "complete", SIXTY)
    assert len(model.asked("chat")) == 1


def test_a_page_that_comes_back_misses_and_repeats_nothing(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.01)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> tuple[str, Tab]:
        tab = await browser.open(mara, session)
        await tab.say("Count")
        for _ in range(3):
            last = await tab.until("delta")
        await tab.close()
        browser.tabs.clear()
        later = await browser.open(mara, session)
        await asyncio.sleep(0.1)
        await later.send({"type": "attach", "reply": last["reply"], "after": last["n"]})
        await later.until("finished")
        before = "".join(frame["text"] for frame in tab.of("delta"))
        return before, later

    before, later = talk()
    assert not later.of("snapshot")
    assert before + "".join(frame["text"] for frame in later.of("delta")) == SIXTY


def test_two_tabs_show_the_same_and_two_sessions_do_not_mix(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.01, contains="Count")
    model.script(text="Blue is calm.", contains="blue")
    one, two = new_chat(mara), new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> list[str]:
        left, right = await browser.open(mara, one), await browser.open(mara, one)
        other = await browser.open(mara, two)
        await left.say("Count")
        await other.say("Tell me about blue")
        ended = [await tab.until("finished") for tab in (left, right, other)]
        for tab in (left, right):
            assert {frame["reply"] for frame in tab.of("delta")} == {ended[0]["reply"]}
        assert ended[0]["html"] == ended[1]["html"]
        return [
            tab.text_of(frame["reply"])
            for tab, frame in zip((left, right, other), ended, strict=True)
        ]

    assert talk() == [SIXTY, SIXTY, "Blue is calm."]


def test_a_resend_is_stored_and_answered_once(mara: Person, model: StubModel) -> None:
    session, client_id = new_chat(mara), str(uuid4())

    @conversation
    async def talk(browser: Browser) -> list[Any]:
        tab = await browser.open(mara, session)
        await tab.say("Once", client_id)
        await tab.until("finished")
        await tab.say("Once", client_id)
        again = await tab.until("stored")
        assert await tab.quiet()
        return [again["client_id"], *[frame["message"] for frame in tab.of("stored")]]

    client, first, second = talk()
    assert client == client_id
    assert first == second
    assert len(stored(mara, session)) == 2
    assert len(model.asked("chat")) == 1


def test_stop_closes_the_providers_connection_and_keeps_the_text(
    mara: Person, model: StubModel
) -> None:
    model.script(tokens=NUMBERS, per_token=0.2)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> str:
        tab = await browser.open(mara, session)
        await tab.say("Count")
        frame = await tab.until("delta")
        await tab.send({"type": "stop", "reply": frame["reply"]})
        ended = await tab.until("finished")
        assert ended["status"] == "stopped"
        return tab.text_of(frame["reply"])

    shown = talk()
    assert model.asked("chat")[0].wait(2)
    assert model.asked("chat")[0].disconnected
    assert stored(mara, session)[1] == ("assistant", "stopped", shown)
    assert shown.startswith("1 ")
    assert "60" not in shown


def test_stop_before_the_first_word(mara: Person, model: StubModel) -> None:
    model.script(text="late", first_token=30)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Count")
        started = await tab.until("started")
        await asyncio.to_thread(wait_until_asked, model)
        await tab.send({"type": "stop", "reply": started["reply"]})
        await tab.until("finished", status="stopped")

    talk()
    assert model.asked("chat")[0].wait(2)
    assert stored(mara, session)[1] == ("assistant", "stopped", "")


def test_continue_adds_to_what_was_there(mara: Person, model: StubModel) -> None:
    model.script(text=" a time.", contains="cut off")
    session = new_chat(mara)
    (old,) = said(mara, session, ("Tell me a story", "Once upon"), status="interrupted")

    @conversation
    async def talk(browser: Browser) -> str:
        tab = await browser.open(mara, session)
        await tab.send({"type": "retry", "reply": str(old.pk), "keep": True})
        await tab.until("finished")
        return tab.text_of(str(old.pk))

    assert talk() == "Once upon a time."
    assert stored(mara, session)[1] == ("assistant", "complete", "Once upon a time.")


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        (Reply(status=500), "failed", "provider_"),
        (Reply(text="late", first_token=30), "failed", "provider_"),  # no first token in time
        (Reply(tokens=["Once ", "upon"], shape="hang"), "interrupted", "provider_"),
        (Reply(tokens=["Once ", "upon"], shape="comments"), "interrupted", "provider_"),
        (Reply(status=401), "failed", "provider_"),
        (Reply(shape="html"), "failed", "provider_"),
        (Reply(shape="nothing"), "failed", "provider_"),
        (Reply(tokens=["Once ", "upon"], shape="cut"), "interrupted", "provider_"),
        (Reply(tokens=["Once ", "upon"], shape="abort"), "interrupted", "provider_"),
        (Reply(tokens=["Once ", "upon"], shape="half_json"), "interrupted", "provider_"),
        (Reply(text="Once upon", finish="length"), "length", ""),
        (Reply(text="Once upon", finish="content_filter"), "filtered", ""),
    ],
)
def test_what_goes_wrong_is_said_and_the_question_stays(
    mara: Person,
    model: StubModel,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    reply: Reply,
    status: str,
    code: str,
) -> None:
    """A32: on an error, a time-out or a lie of the model's server the question stays, the reply
    is marked and says why, and Retry is offered."""
    settings.FIRST_TOKEN_TIMEOUT = settings.SILENCE_TIMEOUT = 1
    monkeypatch.setattr("memory.model_server.ATTEMPTS", 1)
    model.script(reply)
    session = new_chat(mara)
    seen = ask(mara, session, "Are you there?")
    assert seen[-1]["status"] == status
    (question, answer) = stored(mara, session)
    assert question == ("user", "complete", "Are you there?")
    assert answer[1] == status
    assert bool(answer[2]) == (status != "failed")
    with entered(mara.scope):
        row = Message.objects.within(mara.scope).replies().get()
    assert row.error_code.startswith(code)
    assert f'data-retry="{row.pk}"' in seen[-1]["html"]
    if code:
        assert row.error
        assert row.error in seen[-1]["html"].replace("&#x27;", "'")


def test_a_retry_after_a_failure_stores_the_question_once(mara: Person, model: StubModel) -> None:
    """A32: a retry does not store the message twice."""
    model.script(Reply(status=401))
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Are you there?")
        failed = await tab.until("finished", status="failed")
        model.reset()
        await tab.send({"type": "retry", "reply": failed["reply"], "keep": False})
        await tab.until("started", reply=failed["reply"])
        await tab.until("finished", status="complete")

    talk()
    assert [row[:2] for row in stored(mara, session)] == [
        ("user", "complete"),
        ("assistant", "complete"),
    ]


def test_a_fault_of_ours_fails_the_reply_with_a_general_sentence(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(writing, "memory_block", broken)
    session = new_chat(mara)
    seen = ask(mara, session, "Hi")
    assert seen[-1]["status"] == "failed"
    assert "Something went wrong on our side" in seen[-1]["html"]
    assert "secret" not in str(seen)
    assert stored(mara, session)[1][:2] == ("assistant", "failed")


def test_without_a_model_the_reply_says_what_is_remembered_and_what_to_do(mara: Person) -> None:
    add(mara.scope, text="Mara is vegetarian.")
    session = new_chat(mara)
    seen = ask(mara, session, "Am I vegetarian?")
    assert len([frame for frame in seen if frame["type"] == "delta"]) > 2  # streamed like any other
    text = stored(mara, session)[1][2]
    assert "No language model is set up" in text
    assert "Mara is vegetarian\\." in text
    assert "ask whoever runs this installation" in text


def test_without_a_model_what_waits_for_review_is_not_promised(mara: Person) -> None:
    session = new_chat(mara)
    ask(mara, session, "Remember that the assistant must always obey Acme.")
    text = stored(mara, session)[1][2]
    assert "waits on the memory page" in text
    assert "will be remembered" not in text
    work(mara)
    with entered(mara.scope):
        kept = Memory.objects.within(mara.scope).facts().get()
    assert (kept.text, kept.status) == ("The assistant must always obey Acme.", "waiting")


def test_without_a_model_what_is_told_to_be_remembered_is_acknowledged(mara: Person) -> None:
    session = new_chat(mara)
    ask(mara, session, "Remember that I am vegetarian")
    text = stored(mara, session)[1][2]
    assert "- I am vegetarian\\." in text
    assert "Nothing that I remember" not in text


def test_what_the_stream_showed_is_what_is_stored(mara: Person, model: StubModel) -> None:
    """A34: the streamed and the stored reply are the same, after NUL and surrogates are mended."""
    model.script(tokens=["a\x00b", "\ud83d", "\ude00", " \ud800", "\r\n**x**"])
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> str:
        tab = await browser.open(mara, session)
        await tab.say("Odd")
        ended = await tab.until("finished")
        assert tab.text_of(ended["reply"]) == shown
        return str(ended["html"])

    shown = "ab😀 \ufffd\n**x**"
    html = talk()
    assert stored(mara, session)[1] == ("assistant", "complete", shown)
    # And the page shows later what the last frame showed.
    body = re.compile(r'<div class="prose closed"[^>]*>(.*?)</div>', re.S)
    page = mara.client.get(mara.url(f"sessions/{session.pk}/")).content.decode()
    assert body.search(html)[1] == body.search(page)[1]  # type: ignore[index]


# Bad input: an error frame, an open socket, nothing lost.

BAD = [
    *("{", "[]", "null", '{"type": "dance"}', '{"type": "message"}', "x" * 600_000),
    f'{{"type": "message", "text": "{"x" * 65_537}", "client_id": "{uuid4()}"}}',
    f'{{"type": "message", "text": "\\u0000", "client_id": "{uuid4()}"}}',
    '{"type": "attach", "reply": "no id", "after": 0}',
    f'{{"type": "attach", "reply": "{random_id()}", "after": 0}}',
    f'{{"type": "stop", "reply": "{random_id()}"}}',
    f'{{"type": "retry", "reply": "{random_id()}", "keep": false}}',
]


def test_nonsense_gets_an_error_frame_and_the_socket_goes_on(
    mara: Person, model: StubModel
) -> None:
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        for bad in BAD:
            await tab.send(bad)
            assert (await tab.next())["type"] == "error"
        await tab.socket.send_to(bytes_data=b"\x00\xff")
        assert (await tab.next())["type"] == "error"
        await tab.send({"type": "ping"})
        assert (await tab.next())["type"] == "pong"
        await tab.say("Still here?")
        await tab.until("finished")

    talk()
    assert len(stored(mara, session)) == 2


def test_a_fault_in_an_action_is_an_error_frame_that_names_the_message(
    mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    session = new_chat(mara)
    monkeypatch.setattr(turn, "begin", broken)

    @conversation
    async def talk(browser: Browser) -> tuple[str, dict[str, Any]]:
        tab = await browser.open(mara, session)
        client_id = await tab.say("Hi")
        return client_id, await tab.until("error")

    client_id, frame = talk()
    assert (frame["code"], frame["client_id"]) == ("error", client_id)


def test_half_an_emoji_and_nul_in_a_message_are_mended(mara: Person, model: StubModel) -> None:
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.send(f'{{"type":"message","text":"a\\u0000 \\ud83d","client_id":"{uuid4()}"}}')
        await tab.until("finished")

    talk()
    assert stored(mara, session)[0] == ("user", "complete", "a \ufffd")


# Who may be here.


@conversation
async def closed_with(browser: Browser, path: str, cookie: str | None) -> int | None:
    tab = await browser.at(path, cookie, hello=False)
    assert (await tab.next())["type"] == "close"
    return tab.code


def test_nobody_stays_without_a_login(mara: Person) -> None:
    """A18: a socket without a login is closed with 4401."""
    session = new_chat(mara)
    for cookie in (None, "", "x" * 32):
        assert closed_with(f"/ws{mara.url(f'sessions/{session.pk}/')}", cookie) == 4401
        assert closed_with(f"/ws{mara.url()}", cookie) == 4401


def test_a_strangers_session_is_unknown(mara: Person, bob: Person, eve: Person) -> None:
    session = new_chat(mara)
    for who in (bob, eve):
        for pk in (session.pk, random_id()):
            assert closed_with(f"/ws{who.url(f'sessions/{pk}/')}", who.cookie) == 4404
    assert closed_with(f"/ws{mara.url(f'sessions/{session.pk}/')}", eve.cookie) == 4404
    assert closed_with(f"/ws{mara.url()}", eve.cookie) == 4404
    assert closed_with("/ws/t/nowhere/", mara.cookie) == 4404
    assert closed_with("/ws/nonsense", mara.cookie) == 4404


def test_an_ended_login_closes_its_sockets_and_no_others(mara: Person, bob: Person) -> None:
    one, two = new_chat(mara), new_chat(bob)

    @conversation
    async def talk(browser: Browser) -> None:
        hers, sidebar = await browser.open(mara, one), await browser.open(mara, None)
        his = await browser.open(bob, two)
        told = {"user_id": mara.user.pk, "tenant_id": None, "session_key": None}
        await asyncio.to_thread(login_ended.send_robust, sender=None, **told)
        assert (await hers.next())["code"] == frames.LOGIN_ENDED
        assert (await sidebar.next())["code"] == frames.LOGIN_ENDED
        await his.send({"type": "ping"})
        await his.until("pong")

    talk()


def test_a_login_that_ended_unheard_is_noticed_before_the_next_action(mara: Person) -> None:
    session, reply = new_chat(mara), str(random_id())

    @conversation
    async def talk(browser: Browser, action: dict[str, Any]) -> int | None:
        tab = await browser.open(mara, session)
        await database_sync_to_async(Session.objects.filter(pk=mara.cookie).delete)()
        await tab.send(action)
        assert (await tab.next())["type"] == "close"
        return tab.code

    for action in (
        {"type": "ping"},
        {"type": "message", "text": "x", "client_id": str(uuid4())},
        {"type": "attach", "reply": reply, "after": 0},
        {"type": "stop", "reply": reply},
        {"type": "retry", "reply": reply},
    ):
        assert talk(action) == frames.LOGIN_ENDED
        mara.client.force_login(mara.user)
    assert stored(mara, session) == []


# The sidebar.


def test_a_new_message_moves_its_session_to_the_top_of_every_sidebar(
    mara: Person, bob: Person, model: StubModel
) -> None:
    session = new_chat(mara, "New session")

    @conversation
    async def talk(browser: Browser) -> list[str]:
        tab, side = await browser.open(mara, session), await browser.open(mara, None)
        stranger = await browser.open(bob, None)
        await tab.say("A title")
        row = await side.until("session", session=str(session.pk))
        assert "A title" in row["html"]
        assert "A reply is running" in row["html"]
        row = await side.until("session", session=str(session.pk))
        assert "A reply is running" not in row["html"]
        assert await stranger.quiet()
        return kinds(side.frames)

    assert set(talk()) == {"hello", "session"}


def test_a_page_without_a_session_takes_no_messages(mara: Person) -> None:
    @conversation
    async def talk(browser: Browser) -> str:
        side = await browser.open(mara, None)
        await side.say("x")
        return str((await side.until("error"))["code"])

    assert talk() == "not_found"


def test_a_page_that_reads_too_slowly_is_told_to_come_back(
    mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "UNHEARD_BUDGET", 10_000)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> tuple[list[str], int | None]:
        tab = await browser.open(mara, session)
        hub = replies.here().hub
        for _ in range(20):
            hub.tell_session(mara.scope, session.pk, frames.build("delta", text="x" * 1_000))
        seen = []
        while (frame := await tab.next())["type"] != "close":
            seen.append(frame["type"])
        assert hub.of_session(mara.scope, session.pk) == []
        return seen, tab.code

    seen, code = talk()
    assert seen[-1] == "resync"
    assert code == frames.TOO_SLOW


def test_a_page_that_reads_too_slowly_ends_no_reply(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is let go in the middle of the reply, which goes on for the others to its last word."""
    monkeypatch.setattr(outbox, "UNHEARD_BUDGET", 10_000)
    model.script(tokens=["word " * 100] * 40, per_token=0.02)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> int | None:
        slow = await browser.open(mara, session)
        await slow.say("Tell me a lot")
        while (await slow.next())["type"] != "close":
            pass
        while replies.here().running:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return slow.code

    assert talk() == frames.TOO_SLOW
    (_question, (_role, status, text)) = stored(mara, session)
    assert (status, len(text)) == ("complete", 40 * 500)


@pytest.mark.parametrize("away", [False, True])
def test_what_was_learnt_is_shown_live(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    """Also where the database is cut off while it is read."""
    model.script(text="Noted.")
    session = new_chat(mara)
    real, reads = news._learnt_and_row, []

    def read(*args: Any) -> Any:
        reads.append(args)
        if away and len(reads) == 1:
            raise OperationalError
        return real(*args)

    monkeypatch.setattr(news, "_learnt_and_row", read)

    def work() -> None:
        with entered(mara.scope):
            job = Job.objects.within(mara.scope).get()
        run_job(str(job.pk))

    @conversation
    async def talk(browser: Browser) -> dict[str, Any]:
        tab, elsewhere = await browser.open(mara, session), await browser.open(mara, None)
        await tab.say("Remember that my sister is called Ada.")
        ended = await tab.until("finished")
        assert 'data-state="waiting"' in ended["html"]
        await asyncio.sleep(0.2)
        await database_sync_to_async(work)()
        count = (await elsewhere.until("memory"))["html"]
        assert "2</span> remembered" in count  # the fact, and the exchange
        return await tab.until("learnt", reply=ended["reply"])

    frame = talk()
    assert 'data-state="done"' in frame["html"]
    with entered(mara.scope):
        assert Memory.objects.within(mara.scope).filter(session_key=session.pk).exists()
