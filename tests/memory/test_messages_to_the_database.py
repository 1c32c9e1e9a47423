"""How many messages to the database remembering takes: each costs the worker and Postgres.

Counted on the wire, by libpq's own trace, so that BEGIN and COMMIT count as well.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from accounts.zones import zone_of
from memory import embedder
from memory.models import Job
from memory.remember import add, enqueue_exchange
from memory.tasks import run_job
from memory.vectors import Embedded
from tests.memory.conftest import Conversation, answer, job_of, keep
from tests.stub_model import StubModel

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="libpq traces on Linux alone"),
]

ASKS = "Which trains go to the lake on Sundays?"
TELLS = "I take the train to the lake on Sundays."


@pytest.fixture
def messages(tmp_path: Path) -> Callable[[Callable[[], object]], int]:
    """Return what counts the messages of an act."""

    def count(act: Callable[[], object]) -> int:
        connection.ensure_connection()
        wire = connection.connection.pgconn
        trace = tmp_path / "trace"
        with trace.open("w") as file:
            wire.trace(file.fileno())
            try:
                act()
            finally:
                wire.untrace()
        return trace.read_text(errors="replace").count("ReadyForQuery")

    return count


def job_about(talk: Conversation, text: str) -> str:
    """Return the id of an exchange's job, enqueued with its question's vector, as a reply does."""
    exchange = talk.say(text, reply="The first one leaves at seven, and the last one at nine.")
    question = Embedded(embedder.current().name, embedder.embed([text])[0].tolist())
    job = enqueue_exchange(
        talk.scope, reply_id=exchange.reply.id, session_key=talk.session, question=question
    )
    return str(job)


def test_a_plain_exchange(talk: Conversation, messages: Callable[..., int]) -> None:
    run_job(job_about(talk, "Hello."))
    job = job_about(talk, ASKS)
    # Ticket, claim, the operator's choice; what was recalled, what is barred; the transaction that
    # holds the scope: begin, lock, exchange, search rows, end of the job, commit. What the chat
    # reads of the exchange comes on top.
    assert messages(lambda: run_job(job)) == 11


def test_an_exchange_that_a_model_reads(
    talk: Conversation, model: StubModel, messages: Callable[..., int]
) -> None:
    keep(talk.scope, "The user owns a boat.")
    answer(model)
    run_job(job_about(talk, "Hello there."))
    job = job_about(talk, TELLS)
    assert messages(lambda: run_job(job)) == 19
    assert job_of(talk.scope, job).state == Job.State.DONE
    assert len(model.asked("json")) == 2


def test_a_job_that_is_done_by_now(talk: Conversation, messages: Callable[..., int]) -> None:
    job = job_about(talk, ASKS)
    run_job(job)
    assert messages(lambda: run_job(job)) == 1


def test_enqueueing(talk: Conversation, messages: Callable[..., int]) -> None:
    exchange = talk.say(ASKS)
    told = {"reply_id": exchange.reply.id, "session_key": talk.session}
    assert messages(lambda: enqueue_exchange(talk.scope, **told)) == 1


def test_a_note(talk: Conversation, messages: Callable[..., int]) -> None:
    add(talk.scope, text="I own a boat.")
    # The operator's choice, the time zone; begin, lock and note, search rows, commit.
    assert messages(lambda: add(talk.scope, text="I own a bicycle.")) == 6
    # A page knows the time zone.
    assert messages(lambda: add(talk.scope, text="I own a kayak.", zone=zone_of("UTC"))) == 5
