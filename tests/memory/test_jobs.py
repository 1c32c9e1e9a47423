"""The job's row is the truth: claimed once, taken over from the dead, given up in plain sight."""

import threading
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as configured
from django.db import transaction
from django.utils import timezone

from accounts.errors import AppError, Unavailable
from accounts.scope import Scope, entered
from memory import jobs, tasks
from memory.jobs import ATTEMPTS, LEASE, PAUSES, Hints, Overtaken
from memory.learnt import learnt_for_replies
from memory.models import Job, JobTicket, MemorySettings
from memory.tasks import run_job
from memory.tasks import sweep as sweep_task
from tests.memory.conftest import Conversation, enqueue, exchanges, job_of, run

pytestmark = pytest.mark.django_db


def due(job_id: object) -> float:
    """Return in how many seconds the sweep will send it again."""
    return (JobTicket.objects.get(job_id=job_id).due_at - timezone.now()).total_seconds()


def make(scope: Scope) -> Any:
    return jobs.enqueue(scope, kind=Job.Kind.REMEMBER, source=uuid4(), session_key=uuid4())


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    kept: list[Any] = []
    monkeypatch.setattr(jobs.hints, "send", lambda job, queue: kept.append((job, queue)) or True)
    monkeypatch.setattr(jobs.hints, "offer", lambda job, queue: kept.append((job, queue)))
    return kept


def test_each_limit_is_longer_than_the_one_before() -> None:
    soft, hard = configured.CELERY_TASK_SOFT_TIME_LIMIT, configured.CELERY_TASK_TIME_LIMIT
    visibility = configured.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    assert soft < hard < LEASE.total_seconds() < visibility
    assert len(PAUSES) == ATTEMPTS - 1
    assert list(PAUSES) == sorted(PAUSES)


def test_a_job_is_hinted_at_only_once_it_is_committed(
    mara: Scope, sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job_id = make(mara)
        assert sent == []
    assert sent == [(job_id, "interactive")]


def test_a_job_that_is_rolled_back_was_never_there(mara: Scope) -> None:
    def make_and_fail() -> None:
        with transaction.atomic():
            make(mara)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        make_and_fail()
    assert not JobTicket.objects.exists()


def test_one_runner_claims_and_the_others_find_nothing(mara: Scope) -> None:
    job_id = make(mara)
    claimed = jobs.claim(job_id)
    assert claimed is not None
    assert (claimed.scope, claimed.attempts) == (mara, 1)
    assert jobs.claim(job_id) is None
    assert 100 < due(job_id) <= LEASE.total_seconds()
    jobs.finish(claimed)
    assert jobs.claim(job_id) is None
    assert jobs.claim(uuid4()) is None
    assert not JobTicket.objects.filter(job_id=job_id).exists()


def test_a_dead_runners_job_goes_to_another_and_the_first_writes_nothing_more(
    mara: Scope,
) -> None:
    job_id = make(mara)
    dead = jobs.claim(job_id)
    assert dead is not None
    with entered(mara):
        Job.objects.within(mara).update(lease_until=timezone.now() - timedelta(seconds=1))
    alive = jobs.claim(job_id)
    assert alive is not None
    assert alive.attempts == 2
    with pytest.raises(Overtaken):
        jobs.renew(dead)
    with pytest.raises(Overtaken), jobs.writing(dead):
        pass
    jobs.finish(dead, late=True)
    assert job_of(mara, job_id).state == Job.State.RUNNING
    jobs.finish(alive)
    assert job_of(mara, job_id).result.get("late") is None


def test_what_takes_its_worker_with_it_each_time_is_given_up_where_one_sees_it(
    talk: Conversation,
) -> None:
    job_id = enqueue(talk.scope, talk.say("Hello."))
    for _try in range(jobs.ATTEMPTS):
        assert jobs.claim(job_id) is not None
        with entered(talk.scope):
            late = timezone.now() - timedelta(seconds=1)
            Job.objects.within(talk.scope).update(lease_until=late)
    run_job(str(job_id))
    job = job_of(talk.scope, job_id)
    assert job.state == Job.State.PARKED
    assert "worker was lost" in job.last_error
    assert jobs.retry_parked(talk.scope) == 1
    run_job(str(job_id))
    assert exchanges(talk.scope) == ["Hello."]


def test_a_failure_pauses_longer_each_time_and_is_given_up_where_one_sees_it(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise Unavailable("The model is away.")

    monkeypatch.setitem(tasks.VERBS, Job.Kind.REMEMBER, fail)
    exchange = talk.say("Hello.")
    job_id = enqueue(talk.scope, exchange)
    waits = []
    for _ in range(ATTEMPTS - 1):
        run_job(str(job_id))
        waits.append(round(due(job_id)))
    assert waits == list(PAUSES)
    run_job(str(job_id))
    parked = job_of(talk.scope, job_id)
    assert (parked.state, parked.attempts) == (Job.State.PARKED, ATTEMPTS)
    assert parked.last_error.startswith("provider_unavailable")
    assert not JobTicket.objects.filter(job_id=job_id).exists()
    run_job(str(job_id))
    shown = learnt_for_replies(talk.scope, [exchange.reply.id])[exchange.reply.id]
    assert shown["state"] == "parked"
    assert shown["note"]
    monkeypatch.undo()
    assert jobs.retry_parked(talk.scope) == 1
    run_job(str(job_id))
    assert job_of(talk.scope, job_id).state == Job.State.DONE


def test_a_mistake_in_the_program_is_logged_and_tried_again(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any) -> None:
        raise KeyError("a mistake")

    monkeypatch.setitem(tasks.VERBS, Job.Kind.REMEMBER, fail)
    job_id = enqueue(talk.scope, talk.say("My secret is 42."))
    run_job(str(job_id))
    assert job_of(talk.scope, job_id).last_error.startswith("error: ")
    assert "secret" not in caplog.text


def test_the_sweep_sends_what_is_due_and_nothing_else(mara: Scope, sent: list[Any]) -> None:
    lost, later = make(mara), make(mara)
    sent.clear()
    assert jobs.sweep() == 0
    JobTicket.objects.filter(job_id=lost).update(due_at=timezone.now())
    sweep_task()
    assert sent == [(lost, "interactive")]
    assert due(lost) > 20
    assert due(later) > 5
    assert jobs.sweep() == 0


def test_asked_for_again_a_job_starts_anew_and_a_runner_of_the_first_is_overtaken(
    talk: Conversation,
) -> None:
    exchange = talk.say("Hello.")
    job_id = enqueue(talk.scope, exchange)
    first = jobs.claim(job_id)
    assert first is not None
    assert enqueue(talk.scope, exchange) == job_id
    second = jobs.claim(job_id)
    assert second is not None
    with pytest.raises(Overtaken):
        jobs.renew(first)
    jobs.release(first, AppError())
    assert job_of(talk.scope, job_id).state == Job.State.RUNNING
    jobs.finish(second)
    assert run(talk.scope, exchange).state == Job.State.DONE
    assert exchanges(talk.scope) == ["Hello."]


def test_a_runner_that_fails_for_the_last_time_leaves_alone_what_was_asked_for_again(
    talk: Conversation,
) -> None:
    exchange = talk.say("Hello.")
    job_id = enqueue(talk.scope, exchange)
    for _try in range(jobs.ATTEMPTS):
        last = jobs.claim(job_id)
        assert last is not None
        if last.attempts < jobs.ATTEMPTS:
            jobs.release(last, AppError())
    assert enqueue(talk.scope, exchange) == job_id
    jobs.release(last, AppError())
    assert job_of(talk.scope, job_id).state == Job.State.WAITING
    run_job(str(job_id))
    assert job_of(talk.scope, job_id).state == Job.State.DONE
    assert exchanges(talk.scope) == ["Hello."]


def test_the_listener_hears_of_each_end_and_its_failure_is_nobodys(
    talk: Conversation, settings: Any
) -> None:
    heard.clear()
    settings.MEMORY_LISTENER = "tests.memory.test_jobs.hear"
    job = talk.remember("Hello.")
    assert heard == [(talk.scope, job.source, talk.session)]
    settings.MEMORY_LISTENER = "tests.memory.test_jobs.fail_to_hear"
    assert talk.remember("Hello again.").state == Job.State.DONE


heard: list[Any] = []


def hear(scope: Scope, reply_id: object, session_key: object) -> None:
    heard.append((scope, reply_id, session_key))


def fail_to_hear(*args: object) -> None:
    raise RuntimeError("deaf")


class Broker(Hints):
    """Hints whose broker can be away, and holds what it took."""

    def __init__(self, *, away: bool = False, most: int = 2_000) -> None:
        super().__init__(most=most, rest=0.05)
        self.away = away
        self.took: list[Any] = []
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def send(self, job_id: Any, queue_name: str) -> bool:
        self.asked.set()
        self.may_answer.wait(5)
        if not self.away:
            self.took.append(job_id)
        return not self.away


def eventually(true: Any) -> bool:
    until = time.monotonic() + 5
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    return bool(true())


def test_a_broker_that_hangs_holds_up_nobody_and_loses_no_more_than_hints() -> None:
    broker = Broker(most=3)
    broker.may_answer.clear()
    ids = [uuid4() for _ in range(10)]
    for job_id in ids:
        broker.offer(job_id, "interactive")  # returns, although the first still hangs
    assert broker.asked.wait(5)
    broker.may_answer.set()
    assert eventually(lambda: len(broker.took) >= 3)
    assert broker.took == ids[: len(broker.took)]


def test_after_a_failure_the_broker_is_left_alone_for_a_while() -> None:
    broker = Broker(away=True)
    for _ in range(5):
        broker.offer(uuid4(), "interactive")
    assert eventually(lambda: broker._waiting.empty())
    broker.away = False
    last = uuid4()

    def taken() -> bool:
        broker.offer(last, "interactive")
        return last in broker.took

    assert eventually(taken)


def test_a_broker_that_is_away_raises_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ConnectionError("redis://:password@127.0.0.1")

    monkeypatch.setattr(run_job, "apply_async", refuse)
    assert Hints().send(uuid4(), "interactive") is False
    assert "password" not in caplog.text


def test_what_was_said_while_a_purge_was_under_way_is_remembered_after_it(
    talk: Conversation,
) -> None:
    """Its job was made with the generation of before, and was not there to be erased."""
    with entered(talk.scope):
        MemorySettings.objects.within(talk.scope).create(
            tenant_id=talk.scope.tenant_id, user_id=talk.scope.user_id
        )
    job_id = enqueue(talk.scope, talk.say("I own a boat."))
    with entered(talk.scope):
        began = timezone.now() - timedelta(seconds=1)
        MemorySettings.objects.within(talk.scope).update(generation=1, purged_at=began)
    run_job(str(job_id))
    assert job_of(talk.scope, job_id).state == Job.State.DONE
    assert exchanges(talk.scope) == ["I own a boat."]
