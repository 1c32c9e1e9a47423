"""Chroma behind the product: rolled back, away, slow, back again; a switch to it; its deadline."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone

from accounts.errors import Unavailable
from accounts.scope import Scope, entered
from memory import embedder
from memory.edit import forget, undo
from memory.find import find
from memory.models import Job, JobTicket, Memory
from memory.providers.base import provider
from memory.providers.chroma import ChromaProvider
from memory.providers.later import REPAIR_AFTER, AfterCommit
from memory.purge import purge
from memory.reembed import embedding_progress, everyone
from memory.remember import add
from memory.search import search
from memory.tasks import run_job
from tests.chroma_server import ChromaServer
from tests.memory.conftest import keep
from tests.memory.test_provider_contract import MODEL, TODAY, ask, empty, entry_of, found, unit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ChromaServer]:
    with ChromaServer(tmp_path) as server:
        yield server


@pytest.fixture
def chroma(server: ChromaServer, settings: Any) -> Iterator[ChromaProvider]:
    """The product's provider, by its setting."""
    settings.MEMORY_PROVIDER = {
        "BACKEND": "memory.providers.chroma.ChromaProvider",
        "OPTIONS": {"host": "127.0.0.1", "port": server.port, "namespace": f"t{uuid4().hex}"},
    }
    chosen = provider()
    assert isinstance(chosen, AfterCommit)
    assert isinstance(chosen.inner, ChromaProvider)
    with closing(chosen.inner) as inner:
        yield inner


def held(scope: Scope) -> set[Any]:
    return provider().list(scope, model=embedder.current().name)


def embed_job(scope: Scope) -> Job | None:
    with entered(scope):
        return Job.objects.within(scope).filter(kind=Job.Kind.EMBED).first()


def run_embed_job(scope: Scope) -> str:
    """Let the worker do the person's job now; return the state that it is left in."""
    job = embed_job(scope)
    assert job is not None
    run_job(str(job.pk))
    job = embed_job(scope)
    assert job is not None
    return job.state


def nearest(scope: Scope, text: str) -> list[Any]:
    vector = embedder.embed([text])[0].tolist()
    return found(scope, provider(), vector, model=embedder.current().name)


def test_a_rollback_leaves_nothing_behind(mara: Scope, chroma: ChromaProvider) -> None:
    with transaction.atomic():
        keep(mara, "The user keeps bees.")
        transaction.set_rollback(True)
    assert held(mara) == set()
    kept = keep(mara, "The user keeps bees.")
    with transaction.atomic():
        provider().forget(mara, memories=[kept.pk])
        transaction.set_rollback(True)
    assert held(mara) == {kept.pk}


def test_nothing_is_told_before_the_commit(mara: Scope, chroma: ChromaProvider) -> None:
    with entered(mara):
        kept = keep(mara, "The user keeps bees.")
        assert held(mara) == set()
    assert held(mara) == {kept.pk}
    assert nearest(mara, "Which animals does the user keep?") == [kept.pk]


def test_what_was_said_while_it_was_away_is_kept_and_a_job_makes_it_findable(
    mara: Scope, server: ChromaServer, chroma: ChromaProvider
) -> None:
    server.stop()
    note = add(mara, text="I keep bees.")  # no error
    with entered(mara):
        assert Memory.objects.within(mara).get(pk=note.pk).status == Memory.Status.CURRENT
    with pytest.raises(Unavailable):
        held(mara)
    assert run_embed_job(mara) == Job.State.WAITING  # it is still away: later again
    server.start()
    assert held(mara) == set()
    assert embedding_progress(mara).done == 0
    assert run_embed_job(mara) == Job.State.DONE
    assert held(mara) == {note.pk}
    assert embedding_progress(mara).percent == 100
    assert nearest(mara, "Which animals do I keep?") == [note.pk]


def test_the_job_that_makes_up_for_it_does_not_run_at_once(
    mara: Scope, server: ChromaServer, chroma: ChromaProvider
) -> None:
    server.stop()
    add(mara, text="I keep bees.")
    job = embed_job(mara)
    assert job is not None
    due_at = JobTicket.objects.get(job_id=job.pk).due_at
    assert due_at > timezone.now() + REPAIR_AFTER - timedelta(seconds=5)


def test_what_was_forgotten_while_it_was_away_is_let_go_by_that_job(
    mara: Scope, server: ChromaServer, chroma: ChromaProvider
) -> None:
    stays = add(mara, text="I play the cello.")
    note = add(mara, text="I keep bees.")
    assert held(mara) == {note.pk, stays.pk}
    server.stop()
    forget(mara, memory=note.pk)
    server.start()
    assert held(mara) == {note.pk, stays.pk}  # a stray entry
    text = "Which animals do I keep?"
    assert nearest(mara, text)[0] == note.pk
    hits = find(
        mara,
        question=text,
        vector=embedder.embed([text])[0].tolist(),
        model=embedder.current().name,
        limit=5,
        today=TODAY,
    )
    assert [hit.row.memory for hit in hits] == [stays.pk]  # Postgres knows that it was forgotten
    assert run_embed_job(mara) == Job.State.DONE
    assert held(mara) == {stays.pk}
    undo(mara, memory=note.pk)
    assert held(mara) == {note.pk, stays.pk}


def test_a_purge_that_comes_before_the_provider_is_told_wins(
    mara: Scope, chroma: ChromaProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = ChromaProvider.remember

    def overtaken(self: ChromaProvider, scope: Scope, *, entry: Any) -> None:
        purge(scope)
        tell(self, scope, entry=entry)

    monkeypatch.setattr(ChromaProvider, "remember", overtaken)
    add(mara, text="I keep bees.")
    assert held(mara) == set()


def test_a_purge_counts_and_leaves_neither_records_nor_index_files(
    mara: Scope, bob: Scope, server: ChromaServer, chroma: ChromaProvider
) -> None:
    for text in ("I keep bees.", "I play the cello.", "I sail."):
        add(mara, text=text)
    his = add(bob, text="I keep bees.")
    assert purge(mara)["search keys"] == 3
    assert purge(mara)["search keys"] == 0
    assert held(mara) == set()
    assert held(bob) == {his.pk}
    # Chroma leaves its index's files behind, so none of them may ever count a vector.
    headers = list(server.folder.rglob("header.bin"))
    assert headers
    assert {int.from_bytes(file.read_bytes()[20:28], "little") for file in headers} == {0}


def test_a_purge_is_not_said_to_be_done_while_it_is_away(
    mara: Scope, server: ChromaServer, chroma: ChromaProvider
) -> None:
    note = add(mara, text="I keep bees.")
    server.stop()
    with pytest.raises(Unavailable):
        purge(mara)
    with entered(mara):
        assert Memory.objects.within(mara).filter(pk=note.pk).exists()
    server.start()
    assert purge(mara)["search keys"] == 1


def test_a_switch_is_filled_by_everyones_jobs(
    mara: Scope, bob: Scope, server: ChromaServer, settings: Any, request: pytest.FixtureRequest
) -> None:
    hers, his = add(mara, text="I keep bees."), add(bob, text="I keep bees.")
    request.getfixturevalue("chroma")
    assert held(mara) == held(bob) == set()
    assert everyone() == 2
    assert [run_embed_job(scope) for scope in (mara, bob)] == [Job.State.DONE] * 2
    assert (held(mara), held(bob)) == ({hers.pk}, {his.pk})
    assert everyone() == 0


def test_the_memory_pages_search_finds_by_meaning(mara: Scope, chroma: ChromaProvider) -> None:
    add(mara, text="I am vegetarian.")
    add(mara, text="I own a car.")
    page = search(mara, query="Which diet do I follow?")
    assert [one.text for one in page.memories] == ["I am vegetarian."]
    assert page.ranked[page.memories[0].pk].score > 0


def test_each_verb_says_unavailable_when_the_server_is_away(
    mara: Scope, server: ChromaServer
) -> None:
    with closing(empty(server)) as chroma:
        server.stop()
        pk = uuid4()
        for verb in (
            lambda: chroma.remember(mara, entry=entry_of(unit(1))),
            lambda: ask(mara, chroma, unit(1)),
            lambda: chroma.list(mara, model=MODEL),
            lambda: chroma.forget(mara, memories=[pk]),
            lambda: chroma.purge(mara),
        ):
            with pytest.raises(Unavailable) as raised:
                verb()
            assert raised.value.code == "memory_away"


@contextmanager
def answering(*, pieces: list[bytes], pause: float = 0) -> Iterator[int]:
    """A port whose answers come in pieces, with a pause before each."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def serve() -> None:
            listening.settimeout(0.05)
            while not done.is_set():
                try:
                    connection, _address = listening.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.recv(65_536)
                    for piece in pieces:
                        if done.wait(pause):
                            return
                        try:
                            connection.sendall(piece)
                        except OSError:
                            break

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            thread.join()


def http(body: bytes, *, status: int = 200) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def test_the_deadline_is_kept_also_when_the_answer_drips(mara: Scope) -> None:
    whole = http(b" " * 1_000)
    pieces = [whole[:-900], *[b" "] * 900]
    with (
        answering(pieces=pieces, pause=0.05) as port,
        closing(ChromaProvider("127.0.0.1", port)) as chroma,
    ):
        began = time.monotonic()
        with pytest.raises(Unavailable) as raised:
            ask(mara, chroma, unit(1), deadline_ms=300)
        assert raised.value.code == "too_slow"
        assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (http(b"<html>"), "memory_garbled"),
        (http(b'{"error": "InternalError"}', status=500), "memory_refused"),
        (http(b'{"error": "InvalidArgumentError", "message": "no"}', status=400), "memory_refused"),
        (b"SSH-2.0\r\n", "memory_away"),
    ],
)
def test_a_server_that_talks_nonsense_is_unavailable(
    mara: Scope, answer: bytes, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    with (
        answering(pieces=[answer]) as port,
        closing(ChromaProvider("127.0.0.1", port)) as chroma,
        pytest.raises(Unavailable) as raised,
    ):
        ask(mara, chroma, unit(1))
    assert raised.value.code == code


def test_chroma_is_told_no_word(mara: Scope, server: ChromaServer, chroma: ChromaProvider) -> None:
    add(mara, text="I keep Xylophonbees.")
    server.stop()
    told = b"".join(file.read_bytes() for file in server.folder.rglob("*") if file.is_file())
    server.start()
    assert str(held(mara).pop()).encode() in told
    assert b"ylophon" not in told


def test_chroma_calls_nobody(server: ChromaServer, mara: Scope) -> None:
    psutil = pytest.importorskip("psutil")
    with closing(empty(server)) as chroma:
        chroma.remember(mara, entry=entry_of(unit(1)))
        process = psutil.Process(server.pid)
        far = [one.raddr.ip for one in process.net_connections(kind="inet") if one.raddr]
    assert set(far) <= {"127.0.0.1"}


@pytest.mark.parametrize("namespace", ["", "A", "a/b", "a b", "-a", "a" * 70])
def test_a_namespace_that_is_no_name_is_refused(namespace: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="namespace"):
        ChromaProvider("127.0.0.1", namespace=namespace)


def test_two_installations_share_a_server_and_nothing_else(
    mara: Scope, server: ChromaServer
) -> None:
    with closing(empty(server)) as ours, closing(empty(server)) as theirs:
        ours.remember(mara, entry=entry_of(unit(1)))
        assert theirs.list(mara, model=MODEL) == set()
        assert theirs.purge(mara) == 0
        assert len(ours.list(mara, model=MODEL)) == 1


def test_a_collection_that_goes_while_it_is_told_is_made_again(
    mara: Scope, server: ChromaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(empty(server)) as chroma:
        chroma.remember(mara, entry=entry_of(unit(1)))
        listed = chroma._collections
        stale = listed(mara, time.monotonic() + 5)
        chroma.purge(mara)
        answers = iter([stale])
        monkeypatch.setattr(
            chroma, "_collections", lambda scope, ends: next(answers, None) or listed(scope, ends)
        )
        entry = entry_of(unit(2))
        chroma.remember(mara, entry=entry)
        assert chroma.list(mara, model=MODEL) == {entry.memory}
