"""Sessions: begun, listed, read, renamed, deleted."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from accounts.errors import InvalidInput, NotFound
from accounts.ids import random_id
from accounts.scope import entered
from chatapp import sessions
from chatapp.models import ChatSession, Message, ReplyTicket
from chatapp.shown import group_of
from chatapp.turn import title_from
from tests.chatapp.conftest import Person, fresh, new_chat, said, stored

UTC_ZONE = ZoneInfo("UTC")


def many(who: Person, count: int) -> None:
    start = timezone.now() - timedelta(days=1)
    with entered(who.scope):
        ChatSession.unscoped.bulk_create(
            ChatSession(
                tenant=who.tenant,
                user=who.user,
                title=f"{number}",
                last_activity_at=start + timedelta(seconds=number // 2),  # pairs of the same time
            )
            for number in range(count)
        )


def test_the_first_message_makes_the_session_and_its_title(mara: Person) -> None:
    begun = sessions.create(mara.scope, text="Plan my\n\n  weekend", client_id=uuid4())
    assert begun.session.title == "Plan my weekend"
    assert stored(mara, begun.session.pk) == [
        ("user", "complete", "Plan my\n\n  weekend"),
        ("assistant", "waiting", ""),
    ]


def test_the_same_first_message_twice_makes_one_session(mara: Person) -> None:
    client_id = uuid4()
    first = sessions.create(mara.scope, text="Hello", client_id=client_id)
    again = sessions.create(mara.scope, text="Hello", client_id=client_id)
    assert again.session.pk == first.session.pk
    assert not again.fresh


def test_a_title_is_one_line_of_at_most_a_hundred_characters() -> None:
    """A36: the title is the first message, cut at 100 characters, on one line."""
    title = title_from("a b\n" * 60)
    assert len(title) <= 100
    assert "\n" not in title
    assert title.endswith("…")
    assert title_from("short") == "short"


# Before the message is stored, and when everything is.
@pytest.mark.parametrize("where", ["chatapp.sessions.begin_in", "chatapp.turn.window"])
def test_a_session_is_stored_with_its_first_message_or_not_at_all(
    mara: Person, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A23: ownership is written in the first message's transaction: there is never one alone."""

    def fail(*args: object, **kwargs: object) -> object:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(where, fail)
        with pytest.raises(RuntimeError):
            sessions.create(mara.scope, text="Hello", client_id=uuid4())
    with entered(mara.scope):
        assert not ChatSession.objects.within(mara.scope).exists()
        assert not Message.objects.within(mara.scope).exists()
    assert not ReplyTicket.objects.exists()
    begun = sessions.create(mara.scope, text="Hello", client_id=uuid4())
    with entered(mara.scope):
        owners = {ChatSession.objects.within(mara.scope).get().scope, begun.message.scope}
    assert owners == {mara.scope}


def test_a_blank_first_message_makes_no_session(mara: Person) -> None:
    with pytest.raises(InvalidInput):
        sessions.create(mara.scope, text=" ", client_id=uuid4())
    assert sessions.page(mara.scope, zone=UTC_ZONE).rows == []


def test_rename_keeps_the_place_in_the_list(mara: Person) -> None:
    """A36: a rename does not reorder the list."""
    first, second = new_chat(mara, "first"), new_chat(mara, "second")
    sessions.rename(mara.scope, first.pk, title="  A new\ntitle ")
    rows = sessions.page(mara.scope, zone=UTC_ZONE).rows
    assert [row.id for row in rows] == [second.pk, first.pk]
    assert rows[1].title == "A new title"


@pytest.mark.parametrize("title", ["", "  ", "x" * 101, "\x00"])
def test_a_title_that_can_not_be_used(mara: Person, title: str) -> None:
    session = new_chat(mara, "Kept")
    with pytest.raises(InvalidInput):
        sessions.rename(mara.scope, session.pk, title=title)
    session = fresh(mara, session)
    assert session.title == "Kept"


def test_strangers_rename_and_delete_nothing(mara: Person, bob: Person, eve: Person) -> None:
    """A36, A16: only the owner renames; to others the session is not there."""
    session = new_chat(mara, "Hers")
    said(mara, session, ("q", "a"))
    for who in (bob, eve):
        for pk in (session.pk, random_id()):
            with pytest.raises(NotFound):
                sessions.rename(who.scope, pk, title="Mine")
            with pytest.raises(NotFound):
                sessions.delete(who.scope, pk)
            with pytest.raises(NotFound):
                sessions.read(who.scope, pk)
            with pytest.raises(NotFound):
                sessions.pending(who.scope, pk)
            assert sessions.row(who.scope, pk, zone=UTC_ZONE) is None
    session = fresh(mara, session)
    assert session.title == "Hers"
    assert len(stored(mara, session)) == 2


def test_delete_erases_the_messages_and_a_second_time_finds_nothing(mara: Person) -> None:
    session, other = new_chat(mara), new_chat(mara)
    said(mara, session, ("q", "a"))
    said(mara, other, ("q", "a"))
    assert sessions.delete(mara.scope, session.pk) == []
    assert stored(mara, session) == []
    assert len(stored(mara, other)) == 2
    with pytest.raises(NotFound):
        sessions.delete(mara.scope, session.pk)


def test_pages_of_fifty_hold_each_session_once_while_new_ones_arrive(mara: Person) -> None:
    many(mara, 120)
    first = sessions.page(mara.scope, zone=UTC_ZONE)
    new_chat(mara, "New meanwhile")
    second = sessions.page(mara.scope, zone=UTC_ZONE, before=first.next)
    third = sessions.page(mara.scope, zone=UTC_ZONE, before=second.next)
    assert [len(first.rows), len(second.rows), len(third.rows)] == [50, 50, 20]
    assert third.next == ""
    seen = [row.title for row in (*first.rows, *second.rows, *third.rows)]
    assert len(set(seen)) == 120
    ages = [row.last_activity_at for row in (*first.rows, *second.rows, *third.rows)]
    assert ages == sorted(ages, reverse=True)


@pytest.mark.parametrize("cursor", ["x", "1", "1-2", "-1-" + "0" * 32])
def test_a_cursor_that_is_none_is_refused(mara: Person, cursor: str) -> None:
    with pytest.raises(InvalidInput):
        sessions.page(mara.scope, zone=UTC_ZONE, before=cursor)


def test_a_list_holds_only_its_owners_sessions(mara: Person, bob: Person, eve: Person) -> None:
    new_chat(mara)
    for who in (bob, eve):
        assert sessions.page(who.scope, zone=UTC_ZONE).rows == []


def test_a_session_shows_its_last_fifty_exchanges_and_the_way_to_the_others(mara: Person) -> None:
    session = new_chat(mara)
    said(mara, session, *((f"q{n}", f"a{n}") for n in range(60)))
    latest = sessions.read(mara.scope, session.pk)
    assert [exchange.message.text for exchange in latest.exchanges][:1] == ["q10"]
    assert latest.older == 21
    earlier = sessions.read(mara.scope, session.pk, before=latest.older)
    assert [exchange.message.text for exchange in earlier.exchanges] == [f"q{n}" for n in range(10)]
    assert earlier.older is None
    assert all(exchange.reply for exchange in earlier.exchanges)


def test_repeated_words_are_all_kept(mara: Person) -> None:
    session = new_chat(mara)
    said(mara, session, ("yes", "ok"), ("yes", "ok"), ("yes", "ok"))
    shown = sessions.read(mara.scope, session.pk).exchanges
    assert [exchange.message.text for exchange in shown] == ["yes"] * 3


@pytest.mark.parametrize(
    ("at", "group"),
    [
        (datetime(2026, 3, 9, 16, 30, tzinfo=UTC), "Today"),  # the 10th in Shanghai
        (datetime(2026, 3, 9, 15, 30, tzinfo=UTC), "Yesterday"),
        (datetime(2026, 3, 4, 3, 0, tzinfo=UTC), "Last 7 days"),
        (datetime(2026, 2, 1, 3, 0, tzinfo=UTC), "February 2026"),
    ],
)
def test_headings_go_by_the_persons_own_calendar(at: datetime, group: str) -> None:
    today = datetime(2026, 3, 10, tzinfo=UTC).date()
    assert group_of(at, ZoneInfo("Asia/Shanghai"), today) == group
