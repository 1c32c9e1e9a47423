"""Work in the background: the row is the truth, the broker only hints at it.

    enqueue   in the caller's transaction: the job, its ticket, and a hint once it is committed
    claim     by a conditional update: a lease, and one attempt more; None if there is nothing to do
    renew     before a step that takes long
    release   after a failure: again after a growing pause, parked after ATTEMPTS (vectors: never)
    finish    with what came of it
    sweep     sends again what is due: a hint that was lost, a pause that is over, a dead worker's

Limits, each longer than the one before: a task's soft and hard limit (100 s and 110 s, settings),
the lease (120 s), the broker's visibility timeout (900 s). A worker that is killed in the middle
of a job leaves it to another within the lease and a sweep; a job that is lost so again and again is
parked like one that fails.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts.errors import AppError
from accounts.ids import random_id
from accounts.scope import Scope, entered, entered_with, write_once
from accounts.zones import zone_of
from memory.limits import UTC
from memory.models import Job, JobTicket
from memory.vectors import Embedded

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=120)
ATTEMPTS = 8
REJECTED_SHOWN = timedelta(days=7)
PAUSES = (5, 15, 30, 60, 120, 300, 900)  # seconds after each failure; the eighth parks
HINT_GRACE = timedelta(seconds=15)
RESEND_GRACE = timedelta(seconds=30)
SWEEP_ROWS = 500
QUEUES = {
    Job.Kind.REMEMBER: "interactive",
    Job.Kind.EMBED: "background",
    Job.Kind.LEARN: "background",
    Job.Kind.PROFILE: "background",
    Job.Kind.TRASH: "background",
}
WHOLE_SCOPE = UUID(int=0)
_SWEEP_LOCK = 0x5EEB
_QUESTION = "question"


class Overtaken(Exception):
    """This runner no longer has the job: nothing may be written any more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A job in one runner's hands: whose, what about, and which try it is."""

    id: UUID
    scope: Scope
    kind: str
    source: UUID
    session_key: UUID | None
    step: str
    attempts: int
    generation: int
    result: dict[str, Any]
    zone: ZoneInfo = UTC  # where the person is
    question: Embedded | None = None  # the vector of the person's message, if it came with the job
    taken_over: bool = False  # from a runner that never came back


# The switches as they stand now: a tenant's "off" binds; a session's word goes before the person's.
_ENQUEUE = """
with mine as (
  select coalesce(max(generation), 0) as generation,
    coalesce(bool_and(auto_store_on), true) as auto_store,
    coalesce(bool_and(extract_on), true) as extract, coalesce(max(learn), 'off') as learn
  from memory_memorysettings where tenant_id = %(tenant)s and user_id = %(user)s
), settings as (
  select generation, learn,
    coalesce(%(auto_store)s::bool, auto_store)
      and coalesce((select t.auto_store_on from memory_tenantmemorysettings t
        where t.tenant_id = %(tenant)s), true) as auto_store,
    extract and coalesce((select t.extract_on from memory_tenantmemorysettings t
      where t.tenant_id = %(tenant)s), true) as extract
  from mine
), job as (
  insert into memory_job (id, tenant_id, user_id, kind, source, session_key, state, step, attempts,
    last_error, result, generation, created_at)
  select %(id)s, %(tenant)s, %(user)s, %(kind)s, %(source)s, %(session)s, 'waiting', '', 0, '',
    jsonb_build_object('auto_store', auto_store, 'extract', extract, 'learn', learn)
      || %(given)s::jsonb, generation, %(now)s
    from settings
  on conflict (tenant_id, user_id, kind, source) do update
    set state = 'waiting', step = '', last_error = '', lease_until = null,
      -- a runner that still has the job is told from the next one by its attempt
      attempts = case when memory_job.state = 'running' then memory_job.attempts else 0 end,
      result = case when %(keeping)s
        then (memory_job.result - 'rejected' - 'refused') || %(given)s::jsonb
        else excluded.result end,
      generation = excluded.generation, finished_at = null, session_key = excluded.session_key
  returning id
)
insert into memory_jobticket (job_id, tenant_id, user_id, queue, due_at, to_do)
select id, %(tenant)s, %(user)s, %(queue)s, %(due)s, %(left)s from job
on conflict (job_id) do update set due_at = excluded.due_at,
  to_do = greatest(excluded.to_do, memory_jobticket.to_do)
returning job_id
"""


def enqueue(
    scope: Scope,
    *,
    kind: str,
    source: UUID = WHOLE_SCOPE,
    session_key: UUID | None = None,
    due_at: datetime | None = None,
    question: Embedded | None = None,
    auto_store: bool | None = None,
    keeping: bool = False,
    left: int | None = None,
) -> UUID:
    """Return the id of a job that is now due, inside the caller's transaction.

    One job for each kind and source: asked for again, it starts anew; `keeping` what it has found
    out and the switches of then. With `due_at` it waits for the sweep. `auto_store` is what its
    session says, if anything. `left` tells a job that embeds of how many memories it is, one at
    least. The hint to the broker goes out after the commit, in another thread: a broker that is
    away delays nobody and loses nothing.
    """
    now = timezone.now()
    rows = write_once(
        scope,
        _ENQUEUE,
        {
            "id": random_id(),
            "tenant": scope.tenant_id,
            "user": scope.user_id,
            "kind": kind,
            "source": source,
            "session": session_key,
            "auto_store": auto_store,
            "keeping": keeping,
            "given": json.dumps({_QUESTION: question.packed()} if question else {}),
            "now": now,
            "queue": QUEUES[Job.Kind(kind)],
            "due": due_at or now + HINT_GRACE,
            "left": (left or 1) if kind == Job.Kind.EMBED else None,
        },
    )
    job_id: UUID = rows[0][0]
    if due_at is None:
        transaction.on_commit(partial(hints.offer, job_id, QUEUES[Job.Kind(kind)]), robust=True)
    return job_id


_CLAIM = """
with before as (
  select state from memory_job
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(id)s
), mine as (
  update memory_job set state = 'running', lease_until = %(until)s, attempts = attempts + 1,
    -- that of now: a purge under way when the job was made did not see it, and what it bars is
    -- barred by the time at which it was said
    generation = coalesce((select max(s.generation) from memory_memorysettings s
      where s.tenant_id = %(tenant)s and s.user_id = %(user)s), 0)
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(id)s
    and (state = 'waiting' or (state = 'running' and lease_until < %(now)s))
  returning id, kind, source, session_key, step, attempts, generation, result
), ticket as (
  update memory_jobticket set due_at = %(until)s where job_id in (select id from mine)
)
select kind, source, session_key, step, attempts, generation, result::text,
  (select u.time_zone from accounts_user u where u.id = %(user)s),
  (select state = 'running' from before) from mine
"""


def claim(job_id: UUID) -> Claim | None:
    """Return the job for this runner alone, with a lease; None if done, taken, parked or purged."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select tenant_id, user_id from memory_jobticket where job_id = %s", [job_id]
        )
        ticket = cursor.fetchone()
    if ticket is None:
        return None
    scope, now = Scope(*ticket), timezone.now()
    rows = write_once(
        scope,
        _CLAIM,
        {
            "tenant": scope.tenant_id,
            "user": scope.user_id,
            "id": job_id,
            "now": now,
            "until": now + LEASE,
        },
    )
    if not rows:
        return None
    row = rows[0]
    result = json.loads(row[6])
    # It is not kept with what comes of the job: what is done has no more use for it.
    question = result.pop(_QUESTION, None)
    return Claim(
        id=job_id,
        scope=scope,
        kind=row[0],
        source=row[1],
        session_key=row[2],
        step=row[3],
        attempts=row[4],
        generation=row[5],
        result=result,
        zone=zone_of(row[7] or ""),
        question=Embedded.unpacked(question) if question else None,
        taken_over=row[8],
    )


_GO_ON = """
with mine as (
  update memory_job set lease_until = %(until)s, step = coalesce(%(step)s, step),
    result = coalesce(%(result)s::jsonb, result)
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(id)s and state = 'running'
    and attempts = %(attempts)s
  returning id
), ticket as (
  update memory_jobticket set due_at = %(until)s where job_id in (select id from mine)
)
select 1 from mine
"""


def renew(claimed: Claim) -> None:
    """Begin the lease anew; raises Overtaken when somebody else has the job."""
    _go_on(claimed)


def _go_on(claimed: Claim, *, step: str | None = None, result: str | None = None) -> None:
    given = _mine_given(claimed) | {
        "until": timezone.now() + LEASE,
        "step": step,
        "result": result,
    }
    if not write_once(claimed.scope, _GO_ON, given):
        raise Overtaken


def _mine_given(claimed: Claim) -> dict[str, Any]:
    return {
        "tenant": claimed.scope.tenant_id,
        "user": claimed.scope.user_id,
        "id": claimed.id,
        "attempts": claimed.attempts,
    }


def _mine(claimed: Claim) -> QuerySet[Job]:
    """Return the job's row while this runner has it: each claim counts one attempt more."""
    return Job.objects.within(claimed.scope).filter(
        pk=claimed.id, state=Job.State.RUNNING, attempts=claimed.attempts
    )


# The lock by itself: the second statement must see what was written while the first one waited.
_LOCK = "select pg_advisory_xact_lock(hashtextextended(%(lock)s, 0))"
_GENERATION = """
select coalesce((select max(s.generation) from memory_memorysettings s
  where s.tenant_id = %(tenant)s and s.user_id = %(user)s), 0)
from memory_job where tenant_id = %(tenant)s and user_id = %(user)s and id = %(id)s
  and state = 'running' and attempts = %(attempts)s
"""


@contextmanager
def writing(claimed: Claim) -> Iterator[Scope]:
    """Open the transaction in which a job writes what it found out, one at a time for a scope.

    Raises Overtaken when a purge has come since the job was made, or another runner has it.
    """
    with holding(claimed.scope, _GENERATION, _mine_given(claimed)) as rows:
        if not rows or rows[0][0] != claimed.generation:
            raise Overtaken
        yield claimed.scope


@contextmanager
def holding(scope: Scope, query: str, given: Mapping[str, Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Open a transaction that holds the scope, and yield what a query reads under the lock."""
    lock = {"lock": lock_name(scope)}
    with entered_with(scope, f"{_LOCK};{query}", {**given, **lock}) as rows:
        yield rows


def hold(scope: Scope) -> None:
    """Let nobody else change what this scope remembers until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, {"lock": lock_name(scope)})


def lock_name(scope: Scope) -> str:
    """Return the name of the lock that `hold` takes alone; what only adds may share it."""
    return f"memory {scope.tenant_id} {scope.user_id}"


def step_done(claimed: Claim, step: str, **result: Any) -> Claim:
    """Return the claim with a step behind it and its lease begun anew.

    Call it inside `writing`, beside the writes.
    """
    merged = {**claimed.result, **result}
    _go_on(claimed, step=step, result=json.dumps(merged))
    return replace(claimed, step=step, result=merged)


_FINISH = """
with done as (
  update memory_job set state = 'done', result = %(result)s::jsonb, lease_until = null,
    last_error = '', finished_at = %(now)s
  where tenant_id = %(tenant)s and user_id = %(user)s and id = %(id)s and state = 'running'
    and attempts = %(attempts)s
  returning id
)
delete from memory_jobticket where job_id in (select id from done) returning 1
"""


def finish(claimed: Claim, **result: Any) -> None:
    """Close the job, with what came of it; inside `writing` together with what was written."""
    write_once(
        claimed.scope,
        _FINISH,
        _mine_given(claimed)
        | {"result": json.dumps({**claimed.result, **result}), "now": timezone.now()},
    )


def again(claimed: Claim, *, at: datetime | None = None) -> None:
    """Let the same job run once more, from its first step: there is more to do, now or at `at`."""
    with entered(claimed.scope):
        if _mine(claimed).update(
            state=Job.State.WAITING, step="", attempts=0, lease_until=None, last_error=""
        ):
            JobTicket.objects.filter(job_id=claimed.id).update(due_at=at or timezone.now())
            if at is None:
                queue_name = QUEUES[Job.Kind(claimed.kind)]
                transaction.on_commit(partial(hints.offer, claimed.id, queue_name), robust=True)


def release(claimed: Claim, error: AppError) -> None:
    """Give the job back after a failure: due again after a pause, or parked after ATTEMPTS.

    Vectors need nobody's help, only an embedder that is back: they are tried for good.
    """
    with entered(claimed.scope):
        reason = f"{error.code}: {error}"[:200]
        if claimed.attempts >= ATTEMPTS and claimed.kind != Job.Kind.EMBED:
            if _mine(claimed).update(
                state=Job.State.PARKED,
                last_error=reason,
                lease_until=None,
                finished_at=timezone.now(),
            ):
                JobTicket.objects.filter(job_id=claimed.id).delete()
                logger.error("job %s parked: %s", claimed.id, error.code)
            return
        if _mine(claimed).update(state=Job.State.WAITING, last_error=reason, lease_until=None):
            pause = timedelta(seconds=PAUSES[min(claimed.attempts, len(PAUSES)) - 1])
            ticket = JobTicket.objects.filter(job_id=claimed.id)
            ticket.update(due_at=timezone.now() + pause)
            ticket.exclude(to_do=None).update(problem=reason)
        logger.warning("job %s: %s, try %d", claimed.id, error.code, claimed.attempts)


def give_back(claimed: Claim) -> None:
    """Let another runner go on with a job that this one was stopped in; nothing of it is lost."""
    with entered(claimed.scope):
        if _mine(claimed).update(state=Job.State.WAITING, lease_until=None):
            JobTicket.objects.filter(job_id=claimed.id).update(due_at=timezone.now() + HINT_GRACE)


def retry_parked(scope: Scope) -> int:
    """Return how many of the person's `failures` start again, with all their tries."""
    with entered(scope):
        failed = failures(scope).values_list("kind", "source", "session_key")
        jobs = list(failed[:SWEEP_ROWS])
        for kind, source, session_key in jobs:
            enqueue(scope, kind=kind, source=source, session_key=session_key, keeping=True)
    return len(jobs)


def failures(scope: Scope) -> QuerySet[Job]:
    """Return the jobs that need the person: given up, or closed with an answer of no use.

    The newest first; inside the scope. What was not learnt from an answer of no use can be tried
    again for a week.
    """
    since = timezone.now() - REJECTED_SHOWN
    rejected = Q(state=Job.State.DONE, result__has_key="rejected", finished_at__gte=since)
    found = Job.objects.within(scope).filter(Q(state=Job.State.PARKED) | rejected)
    return found.order_by("-finished_at", "-created_at")


def sweep() -> int:
    """Return how many due jobs were hinted at again; of several sweeps at once, one works."""
    now = timezone.now()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select pg_try_advisory_xact_lock(%s)", [_SWEEP_LOCK])
            if not cursor.fetchone()[0]:
                return 0
        # What a purge or a worker holds is left to the next sweep: waiting could deadlock.
        due = list(
            JobTicket.objects.select_for_update(skip_locked=True)
            .filter(due_at__lte=now)
            .order_by("due_at")
            .values_list("job_id", "queue")[:SWEEP_ROWS]
        )
        JobTicket.objects.filter(job_id__in=[job_id for job_id, _queue in due]).update(
            due_at=now + RESEND_GRACE
        )
    for job_id, queue_name in due:
        hints.send(job_id, queue_name)
    return len(due)


def tell(claimed: Claim) -> None:
    """Let the chat know that a job about a reply has ended; what it does with it is its own."""
    if not settings.MEMORY_LISTENER or claimed.kind != Job.Kind.REMEMBER:
        return
    try:
        import_string(settings.MEMORY_LISTENER)(claimed.scope, claimed.source, claimed.session_key)
    except Exception:
        logger.exception("the listener failed for job %s", claimed.id)


class Hints:
    """Sends hints to the broker from a thread of its own, so that nobody waits for the broker."""

    def __init__(self, *, most: int = 2_000, rest: float = 5.0) -> None:
        self._waiting: queue.Queue[tuple[UUID, str]] = queue.Queue(most)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._rest = rest
        self._closed_until = 0.0

    def offer(self, job_id: UUID, queue_name: str) -> None:
        """Hint soon. Never waits and never raises: a hint that is dropped is the sweep's."""
        try:
            self._waiting.put_nowait((job_id, queue_name))
        except queue.Full:
            return
        with self._lock:
            # A forked child has the parent's object, and not its thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()

    def send(self, job_id: UUID, queue_name: str) -> bool:
        """Hint now; tell whether the broker took it."""
        from memory.tasks import run_job

        try:
            run_job.apply_async((str(job_id),), queue=queue_name)
        except Exception as error:  # kombu's, redis's or the socket's, by where it failed
            logger.warning("the broker took no hint: %s", type(error).__name__)
            return False
        return True

    def _run(self) -> None:
        while True:
            job_id, queue_name = self._waiting.get()
            if time.monotonic() >= self._closed_until and not self.send(job_id, queue_name):
                self._closed_until = time.monotonic() + self._rest


hints = Hints()
