"""What waits is taken or declined by the person alone; what others said is trusted by them."""

import pytest

from accounts.errors import InvalidInput, NotFound
from accounts.scope import Scope, entered
from memory.edit import edit
from memory.models import Memory
from memory.remember import add
from memory.review import accept, accept_all, decline
from tests.memory.conftest import facts, keep, recalled

pytestmark = pytest.mark.django_db


def test_words_of_others_are_not_used_until_they_are_accepted(mara: Scope) -> None:
    for origin in ("imported", "document", "assistant"):
        note = add(mara, text=f"The user likes {origin} tea.", origin=origin)
        assert (note.status, note.trusted) == ("waiting", False)
        assert note.because
    assert not any("tea" in text for text in recalled(mara, "Which tea?"))
    taken = accept(mara, memory=note.pk)
    assert (taken.status, taken.trusted, taken.because) == ("current", True, "")
    assert recalled(mara, "Which tea?") == ["The user likes assistant tea."]
    assert accept_all(mara) == 2


def test_what_is_current_and_not_trusted_is_trusted_or_declined(mara: Scope) -> None:
    one = keep(mara, "The user owns a boat.", origin="imported", trusted=False)
    other = keep(mara, "The user owns a plane.", origin="imported", trusted=False)
    assert recalled(mara, "What do I own?") == []
    accept(mara, memory=one.pk)
    decline(mara, memory=other.pk)
    assert recalled(mara, "What do I own?") == ["The user owns a boat."]
    assert facts(mara, status="declined") == ["The user owns a plane."]


def test_accepted_it_retires_what_it_is_to_replace(mara: Scope) -> None:
    old = keep(mara, "The user works at Acme.")
    new = keep(mara, "The user works at Birch.", status="waiting", would_replace=old.pk)
    accept(mara, memory=new.pk)
    assert facts(mara) == ["The user works at Birch."]
    with entered(mara):
        assert Memory.objects.within(mara).get(pk=old.pk).superseded_by_id == new.pk


def test_edited_it_retires_what_it_is_to_replace(mara: Scope) -> None:
    old = keep(mara, "The user works at Acme.")
    new = keep(mara, "The user works at Birch.", status="waiting", would_replace=old.pk)
    edit(mara, memory=new.pk, text="The user works at Birch Ltd.")
    assert facts(mara) == ["The user works at Birch Ltd."]


def test_declined_it_retires_nothing_and_may_still_be_accepted(mara: Scope) -> None:
    old = keep(mara, "The user works at Acme.")
    new = keep(mara, "The user works at Birch.", status="waiting", would_replace=old.pk)
    assert decline(mara, memory=new.pk).status == "declined"
    assert facts(mara) == ["The user works at Acme."]
    accept(mara, memory=new.pk)
    assert facts(mara) == ["The user works at Birch."]


def test_what_does_not_wait_can_be_neither_accepted_nor_declined(mara: Scope) -> None:
    memory = keep(mara, "The user owns a boat.")
    for act in (accept, decline):
        with pytest.raises(InvalidInput):
            act(mara, memory=memory.pk)


def test_somebody_elses_is_not_there(mara: Scope, bob: Scope) -> None:
    memory = keep(mara, "The user owns a boat.", status="waiting")
    for act in (accept, decline):
        with pytest.raises(NotFound):
            act(bob, memory=memory.pk)
    assert accept_all(bob) == 0
    assert facts(mara, status="waiting") == ["The user owns a boat."]
