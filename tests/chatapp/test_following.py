"""Replies of another process, played by a second registry in the same loop."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels_redis.pubsub import RedisPubSubLoopLayer

from chatapp import hub
from chatapp.journal import Journal
from chatapp.replies import Replies
from tests.chatapp.conftest import FakePage, Person, new_chat, said, two_processes, visitor
from tests.stub_model import StubModel

NUMBERS = [f"{number} " for number in range(1, 61)]
SIXTY = "".join(NUMBERS)


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


def test_what_the_row_told_is_not_told_again_by_the_journal(mara: Person) -> None:
    session, who = new_chat(mara), visitor(mara)
    (reply,) = said(mara, session, ("q", "one two "), status="streaming")

    @two_processes
    async def talk(one: Replies, two: Replies) -> None:
        page = FakePage(who, session.pk)
        two.add(page)
        await two.following.follow(page, reply, 0)
        assert page.text() == "one two "
        one.shelf.add(reply.pk, Journal(["one ", "two ", "three"]))
        one.shelf.touch(soon=True)
        await asyncio.sleep(0.2)
        two.following._hear_frames({"reply": str(reply.pk), "n": 3})
        while len(page.sent) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert page.text() == "one two three"
        two.following._hear_ended({"reply": str(reply.pk)})
        assert two.following.streams == {}
        one.shelf.drop(reply.pk)

    talk()


def test_a_page_that_comes_while_another_leaves_is_told_all(mara: Person) -> None:
    """What is being read for it is not given up because nobody else follows it."""
    session, who = new_chat(mara), visitor(mara)
    (reply,) = said(mara, session, ("q", ""), status="streaming")

    @two_processes
    async def talk(one: Replies, two: Replies) -> None:
        journal = Journal(["one "])
        one.shelf.add(reply.pk, journal)
        one.shelf.touch(soon=True)
        await asyncio.sleep(0.2)
        comes, leaves = FakePage(who, session.pk), FakePage(who, None)
        two.add(comes)
        two.add(leaves)
        following = asyncio.ensure_future(two.following.follow(comes, reply, 0))
        await asyncio.sleep(0)
        two.detach(leaves)
        await following
        journal.push("two")
        one.shelf.touch(soon=True)
        await asyncio.sleep(0.2)
        two.following._hear_frames({"reply": str(reply.pk), "n": 2})
        await asyncio.sleep(0.2)
        assert comes.text() == "one two"
        two.detach(comes)
        assert two.following.streams == {}
        one.shelf.drop(reply.pk)

    talk()


def test_pages_elsewhere_read_anew_what_bells_were_lost_of(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is away for a moment, too short for anybody else to notice."""
    model.script(tokens=NUMBERS[:5], per_token=0.02)
    session, who = new_chat(mara), visitor(mara)
    send, failing = RedisPubSubLoopLayer.group_send, asyncio.Event()

    async def group_send(self: Any, group: str, message: dict[str, Any]) -> None:
        if failing.is_set():
            raise ConnectionError
        await send(self, group, message)

    monkeypatch.setattr(RedisPubSubLoopLayer, "group_send", group_send)
    monkeypatch.setattr(hub, "REST_SECONDS", 0.1)

    @two_processes
    async def talk(one: Replies, two: Replies) -> None:
        here, there = FakePage(who, session.pk), FakePage(who, session.pk)
        one.add(here)
        two.add(there)
        await asyncio.sleep(0.2)
        failing.set()
        await one.begin(here, session.pk, "Count", uuid4())
        await here.until("finished")
        assert "finished" not in [frame["type"] for frame in there.sent]
        failing.clear()
        await there.until("resync")

    talk()
