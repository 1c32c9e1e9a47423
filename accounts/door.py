"""The edge where a request gets its identity: login, membership, scope."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django_htmx.middleware import HtmxDetails

from accounts.errors import NotFound
from accounts.models import Membership, Tenant, User
from accounts.scope import Scope, entered_person, read_once


class UserRequest(HttpRequest):
    """A request of somebody who is logged in."""

    user: User
    htmx: HtmxDetails


class MemberRequest(UserRequest):
    """A request of a member, inside one tenant."""

    tenant: Tenant
    membership: Membership  # `.scope` is whose rows; `request.scope` is ASGI's own


TENANT_COOKIE = "tenant"
_YEAR = 60 * 60 * 24 * 365
_FRESH = timedelta(minutes=5)

type View = Callable[..., HttpResponseBase]


def membership_of(user_id: int, slug: str) -> Membership:
    """Return the person's membership of the tenant with this address; NotFound otherwise."""
    with entered_person(user_id):
        found = (
            Membership.objects.select_related("tenant")
            .filter(user_id=user_id, tenant__slug=slug, user__is_active=True)
            .first()
        )
    if found is None:
        raise NotFound
    return found


def memberships_of(user_id: int) -> list[Membership]:
    """Return all of the person's memberships with their tenants, the personal one first."""
    with entered_person(user_id):
        return list(
            Membership.objects.select_related("tenant")
            .filter(user_id=user_id)
            .order_by("-tenant__personal", "tenant__name", "pk")
        )


def last_used(memberships: list[Membership], slug: str) -> Membership:
    """Return the one that this browser used last, or the person anywhere, or the personal one.

    Everybody has a personal tenant, so there is always one.
    """
    here = [membership for membership in memberships if membership.tenant.slug == slug]
    used = sorted(
        (membership for membership in memberships if membership.last_active_at),
        key=lambda membership: membership.last_active_at or membership.created_at,
    )
    return [*memberships[:1], *used, *here][-1]


def _remembered(
    request: HttpRequest, membership: Membership, response: HttpResponseBase
) -> HttpResponseBase:
    """Return the answer, having noted that the person was here, unless nothing was shown."""
    if response.status_code >= 400:
        return response
    now = timezone.now()
    if membership.last_active_at is None or membership.last_active_at < now - _FRESH:
        with entered_person(membership.user_id):
            Membership.objects.filter(pk=membership.pk).update(last_active_at=now)
    slug = membership.tenant.slug
    page = request.method == "GET" and not request.headers.get("HX-Request")
    if page and request.COOKIES.get(TENANT_COOKIE) != slug:
        response.set_cookie(
            TENANT_COOKIE,
            slug,
            max_age=_YEAR,
            httponly=True,
            samesite="Lax",
            secure=request.is_secure(),
        )
    return response


_STILL_MEMBER = """
select u.password from accounts_membership m join accounts_user u on u.id = m.user_id
where m.user_id = %(user)s and m.tenant_id = %(tenant)s and u.is_active
  and (%(login)s::text is null or exists (
    select 1 from django_session l where l.session_key = %(login)s and l.expire_date > %(now)s))
"""


def still_member(
    *, user_id: int, auth_hash: str, tenant_id: int, session_key: str | None = None
) -> bool:
    """Tell whether a login that began earlier still opens this tenant.

    False once the person is disabled or gone, has left the tenant, or has changed their password
    since (`auth_hash` is the login session's, HASH_SESSION_KEY). With `session_key` also once that
    login session was logged out or ran out. One query, in one round trip.
    """
    given = {"user": user_id, "tenant": tenant_id, "login": session_key, "now": timezone.now()}
    rows = read_once(Scope(tenant_id, user_id), _STILL_MEMBER, given)
    if not rows:
        return False
    user = User(pk=user_id, password=rows[0][0])
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(auth_hash, known) for known in hashes)


def welcomed(scope: Scope) -> "QuerySet[Membership]":
    """Pick the membership by which the person may be in the tenant, whoever asks; in the scope.

    None is left once they are disabled or have left: work that they began is not gone on with.
    """
    people = Membership.objects.filter(user_id=scope.user_id, tenant_id=scope.tenant_id)
    return people.filter(user__is_active=True)


# The same as a condition of a statement.
WELCOMED = """exists (
  select 1 from accounts_membership w join accounts_user p on p.id = w.user_id
  where w.user_id = %(user)s and w.tenant_id = %(tenant)s and p.is_active)"""


def _refuse_stranger(request: HttpRequest) -> HttpResponseBase | None:
    """Return what somebody who is not logged in gets, or None for those who are."""
    if request.user.is_authenticated:
        return None
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=401)
        response["HX-Redirect"] = redirect_to_login("/")["Location"]
        return response
    if "application/json" in request.headers.get("Accept", ""):
        return HttpResponse(status=401)
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")


def logged_in(view: View) -> View:
    """Let people in who are logged in; send others to the login page (401 for scripts)."""

    @wraps(view)
    def door(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return _refuse_stranger(request) or view(request, *args, **kwargs)

    return door


def member(view: View) -> View:
    """Let the tenant's members in, with `request.tenant` and `.membership`.

    Takes the tenant's slug from the address (`tenant`); raises NotFound for a tenant that does
    not exist or is not theirs.
    """

    @wraps(view)
    def door(request: Any, tenant: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        refused = _refuse_stranger(request)
        if refused is not None:
            return refused
        membership = membership_of(request.user.pk, tenant)
        request.membership, request.tenant = membership, membership.tenant
        return _remembered(request, membership, view(request, *args, **kwargs))

    return door


def admin(view: View) -> View:
    """Let the tenant's admins in; for its other members the page does not exist."""

    @wraps(view)
    def door(request: MemberRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.membership.is_admin:
            raise NotFound
        return view(request, *args, **kwargs)

    return member(door)


def operator(view: View) -> View:
    """Let operators in; for others the page does not exist."""

    @wraps(view)
    def door(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_operator:
            raise NotFound
        return view(request, *args, **kwargs)

    return logged_in(door)
