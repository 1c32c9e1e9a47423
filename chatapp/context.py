"""What the shell of every page shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest

from accounts.door import memberships_of
from accounts.models import Tenant
from accounts.scope import Scope, read_once
from accounts.zones import zone_of
from chatapp import sessions
from chatapp.shown import MemoryCounts, SessionRow


def memory_counts(scope: Scope) -> MemoryCounts:
    """Return the numbers at the foot of the sidebar, read in one round trip."""
    rows = read_once(
        scope,
        "select count(*) filter (where status = 'current'),"
        " count(*) filter (where status = 'waiting')"
        " from memory_memory where tenant_id = %(tenant)s and user_id = %(user)s"
        " and status in ('current', 'waiting')"
        " and (expires_at is null or expires_at > now())",
        {"tenant": scope.tenant_id, "user": scope.user_id},
    )
    return MemoryCounts(*rows[0])


@dataclass
class Sidebar:
    """The sidebar's contents, each read when the template first asks for it."""

    scope: Scope
    time_zone: str

    @cached_property
    def _page(self) -> sessions.SessionPage:
        return sessions.page(self.scope, zone=zone_of(self.time_zone))

    @property
    def sessions(self) -> Sequence[SessionRow]:
        """The first 50 sessions, newest activity first."""
        return self._page.rows

    @property
    def next(self) -> str:
        """The cursor of the next sessions; empty at the end."""
        return self._page.next

    @cached_property
    def memory(self) -> MemoryCounts:
        """How much is remembered."""
        return memory_counts(self.scope)

    @cached_property
    def tenants(self) -> list[Tenant]:
        """The tenants that the person belongs to, their own first."""
        return [membership.tenant for membership in memberships_of(self.scope.user_id)]


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return the theme and, inside a tenant, the sidebar."""
    user = getattr(request, "user", None)
    theme = getattr(user, "theme", None) or request.COOKIES.get("theme", "system")
    context: dict[str, Any] = {"theme": theme if theme in {"light", "dark"} else "system"}
    membership = getattr(request, "membership", None)
    if membership is not None:
        context["sidebar"] = Sidebar(membership.scope, getattr(user, "time_zone", "UTC"))
    return context
