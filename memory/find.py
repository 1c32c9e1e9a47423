"""Find memories: a provider ranks, and what Postgres says of each decides who is seen."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import OperationalError
from psycopg.errors import QueryCanceled

from accounts.errors import Unavailable
from accounts.scope import Scope, read_once
from memory.exchange import Speaker
from memory.limits import LIMITS, TOKEN_BUDGET, Limits, limits_from
from memory.providers.base import Found, Reason, provider
from memory.terms import read_question

TEXT_CHARS = 4_000
QUESTION_CHARS = 2_000
MOST = 100_000
OF_ALL_KINDS = 6


@dataclass(frozen=True, slots=True)
class Row:
    """A memory that may be used here and now. Of the texts, the first TEXT_CHARS characters."""

    memory: UUID
    kind: str
    text: str
    answer: str
    source: UUID | None
    session_key: UUID | None
    at: datetime
    pinned: bool
    safety: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found, how near (0 to 1, memory.ranking), and why.

    `always` marks one that goes before the model whatever is asked.
    """

    row: Row
    score: float = 0.0
    vector_part: float = 0.0
    text_part: float = 0.0
    because: tuple[Reason, ...] = ()
    speaker: Speaker = Speaker.PERSON
    cosine: float | None = None
    always: bool = False


_COLUMNS = f"""id, kind, left(text, {TEXT_CHARS}), left(answer, {TEXT_CHARS}), source, session_key,
  created_at, pinned, safety"""
# What may be used: held true, trusted, not over, within reach, and not in front of the model.
_USABLE = """tenant_id = %(tenant)s and user_id = %(user)s and status = 'current' and trusted
  and (expires_at is null or expires_at > now()) and (valid_until is null or valid_until > now())
  and (reach = 'personal' or reach_key = any(%(reach)s::uuid[]) or %(everywhere)s)
  and (source is null or not source = any(%(excluded)s::uuid[]))"""
_OF_THESE = (
    f"select {_COLUMNS} from memory_memory where {_USABLE} and id = any(%(memories)s::uuid[])"  # noqa: S608
)
# The limits with what goes before the model whatever is asked beside them: one row at least. All
# claims are counted by an index, and read where no more are there than could fit the budget.
OF_LIMITS = 7  # columns
LEAST_TOKENS = 12  # of a claim with its kind and date
_CORE = f"""
with mine (is_on, top_k, min_score, budget, deadline, chosen, zone) as materialized ({LIMITS}),
most as materialized (
  select coalesce(budget, {TOKEN_BUDGET}) / {LEAST_TOKENS} as always,
    case when chosen then -1 else coalesce(budget, {TOKEN_BUDGET}) / {LEAST_TOKENS} end as claims
  from mine
), few as materialized (
  select count(*) as claims from (
    select from memory_memory where tenant_id = %(tenant)s and user_id = %(user)s
      and status = 'current' and kind <> 'exchange'
    limit (select claims + 1 from most)) counted
)
select mine.*, core.* from mine left join lateral (
  (select true as always, {_COLUMNS} from memory_memory
  where {_USABLE} and (pinned or safety or kind = 'persona')
  order by pinned desc, safety desc, created_at desc
  limit (select always from most))
  union all
  (select false, {_COLUMNS} from memory_memory where {_USABLE} and kind <> 'exchange'
    and (select claims from few) <= (select claims from most))
) core on true
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Here:
    """Where something is looked for: what the model sees anyway, and what is within reach.

    `everywhere` is for the owner's own eyes: whatever its reach.
    """

    exclude_sources: Collection[UUID] = ()
    session_key: UUID | None = None
    everywhere: bool = False

    def given(self, scope: Scope) -> dict[str, Any]:
        """Return the parameters of a query."""
        return {
            "tenant": scope.tenant_id,
            "user": scope.user_id,
            "excluded": list(self.exclude_sources),
            "reach": [self.session_key] if self.session_key else [],
            "everywhere": self.everywhere,
        }


def find(
    scope: Scope,
    *,
    question: str,
    vector: Sequence[float] | None,
    model: str,
    limit: int,
    today: date,
    here: Here | None = None,
    kinds: Collection[str] = (),
    within_ms: int | None = None,
) -> list[Hit]:
    """Return the best memories for a question, the best first: min(limit, all there are).

    `today` is where the person is; `kinds` narrows it down. Without a vector, those that share a
    word with the question. Raises Unavailable when the time is over. Call it outside a
    transaction.
    """
    ends = None if within_ms is None else time.monotonic() + within_ms / 1_000
    asked = read_question(question[:QUESTION_CHARS], today=today)
    here = here or Here()
    # Of one kind about every other is: a second search costs as much as the first.
    want = OF_ALL_KINDS * limit if kinds else limit
    while True:
        found = provider().recall(
            scope,
            question=asked,
            vector=vector,
            model=model,
            limit=want,
            deadline_ms=_left(ends),
        )
        rows = _usable(scope, here, [one.memory for one in found], _left(ends))
        hits = [
            _hit(one, rows[one.memory])
            for one in found
            if one.memory in rows and (not kinds or rows[one.memory].kind in kinds)
        ]
        if len(hits) >= limit or len(found) < want or want >= MOST:
            return hits[:limit]
        want = min(MOST, want * 8)  # what may not be seen has filled the list


def _usable(
    scope: Scope, here: Here, memories: Iterable[UUID], within_ms: int | None
) -> dict[UUID, Row]:
    ids = list(memories)
    if not ids:
        return {}
    given = here.given(scope) | {"memories": ids}
    return {row[0]: Row(*row) for row in _read(scope, _OF_THESE, given, within_ms)}


def _hit(found: Found, row: Row) -> Hit:
    return Hit(
        row=row,
        score=found.score,
        vector_part=found.vector_part,
        text_part=found.text_part,
        because=found.because,
        speaker=found.speaker,
        cosine=found.cosine,
    )


def read_core(scope: Scope, *, here: Here) -> tuple[Limits, list[Row], list[Row]]:
    """Return the person's limits, what goes before the model whatever is asked, and all claims.

    The second are pinned, about safety, or persona. The third is empty where there are more than
    could fit the budget, and where the person has set top k or min score.
    """
    rows = read_once(scope, _CORE, here.given(scope))
    if not rows:
        return Limits(), [], []
    told = [row[OF_LIMITS:] for row in rows if row[OF_LIMITS] is not None]
    always = [Row(*row[1:]) for row in told if row[0]]
    return (
        limits_from(rows[0][:OF_LIMITS]),
        always,
        [Row(*row[1:]) for row in told if not row[0]],
    )


def _left(ends: float | None) -> int | None:
    if ends is None:
        return None
    left = int(1_000 * (ends - time.monotonic()))
    if left <= 0:
        raise Unavailable("The search took too long.", code="too_slow")
    return left


def _read(
    scope: Scope, query: str, given: Mapping[str, object], within_ms: int | None
) -> list[tuple[Any, ...]]:
    try:
        return read_once(scope, query, given, within_ms=within_ms)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise Unavailable("The search took too long.", code="too_slow") from error
        raise
