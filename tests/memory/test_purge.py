"""Erased for good: exactly counted, of nobody else, and nothing comes back."""

import threading
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models
from django.utils import timezone

from accounts.join import new_person
from accounts.owned import OwnedModel
from accounts.scope import Scope, entered
from memory import jobs, tombstones
from memory.edit import edit, forget
from memory.jobs import Claim
from memory.models import Job, JobTicket, Memory, MemorySettings, Profile, Tombstone
from memory.purge import erase_person, preview, purge
from memory.recall import record
from memory.remember import add
from memory.tasks import run_job
from tests.memory.conftest import (
    Conversation,
    answer,
    enqueue,
    exchanges,
    facts,
    keep,
    recalled,
    run,
    scope_of,
)
from tests.memory.test_recall import ask
from tests.stub_model import StubModel

pytestmark = pytest.mark.django_db

KEPT_AFTER_A_PURGE = {"MemorySettings", "Tombstone"}


def owned() -> list[Any]:
    return [
        model
        for model in apps.get_app_config("memory").get_models()
        if issubclass(model, OwnedModel)
    ]


def left(scope: Scope) -> dict[str, int]:
    """Return how many rows each table still has of this scope."""
    with entered(scope):
        counts = {model.__name__: model.objects.within(scope).count() for model in owned()}
    return {name: count for name, count in counts.items() if count}


def fill(scope: Scope) -> None:
    """Leave a row in every table."""
    talk = Conversation(scope)
    talk.remember("Remember that I own a boat.")
    add(scope, text="I always want an aisle seat.")
    changed = add(scope, text="I own a bike.")
    edit(scope, memory=changed.pk, text="I own two bikes.")
    record(scope, reply=uuid4(), recall=ask(scope, "What do I own?"))
    enqueue(scope, talk.say("This one waits."))
    with entered(scope):
        Profile.objects.within(scope).create(tenant_id=scope.tenant_id, user_id=scope.user_id)


def test_a_purge_erases_and_counts_everything_and_the_second_nothing(
    mara: Scope, bob: Scope
) -> None:
    """A44, A19: a purge counts what it erases, the second counts 0; B's and the twin's stay."""
    twin = Scope(bob.tenant_id, mara.user_id)
    for scope in (mara, bob, twin):
        fill(scope)
    before = left(bob)
    assert set(before) == {model.__name__ for model in owned()} - KEPT_AFTER_A_PURGE
    shown = preview(mara)
    assert shown["memories"] == 4
    assert purge(mara) == shown
    assert set(left(mara)) == KEPT_AFTER_A_PURGE
    assert not JobTicket.objects.filter(user_id=mara.user_id, tenant_id=mara.tenant_id).exists()
    assert recalled(mara, "What do I own?") == []
    assert set(purge(mara).values()) == {0}
    assert set(preview(mara).values()) == {0}
    assert left(bob) == before == left(twin)
    assert JobTicket.objects.filter(user_id=bob.user_id).exists()


def test_nothing_comes_back_from_messages_that_stay(talk: Conversation, model: StubModel) -> None:
    answer(model, {"text": "The user is vegetarian.", "quote": "I'm vegetarian"})
    talk.remember("I'm vegetarian.")
    talk.say("I'm vegetarian, as I said.")  # without a memory yet
    purge(talk.scope)
    for exchange in talk.exchanges:
        assert run(talk.scope, exchange).result["nothing"] == "barred"
    assert facts(talk.scope) == exchanges(talk.scope) == []
    talk.remember("I'm vegetarian.")
    assert facts(talk.scope) == ["The user is vegetarian."]


def test_a_job_that_waits_while_a_purge_comes_writes_nothing(talk: Conversation) -> None:
    job_id = enqueue(talk.scope, talk.say("Remember that I own a boat."))
    purge(talk.scope)
    run_job(str(job_id))
    assert left(talk.scope) == {"MemorySettings": 1}


@pytest.mark.parametrize("module", ["memory.remember", "memory.extract"])
def test_a_job_in_the_middle_of_which_a_purge_comes_writes_nothing(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    from memory.keys import entries_in_time

    def purging(memories: Any, **known: Any) -> Any:
        purge(talk.scope)
        return entries_in_time(memories, **known)

    monkeypatch.setattr(f"{module}.entries_in_time", purging)
    job_id = enqueue(talk.scope, talk.say("Remember that I own a boat."))
    run_job(str(job_id))
    assert set(left(talk.scope)) <= KEPT_AFTER_A_PURGE


def test_a_reply_that_ends_after_the_purge_is_not_remembered(talk: Conversation) -> None:
    exchange = talk.say("Remember that I own a boat.")
    purge(talk.scope)
    run(talk.scope, exchange)
    assert facts(talk.scope) == exchanges(talk.scope) == []


def test_what_was_recalled_is_not_written_after_the_purge(mara: Scope) -> None:
    keep(mara, "The user owns a boat.")
    late = ask(mara, "What do I own?")
    purge(mara)
    record(mara, reply=uuid4(), recall=late)
    assert set(left(mara)) == {"MemorySettings"}


def test_the_settings_survive_and_the_generation_rises(mara: Scope) -> None:
    with entered(mara):
        MemorySettings.objects.within(mara).create(
            tenant_id=mara.tenant_id, user_id=mara.user_id, top_k=3
        )
    purge(mara)
    purge(mara)
    with entered(mara):
        settings = MemorySettings.objects.within(mara).get()
    assert (settings.top_k, settings.generation) == (3, 2)


def test_everything_erases_what_the_chat_keeps_too_in_the_same_transaction(
    mara: Scope, settings: Any
) -> None:
    settings.ERASERS = ["tests.memory.test_purge.erase_some"]
    settings.ERASURE_PREVIEWS = ["tests.memory.test_purge.erase_some"]
    add(mara, text="I own a boat.")
    assert preview(mara)["memories"] == 1
    assert preview(mara, what="everything")["sessions"] == 7
    assert "sessions" not in purge(mara)
    assert purge(mara, what="everything")["sessions"] == 7


def erase_some(scope: Scope) -> dict[str, int]:
    return {"sessions": 7}


def test_when_the_database_fails_nothing_is_erased_and_nothing_claimed(
    mara: Scope, settings: Any
) -> None:
    settings.ERASERS = ["tests.memory.test_purge.fail"]
    add(mara, text="I own a boat.")
    with pytest.raises(DatabaseError):
        purge(mara, what="everything")
    assert facts(mara) == ["I own a boat."]


def fail(scope: Scope) -> dict[str, int]:
    raise DatabaseError("the disk is full")


def test_an_account_that_goes_leaves_nothing(mara: Scope, bob: Scope) -> None:
    fill(mara)
    fill(bob)
    purge(mara)
    fill(mara)
    erase_person(mara)
    assert left(mara) == {}
    assert left(bob)


def test_a_tombstone_holds_no_id_and_survives_a_new_key(mara: Scope, settings: Any) -> None:
    source = uuid4()
    with entered(mara):
        tombstones.bar(mara, [source, source])
        stone = Tombstone.objects.within(mara).get()
        assert source.hex not in stone.mark
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
        settings.SECRET_KEY = "another key"
        assert stone.mark in tombstones.marks_of(source)
        assert stone.mark not in tombstones.marks_of(uuid4())


def test_what_left_the_trash_after_30_days_is_not_learnt_again(
    talk: Conversation, model: StubModel
) -> None:
    answer(model, {"text": "The user is vegetarian.", "quote": "I'm vegetarian"})
    talk.remember("I'm vegetarian.")
    with entered(talk.scope):
        fact = Memory.objects.within(talk.scope).facts().get()
    forget(talk.scope, memory=fact.pk)
    with entered(talk.scope):
        job = Job.objects.within(talk.scope).get(kind="trash")
        ticket = JobTicket.objects.get(job_id=job.pk)
        assert (ticket.due_at - timezone.now()).days >= 29
    run_job(str(job.pk))
    with entered(talk.scope):
        trash = Memory.objects.within(talk.scope).filter(status="trash")
        assert trash.count() == 2
        trash.update(trashed_at=timezone.now() - timezone.timedelta(days=31))
    run_job(str(job.pk))
    with entered(talk.scope):
        assert not Memory.objects.within(talk.scope).exists()
    run(talk.scope, talk.exchanges[0])
    assert facts(talk.scope) == exchanges(talk.scope) == []


@pytest.mark.django_db(transaction=True)
def test_a_purge_beside_running_jobs_leaves_nothing_of_theirs() -> None:
    scope = scope_of(new_person(email="mara@example.org", password=None, name="Mara"))
    talk = Conversation(scope)
    waiting = [enqueue(scope, talk.say(f"Remember that I own boat {n}.")) for n in range(6)]
    start = threading.Barrier(len(waiting) + 1)

    def work(job_id: object) -> None:
        start.wait()
        try:
            run_job(str(job_id))
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[job_id]) for job_id in waiting]
    for thread in threads:
        thread.start()
    start.wait()
    purge(scope)
    for thread in threads:
        thread.join()
    assert set(left(scope)) <= KEPT_AFTER_A_PURGE
    with entered(scope):
        assert jobs.enqueue(scope, kind=Job.Kind.EMBED)
    assert issubclass(Memory, models.Model)


@pytest.mark.django_db(transaction=True)
def test_the_trash_is_over_before_something_else_can_be_thrown_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else what is forgotten just then would find a job that runs, and never be erased."""
    scope = scope_of(new_person(email="tia@example.org", password=None, name="Tia"))
    with entered(scope):
        job_id = jobs.enqueue(scope, kind=Job.Kind.TRASH)
    held: list[int] = []

    def finish(claimed: Claim) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_locks where locktype = 'advisory' and granted"
                " and pid = pg_backend_pid()"
            )
            held.extend(cursor.fetchone())

    monkeypatch.setattr("memory.trash.jobs.finish", finish)
    run_job(str(job_id))
    assert held == [1]
