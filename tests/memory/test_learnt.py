"""What was learnt, under the reply: texts only from the memories themselves."""

from uuid import uuid4

import pytest

from accounts.scope import Scope, entered
from memory.edit import forget, undo
from memory.learnt import learnt_for_replies
from memory.models import Job, Memory
from memory.preferences import change_preferences
from memory.purge import purge
from tests.memory.conftest import Conversation, enqueue

pytestmark = pytest.mark.django_db


def test_the_states_of_a_job_as_the_chat_shows_them(talk: Conversation) -> None:
    exchange = talk.say("Remember that I own a boat.")
    assert learnt_for_replies(talk.scope, [exchange.reply.id]) == {}
    assert learnt_for_replies(talk.scope, []) == {}
    enqueue(talk.scope, exchange)
    waiting = learnt_for_replies(talk.scope, [exchange.reply.id])[exchange.reply.id]
    assert (waiting["state"], waiting["stored"], waiting["fresh"]) == ("waiting", False, False)


def test_what_was_learnt_can_be_undone_and_undone_again(talk: Conversation) -> None:
    reply = talk.remember("Remember that I own a boat.").source

    def shown() -> dict[str, object]:
        return learnt_for_replies(talk.scope, [reply, uuid4()])[reply]

    with entered(talk.scope):
        fact = Memory.objects.within(talk.scope).facts().get()
    assert shown() == {
        "state": "done",
        "stored": True,
        "facts": [
            {
                "id": fact.pk,
                "text": "I own a boat.",
                "kind": "fact",
                "forgotten": False,
                "waiting": False,
            }
        ],
        "note": "",
        "fresh": True,
    }
    forget(talk.scope, memory=fact.pk, restore=True)
    assert shown()["stored"] is False
    assert shown()["facts"][0]["forgotten"] is True  # type: ignore[index]
    undo(talk.scope, memory=fact.pk)
    assert shown()["facts"][0]["forgotten"] is False  # type: ignore[index]


def test_a_purge_leaves_nothing_to_show_and_nobody_else_sees_it(
    talk: Conversation, bob: Scope
) -> None:
    reply = talk.remember("Remember that I own a boat.").source
    assert learnt_for_replies(bob, [reply]) == {}
    with entered(talk.scope):
        assert "boat" not in str(Job.objects.within(talk.scope).get().result)
    purge(talk.scope)
    assert learnt_for_replies(talk.scope, [reply]) == {}


def test_switched_off_it_says_so(talk: Conversation) -> None:
    change_preferences(talk.scope, recall_on=True, auto_store_on=False, top_k=8, min_score="")
    reply = talk.remember("I own a boat.").source
    assert learnt_for_replies(talk.scope, [reply])[reply]["state"] == "off"
