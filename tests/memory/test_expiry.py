"""What has come to its end is gone at once, wherever it could be met, before a job erases it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

import memory
from accounts.errors import NotFound
from accounts.models import Tenant, User
from accounts.scope import Scope, entered
from memory import review, trash
from memory.edit import edit, one
from memory.learnt import learnt_for_replies
from memory.models import Job, Memory, Recalled
from memory.recall import Recall, read_for_reply, recall, record
from memory.remember import add
from memory.tasks import run_job
from memory.tools import shown_acts
from tests.memory.conftest import Conversation, facts, keep, run_kind

pytestmark = pytest.mark.django_db


def end(scope: Scope, kept: Memory) -> Memory:
    """Let a memory's end be over."""
    with entered(scope):
        rows = Memory.objects.within(scope).filter(pk=kept.pk)
        rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    return kept


def page_of(scope: Scope) -> tuple[Client, str]:
    client = Client()
    client.force_login(User.objects.get(pk=scope.user_id))
    return client, f"/t/{Tenant.objects.get(pk=scope.tenant_id).slug}/memory/"


ADDRESSES: list[tuple[str, dict[str, str] | None]] = [
    ("", None),
    ("?edit=1", None),
    ("more/", None),
    ("edit/", {"text": "I own a bike."}),
    ("delete/", {}),
    ("undo/", {}),
    ("accept/", {}),
    ("decline/", {}),
    ("pin/", {"pinned": "1"}),
    ("tags/", {"tags": "sea"}),
    ("until/", {"until": ""}),
    ("reach/", {"here": "0"}),
    ("restore/", {"version": "1"}),
]


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("status", ["current", "waiting", "trash", "past"])
def test_each_address_answers_as_for_one_that_never_was(
    mara: Scope, status: str, scripts: bool
) -> None:
    """A48's kind: the own address of what has expired, in every state, is the same 404."""
    client, base = page_of(mara)
    kept = keep(mara, "I own a boat.", kind="note")
    edit(mara, memory=kept.pk, text="I own a red boat.")
    with entered(mara):
        Memory.objects.within(mara).filter(pk=kept.pk).update(
            status=status, trashed_at=timezone.now() if status == "trash" else None
        )
    end(mara, kept)
    headers = {"HX-Request": "true"} if scripts else {}
    for what, fields in ADDRESSES:
        answers = []
        for pk in (kept.pk, uuid4()):
            path = f"{base}{pk}/{what}"
            if fields is None:
                answers.append(client.get(path, headers=headers))
            else:
                answers.append(client.post(path, fields, headers=headers))
        assert [answer.status_code for answer in answers] == [404, 404], what
        assert "boat" not in answers[0].content.decode(), what
    with entered(mara):
        assert Memory.objects.within(mara).get(pk=kept.pk).text == "I own a red boat."


VERBS: list[Callable[[Scope, Any], object]] = [
    lambda scope, pk: one(scope, pk),
    lambda scope, pk: edit(scope, memory=pk, text="I own a bike."),
    lambda scope, pk: memory.forget(scope, memory=pk),
    lambda scope, pk: memory.restore(scope, memory=pk),
    lambda scope, pk: memory.undo(scope, memory=pk),
    lambda scope, pk: memory.versions(scope, memory=pk),
    lambda scope, pk: memory.pin(scope, memory=pk),
    lambda scope, pk: memory.tag(scope, memory=pk, tags=["sea"]),
    lambda scope, pk: memory.expire(scope, memory=pk, at=None),
    lambda scope, pk: memory.keep_to(scope, memory=pk, session=None),
    lambda scope, pk: review.accept(scope, memory=pk),
    lambda scope, pk: review.decline(scope, memory=pk),
]


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_finds_it(mara: Scope, verb: Callable[[Scope, Any], object]) -> None:
    kept = end(mara, keep(mara, "I own a boat.", kind="note"))
    with pytest.raises(NotFound):
        verb(mara, kept.pk)


def test_it_is_in_no_list_no_count_and_no_act_on_many(mara: Scope) -> None:
    end(mara, keep(mara, "I own a boat."))
    waiting = end(mara, keep(mara, "I sail.", status="waiting"))
    client, base = page_of(mara)
    for query in ("", "?state=waiting", "?q=boat", "?q=own", "?state=trash"):
        page = client.get(base + query).content.decode()
        assert "I own a boat." not in page
        assert "I sail." not in page
    assert review.acceptable(mara) == []
    assert review.accept_all(mara) == 0
    with entered(mara):
        assert Memory.objects.within(mara).get(pk=waiting.pk).status == "waiting"


def test_a_reply_that_used_it_shows_nothing_of_it_any_more(talk: Conversation) -> None:
    scope = talk.scope
    kept = keep(scope, "The user owns a boat called Kestrel.")
    reply = uuid4()
    found = recall(scope, question="What is my boat called?", vector=None)
    record(scope, reply=reply, recall=found)
    [before] = read_for_reply(scope, reply)
    assert before.because
    end(scope, kept)
    [source] = read_for_reply(scope, reply)
    assert source.gone
    assert (source.text, source.answer, source.because) == ("", "", [])
    saved = {"name": "save_memory", "memory": str(kept.pk), "result": {"outcome": "saved"}}
    [act] = shown_acts(scope, {reply: [saved]})[reply]
    assert (act.text, act.can_undo) == ("", False)
    talk.remember("Remember that I own a canoe.")
    said = talk.exchanges[-1].reply.id
    assert [fact["text"] for fact in learnt_for_replies(scope, [said])[said]["facts"]] == [
        "I own a canoe."
    ]
    with entered(scope):
        for canoe in Memory.objects.within(scope).facts().filter(text="I own a canoe."):
            end(scope, canoe)
    assert learnt_for_replies(scope, [said])[said]["facts"] == []


def test_why_it_was_recalled_goes_with_what_is_forgotten_and_is_erased_with_it(
    mara: Scope,
) -> None:
    kept = keep(mara, "The user owns a boat called Kestrel.")
    reply = uuid4()
    record(mara, reply=reply, recall=recall(mara, question="Where is Kestrel?", vector=None))
    assert "kestrel" in "; ".join(read_for_reply(mara, reply)[0].because).casefold()
    memory.forget(mara, memory=kept.pk)
    [source] = read_for_reply(mara, reply)
    assert (source.gone, source.because) == (True, [])
    memory.undo(mara, memory=kept.pk)
    assert read_for_reply(mara, reply)[0].because
    memory.forget(mara, memory=kept.pk)
    assert trash.empty_now(mara) == 1
    with entered(mara):
        assert not Recalled.objects.within(mara).exists()
    assert read_for_reply(mara, reply) == []


def test_the_job_that_erases_what_ended_erases_why_it_was_recalled(mara: Scope) -> None:
    kept = add(mara, text="I own a boat.")
    reply = uuid4()
    found = recall(mara, question="What do I own?", vector=None)
    record(mara, reply=reply, recall=Recall(found.memories))
    memory.expire(mara, memory=kept.pk, at=timezone.now() + timedelta(hours=1))
    end(mara, kept)
    with entered(mara):
        job = Job.objects.within(mara).get(kind="trash")
    run_job(str(job.pk))
    with entered(mara):
        assert not Recalled.objects.within(mara).exists()
        assert not Memory.objects.within(mara).exists()
    assert run_kind(mara, "trash") is not None


def test_the_same_claim_may_be_made_again_in_every_way_before_it_is_erased(mara: Scope) -> None:
    end(mara, keep(mara, "I own a boat."))
    bike = keep(mara, "I own a bike.")
    edit(mara, memory=bike.pk, text="I own a boat.")
    assert facts(mara) == ["I own a boat."]
    end(mara, keep(mara, "I sail."))
    waits = keep(mara, "I sail.", status="waiting")
    review.accept(mara, memory=waits.pk)
    assert facts(mara) == ["I own a boat.", "I sail."]
