"""A purge while a reply is being written: nothing of it comes back."""

import asyncio
from uuid import UUID

import pytest
from channels.db import database_sync_to_async

from accounts.scope import entered
from chatapp.models import ReplyTicket
from memory.models import Memory
from memory.purge import preview
from memory.remember import enqueue_exchange
from tests.browser.extractor import finds
from tests.chatapp.conftest import (
    Browser,
    Person,
    chat,
    conversation,
    new_chat,
    prompt_to,
    stored,
    work,
)
from tests.stub_model import StubModel

NUMBERS = [f"{number} " for number in range(1, 21)]


def remembered(who: Person) -> list[str]:
    with entered(who.scope):
        return list(Memory.objects.within(who.scope).values_list("text", flat=True))


@pytest.mark.parametrize("what", ["memories", "everything"])
def test_a_purge_in_the_middle_of_a_reply_leaves_nothing_of_it(
    mara: Person, model: StubModel, what: str
) -> None:
    """A46: purged while a reply is running: the late write stores no memory, then or ever; and of
    "everything" no message either."""
    model.script(tokens=NUMBERS, per_token=0.1, contains="boat")
    model.extract = finds({"I own a boat": "The user owns a boat."})
    chat(mara, new_chat(mara), "Good morning.")
    work(mara)
    assert remembered(mara) == ["Good morning."]
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> str:
        tab = await browser.open(mara, session)
        await tab.say("Remember that I own a boat. I own a boat.")
        delta = await tab.until("delta")
        done = await database_sync_to_async(mara.client.post)(
            mara.url("memory/forget-everything/"), {"what": what, "confirm": "forget everything"}
        )
        assert done.status_code == 200
        while model.asked("chat")[-1].status == "open":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        if what == "memories":
            await tab.until("finished", status="complete")
        await asyncio.sleep(0.3)  # whatever the reply's end still stores
        return str(delta["reply"])

    reply = talk()
    work(mara)
    assert remembered(mara) == []
    if what == "everything":
        assert stored(mara, session) == []
        assert set(preview(mara.scope, what="everything").values()) == {0}
        assert not ReplyTicket.objects.exists()
        assert mara.client.get(mara.url(f"sessions/{session.pk}/")).status_code == 404
        return
    assert stored(mara, session)[1] == ("assistant", "complete", "".join(NUMBERS))
    enqueue_exchange(mara.scope, reply_id=UUID(reply), session_key=session.pk)
    work(mara)
    assert remembered(mara) == []
    chat(mara, new_chat(mara), "What do I own?")
    assert "boat" not in prompt_to(model, "What do I own?")
