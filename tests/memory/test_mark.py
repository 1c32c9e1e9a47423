"""Pinned, tagged, with an end, kept to a session: seen at once, and taken back."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

import memory
from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope, entered
from memory.mark import normal_tags
from memory.models import Job, JobTicket, Memory, Tombstone
from memory.tasks import run_job
from memory.tools import live_texts
from tests.memory.conftest import Conversation, facts

pytestmark = pytest.mark.django_db


def found(scope: Scope, query: str, **more: object) -> list[str]:
    return [one.text for one in memory.recall(scope, query, **more).memories]


def move(scope: Scope, pk: object, **fields: object) -> None:
    with entered(scope):
        Memory.objects.within(scope).filter(pk=pk).update(**fields)


def test_a_pin_is_kept_and_taken_back(mara: Scope) -> None:
    boat = memory.remember(mara, text="I own a boat.")
    assert memory.pin(mara, memory=boat.pk).pinned
    assert memory.pin(mara, memory=boat.pk).pinned
    assert "I own a boat." in found(mara, "What is the capital of France?")
    assert not memory.unpin(mara, memory=boat.pk).pinned


def test_tags_are_normal_and_bounded() -> None:
    assert normal_tags([" #Food ", "food", "FOOD", "", "Größe", "a  b"]) == [
        "a b",
        "food",
        "grösse",
    ]
    with pytest.raises(InvalidInput):
        normal_tags(["x" * 41])
    with pytest.raises(InvalidInput):
        normal_tags([str(number) for number in range(13)])


def test_what_has_ended_is_gone_at_once_and_then_erased(mara: Scope) -> None:
    boat = memory.remember(mara, text="I own a boat.")
    end = timezone.now() + timedelta(hours=1)
    memory.expire(mara, memory=boat.pk, at=end)
    assert found(mara, "boat") == ["I own a boat."]
    with entered(mara):
        job = Job.objects.within(mara).get(kind="trash")
    assert JobTicket.objects.get(job_id=job.pk).due_at == end
    move(mara, boat.pk, expires_at=timezone.now() - timedelta(seconds=1))
    assert memory.list(mara) == []
    assert memory.search(mara, "boat") == []
    assert found(mara, "boat") == []
    assert live_texts(mara, [{"memory": str(boat.pk)}]) == {}
    with pytest.raises(NotFound):
        memory.pin(mara, memory=boat.pk)
    run_job(str(job.pk))
    with entered(mara):
        assert not Memory.objects.within(mara).exists()


def test_an_end_comes_before_a_trash_that_is_due_later(mara: Scope) -> None:
    memory.forget(mara, memory=memory.remember(mara, text="I own a bike.").pk)
    boat = memory.remember(mara, text="I own a boat.")
    end = timezone.now() + timedelta(hours=1)
    memory.expire(mara, memory=boat.pk, at=end)
    with entered(mara):
        job = Job.objects.within(mara).get(kind="trash")
    assert JobTicket.objects.get(job_id=job.pk).due_at == end
    move(mara, boat.pk, expires_at=timezone.now() - timedelta(seconds=1))
    run_job(str(job.pk))
    assert [one.text for one in memory.list(mara, state="trash")] == ["I own a bike."]
    left = JobTicket.objects.get(job_id=job.pk).due_at - timezone.now()
    assert left > timedelta(days=29)


def test_an_end_is_taken_back(mara: Scope) -> None:
    boat = memory.remember(mara, text="I own a boat.")
    memory.expire(mara, memory=boat.pk, at=timezone.now() + timedelta(hours=1))
    assert memory.expire(mara, memory=boat.pk, at=None).expires_at is None


def test_what_ended_and_is_said_again_holds_again(mara: Scope) -> None:
    boat = memory.remember(mara, text="I own a boat.")
    move(mara, boat.pk, expires_at=timezone.now() - timedelta(seconds=1))
    memory.remember(mara, text="I own a boat.")
    assert facts(mara) == ["I own a boat."]
    assert found(mara, "boat") == ["I own a boat."]


def test_an_end_that_is_past_or_has_no_zone_is_refused(mara: Scope) -> None:
    boat = memory.remember(mara, text="I own a boat.")
    for at in (timezone.now() - timedelta(days=1), datetime(2099, 1, 1)):  # noqa: DTZ001
        with pytest.raises(InvalidInput):
            memory.expire(mara, memory=boat.pk, at=at)


def test_what_is_kept_to_a_session_is_used_there_alone(mara: Scope) -> None:
    here, elsewhere = uuid4(), uuid4()
    boat = memory.remember(mara, text="I own a boat.")
    kept = memory.keep_to(mara, memory=boat.pk, session=here)
    assert (kept.reach, kept.reach_key) == ("session", here)
    assert found(mara, "boat", session_key=here) == ["I own a boat."]
    assert found(mara, "boat", session_key=elsewhere) == found(mara, "boat") == []
    record = [{"memory": str(boat.pk)}]
    assert live_texts(mara, record, session_key=here)
    assert not live_texts(mara, record, session_key=elsewhere)
    memory.keep_to(mara, memory=boat.pk, session=None)
    assert found(mara, "boat") == ["I own a boat."]


def test_what_is_in_the_trash_is_not_marked(mara: Scope) -> None:
    boat = memory.remember(mara, text="I own a boat.")
    memory.forget(mara, memory=boat.pk)
    with pytest.raises(InvalidInput):
        memory.pin(mara, memory=boat.pk)


def test_emptying_the_trash_erases_for_good_and_bars_the_messages(talk: Conversation) -> None:
    talk.remember("Remember that I own a boat.")
    talk.remember("Remember that I own a bike.")
    boat = next(one for one in memory.list(talk.scope, kind="fact") if "boat" in one.text)
    memory.forget(talk.scope, memory=boat.pk)
    assert memory.empty_trash(talk.scope) == 2  # with the exchange that it came from
    assert memory.empty_trash(talk.scope) == 0
    with entered(talk.scope):
        assert Tombstone.objects.within(talk.scope).count() == 1
        assert not Memory.objects.within(talk.scope).filter(status="trash").exists()
    with pytest.raises(NotFound):
        memory.restore(talk.scope, memory=boat.pk)
    assert len(facts(talk.scope)) == 1
