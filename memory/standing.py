"""How far memories are embedded, for those who answer for many people: sums, and of nobody a word.

Read from tickets of jobs, which need no scope and hold numbers only: open pages ask again and
again, at the cost of one small query.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Count, Max, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.scope import reviewing
from memory import embedder
from memory.models import JobTicket, ModelSettings
from memory.providers.base import Ability, mark_of_provider, provider

TOLD_FROM = 20  # memories, before anything is said of how long it takes


@dataclass(frozen=True, slots=True)
class ByModel:
    """How many memories have vectors of one embedder, and how long those are."""

    model: str
    dims: int | None
    memories: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How many memories are found by meaning with the embedder in force, and how many are not yet.

    `before` is the embedder that it took the place of, if any. `problem` says why the last try
    failed, as a sentence; `remaining` how long it takes, empty while that can't be told honestly.
    `noticed` is False for the seconds until the worker has seen a change.
    """

    model: str
    dims: int | None
    total: int
    left: int
    people: int
    before: str = ""
    problem: str = ""
    remaining: str = ""
    noticed: bool = True
    by_model: list[ByModel] = field(default_factory=list)

    @property
    def done(self) -> int:
        return self.total - self.left

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 100

    @property
    def running(self) -> bool:
        """Whether there is something to look at again in a moment."""
        return self.left > 0 or not self.noticed


def standing() -> Standing:
    """Return how far all memories of the installation are."""
    row = ModelSettings.objects.filter(only=True).first() or ModelSettings()
    left, people, problem = _left(Q())
    return _standing(row, max(row.embed_total, left), left, people, problem)


def standing_of_tenant(tenant_id: int) -> Standing:
    """Return how far the memories of a tenant's people are, and by which embedders."""
    row = ModelSettings.objects.filter(only=True).first() or ModelSettings()
    left, people, problem = _left(Q(tenant_id=tenant_id))
    with reviewing(tenant_id):
        with connection.cursor() as cursor:
            cursor.execute(_TOTAL, {"tenant": tenant_id})
            total = cursor.fetchone()[0]
        by_model = _by_model(tenant_id)
    return _standing(row, max(total, left), left, people, problem, by_model)


def _left(whose: Q) -> tuple[int, int, str]:
    """Return how many memories are left, of how many people, and why a try failed last."""
    tickets = JobTicket.objects.filter(whose, to_do__gt=0)
    sums = tickets.aggregate(left=Sum("to_do"), people=Count("pk"))
    failed = tickets.exclude(problem="").aggregate(problem=Max("problem"))
    return sums["left"] or 0, sums["people"], (failed["problem"] or "").partition(": ")[2]


_TOTAL = """
select count(*) from memory_memory where tenant_id = %(tenant)s and status = 'current' and trusted
  and (expires_at is null or expires_at > now())
"""
# The primary key alone is read; how long the vectors are is looked up once for each embedder.
_BY_MODEL = """
select k.model, (select dims from memory_searchkey one where one.tenant_id = %(tenant)s
    and one.model = k.model limit 1), count(*)
from (select distinct user_id, memory_id, model from memory_searchkey
  where tenant_id = %(tenant)s) k
group by k.model order by count(*) desc, k.model
"""


def _by_model(tenant_id: int) -> list[ByModel]:
    """Return what the tenant's rows say of embedders; nothing where vectors are kept elsewhere."""
    if Ability.TRANSACTIONAL not in provider().abilities:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_BY_MODEL, {"tenant": tenant_id})
        return [ByModel(*row) for row in cursor.fetchall()]


def _standing(
    row: ModelSettings,
    total: int,
    left: int,
    people: int,
    problem: str,
    by_model: list[ByModel] | None = None,
) -> Standing:
    name = embedder.current().name
    noticed = row.embedded_with in {"", name[:120]} and (
        row.embedded_where in {"", mark_of_provider()}
    )
    return Standing(
        model=name,
        dims=embedder.known_dims() or (row.embedded_dims if noticed else None),
        total=total,
        left=left,
        people=people,
        before=row.embedded_before if left else "",
        problem=problem,
        remaining="" if problem or not noticed else _remaining(row, timezone.now()),
        noticed=noticed,
        by_model=by_model or [],
    )


def _remaining(row: ModelSettings, now: datetime) -> str:
    """Return about how long the run takes at the pace that it had so far, in words.

    Empty before a twentieth of it, and TOLD_FROM memories, are done: nothing is known till then.
    """
    if row.embed_began_at is None:
        return ""
    left = _left(Q())[0]
    done = row.embed_missing - left
    if left <= 0 or done < max(TOLD_FROM, row.embed_missing // 20):
        return ""
    return in_words((now - row.embed_began_at) * (left / done))


def in_words(span: timedelta) -> str:
    """Return about how long that is, as people say it: seconds by tens, minutes, hours."""
    seconds = span.total_seconds()
    if seconds < 10:
        return _("a few seconds")
    if seconds < 90:
        return _("about %d seconds") % (10 * round(seconds / 10))
    if seconds < 5_400:
        return ngettext("about %d minute", "about %d minutes", round(seconds / 60)) % round(
            seconds / 60
        )
    hours = round(seconds / 3_600)
    return ngettext("about %d hour", "about %d hours", hours) % hours
