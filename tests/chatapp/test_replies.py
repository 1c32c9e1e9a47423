"""Two processes, played by two registries in one loop, and a process that ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.db import OperationalError

from chatapp import replies, turn
from chatapp.journal import Journal, Shelf
from chatapp.journal import client as redis_client
from chatapp.markdown import render
from chatapp.replies import Replies, Stream
from chatapp.visitor import Visitor, visitor_of
from tests.chatapp.conftest import Browser, Person, conversation, new_chat, said, stored
from tests.stub_model import StubModel

NUMBERS = [f"{number} " for number in range(1, 61)]
SIXTY = "".join(NUMBERS)


class FakePage:
    """A page that only keeps what it was sent."""

    def __init__(self, visitor: Visitor, session_id: UUID | None) -> None:
        self.visitor, self.session_id = visitor, session_id
        self.sent: list[dict[str, Any]] = []
        self.code: int | None = None
        self.news = asyncio.Event()

    def put(self, frame: str) -> None:
        self.sent.append(json.loads(frame))
        self.news.set()

    def end(self, code: int) -> None:
        self.code = code
        self.news.set()

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(10):
            while True:
                for frame in self.sent:
                    if frame["type"] == kind:
                        return frame
                self.news.clear()
                await self.news.wait()

    def text(self) -> str:
        text, n = "", 0
        for frame in self.sent:
            if frame["type"] == "snapshot" and frame["n"] >= n:
                text, n = frame["text"], frame["n"]
            elif frame["type"] == "delta" and frame["n"] > n:
                assert frame["n"] == n + 1
                text, n = text + frame["text"], n + 1
        return text


def two_processes(talk: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run with two registries that know of each other."""

    async def whole(*args: Any) -> None:
        one, two = Replies(), Replies()
        one.start()
        two.start()
        try:
            async with asyncio.timeout(10):
                while not (one.hub.has_peers and two.hub.has_peers):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await talk(one, two, *args)
        finally:
            await one.close()
            await two.close()

    return async_to_sync(whole)


def visitor(who: Person) -> Visitor:
    found = visitor_of(who.cookie, who.tenant.slug)
    assert found is not None
    return found


def test_a_page_at_another_process_sees_the_same(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.02)
    session, who = new_chat(mara), visitor(mara)

    @two_processes
    async def talk(one: Replies, two: Replies) -> None:
        here, there = FakePage(who, session.pk), FakePage(who, session.pk)
        one.add(here)
        two.add(there)
        await asyncio.sleep(0.2)
        await one.begin(here, session.pk, "Count", uuid4())
        ended = [await page.until("finished") for page in (here, there)]
        assert ended[0]["html"] == ended[1]["html"]
        assert here.text() == SIXTY
        kinds = [frame["type"] for frame in there.sent]
        assert kinds.index("stored") < kinds.index("started") < kinds.index("delta")
        assert "session" in kinds
        assert SIXTY.startswith(there.text())
        assert there.text()

    talk()


def test_a_page_that_comes_to_another_process_goes_on_there(mara: Person, model: StubModel) -> None:
    model.script(tokens=NUMBERS, per_token=0.04)
    session, who = new_chat(mara), visitor(mara)

    @two_processes
    async def talk(one: Replies, two: Replies) -> None:
        here = FakePage(who, session.pk)
        one.add(here)
        await one.begin(here, session.pk, "Count", uuid4())
        delta = await here.until("delta")
        await asyncio.sleep(0.3)
        later = FakePage(who, session.pk)
        two.add(later)
        await two.attach(later, UUID(delta["reply"]), 0)
        await later.until("finished")
        assert later.sent[0]["type"] == "snapshot"
        assert SIXTY.startswith(later.text())

    talk()


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


def test_what_waits_for_nobody_is_answered_by_recovery(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(text="Here I am.")
    session = new_chat(mara)
    monkeypatch.setattr(turn, "PATIENCE", turn.PATIENCE * 0)
    turn.begin(mara.scope, session.pk, text="Hello?", client_id=uuid4(), claiming=False)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.until("finished", status="complete")

    talk()
    assert stored(mara, session)[1][2] == "Here I am."


def test_a_lost_reply_is_interrupted_with_what_its_journal_holds(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_chat(mara)
    monkeypatch.setattr(turn, "LEASE", turn.LEASE * 0)
    begun = turn.begin(mara.scope, session.pk, text="Hello?", client_id=uuid4())
    assert begun.turn is not None

    @conversation
    async def talk(browser: Browser) -> None:
        redis = redis_client()
        await redis.rpush(f"recollect:journal:{begun.reply.pk.hex}", "Once ", "upon")
        await redis.aclose()
        tab = await browser.open(mara, session)
        await tab.until("finished", status="interrupted")

    talk()
    assert stored(mara, session)[1] == ("assistant", "interrupted", "Once upon")


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


def test_an_end_that_can_not_be_stored_at_all_is_left_to_recovery(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(text="Kept all the same.")
    session = new_chat(mara)

    def away(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError

    monkeypatch.setattr(turn, "finish", away)
    monkeypatch.setattr(turn, "LEASE", turn.LEASE * 0)
    monkeypatch.setattr(replies, "FINISH_TRIES", 1)
    monkeypatch.setattr(replies, "RECOVER_SECONDS", 0.1)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Hello?")
        await tab.until("error", code="database_away")
        await tab.until("finished", status="interrupted")

    talk()
    assert stored(mara, session)[1] == ("assistant", "interrupted", "Kept all the same.")


def test_the_end_of_a_reply_of_old_is_shown_to_who_asks(mara: Person) -> None:
    session = new_chat(mara)
    (reply,) = said(mara, session, ("q", "**a**"))

    @conversation
    async def talk(browser: Browser) -> dict[str, Any]:
        tab = await browser.open(mara, session)
        await tab.send({"type": "attach", "reply": str(reply.pk), "after": 3})
        return await tab.until("finished")

    assert "<strong>a</strong>" in talk()["html"]


# The journal.


def test_a_stream_replays_what_a_page_lacks(mara: Person) -> None:
    who = visitor(mara)

    @async_to_sync
    async def talk() -> None:
        stream = Stream(mara.scope, uuid4(), uuid4())
        for number, text in enumerate(["one\n\n", "two\n\n", "three\n\n", "four"]):
            stream.push(text, number * 1.0)
        for after in range(5):
            page = FakePage(who, None)
            stream.attach(page, after)
            texts = [frame["text"] for frame in page.sent]
            assert "".join(texts) == "".join(stream.journal.texts[after:])
            if after < 4:
                assert page.sent[-1]["open"] == stream.blocks.now()
        late = FakePage(who, None)
        stream.attach(late, 0)
        (snapshot,) = late.sent
        assert (snapshot["type"], snapshot["n"]) == ("snapshot", 4)
        assert snapshot["closed"] + snapshot["open"] == render(stream.journal.text())

    talk()


def test_journals_are_copied_read_and_dropped() -> None:
    @async_to_sync
    async def talk() -> None:
        shelf, other, reply = Shelf(redis_client()), Shelf(redis_client()), uuid4()
        told: list[tuple[UUID, int]] = []
        shelf.readable = lambda pk, n: told.append((pk, n))
        journal = Journal(["so far "])
        shelf.add(reply, journal)
        running = asyncio.ensure_future(shelf.run())
        for text in ("one ", "", "two"):
            journal.push(text)
            shelf.touch(soon=True)
            await asyncio.sleep(0.05)
        found = await other.read(reply), await other.read(reply, 3)
        shelf.drop(reply)
        shelf.touch(soon=True)
        await asyncio.sleep(0.2)
        left = await other.read(reply)
        running.cancel()
        await shelf.close()
        await other.close()
        assert found == (["so far ", "one ", "", "two"], ["two"])
        assert told[-1] == (reply, 4)
        assert left == []

    talk()


def test_without_redis_nothing_fails(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    @async_to_sync
    async def talk() -> None:
        shelf, reply = Shelf(redis_client()), uuid4()
        shelf.add(reply, Journal(["x"]))
        running = asyncio.ensure_future(shelf.run())
        shelf.touch(soon=True)
        await asyncio.sleep(0.1)
        alive, found = not running.done(), await shelf.read(uuid4())
        running.cancel()
        await shelf.close()
        assert alive
        assert found == []

    talk()
