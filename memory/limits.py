"""How one person's recall is set: by themselves, else by their tenant, else as it comes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from accounts.scope import Scope, read_once
from accounts.zones import zone_of
from memory.models import TenantMemorySettings

UTC = ZoneInfo("UTC")
TOP_K, TOKEN_BUDGET, DEADLINE_MS = 8, 1_500, 1_000


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
    numbers = _or_as_it_comes(top_k, min_score, budget, deadline)
    return replace(numbers, on=on, chosen=chosen, zone=zone_of(zone))


def limits_within(tenant: TenantMemorySettings) -> Limits:
    """Return what binds the recall of the tenant's people where they leave a number empty."""
    return _or_as_it_comes(tenant.top_k, tenant.min_score, tenant.token_budget, tenant.deadline_ms)


def _or_as_it_comes(
    top_k: int | None, min_score: float | None, budget: int | None, deadline: int | None
) -> Limits:
    return Limits(
        top_k=top_k or TOP_K,
        min_score=min_score,
        token_budget=budget or TOKEN_BUDGET,
        deadline_ms=deadline or DEADLINE_MS,
    )
