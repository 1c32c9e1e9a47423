"""How one person's recall is set: by themselves, else by their tenant, else as it comes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from accounts.scope import Scope, read_once
from accounts.zones import zone_of

UTC = ZoneInfo("UTC")
TOP_K, TOKEN_BUDGET, DEADLINE_MS = 8, 1_500, 1_000
# The least and the most that each may be set to.
TOP_K_BOUNDS = (1, 50)
MIN_SCORE_BOUNDS = (0.0, 1.0)
TOKEN_BUDGET_BOUNDS = (100, 20_000)
DEADLINE_BOUNDS = (50, 10_000)


@dataclass(frozen=True, slots=True)
class Limits:
    """What binds a recall; `chosen` tells that the person set top k or min score themselves."""

    on: bool = True
    top_k: int = TOP_K
    min_score: float | None = None
    token_budget: int = TOKEN_BUDGET
    deadline_ms: int = DEADLINE_MS
    chosen: bool = False
    zone: ZoneInfo = UTC


# One row, for `limits_from`: on, top k, min score, token budget, deadline, chosen, time zone.
LIMITS = """
select coalesce(s.recall_on, true), coalesce(s.top_k, t.top_k), coalesce(s.min_score, t.min_score),
  coalesce(s.token_budget, t.token_budget), coalesce(s.deadline_ms, t.deadline_ms),
  s.top_k is not null or s.min_score is not null, u.time_zone
from accounts_user u
left join memory_memorysettings s on s.tenant_id = %(tenant)s and s.user_id = u.id
left join memory_tenantmemorysettings t on t.tenant_id = %(tenant)s
where u.id = %(user)s
"""


def limits_of(scope: Scope) -> Limits:
    """Return what binds the person's recall, in one read."""
    rows = read_once(scope, LIMITS, {"tenant": scope.tenant_id, "user": scope.user_id})
    return limits_from(rows[0]) if rows else Limits()


def limits_from(row: Sequence[Any]) -> Limits:
    """Return what a row of LIMITS says."""
    on, top_k, min_score, budget, deadline, chosen, zone = row
    return Limits(
        on=on,
        top_k=top_k or TOP_K,
        min_score=min_score,
        token_budget=budget or TOKEN_BUDGET,
        deadline_ms=deadline or DEADLINE_MS,
        chosen=chosen,
        zone=zone_of(zone),
    )
