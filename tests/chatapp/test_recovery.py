"""What outlives the process that wrote it."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from chatapp import recovery, steps, turn
from chatapp.journal import client as redis_client
from tests.chatapp.conftest import Browser, Person, conversation, new_chat, stored
from tests.stub_model import StubModel


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
    """A33: a reply whose process was killed is interrupted with the text so far."""
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


def test_an_end_that_can_not_be_stored_at_all_is_left_to_recovery(
    mara: Person, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(text="Kept all the same.")
    session = new_chat(mara)

    def away(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError

    monkeypatch.setattr(turn, "finish", away)
    monkeypatch.setattr(turn, "LEASE", turn.LEASE * 0)
    monkeypatch.setattr(steps, "TRIES", 1)
    monkeypatch.setattr(recovery, "RECOVER_SECONDS", 0.1)

    @conversation
    async def talk(browser: Browser) -> None:
        tab = await browser.open(mara, session)
        await tab.say("Hello?")
        await tab.until("error", code="database_away")
        await tab.until("finished", status="interrupted")

    talk()
    assert stored(mara, session)[1] == ("assistant", "interrupted", "Kept all the same.")
