"""Another embedder: everything works meanwhile, and is found again afterwards."""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.db import DatabaseError

from accounts.join import join, leave, new_organisation
from accounts.models import User
from accounts.scope import Scope, entered
from memory import embedder, reembed
from memory.edit import edit, forget, one
from memory.folding import words
from memory.mark import tag
from memory.model_choice import choose_embeddings
from memory.models import Job, ModelSettings, SearchKey
from memory.purge import purge
from memory.reembed import embedding_progress, everyone, notice_another_embedder
from memory.remember import add
from memory.search import search
from memory.tasks import run_job
from tests.memory.conftest import Conversation, facts, keep, recalled

pytestmark = pytest.mark.django_db


class Wide:
    """An embedder of 1,024 dimensions that knows words and nothing else."""

    name = "wide"
    dims = 1_024

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), self.dims), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in words(text):
                row[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dims] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Any:
    def to_wide() -> None:
        wide = Wide()
        monkeypatch.setattr(embedder, "current", lambda: wide)
        monkeypatch.setattr("memory.extract.current_embedder", lambda: wide)

    return to_wide


def job(scope: Scope) -> UUID:
    with entered(scope):
        pk: UUID = Job.objects.within(scope).get(kind="embed").pk
    return pk


def test_everything_works_during_and_after_a_switch(talk: Conversation, switch: Any) -> None:
    scope = talk.scope
    talk.remember("Where is the lighthouse?", reply="On the northern cape.")
    kept = [add(scope, text=f"I know a tale of number {number}.") for number in range(10)]
    switch()
    assert embedding_progress(scope).done == 0
    assert embedding_progress(scope).total == 11
    assert recalled(scope, "a tale of number 3")[0] == "I know a tale of number 3."  # by its words
    assert search(scope, query="number 3").memories[0].text == "I know a tale of number 3."
    add(scope, text="I added this one.")
    edit(scope, memory=kept[0].pk, text="I edited this one.")
    forget(scope, memory=kept[1].pk)
    assert recalled(scope, "I added this one.")[0] == "I added this one."
    assert embedding_progress(scope).percent == 18
    assert everyone() == 1
    run_job(str(job(scope)))
    assert (embedding_progress(scope).done, embedding_progress(scope).total) == (11, 11)
    assert recalled(scope, "I know a tale of number 3.")[0] == "I know a tale of number 3."
    assert any("lighthouse" in text for text in recalled(scope, "northern cape"))
    assert not any("number 1." in text for text in recalled(scope, "a tale of number 1."))
    assert everyone() == 0


def test_a_long_way_is_gone_in_steps(
    mara: Scope, switch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH", 2)
    monkeypatch.setattr(reembed, "BATCHES", 2)
    for number in range(9):
        add(mara, text=f"Tale {number}.")
    switch()
    everyone()
    for done in (4, 8, 9):
        run_job(str(job(mara)))
        assert embedding_progress(mara).done == done
    with entered(mara):
        assert Job.objects.within(mara).get(kind="embed").state == Job.State.DONE


def test_what_has_nothing_to_embed_does_not_go_round_for_ever(mara: Scope, switch: Any) -> None:
    keep(mara, "…", kind="exchange", answer="")
    keep(mara, "I own a boat.")
    switch()
    everyone()
    run_job(str(job(mara)))
    with entered(mara):
        assert Job.objects.within(mara).get(kind="embed").state == Job.State.DONE
    assert embedding_progress(mara).done == 1


def test_an_edit_meanwhile_wins(mara: Scope, switch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    note = add(mara, text="I own a boat.")
    switch()
    everyone()
    entries_of = reembed.entries_of

    def editing(memories: Any) -> Any:
        made = entries_of(memories)
        edit(mara, memory=note.pk, text="I own a bike.")
        return made

    monkeypatch.setattr(reembed, "entries_of", editing)
    run_job(str(job(mara)))
    assert facts(mara) == ["I own a bike."]
    with entered(mara):
        [vector] = note.search_keys.values_list("embedding", flat=True)
    own = Wide().embed(["I own a bike."])[0]
    assert float(np.asarray(vector) @ own) == pytest.approx(1, abs=1e-2)


def test_what_is_tagged_meanwhile_is_embedded_all_the_same(
    mara: Scope, switch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = add(mara, text="I own a boat.")
    switch()
    everyone()
    entries_of = reembed.entries_of

    def tagging(memories: Any) -> Any:
        made = entries_of(memories)
        monkeypatch.setattr(reembed, "entries_of", entries_of)
        tag(mara, memory=note.pk, tags=["sea"])
        return made

    monkeypatch.setattr(reembed, "entries_of", tagging)
    run_job(str(job(mara)))
    assert embedding_progress(mara).left == 0
    assert one(mara, note.pk).tags == ["sea"]


def test_a_purge_meanwhile_wins(mara: Scope, switch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    add(mara, text="I own a boat.")
    switch()
    everyone()
    entries_of = reembed.entries_of

    def purging(memories: Any) -> Any:
        made = entries_of(memories)
        purge(mara)
        return made

    monkeypatch.setattr(reembed, "entries_of", purging)
    run_job(str(job(mara)))
    assert recalled(mara, "I own a boat.") == []


def test_another_embedder_is_noticed_once_and_a_first_one_is_no_change(
    mara: Scope, bob: Scope, switch: Any
) -> None:
    add(mara, text="I own a boat.")
    add(bob, text="I own a bike.")
    assert notice_another_embedder() is False
    assert ModelSettings.objects.get().embedded_with == embedder.current().name
    switch()
    assert notice_another_embedder() is True
    assert notice_another_embedder() is False
    for scope, text in ((mara, "I own a boat."), (bob, "I own a bike.")):
        run_job(str(job(scope)))
        assert recalled(scope, "own") == [text]


def test_a_choice_is_noticed_before_a_first_sweep_and_when_it_is_the_one_of_before(
    mara: Scope,
) -> None:
    add(mara, text="I own a boat.")
    for _ in range(2):
        choose_embeddings(kind="local", model="", base_url="")
        with entered(mara):
            SearchKey.objects.within(mara).delete()  # made meanwhile by another one
        assert notice_another_embedder() is True
        assert notice_another_embedder() is False
        run_job(str(job(mara)))
        assert embedding_progress(mara).left == 0


def test_a_change_that_was_noticed_and_not_acted_on_is_noticed_again(
    mara: Scope, switch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(mara, text="I own a boat.")
    notice_another_embedder()
    switch()

    def killed(**how: object) -> int:
        raise DatabaseError("the worker is killed")

    with monkeypatch.context() as patched:
        patched.setattr(reembed, "everyone", killed)
        with pytest.raises(DatabaseError):
            notice_another_embedder()
    assert notice_another_embedder() is True


def test_who_left_and_comes_back_finds_everything(mara: Scope, bob: Scope, switch: Any) -> None:
    person = User.objects.get(pk=mara.user_id)
    space = new_organisation(User.objects.get(pk=bob.user_id), name="Acme").tenant
    scope = join(space, person).scope
    add(scope, text="I own a boat.")
    leave(scope, actor=person)
    switch()
    assert everyone() == 1
    run_job(str(job(scope)))
    join(space, person)
    assert recalled(scope, "own") == ["I own a boat."]
