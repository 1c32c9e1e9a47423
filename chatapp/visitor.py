"""Who is behind a websocket, and whether they still are.

Not Channels' own `get_user`: it ignores SECRET_KEY_FALLBACKS and deletes the login session, so that
a new key would log everybody out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.http import parse_cookie
from django.utils import timezone

from accounts.door import membership_of, still_member
from accounts.models import Tenant, User
from accounts.scope import Scope
from accounts.zones import zone_of


class LoginEnded(Exception):
    """The login behind a socket is over."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A member, inside one tenant, by one login session."""

    scope: Scope
    tenant: Tenant
    zone: ZoneInfo
    login: str
    auth_hash: str

    def check(self) -> None:
        """Raise LoginEnded unless the login still opens the tenant. One query."""
        if not still_member(
            user_id=self.scope.user_id,
            tenant_id=self.scope.tenant_id,
            auth_hash=self.auth_hash,
            session_key=self.login,
        ):
            raise LoginEnded

    def checked[R](self, work: Callable[[], R]) -> R:
        """Return what the work returns, done only while the login holds."""
        self.check()
        return work()


def login_in(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the login session's key out of a request's cookies."""
    for name, value in headers:
        if name.lower() == b"cookie":
            # Django's own reading, as for pages: the standard library's gives up on all of them
            # where another program on this host has set one that it can't read.
            login = parse_cookie(value.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
            if login is not None and "\0" not in login:
                return login
    return None


def visitor_of(login: str | None, slug: str) -> Visitor | None:
    """Return who this login session is, inside the tenant; None for nobody (not logged in).

    Raises NotFound for a tenant that does not exist or isn't theirs.
    """
    if not login:
        return None
    session = Session.objects.filter(pk=login, expire_date__gt=timezone.now()).first()
    content: dict[str, Any] = session.get_decoded() if session else {}
    user_id, auth_hash = content.get(SESSION_KEY), content.get(HASH_SESSION_KEY)
    if not user_id or not auth_hash:
        return None
    if content.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = User.objects.filter(pk=int(user_id), is_active=True).first()
    if user is None:
        return None
    membership = membership_of(user.pk, slug)
    visitor = Visitor(
        membership.scope, membership.tenant, zone_of(user.time_zone), login, str(auth_hash)
    )
    try:
        visitor.check()
    except LoginEnded:
        return None
    return visitor
