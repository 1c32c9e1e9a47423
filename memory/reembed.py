"""Make memories findable by the embedder in force: after a change of it, or when it was away."""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from accounts.models import Departure, Membership, Tenant
from accounts.scope import Scope, entered, entered_tenant
from memory import embedder, jobs
from memory.jobs import Claim
from memory.keys import entries_of, findable
from memory.models import Job, Memory, ModelSettings
from memory.providers.base import provider

BATCH = 32
BATCHES = 8  # of a run, so that it ends well within its lease
_NOTICE_LOCK = 0x5EEC


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of a person's memories can be found by the embedder in force."""

    done: int
    total: int

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 100


def embedding_progress(scope: Scope) -> Progress:
    """Return how far the person's memories are embedded with the embedder in force."""
    with entered(scope):
        wanted = _wanted(scope)
    return Progress(len(wanted) - len(_missing(scope, wanted)), len(wanted))


def _wanted(scope: Scope) -> list[UUID]:
    findable_ones = Memory.objects.within(scope).current().filter(trusted=True)
    return list(findable_ones.order_by("pk").values_list("pk", flat=True))


def _missing(scope: Scope, wanted: list[UUID]) -> list[UUID]:
    found = provider().list(scope, model=embedder.current().name)
    return [memory for memory in wanted if memory not in found]


def embed_missing(claimed: Claim) -> None:
    """Embed what the embedder in force does not find yet, some at a time, then start again.

    A memory whose text has nothing to embed is passed by: the run remembers how far it came.
    """
    after = claimed.result.get("after", "")
    held = provider().list(claimed.scope, model=embedder.current().name)
    with jobs.writing(claimed) as scope:
        wanted = _wanted(scope)
        stray = held.difference(wanted)
        if stray:  # a provider outside the database was away when they were forgotten
            provider().forget(scope, memories=stray)
    left = [one for one in wanted if one not in held and (not after or one > UUID(after))]
    for start in range(0, min(len(left), BATCH * BATCHES), BATCH):
        batch = left[start : start + BATCH]
        _embed(claimed, batch)
        claimed = _came_as_far_as(claimed, batch[-1])
    if len(left) > BATCH * BATCHES:
        jobs.again(claimed)
    else:
        jobs.finish(claimed, after="")


def _came_as_far_as(claimed: Claim, memory: UUID) -> Claim:
    with jobs.writing(claimed):
        return jobs.step_done(claimed, "embedding", after=str(memory))


def _embed(claimed: Claim, batch: list[UUID]) -> None:
    with entered(claimed.scope) as scope:
        memories = list(Memory.objects.within(scope).filter(pk__in=batch))
    entries = entries_of(memories)
    read_at = {memory.pk: memory.updated_at for memory in memories}
    with jobs.writing(claimed) as scope:
        now = {memory.pk: memory for memory in Memory.objects.within(scope).filter(pk__in=batch)}
        for entry in entries:
            memory = now.get(entry.memory)
            # Changed meanwhile: whoever changed it has embedded it.
            if memory and findable(memory) and memory.updated_at == read_at[entry.memory]:
                provider().remember(scope, entry=entry)


def everyone() -> int:
    """Return for how many people, each in each tenant, a job was made."""
    scopes: list[Scope] = []
    for tenant in Tenant.objects.order_by("pk").iterator():
        with entered_tenant(tenant.pk):
            scopes += [membership.scope for membership in Membership.objects.filter(tenant=tenant)]
            # Who has left may come back, and find what they told.
            scopes += [departure.scope for departure in Departure.objects.filter(tenant=tenant)]
    made = 0
    for scope in scopes:
        progress = embedding_progress(scope)
        if progress.done < progress.total:
            with transaction.atomic():
                jobs.enqueue(scope, kind=Job.Kind.EMBED)
            made += 1
    return made


def notice_another_embedder() -> bool:
    """Tell whether the embedder is another than before; then everybody's memories are queued."""
    name = embedder.follow().name[:120]
    with transaction.atomic():  # the note that it was seen, and the jobs: both or neither
        with connection.cursor() as cursor:
            cursor.execute("select pg_try_advisory_xact_lock(%s)", [_NOTICE_LOCK])
            if not cursor.fetchone()[0]:
                return False  # another sweep is at it
        row = ModelSettings.objects.filter(only=True).first()
        before = row.embedded_with if row else ""
        if before == name:
            return False
        if before:
            everyone()
        ModelSettings.objects.update_or_create(only=True, defaults={"embedded_with": name})
    return bool(before)
