"""How far memories are embedded, for those who answer for many people: sums, and no words."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.errors import Unavailable
from accounts.scope import Scope
from memory import embedder, reembed
from memory.models import JobTicket, ModelSettings
from memory.reembed import embedding_progress, everyone, notice_another_embedder
from memory.remember import add
from memory.standing import in_words, standing, standing_of_tenant
from memory.tasks import run_job
from tests.memory.conftest import keep, recalled
from tests.memory.test_reembed import Wide, job

pytestmark = pytest.mark.django_db


@pytest.fixture
def ten(mara: Scope, bob: Scope) -> None:
    for number in range(10):
        keep(mara, f"I know a tale of number {number}.", kind="note")
    keep(bob, "I own a bike.")
    notice_another_embedder()


def choose(monkeypatch: pytest.MonkeyPatch, chosen: Any) -> None:
    monkeypatch.setattr(embedder, "current", lambda: chosen)


def test_the_whole_way_of_a_switch(
    mara: Scope, bob: Scope, ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13's progress: before the worker has noticed, while it works, and when it is done."""
    calm = standing()
    assert (calm.running, calm.left, calm.model) == (False, 0, "all-MiniLM-L6-v2-int8")
    monkeypatch.setattr(reembed, "BATCH", 4)
    monkeypatch.setattr(reembed, "BATCHES", 1)
    choose(monkeypatch, Wide())
    changed = standing()
    assert (changed.noticed, changed.running, changed.dims) == (False, True, 1_024)
    notice_another_embedder()
    begun = standing()
    assert (begun.done, begun.total, begun.left, begun.people) == (0, 11, 11, 2)
    assert (begun.model, begun.before, begun.noticed) == ("wide", "all-MiniLM-L6-v2-int8", True)
    run_job(str(job(mara)))
    assert (standing().done, standing().percent) == (4, 36)
    hers, his = standing_of_tenant(mara.tenant_id), standing_of_tenant(bob.tenant_id)
    assert (hers.done, hers.total, hers.people) == (4, 10, 1)
    assert [(one.model, one.dims, one.memories) for one in hers.by_model] == [
        ("all-MiniLM-L6-v2-int8", 384, 6),
        ("wide", 1_024, 4),
    ]
    assert (his.done, his.total) == (0, 1)
    for scope in (mara, mara, bob):
        run_job(str(job(scope)))
    done = standing()
    assert (done.running, done.left, done.before) == (False, 0, "")
    assert [one.model for one in standing_of_tenant(mara.tenant_id).by_model] == ["wide"]


def test_a_failure_is_told_in_words_until_it_goes_on(
    mara: Scope, ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, Wide())
    notice_another_embedder()

    def away(memories: Any) -> Any:
        raise Unavailable("The embedder has gone to bed.", code="asleep")

    with monkeypatch.context() as patched:
        patched.setattr(reembed, "entries_of", away)
        run_job(str(job(mara)))
    assert standing().problem == "The embedder has gone to bed."
    assert standing().remaining == ""
    assert standing_of_tenant(mara.tenant_id).problem == "The embedder has gone to bed."
    run_job(str(job(mara)))
    assert standing().problem == ""


def test_how_long_it_takes_is_told_once_that_is_known(ten: None) -> None:
    def at(done: int, seconds: float) -> str:
        began = timezone.now() - timedelta(seconds=seconds)
        ModelSettings.objects.update(embed_missing=1_000, embed_total=1_000, embed_began_at=began)
        JobTicket.objects.all().delete()
        JobTicket.objects.create(
            job_id="00000000-0000-0000-0000-000000000001",
            tenant_id=1,
            user_id=1,
            queue="background",
            to_do=1_000 - done,
        )
        return standing().remaining

    assert at(0, 60) == ""
    assert at(49, 60) == ""
    assert at(500, 600) == "about 10 minutes"
    assert at(500, 60) == "about 60 seconds"
    assert at(990, 60) == "a few seconds"
    assert at(100, 3_600) == "about 9 hours"
    assert in_words(timedelta(minutes=1, seconds=31)) == "about 2 minutes"


def test_a_note_without_a_vector_counts_until_it_has_one(
    mara: Scope, ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: Any, **kwargs: Any) -> Any:
        raise Unavailable("The embedder is away.")

    with monkeypatch.context() as patched:
        patched.setattr("memory.keys.entries_of", away)
        add(mara, text="I own a boat.")
    assert (standing().left, standing_of_tenant(mara.tenant_id).left) == (1, 1)
    assert standing_of_tenant(mara.tenant_id).done == 10
    run_job(str(job(mara)))
    assert not standing().running


class Longer(Wide):
    """The same name, and vectors of another length: its server has another model behind it."""

    dims = 512


def test_vectors_of_another_length_are_another_embedder(
    mara: Scope, ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Point 15: of the same name, and another dimension."""
    choose(monkeypatch, Wide())
    notice_another_embedder()
    run_job(str(job(mara)))
    assert embedding_progress(mara).left == 0
    choose(monkeypatch, Longer())
    assert recalled(mara, "a tale of number 3")[0] == "I know a tale of number 3."  # by its words
    assert notice_another_embedder() is True
    assert notice_another_embedder() is False
    assert embedding_progress(mara).done == 0
    add(mara, text="I added this one.")
    run_job(str(job(mara)))
    assert embedding_progress(mara).left == 0
    assert [(one.dims, one.memories) for one in standing_of_tenant(mara.tenant_id).by_model] == [
        (512, 11)
    ]
    assert everyone() == 1  # Bob's
