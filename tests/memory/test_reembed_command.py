"""`manage.py reembed`: how far it is, on a terminal and elsewhere; stopped, failed, gone on."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.errors import Unavailable
from accounts.models import Tenant
from accounts.scope import Scope, entered
from memory import embedder, jobs, reembed
from memory.management.commands.reembed import Bar, _span
from memory.models import Job, JobTicket, ModelSettings
from memory.reembed import embedding_progress
from memory.tasks import run_job
from tests.memory.conftest import keep, recalled
from tests.memory.test_reembed import Wide

pytestmark = pytest.mark.django_db


@pytest.fixture
def ten(mara: Scope, bob: Scope) -> None:
    for number in range(10):
        keep(mara, f"I know a tale of number {number}.", kind="note")
    keep(bob, "I own a bike.")


@pytest.fixture
def wide(ten: None, monkeypatch: pytest.MonkeyPatch) -> Wide:
    """Eleven memories with 384 dimensions, and an embedder of 1,024."""
    chosen = Wide()
    monkeypatch.setattr(embedder, "current", lambda: chosen)
    return chosen


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def run(*words: str, out: StringIO | None = None, err: StringIO | None = None) -> str:
    out = out or StringIO()
    call_command("reembed", *words, stdout=out, stderr=err or StringIO())
    return out.getvalue()


def jobs_of(scope: Scope) -> list[Job]:
    with entered(scope):
        return list(Job.objects.within(scope).filter(kind="embed"))


def test_all_is_embedded_and_it_says_how_far_it_came(mara: Scope, bob: Scope, wide: Wide) -> None:
    """Point 15: for everybody, and afterwards the search is right."""
    said = run()
    assert (
        "0 of 11 memories are embedded by wide (1,024 dimensions); 11 are not, of 2 people." in said
    )
    assert "11 of 11 are embedded" in said
    assert "\r" not in said
    assert "\x1b" not in said
    for scope in (mara, bob):
        assert embedding_progress(scope).left == 0
        assert [job.state for job in jobs_of(scope)] == [Job.State.DONE]
    assert recalled(mara, "a tale of number 3")[0] == "I know a tale of number 3."
    assert not JobTicket.objects.exists()
    assert ModelSettings.objects.get().embed_total == 11
    assert run() == "All 11 memories are embedded by wide (1,024 dimensions).\n"


def test_a_terminal_has_a_bar_of_one_line(wide: Wide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembed, "BATCH", 4)
    said = run(out=Terminal())
    drawn = [line for line in said.split("\r\x1b[K") if "of 11 (" in line]
    assert [line.split("] ")[1].split(" (")[0] for line in drawn][-1].startswith("11 of 11")
    assert "[..............................] 0 of 11 (0 %)" in said
    assert "[##############################] 11 of 11 (100 %)" in said
    assert len(drawn) == 5  # 0, 4, 8, 10 of hers, 11 with his


def test_a_dry_run_changes_nothing(mara: Scope, wide: Wide) -> None:
    assert "11 are not, of 2 people." in run("--dry-run")
    assert jobs_of(mara) == []
    assert embedding_progress(mara).done == 0


def test_one_tenant_alone(mara: Scope, bob: Scope, wide: Wide) -> None:
    slug = Tenant.objects.get(pk=bob.tenant_id).slug
    assert "1 are not, of 1 person." in run(f"--tenant={slug}")
    assert (embedding_progress(bob).left, embedding_progress(mara).left) == (0, 10)
    with pytest.raises(CommandError, match="no tenant nowhere"):
        run("--tenant=nowhere")


def test_it_is_left_to_the_background_worker(mara: Scope, wide: Wide) -> None:
    assert "Queued for 2 people" in run("--in-background")
    [job] = jobs_of(mara)
    assert (job.state, JobTicket.objects.get(job_id=job.pk).to_do) == (Job.State.WAITING, 10)
    run_job(str(job.pk))
    assert embedding_progress(mara).left == 0


def test_stopped_by_hand_it_keeps_what_is_done_and_goes_on(
    mara: Scope, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH", 4)
    entries_of = reembed.entries_of
    batches: list[int] = []

    def stopping(memories: Any) -> Any:
        batches.append(len(memories))
        if len(batches) == 2:
            raise KeyboardInterrupt
        return entries_of(memories)

    said = StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(reembed, "entries_of", stopping)
        with pytest.raises(SystemExit) as stopped:
            run(err=said)
    assert stopped.value.code == 130
    assert "Stopped: 4 of 11 are done" in said.getvalue()
    assert embedding_progress(mara).done == 4
    [job] = jobs_of(mara)
    assert job.state == Job.State.WAITING  # nobody has to wait for a lease
    assert "4 of 11 memories are embedded" in (rest := run())
    assert "11 of 11 are embedded" in rest


def test_stopped_before_it_began_it_says_that_nothing_was_changed(
    mara: Scope, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(wide, "embed", stopping)
    said = StringIO()
    with pytest.raises(SystemExit) as stopped:
        run(err=said)
    assert stopped.value.code == 130
    assert said.getvalue() == "Stopped: nothing was changed.\n"
    assert jobs_of(mara) == []


def test_a_failure_says_why_and_how_far_it_came(
    mara: Scope, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH", 4)
    entries_of = reembed.entries_of
    batches: list[int] = []

    def failing(memories: Any) -> Any:
        batches.append(len(memories))
        if len(batches) == 2:
            raise Unavailable("The embedder has gone to bed.", code="asleep")
        return entries_of(memories)

    with monkeypatch.context() as patched:
        patched.setattr(reembed, "entries_of", failing)
        with pytest.raises(CommandError) as failed:
            run()
    assert str(failed.value) == (
        "The embedder has gone to bed. 4 of 11 are done, and stay so. Run this again to go on."
    )
    ticket = JobTicket.objects.get(user_id=mara.user_id)
    assert (ticket.to_do, ticket.problem) == (6, "asleep: The embedder has gone to bed.")
    assert "11 of 11 are embedded" in run()


def test_an_embedder_that_is_away_changes_nothing(
    mara: Scope, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(texts: Any) -> Any:
        raise Unavailable("The embedder is away.")

    monkeypatch.setattr(wide, "embed", away)
    with pytest.raises(CommandError, match=r"The embedder is away\. Nothing was changed\."):
        run()
    assert jobs_of(mara) == []


def test_what_a_worker_has_in_hand_is_waited_for(
    mara: Scope, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    slug = Tenant.objects.get(pk=mara.tenant_id).slug
    queue, waits = reembed.queue, []

    def queue_and_claim(scope: Scope, **how: Any) -> Any:
        job = queue(scope, **how)
        waits.append(jobs.claim(job))
        return job

    def work(seconds: float) -> None:
        claimed = waits.pop()
        assert claimed is not None
        reembed.embed_missing(claimed)

    monkeypatch.setattr(reembed, "queue", queue_and_claim)
    monkeypatch.setattr("memory.management.commands.reembed.time.sleep", work)
    assert "10 of 10 are embedded" in run(f"--tenant={slug}")


def test_a_line_now_and_then_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.management.base import OutputWrapper

    at = [100.0]
    monkeypatch.setattr("memory.management.commands.reembed.time.monotonic", lambda: at[0])
    out = StringIO()
    bar = Bar(OutputWrapper(out), 1_000)
    for done in range(1, 1_001):
        at[0] += 0.125
        bar.reach(done)
    bar.end()
    lines = out.getvalue().splitlines()
    assert len(lines) == 14  # one in ten seconds, the first and the last
    assert lines[0] == "  0 of 1,000 (0 %)"
    assert lines[5] == "  400 of 1,000 (40 %), about 1:15 min left"
    assert lines[-1] == "  1,000 of 1,000 (100 %)"
    assert _span(4_000) == "1 h 06 min"
