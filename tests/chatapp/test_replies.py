"""Replies in the hands of a process: stopped from elsewhere, cut off, ended, remembered."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels.db import database_sync_to_async
from django.db import OperationalError
from pytest_django import DjangoCaptureOnCommitCallbacks

import memory
from accounts import join
from accounts.scope import entered
from chatapp import frames, replies, retrieval, sessions, turn, writing
from chatapp.models import Message
from chatapp.replies import Replies
from memory.models import Job, Recalled
from tests.chatapp.conftest import (
    Browser,
    FakePage,
    Person,
    conversation,
    new_chat,
    said,
    stored,
    two_processes,
    visitor,
)
from tests.stub_model import StubModel

NUMBERS = [f"{number} " for number in range(1, 61)]
SIXTY = "".join(NUMBERS)


def test_stop_reaches_the_process_that_writes(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.2)
    session, who = new_chat(mara), visitor(mara)

    @two_processes
    async def talk(one: Replies, two: Replies) -> None:
        here, there = FakePage(who, session.pk), FakePage(who, session.pk)
        one.add(here)
        two.add(there)
        await asyncio.sleep(0.2)
        await one.begin(here, session.pk, "Count", uuid4())
        delta = await here.until("delta")
        await two.stop(there, UUID(delta["reply"]))
        assert (await here.until("finished"))["status"] == "stopped"

    talk()
    assert model.asked("chat")[0].wait(2)
    assert model.asked("chat")[0].disconnected


@pytest.mark.parametrize("how", ["disabled", "removed"])
def test_a_reply_to_somebody_who_may_be_here_no_longer_is_stopped(
    how: str,
    mara: Person,
    bob: Person,
    model: StubModel,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    """The provider is let go at once, what waits behind is not answered, others' replies go on."""
    model.script(tokens=NUMBERS, per_token=0.2)
    session, his = new_chat(mara), new_chat(bob)

    def let_go() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            if how == "disabled":
                join.disable(mara.user)
            else:
                join.leave(mara.scope, actor=mara.user)

    @conversation
    async def talk(browser: Browser) -> None:
        tab, others = await browser.open(mara, session), await browser.open(bob, his)
        await others.say("Count for Bob")
        await others.until("delta")
        await tab.say("Count")
        await tab.until("delta")
        await tab.say("And on")
        await tab.until("stored")
        await database_sync_to_async(let_go)()
        assert (await tab.until("close"))["code"] == frames.LOGIN_ENDED
        hers = next(one for one in model.asked("chat") if one.question == "Count")
        assert await asyncio.to_thread(hers.wait, 5)
        assert hers.disconnected
        await others.until("delta")
        assert not model.asked("chat")[0].disconnected
        registry = replies.here()
        async with asyncio.timeout(5):
            while len(registry.running) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await registry.claim(mara.scope, session.pk)
        assert [one.scope for one in registry.running.values()] == [bob.scope]

    talk()
    rows = stored(mara, session)
    assert [status for _role, status, _text in rows] == [
        *("complete", "interrupted"),
        *("complete", "interrupted"),
    ]
    assert rows[1][2].startswith("1 ")
    assert "60" not in rows[1][2]
    assert [one.question for one in model.asked("chat")] == ["Count for Bob", "Count"]


def test_a_reply_is_given_up_though_nobody_was_told_that_its_person_is_disabled(
    mara: Person,
) -> None:
    session = new_chat(mara)
    begun = turn.begin(mara.scope, session.pk, text="Count", client_id=uuid4())
    assert begun.turn is not None
    assert turn.keep(begun.turn, text="1 ")
    join.disable(mara.user)
    assert not turn.keep(begun.turn, text="1 2 ")
    join.enable(mara.user)
    assert turn.keep(begun.turn, text="1 2 ")


@conversation
async def _ends_while_it_writes(browser: Browser, who: Person, session: Any) -> dict[str, Any]:
    tab = await browser.open(who, session)
    await tab.say("Count")
    await tab.until("delta")
    await replies.shut_down()
    return await tab.until("finished")


def test_a_process_that_ends_marks_what_it_writes(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.2)
    session = new_chat(mara)
    assert _ends_while_it_writes(mara, session)["status"] == "interrupted"
    role, status, text = stored(mara, session)[1]
    assert (role, status) == ("assistant", "interrupted")
    assert text.startswith("1 ")
    assert model.asked("chat")[0].wait(2)


def test_a_session_that_is_deleted_ends_what_runs_in_it(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.2)
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab, side = await browser.open(mara, session), await browser.open(mara, None)
        await tab.say("Count")
        await tab.until("delta")
        url = mara.url(f"sessions/{session.pk}/delete/")
        answer = await database_sync_to_async(mara.client.post)(url)
        assert answer.status_code == 303
        await side.until("session_gone", session=str(session.pk))
        while (await tab.next())["type"] != "close":
            pass

    talk()
    assert stored(mara, session) == []
    assert model.asked("chat")[0].wait(2)
    assert model.asked("chat")[0].disconnected


def test_without_the_database_the_page_is_told_so(
    mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_chat(mara)

    def away(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("secret")

    @conversation
    async def talk(browser: Browser) -> dict[str, Any]:
        tab = await browser.open(mara, session)
        monkeypatch.setattr(turn, "begin", away)
        client_id = await tab.say("Hello?")
        frame = await tab.until("error")
        assert frame["client_id"] == client_id
        return frame

    frame = talk()
    assert frame["code"] == "database_away"
    assert "secret" not in str(frame)


def test_an_end_that_can_not_be_stored_at_once_is_stored_later(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(text="Kept.")
    session, real, tries = new_chat(mara), turn.finish, []

    def away_once(*args: Any, **kwargs: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError
        return real(*args, **kwargs)

    monkeypatch.setattr(turn, "finish", away_once)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Hello?")
        await tab.until("finished", status="complete")

    talk()
    assert stored(mara, session)[1][2] == "Kept."


def once(work: Any, *, behind: bool = False) -> Any:
    """Return the work, whose first answer the database is cut off from: before it, or behind it."""
    tries: list[int] = []

    def cut_once(*args: Any, **kwargs: Any) -> Any:
        tries.append(1)
        if len(tries) > 1:
            return work(*args, **kwargs)
        if behind:
            work(*args, **kwargs)
        raise OperationalError

    return cut_once


def test_an_end_that_was_stored_is_shown_though_the_answer_got_lost(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(text="Kept.")
    session = new_chat(mara)
    monkeypatch.setattr(turn, "finish", once(turn.finish, behind=True))

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Hello?")
        ended = await tab.until("finished", status="complete")
        assert "Kept." in ended["html"]
        await tab.say("Again?")
        await tab.until("finished", status="complete")

    talk()
    assert [text for _role, _status, text in stored(mara, session)][1::2] == ["Kept.", "Kept."]


def test_what_a_reply_was_given_is_written_down_though_the_database_was_away(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    boat = memory.remember(mara.scope, text="The user owns a boat.")
    session = new_chat(mara)
    monkeypatch.setattr(writing, "record", once(writing.record))

    def recorded() -> bool:
        with entered(mara.scope):
            return Recalled.objects.within(mara.scope).filter(memory=boat).exists()

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("What do I own?")
        await tab.until("finished")
        async with asyncio.timeout(10):
            while not await database_sync_to_async(recorded)():  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    talk()


def test_a_reply_comes_though_the_database_was_away_before_its_first_word(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(text="Hello.")
    session = new_chat(mara)
    monkeypatch.setattr(retrieval, "_recalled", once(retrieval._recalled))

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Hello?")
        await tab.until("finished", status="complete")

    talk()
    assert stored(mara, session)[1][2] == "Hello."


def test_the_end_of_a_reply_of_old_is_shown_to_who_asks(mara: Person) -> None:
    session = new_chat(mara)
    (reply,) = said(mara, session, ("q", "**a**"))

    @conversation
    async def talk(browser: Browser) -> dict[str, Any]:
        tab = await browser.open(mara, session)
        await tab.send({"type": "attach", "reply": str(reply.pk), "after": 3})
        return await tab.until("finished")

    assert "<strong>a</strong>" in talk()["html"]


def test_a_reply_that_ends_while_its_row_is_read_is_shown_as_ended(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_chat(mara)
    (reply,) = said(mara, session, ("q", "**a**"))
    real, reads = sessions.reply_of, []

    def stale_at_first(*args: Any, **kwargs: Any) -> Message:
        row = real(*args, **kwargs)
        if not reads:
            row.status = Message.Status.STREAMING
        reads.append(row)
        return row

    @conversation
    async def talk(browser: Browser) -> list[dict[str, Any]]:
        tab = await browser.open(mara, session)
        monkeypatch.setattr(sessions, "reply_of", stale_at_first)
        await tab.send({"type": "attach", "reply": str(reply.pk), "after": 3})
        await tab.until("finished", status="complete")
        return tab.of("snapshot")

    assert talk() == []


def test_the_questions_vector_goes_on_with_the_job(mara: Person, model: StubModel) -> None:
    model.script(text="Noted.")
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("I have a cat.")
        await tab.until("finished")

    talk()
    with entered(mara.scope):
        packed = Job.objects.within(mara.scope).get().result["question"]
    assert packed["model"] == "all-MiniLM-L6-v2-int8"


def test_a_reply_that_is_stopped_before_its_first_step_asks_no_model(
    mara: Person, model: StubModel
) -> None:
    session = new_chat(mara)
    begun = turn.begin(mara.scope, session.pk, text="Hello?", client_id=uuid4())
    assert begun.turn is not None

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        here = replies.here()
        here._run(begun.turn, mara.tenant)
        here.running[begun.reply.pk].stop("stopped")
        await tab.until("finished", status="stopped")

    talk()
    assert stored(mara, session)[1] == ("assistant", "stopped", "")
    assert model.asked("chat") == []


def test_a_registry_keeps_nothing_of_what_is_over(mara: Person, model: StubModel) -> None:
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Hello?")
        await tab.until("finished")
        await tab.close()
        browser.tabs.clear()
        await asyncio.sleep(0.1)
        here = replies.here()
        kept = (here.running, here._lives, here.following.streams, here.logins.checked)
        assert [len(one) for one in kept] == [0, 0, 0, 0]
        assert dict(here.hub.pages) == {}
        assert here.shelf._journals == here.shelf._written == {}
        assert here.writer.writing == here.writer.arriving == 0

    talk()
