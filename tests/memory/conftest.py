"""Standing people, and memories as short as a line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from accounts.join import new_person
from accounts.models import Membership, User
from accounts.scope import Scope, entered, entered_person
from memory import answers, embedder, llm
from memory.exchange import Exchange, Speaker, Utterance
from memory.keys import entries_of, findable, spell
from memory.models import Job, Memory
from memory.providers.base import provider
from memory.recall import recall
from memory.remember import enqueue_exchange
from memory.tasks import run_job
from tests.stub_model import MODEL, StubModel


def scope_of(user: User) -> Scope:
    with entered_person(user.pk):
        return Membership.objects.get(user=user, tenant__personal=True).scope


@pytest.fixture
def mara(db: None) -> Scope:
    return scope_of(new_person(email="mara@example.org", password=None, name="Mara"))


@pytest.fixture
def bob(db: None) -> Scope:
    return scope_of(new_person(email="bob@example.org", password=None, name="Bob"))


def keep(scope: Scope, text: str, **given: Any) -> Memory:
    """Keep a memory as it is, with its search keys if it may be recalled."""
    fields: dict[str, Any] = {"kind": "fact", "origin": "own_words"} | given
    memory = spell(Memory(tenant_id=scope.tenant_id, user_id=scope.user_id, text=text, **fields))
    entries = entries_of([memory]) if findable(memory) else []
    with entered(scope):
        memory.save(force_insert=True)
        for entry in entries:
            provider().remember(scope, entry=entry)
    return memory


@dataclass
class Conversation:
    """What was said, where memory reads it: what a chat would keep."""

    scope: Scope
    session: UUID = field(default_factory=uuid4)
    exchanges: list[Exchange] = field(default_factory=list)

    def say(self, text: str, *, reply: str = "I see.", at: datetime | None = None) -> Exchange:
        at = at or timezone.now()
        said = [one for exchange in self.exchanges for one in (exchange.question, exchange.reply)]
        exchange = Exchange(
            Utterance(uuid4(), text, at),
            Utterance(uuid4(), reply, at, Speaker.ASSISTANT),
            self.session,
            said[-6:],
        )
        self.exchanges.append(exchange)
        TOLD[self.scope, exchange.reply.id] = exchange
        return exchange

    def remember(self, text: str, **given: Any) -> Job:
        """Say something and let the worker's verb run once; return the job as it then stands."""
        return run(self.scope, self.say(text, **given))

    def learn(self, text: str, **given: Any) -> Job | None:
        """Say something and let the learner run after it, if it is to; return its job."""
        self.remember(text, **given)
        return run_kind(self.scope, Job.Kind.LEARN)


TOLD: dict[tuple[Scope, UUID], Exchange] = {}


def read_told(scope: Scope, reply_id: UUID) -> Exchange | None:
    return TOLD.get((scope, reply_id))


def enqueue(scope: Scope, exchange: Exchange) -> UUID:
    return enqueue_exchange(scope, reply_id=exchange.reply.id, session_key=exchange.session_key)


def run(scope: Scope, exchange: Exchange) -> Job:
    job_id = enqueue(scope, exchange)
    run_job(str(job_id))
    return job_of(scope, job_id)


def job_of(scope: Scope, job_id: UUID) -> Job:
    with entered(scope):
        return Job.objects.within(scope).get(pk=job_id)


def run_kind(scope: Scope, kind: str) -> Job | None:
    """Run the person's job of a kind, if there is one; return it as it then stands."""
    with entered(scope):
        found = Job.objects.within(scope).filter(kind=kind).first()
    if found is None:
        return None
    run_job(str(found.pk))
    return job_of(scope, found.pk)


def facts(scope: Scope, **given: Any) -> list[str]:
    """Return the texts of the current claims, oldest first."""
    wanted = {"status": "current"} | given
    with entered(scope):
        kept = Memory.objects.within(scope).facts().filter(**wanted).order_by("created_at")
        return list(kept.values_list("text", flat=True))


def exchanges(scope: Scope, **given: Any) -> list[str]:
    wanted = {"status": "current"} | given
    with entered(scope):
        kept = Memory.objects.within(scope).filter(kind="exchange", **wanted)
        return list(kept.order_by("created_at").values_list("text", flat=True))


def recalled(scope: Scope, question: str) -> list[str]:
    """Return the texts that would go before the model, of exchanges both halves."""
    vector = embedder.embed([question])[0].tolist()
    found = recall(scope, question=question, vector=vector).memories
    return [f"{one.text} {one.answer}".strip() for one in found]


@pytest.fixture(autouse=True)
def _told(settings: Any) -> None:
    TOLD.clear()
    settings.MEMORY_EXCHANGES = "tests.memory.conftest.read_told"
    settings.MEMORY_LISTENER = settings.MEMORY_SESSIONS = ""
    settings.ERASERS = []
    settings.ERASURE_PREVIEWS = []


@pytest.fixture
def talk(mara: Scope) -> Conversation:
    return Conversation(mara)


@pytest.fixture
def stub() -> Iterator[StubModel]:
    """A model's server of which nothing is known yet."""
    answers._forms.clear()
    llm._no_usage.clear()
    llm._no_tools.clear()
    with StubModel() as running:
        yield running


@pytest.fixture
def model(settings: Any) -> Iterator[StubModel]:
    """A language model for the extraction; without it there is none."""
    with StubModel() as stub:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = stub.base_url, "stub"
        settings.CHAT_MODEL = MODEL
        yield stub


def answer(stub: StubModel, *given: dict[str, str], **how: Any) -> None:
    """Let the extractor answer with these facts: text, quote, and what is left out."""
    made = [
        {"first_person": one["text"].replace("The user", "I"), "supersedes": ""} | one
        for one in given
    ]
    stub.script(kind="json", contains="note what is worth", answer={"facts": made}, **how)


def teach(
    stub: StubModel,
    *,
    persona: Sequence[dict[str, Any]] = (),
    insights: Sequence[dict[str, Any]] = (),
    **how: Any,
) -> None:
    """Let the learner answer with these; a persona rests on the first statement by itself."""
    personas = [{"first_person": "", "statement": "1"} | one for one in persona]
    patterns = [{"first_person": ""} | one for one in insights]
    given = {"persona": personas, "insights": patterns}
    stub.script(kind="json", contains="how to be of help", answer=given, **how)


def fail(stub: StubModel, status: int = 500) -> None:
    """Let the extractor's server fail, in whatever form it is asked."""
    for kind in ("json", "chat"):
        stub.script(kind=kind, status=status)
