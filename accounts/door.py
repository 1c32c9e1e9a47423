"""The edge where a request gets its identity: login, membership, scope."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from accounts.errors import NotFound
from accounts.models import Membership, Tenant, User
from accounts.scope import Scope, entered_person


class UserRequest(HttpRequest):
    """A request of somebody who is logged in."""

    user: User
    htmx: HtmxDetails


class MemberRequest(UserRequest):
    """A request of a member, inside one tenant."""

    tenant: Tenant
    membership: Membership
    scope: Scope


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
    """Let the tenant's members in, with `request.tenant`, `.membership` and `.scope`.

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
        request.scope = membership.scope
        return view(request, *args, **kwargs)

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
