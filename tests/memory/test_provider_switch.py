"""From one provider to another and back: noticed, filled, and nothing old is left behind."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection

from accounts.errors import Unavailable
from accounts.scope import Scope, entered
from memory import reembed, trash
from memory.edit import edit, forget
from memory.models import ModelSettings, Posting, SearchKey, SearchRow, SearchTotals
from memory.providers.base import provider
from memory.providers.plain import PlainProvider
from memory.purge import What, purge
from memory.reembed import Progress, embedding_progress, notice_another_embedder
from memory.remember import add
from memory.search import search
from memory.standing import standing
from memory.tasks import run_job, sweep
from tests.memory.conftest import recalled
from tests.memory.test_reembed import job

pytestmark = pytest.mark.django_db

PLAIN = {"BACKEND": "memory.providers.plain.PlainProvider", "OPTIONS": {}}


@pytest.fixture
def switch(settings: Any, django_capture_on_commit_callbacks: Any) -> Callable[..., None]:
    """Switches to a provider and lets the sweep and the workers do what they do then."""

    def to(chosen: dict[str, Any], *scopes: Scope) -> None:
        settings.MEMORY_PROVIDER = chosen
        with django_capture_on_commit_callbacks(execute=True):
            notice_another_embedder()
        for scope in scopes:
            with django_capture_on_commit_callbacks(execute=True):
                run_job(str(job(scope)))

    return to


def in_our_tables(scope: Scope) -> dict[str, int]:
    with entered(scope):
        found = {
            model.__name__: model.objects.within(scope).count()
            for model in (SearchRow, SearchKey, Posting)
        }
        totals = SearchTotals.objects.within(scope).first()
        found["units"] = totals.n if totals else 0
    return {name: n for name, n in found.items() if n}


def test_a_switch_is_noticed_and_filled_and_so_is_the_way_back(
    mara: Scope,
    bob: Scope,
    settings: Any,
    switch: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    """Point 14: nobody need say that there is another provider."""
    default = settings.MEMORY_PROVIDER
    for number in range(10):
        add(mara, text=f"I know a tale of number {number}.")
    add(bob, text="I own a bike.")
    notice_another_embedder()
    settings.MEMORY_PROVIDER = PLAIN
    assert not standing().noticed
    assert notice_another_embedder() is True
    assert notice_another_embedder() is False
    assert (standing().left, standing().people) == (11, 2)
    switch(PLAIN, mara, bob)
    assert embedding_progress(mara) == Progress(10, 10)
    assert recalled(mara, "a tale of number 3")[0] == "I know a tale of number 3."
    with django_capture_on_commit_callbacks(execute=True):
        added = add(mara, text="I added this one meanwhile.")
    assert provider().list(mara, model="all-MiniLM-L6-v2-int8") >= {added.pk}
    switch(default, mara)
    assert embedding_progress(mara) == Progress(11, 11)
    assert recalled(mara, "what I added meanwhile")[0] == "I added this one meanwhile."


def test_what_was_edited_elsewhere_is_found_by_its_old_words_nowhere(
    mara: Scope, settings: Any, switch: Any, django_capture_on_commit_callbacks: Any
) -> None:
    default = settings.MEMORY_PROVIDER
    pet = add(mara, text="I have a dog called Rex.")
    notice_another_embedder()
    switch(PLAIN, mara)
    with django_capture_on_commit_callbacks(execute=True):
        edit(mara, memory=pet.pk, text="I have a cat called Miso.")
    switch(default, mara)
    with django_capture_on_commit_callbacks(execute=True):
        edit(mara, memory=pet.pk, text="I have a parrot called Polly.")
    switch(PLAIN, mara)
    for chosen in (PLAIN, default):
        settings.MEMORY_PROVIDER = chosen
        if chosen is default:
            switch(default, mara)
        [hit] = search(mara, query="Polly").ranked.values()
        assert "polly" in str(hit.because).casefold()
        for old in ("Rex", "Miso"):
            assert search(mara, query=old).memories == []


@pytest.mark.parametrize("how", ["purge", "trash", "everything"])
def test_what_is_erased_under_another_provider_is_in_our_tables_no_more(
    mara: Scope, settings: Any, switch: Any, how: str, django_capture_on_commit_callbacks: Any
) -> None:
    what: What = "everything" if how == "everything" else "memories"
    kept = add(mara, text="I own a boat.")
    notice_another_embedder()
    assert in_our_tables(mara)
    switch(PLAIN, mara)
    with django_capture_on_commit_callbacks(execute=True):
        if how == "trash":
            forget(mara, memory=kept.pk)
            assert trash.empty_now(mara) == 1
        else:
            assert purge(mara, what=what)["memories"] == 1
    with connection.cursor() as cursor:
        cursor.execute("set constraints all immediate")  # what a commit would find
    assert in_our_tables(mara) == {}
    assert provider().list(mara, model="all-MiniLM-L6-v2-int8") == set()


def test_a_provider_elsewhere_is_not_waited_for_with_anybodys_rows_held(
    mara: Scope, bob: Scope, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scope in (mara, bob):
        add(scope, text="I own a boat.")
    notice_another_embedder()
    settings.MEMORY_PROVIDER = PLAIN
    inside = len(connection.savepoint_ids)
    depths: list[int] = []
    for verb in ("purge", "list"):
        act = getattr(PlainProvider, verb)

        def noted(*args: Any, act: Any = act, **kwargs: Any) -> Any:
            depths.append(len(connection.savepoint_ids))
            return act(*args, **kwargs)

        monkeypatch.setattr(PlainProvider, verb, noted)
    assert notice_another_embedder() is True
    assert len(depths) >= 4
    assert set(depths) == {inside}


def test_of_two_sweeps_one_sees_to_a_change(mara: Scope, settings: Any) -> None:
    add(mara, text="I own a boat.")
    notice_another_embedder()
    settings.MEMORY_PROVIDER = PLAIN
    with psycopg.connect(**_address()) as other:
        other.execute("select pg_advisory_lock(%s)", [reembed._NOTICE_LOCK])
        assert notice_another_embedder() is False
    assert notice_another_embedder() is True


def _address() -> dict[str, Any]:
    database = connection.get_connection_params()
    return {name: database[name] for name in ("host", "port", "user", "password", "dbname")}


def test_a_provider_that_is_away_is_asked_again_by_the_next_sweep(
    mara: Scope, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(mara, text="I own a boat.")
    notice_another_embedder()
    settings.MEMORY_PROVIDER = PLAIN

    def away(*args: Any, **kwargs: Any) -> Any:
        raise Unavailable("It is away.")

    with monkeypatch.context() as patched:
        patched.setattr("memory.providers.plain.PlainProvider.purge", away)
        sweep()
    assert not standing().noticed
    before = ModelSettings.objects.get().embedded_where
    sweep()
    assert standing().noticed
    assert ModelSettings.objects.get().embedded_where != before
