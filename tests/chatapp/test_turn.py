"""A turn's steps: each one transaction, each safe to be late, double or overtaken."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection, connections
from django.utils import timezone

from accounts.errors import InvalidInput, NotFound, TooMuch, Unavailable
from accounts.ids import random_id
from accounts.scope import entered
from chatapp import erase, sessions, turn
from chatapp.models import ChatSession, Message, ReplyTicket
from chatapp.turn import Ended, Turn
from memory.models import Job
from tests.chatapp.conftest import Person, fresh, new_chat, said, stored


def ask(who: Person, session: ChatSession, text: str = "Hello?") -> turn.Begun:
    return turn.begin(who.scope, session.pk, text=text, client_id=uuid4())


def claimed(who: Person, session: ChatSession, text: str = "Hello?") -> Turn:
    begun = ask(who, session, text)
    assert begun.turn is not None
    return begun.turn


def status_of(who: Person, reply: UUID) -> str:
    return sessions.reply_of(who.scope, reply).status


def let_the_lease_run_out(who: Person, reply: UUID) -> None:
    past = timezone.now() - timedelta(seconds=1)
    with entered(who.scope):
        Message.objects.within(who.scope).filter(pk=reply).update(lease_until=past)
    ReplyTicket.objects.filter(pk=reply).update(due_at=past)


def test_begin_stores_the_question_and_an_empty_reply_that_runs(mara: Person) -> None:
    session = new_chat(mara, "New session")
    begun = ask(mara, session, "  Where  do I live?\n")
    assert stored(mara, session) == [
        ("user", "complete", "Where  do I live?"),
        ("assistant", "streaming", ""),
    ]
    assert begun.fresh
    assert begun.turn is not None
    assert begun.turn.question.text == "Where  do I live?"
    assert [begun.message.position, begun.reply.position] == [1, 2]
    session = fresh(mara, session)
    assert (session.title, session.message_count) == ("Where do I live?", 2)


def test_a_resend_changes_nothing_and_gives_what_is_stored(mara: Person) -> None:
    session, client_id = new_chat(mara), uuid4()
    first = turn.begin(mara.scope, session.pk, text="Once", client_id=client_id)
    again = turn.begin(mara.scope, session.pk, text="Once", client_id=client_id)
    assert not again.fresh
    assert again.turn is None
    assert (again.message.pk, again.reply.pk) == (first.message.pk, first.reply.pk)
    assert len(stored(mara, session)) == 2


@pytest.mark.parametrize("text", ["", " \n", "\x00", "\u200b", "x" * 65_537])
def test_a_text_that_can_not_be_used_is_not_stored(mara: Person, text: str) -> None:
    session = new_chat(mara)
    with pytest.raises(InvalidInput):
        ask(mara, session, text)
    assert stored(mara, session) == []


def test_a_stranger_begins_nothing(mara: Person, bob: Person, eve: Person) -> None:
    session = new_chat(mara)
    for who in (bob, eve):
        with pytest.raises(NotFound):
            ask(who, session)
        with pytest.raises(NotFound):
            turn.begin(who.scope, random_id(), text="x", client_id=uuid4())
    assert stored(mara, session) == []


def test_further_messages_wait_and_are_answered_in_order(mara: Person) -> None:
    session = new_chat(mara)
    first = claimed(mara, session, "one")
    second, third = ask(mara, session, "two"), ask(mara, session, "three")
    assert second.turn is None
    assert third.turn is None
    assert turn.claim(mara.scope, session.pk) is None  # one runs
    ended = turn.finish(first, status="complete", text="1")
    assert ended is not None
    assert ended.next is not None
    assert ended.next.reply_id == second.reply.pk
    assert [said.text for said in ended.next.history] == ["one", "1"]
    ended = turn.finish(ended.next, status="complete", text="2")
    assert ended is not None
    assert ended.next is not None
    assert ended.next.reply_id == third.reply.pk


def test_only_so_many_replies_may_wait(mara: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MOST_WAITING", 1)
    session = new_chat(mara)
    ask(mara, session)
    ask(mara, session)
    with pytest.raises(TooMuch):
        ask(mara, session)


def test_the_whole_history_goes_in_order(mara: Person) -> None:
    session = new_chat(mara)
    said(mara, session, ("I am Mara.", "Hello Mara."), ("I like tea.", "Noted."))
    history = claimed(mara, session, "What did I just say?").history
    assert [(said.role, said.text) for said in history] == [
        ("user", "I am Mara."),
        ("assistant", "Hello Mara."),
        ("user", "I like tea."),
        ("assistant", "Noted."),
    ]


def test_the_model_gets_the_last_forty_messages(mara: Person) -> None:
    """The rolling window: of 50 messages the model gets the last 40; the session keeps them all."""
    session = new_chat(mara)
    said(mara, session, *((f"q{n}", f"a{n}") for n in range(25)))
    history = claimed(mara, session).history
    assert len(history) == 40
    assert history[0].text == "q5"
    session = fresh(mara, session)
    assert session.message_count == 52


def test_the_end_is_stored_with_the_job_to_remember_it(mara: Person) -> None:
    session = new_chat(mara)
    running = claimed(mara, session)
    ended = turn.finish(running, status="complete", text="Hi.", model="m", tokens=(5, 2))
    assert ended is not None
    assert ended.learning
    assert stored(mara, session)[1] == ("assistant", "complete", "Hi.")
    with entered(mara.scope):
        job = Job.objects.within(mara.scope).get()
        reply = Message.objects.within(mara.scope).get(pk=running.reply_id)
    assert (job.source, job.session_key) == (running.reply_id, session.pk)
    assert (reply.model, reply.tokens_in, reply.tokens_out) == ("m", 5, 2)
    assert reply.lease_until is None
    assert not ReplyTicket.objects.exists()


@pytest.mark.parametrize(
    ("status", "text"), [("failed", ""), ("stopped", ""), ("interrupted", "a")]
)
def test_what_was_not_said_to_the_end_is_not_remembered(
    mara: Person, status: str, text: str
) -> None:
    running = claimed(mara, new_chat(mara))
    ended = turn.finish(running, status=status, text=text, problem=Unavailable())
    assert ended is not None
    assert not ended.learning
    assert ended.reply.error == str(Unavailable())
    with entered(mara.scope):
        assert not Job.objects.within(mara.scope).exists()


def test_a_process_that_is_too_late_changes_nothing(mara: Person) -> None:
    session = new_chat(mara)
    late = claimed(mara, session)
    let_the_lease_run_out(mara, late.reply_id)
    assert turn.interrupt(mara.scope, late.reply_id, text="so far") is not None
    assert not turn.keep(late, text="late")
    assert turn.finish(late, status="complete", text="late") is None
    again = turn.retry(mara.scope, late.reply_id, session_id=session.pk)
    assert again.turn is not None
    assert again.turn.attempt == late.attempt + 1
    assert not turn.keep(late, text="late")
    assert turn.finish(late, status="complete", text="late") is None
    assert status_of(mara, late.reply_id) == "streaming"


def test_a_reply_whose_process_is_gone_keeps_the_longer_text(mara: Person) -> None:
    session = new_chat(mara)
    running, waiting = claimed(mara, session), ask(mara, session, "next")
    assert turn.keep(running, text="one two")
    assert turn.interrupt(mara.scope, running.reply_id, text="one two three") is None  # it lives
    let_the_lease_run_out(mara, running.reply_id)
    assert [due.reply_id for due in turn.overdue()] == [running.reply_id]
    assert turn.overdue() == []  # somebody looks after it
    ended = turn.interrupt(mara.scope, running.reply_id, text="one")
    assert ended is not None
    assert (ended.reply.status, ended.reply.text) == ("interrupted", "one two")
    assert ended.next is not None
    assert ended.next.reply_id == waiting.reply.pk


def test_nobody_runs_what_waits_and_recovery_finds_it(mara: Person) -> None:
    session = new_chat(mara)
    turn.begin(mara.scope, session.pk, text="x", client_id=uuid4(), claiming=False)
    assert turn.overdue() == []  # not yet
    ReplyTicket.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    (due,) = turn.overdue()
    assert turn.interrupt(due.scope, due.reply_id) is None
    assert turn.claim(due.scope, due.session_id) is not None


def test_retry_answers_the_same_question_in_the_same_place(mara: Person) -> None:
    session = new_chat(mara)
    failed = claimed(mara, session, "Are you there?")
    turn.finish(failed, status="failed", text="", problem=Unavailable())
    again = turn.retry(mara.scope, failed.reply_id, session_id=session.pk)
    assert again.turn is not None
    assert again.turn.question.text == "Are you there?"
    assert again.turn.so_far == ""
    turn.finish(again.turn, status="complete", text="Yes.")
    assert stored(mara, session) == [
        ("user", "complete", "Are you there?"),
        ("assistant", "complete", "Yes."),
    ]


def test_continue_goes_on_from_the_text_so_far(mara: Person) -> None:
    session = new_chat(mara)
    running = claimed(mara, session)
    turn.finish(running, status="stopped", text="Once upon")
    again = turn.retry(mara.scope, running.reply_id, session_id=session.pk, keeping=True)
    assert again.turn is not None
    assert again.turn.so_far == "Once upon"


def test_a_reply_that_runs_waits_or_is_complete_is_not_retried(mara: Person) -> None:
    session = new_chat(mara)
    running, waiting = claimed(mara, session), ask(mara, session)
    for reply in (running.reply_id, waiting.reply.pk):
        with pytest.raises(InvalidInput):
            turn.retry(mara.scope, reply, session_id=session.pk)
    turn.finish(running, status="complete", text="x", claiming=False)
    with pytest.raises(InvalidInput):
        turn.retry(mara.scope, running.reply_id, session_id=session.pk)


def test_a_retry_waits_while_another_reply_runs(mara: Person) -> None:
    session = new_chat(mara)
    (old,) = said(mara, session, ("q", ""), status="failed")
    running = claimed(mara, session)
    again = turn.retry(mara.scope, old.pk, session_id=session.pk)
    assert again.turn is None
    ended = turn.finish(running, status="complete", text="x")
    assert ended is not None
    assert ended.next is not None
    assert ended.next.reply_id == old.pk
    assert ended.next.history == []


def test_stop_ends_what_waits_and_names_what_runs(mara: Person) -> None:
    session = new_chat(mara)
    running, waiting = claimed(mara, session), ask(mara, session)
    assert turn.stop(mara.scope, running.reply_id, session_id=session.pk) == "streaming"
    ended = turn.stop(mara.scope, waiting.reply.pk, session_id=session.pk)
    assert isinstance(ended, Ended)
    assert ended.reply.status == "stopped"
    assert turn.stop(mara.scope, waiting.reply.pk, session_id=session.pk) == "stopped"


ACTS: list[Callable[[Person, UUID, UUID], object]] = [
    lambda who, reply, session: turn.stop(who.scope, reply, session_id=session),
    lambda who, reply, session: turn.retry(who.scope, reply, session_id=session),
    lambda who, reply, session: sessions.reply_of(who.scope, reply),
]


@pytest.mark.parametrize("act", ACTS)
def test_a_stranger_finds_no_reply(
    mara: Person, bob: Person, eve: Person, act: Callable[[Person, UUID, UUID], object]
) -> None:
    session = new_chat(mara)
    running = claimed(mara, session)
    for who in (bob, eve):
        with pytest.raises(NotFound):
            act(who, running.reply_id, session.pk)
    other = new_chat(mara, "Another")
    with pytest.raises(NotFound):
        turn.stop(mara.scope, running.reply_id, session_id=other.pk)
    assert status_of(mara, running.reply_id) == "streaming"


def test_nothing_is_stored_after_everything_was_erased(mara: Person) -> None:
    """A46: a reply that was running while everything was erased writes nothing afterwards."""
    session = new_chat(mara)
    running = claimed(mara, session)
    assert erase.erase_sessions(mara.scope) == {"sessions": 1, "messages": 2}
    assert not turn.keep(running, text="late")
    assert turn.finish(running, status="complete", text="late") is None
    assert stored(mara, session) == []
    with entered(mara.scope):
        assert not Job.objects.within(mara.scope).exists()


def test_nothing_is_stored_after_the_session_was_deleted(mara: Person) -> None:
    session = new_chat(mara)
    running = claimed(mara, session)
    assert sessions.delete(mara.scope, session.pk) == [running.reply_id]
    assert not turn.keep(running, text="late")
    assert turn.finish(running, status="complete", text="late") is None
    assert not ReplyTicket.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_messages_at_once_are_each_stored_once_in_one_order(mara: Person) -> None:
    """A31: parallel messages and their resends are each stored exactly once, in one order."""
    session, ids = new_chat(mara), [uuid4() for _ in range(8)]

    def send(client_id: UUID) -> bool:
        try:
            begun = turn.begin(mara.scope, session.pk, text=str(client_id), client_id=client_id)
            return begun.turn is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        ran = list(threads.map(send, ids + ids))
    assert sum(ran) == 1  # one reply runs
    with entered(mara.scope):
        rows = list(Message.objects.within(mara.scope).in_order().values_list("position", "role"))
        asked = Message.objects.within(mara.scope).filter(role="user")
        assert {message.client_id for message in asked} == set(ids)
    assert rows == [(n, "user" if n % 2 else "assistant") for n in range(1, 17)]


@pytest.mark.django_db(transaction=True)
def test_one_waiting_reply_is_claimed_by_one_process(mara: Person) -> None:
    session = new_chat(mara)
    turn.begin(mara.scope, session.pk, text="x", client_id=uuid4(), claiming=False)

    def claim(_number: int) -> bool:
        try:
            return turn.claim(mara.scope, session.pk) is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(claim, range(6))) == 1


def test_the_database_itself_lets_one_reply_run(mara: Person) -> None:
    session = new_chat(mara)
    claimed(mara, session)
    waiting = ask(mara, session)
    with (
        pytest.raises(IntegrityError, match="one_reply_runs"),
        entered(mara.scope),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "update chatapp_message set status = 'streaming' where id = %s", [waiting.reply.pk]
        )
