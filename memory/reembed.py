"""Make memories findable by the embedder in force: after a change of it, or when it was away.

    everyone         queue whatever lacks a vector of the embedder in force, for everybody
    embed_missing    the job's verb: some at a time, so that it ends within its lease, then again
    notice_another_embedder    what the sweep asks: is it, or the provider, another than before?

How many are still to do stands in the job's ticket, which holds no word of anybody: from it the
operator and a tenant's admin see how far it is (memory/standing.py).
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from accounts.errors import Rejected
from accounts.models import Departure, Membership, Tenant
from accounts.scope import Scope, entered, entered_tenant
from memory import embedder, jobs
from memory.jobs import Claim
from memory.keys import entries_of, findable
from memory.model_choice import CHANGED
from memory.models import Job, JobTicket, Memory, ModelSettings
from memory.providers.base import Entry, mark_of_provider, provider
from memory.providers.later import AfterCommit

logger = logging.getLogger(__name__)

PLAIN = "Is everything in its place?"
BATCH = 32
TIMES = 3  # that a memory is embedded anew because it was changed meanwhile
BATCHES = 8  # of a run, so that it ends well within its lease
_NOTICE_LOCK = 0x5EEC


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of a person's memories can be found by the embedder in force."""

    done: int
    total: int

    @property
    def left(self) -> int:
        return self.total - self.done

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
    found = provider().list(scope, model=embedder.current().name, dims=embedder.known_dims())
    return [memory for memory in wanted if memory not in found]


def embed_missing(claimed: Claim, *, told: Callable[[int], None] = lambda left: None) -> None:
    """Embed what the embedder in force does not find yet, some at a time, then start again.

    A memory whose text has nothing to embed is passed by: the run remembers how far it came.
    `told` hears after each step how many are left. Raises ProviderError when the embedder or the
    provider is away, Overtaken when somebody else has the job; what was done stays done.
    """
    after = claimed.result.get("after", "")
    chosen = embedder.current()
    held = provider().list(claimed.scope, model=chosen.name, dims=chosen.dims)
    with jobs.writing(claimed) as scope:
        wanted = _wanted(scope)
        stray = held.difference(wanted)
        if stray:  # a provider outside the database was away when they were forgotten
            provider().forget(scope, memories=stray)
    left = [one for one in wanted if one not in held and (not after or one > UUID(after))]
    for start in range(0, min(len(left), BATCH * BATCHES), BATCH):
        batch = left[start : start + BATCH]
        _embed(claimed, batch)
        still = len(left) - start - len(batch)
        claimed = _came_as_far_as(claimed, batch[-1], left=still)
        told(still)
    if len(left) > BATCH * BATCHES:
        jobs.again(claimed)
    else:
        jobs.finish(claimed, after="")


def _came_as_far_as(claimed: Claim, memory: UUID, *, left: int) -> Claim:
    with jobs.writing(claimed):
        claimed = jobs.step_done(claimed, "embedding", after=str(memory))
        JobTicket.objects.filter(job_id=claimed.id).update(to_do=left, problem="")
    return claimed


def _embed(claimed: Claim, batch: list[UUID]) -> None:
    for _time in range(TIMES):
        batch = _embed_unchanged(claimed, batch)
        if not batch:
            return


def _embed_unchanged(claimed: Claim, batch: list[UUID]) -> list[UUID]:
    """Embed these memories; return those that were changed meanwhile.

    Whoever changed one may have given it a vector, or only a tag.
    """
    with entered(claimed.scope) as scope:
        memories = list(Memory.objects.within(scope).filter(pk__in=batch))
    entries = _entries(memories)
    read_at = {memory.pk: memory.updated_at for memory in memories}
    changed = []
    with jobs.writing(claimed) as scope:
        now = {memory.pk: memory for memory in Memory.objects.within(scope).filter(pk__in=batch)}
        for entry in entries:
            memory = now.get(entry.memory)
            if memory is None or not findable(memory):
                continue
            if memory.updated_at == read_at[entry.memory]:
                provider().remember(scope, entry=entry)
            else:
                changed.append(entry.memory)
    return changed


def _entries(memories: list[Memory]) -> list[Entry]:
    """Return the entries of these memories, without those whose text the server refuses.

    Raises Rejected when it is not the text: when a plain one is refused as well.
    """
    try:
        return entries_of(memories)
    except Rejected:
        embedder.embed([PLAIN])
    entries = []
    for memory in memories:
        try:
            entries += entries_of([memory])
        except Rejected as error:
            logger.warning("memory %s can't be embedded: %s", memory.pk, error.code)
    return entries


def people(tenant: Tenant | None = None) -> Iterator[Scope]:
    """Yield the scope of each person in each tenant, or in this one."""
    tenants = [tenant] if tenant else Tenant.objects.order_by("pk").iterator()
    for one in tenants:
        with entered_tenant(one.pk):
            scopes = [member.scope for member in Membership.objects.filter(tenant=one)]
            # Who has left may come back, and find what they told.
            scopes += [left.scope for left in Departure.objects.filter(tenant=one)]
        yield from scopes


def queue(scope: Scope, *, left: int, hint: bool = True) -> UUID:
    """Return the id of the job that embeds what a person's memories lack.

    Without a hint the workers leave it alone until the next sweep finds it due.
    """
    with transaction.atomic():
        due_at = None if hint else timezone.now() + jobs.HINT_GRACE
        return jobs.enqueue(scope, kind=Job.Kind.EMBED, left=left, due_at=due_at)


def everyone(tenant: Tenant | None = None, *, anew: bool = False) -> int:
    """Return for how many people, each in each tenant, a job was made: all who lack a vector.

    With `anew` a provider outside the database is emptied first: it was not told of what changed
    while another was in force.
    """
    made = total = missing = 0
    began = timezone.now()
    chosen = provider()
    for scope in people(tenant):
        if anew and isinstance(chosen, AfterCommit):
            chosen.inner.purge(scope)
        progress = embedding_progress(scope)
        total += progress.total
        if progress.left:
            queue(scope, left=progress.left)
            missing += progress.left
            made += 1
    if tenant is None:
        note_run(began_at=began, total=total, missing=missing)
    return made


def note_run(**figures: object) -> None:
    """Keep with which figures everybody's memories were queued: began_at, total, missing."""
    fields = {f"embed_{name}": value for name, value in figures.items()}
    ModelSettings.objects.update_or_create(only=True, defaults=fields)


def notice_another_embedder() -> bool:
    """Tell whether the embedder, its vectors' length or the provider is another than before.

    Then everybody's memories are queued, each person's in a transaction of its own: nobody waits
    for the others, nor for a provider outside the database. Raises ProviderError when the provider
    is away; it is then noticed again.
    """
    name, dims, where = embedder.follow().name[:120], embedder.known_dims(), mark_of_provider()
    with _alone() as alone:
        if not alone:
            return False  # another sweep is at it
        row = ModelSettings.objects.filter(only=True).first() or ModelSettings()
        before = row.embedded_with
        if before == name and dims is None:
            dims = row.embedded_dims
        now = {"embedded_with": name, "embedded_dims": dims, "embedded_where": where}
        if all(getattr(row, column) == value for column, value in now.items()):
            return False
        another = bool(before) and (
            before != name
            or row.embedded_dims not in {None, dims}
            or row.embedded_where not in {"", where}
        )
        if another:
            everyone(anew=row.embedded_where not in {"", where})
            if before != CHANGED:
                now["embedded_before"] = before
            elif row.embedded_before == name:
                now["embedded_before"] = ""
        # Last, so that what was not done is noticed again; as is what was chosen meanwhile.
        ModelSettings.objects.get_or_create(only=True)
        ModelSettings.objects.filter(only=True, embedded_with=before).update(**now)
    return another


@contextmanager
def _alone() -> Iterator[bool]:
    """Let one process at a time be at it, across its transactions; tell whether it is this one."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_try_advisory_lock(%s)", [_NOTICE_LOCK])
        alone = bool(cursor.fetchone()[0])
    try:
        yield alone
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("select pg_advisory_unlock(%s)", [_NOTICE_LOCK])
