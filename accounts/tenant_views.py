"""Tenants: make one, name it, say who belongs to it, invite, accept, leave, delete."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts import invite as invitations
from accounts.client import client_ip
from accounts.door import MemberRequest, UserRequest, admin, logged_in, member
from accounts.erase import erase_organisation
from accounts.errors import InvalidInput, NotFound
from accounts.forms import TenantForm
from accounts.join import change_role, leave, new_organisation, rename_tenant
from accounts.models import Invitation, Membership, User
from accounts.scope import Scope, entered_tenant
from accounts.seal import seal, unseal
from accounts.web import SeeOther

# Where a login session keeps a link, sealed, until the page after the form has shown it.
_NEW_LINK = "new_invitation"


@logged_in
@require_http_methods(["GET", "POST"])
def tenant_new(request: UserRequest) -> HttpResponseBase:
    """Make an organisation, with the person as its admin."""
    form = TenantForm(request.POST or None)
    if request.method == "GET":
        return render(request, "accounts/tenant_new.html", {"form": form})
    if not form.is_valid():
        return render(request, "accounts/tenant_new.html", {"form": form}, status=400)
    made = new_organisation(request.user, name=form.cleaned_data["name"], ip=client_ip(request))
    messages.success(request, _("Your shared space is there. Invite others by a link."))
    return SeeOther(reverse("tenant_settings", args=[made.tenant.slug]))


def _settings(request: MemberRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    tenant = request.tenant
    with entered_tenant(tenant.pk):
        members = list(
            Membership.objects.select_related("user")
            .filter(tenant=tenant)
            .order_by("user__name", "pk")
        )
    rows = [
        {
            "user": membership.user,
            "role": membership.role,
            "created_at": membership.created_at,
        }
        for membership in members
    ]
    page = {
        "tenant": tenant,
        "members": rows,
        "invitations": list(
            Invitation.objects.open().filter(tenant=tenant).order_by("-created_at")
        ),
        "roles": Membership.Role.choices,
        "may_invite": not tenant.personal,
        "may_delete": not tenant.personal and len(rows) == 1,
    }
    return render(request, "admin/settings.html", page | more, status=status)


@admin
@require_http_methods(["GET", "POST"])
def tenant_settings(request: MemberRequest) -> HttpResponseBase:
    """Show and change the tenant's name; show its members and open invitations."""
    if request.method == "GET":
        return _settings(request, new_link=_new_link(request))
    name = request.POST.get("name", "")
    try:
        rename_tenant(request.tenant, name=name, actor=request.user, ip=client_ip(request))
    except InvalidInput as error:
        return _settings(request, status=400, name_error=str(error), name=name)
    messages.success(request, _("Saved."))
    return _back(request)


def _back(request: MemberRequest) -> HttpResponse:
    return SeeOther(reverse("tenant_settings", args=[request.tenant.slug]))


def _member(request: MemberRequest, user_id: int) -> Scope:
    """Return that person's scope in the tenant; NotFound for what is nobody's id."""
    if user_id < 1:
        raise NotFound
    return Scope(request.tenant.pk, user_id)


@admin
@require_POST
def member_role(request: MemberRequest, user_id: int) -> HttpResponseBase:
    """Make a member an admin or the other way round."""
    try:
        change_role(
            _member(request, user_id),
            role=request.POST.get("role", ""),
            actor=request.user,
            ip=client_ip(request),
        )
    except InvalidInput as error:
        return _settings(request, status=400, member_error=str(error))
    if user_id == request.user.pk:
        return SeeOther(reverse("home"))
    return _back(request)


@admin
@require_POST
def member_remove(request: MemberRequest, user_id: int) -> HttpResponseBase:
    """End somebody's membership; what they wrote stays until it is purged."""
    try:
        leave(_member(request, user_id), actor=request.user, ip=client_ip(request))
    except InvalidInput as error:
        return _settings(request, status=400, member_error=str(error))
    if user_id == request.user.pk:
        return SeeOther(reverse("home"))
    messages.success(request, _("They are no longer a member. Their open pages are closed."))
    return _back(request)


@member
@require_POST
def tenant_leave(request: MemberRequest) -> HttpResponseBase:
    """End one's own membership."""
    try:
        leave(request.membership.scope, actor=request.user, ip=client_ip(request))
    except InvalidInput as error:
        messages.error(request, str(error))
        return SeeOther(reverse("account"))
    messages.success(request, _("You have left %(name)s.") % {"name": request.tenant.name})
    return SeeOther(reverse("account"))


@admin
@require_POST
def tenant_delete(request: MemberRequest) -> HttpResponseBase:
    """Delete an organisation that nobody else belongs to, once its name is typed."""
    if request.POST.get("confirm", "").strip() != request.tenant.name:
        wrong = _("Type the name exactly to confirm. Nothing was deleted.")
        return _settings(request, status=400, delete_error=wrong)
    try:
        erase_organisation(request.tenant, actor=request.user)
    except InvalidInput as error:
        return _settings(request, status=400, delete_error=str(error))
    messages.success(request, _("%(name)s is deleted.") % {"name": request.tenant.name})
    return SeeOther(reverse("account"))


@admin
@require_POST
def invitation_create(request: MemberRequest) -> HttpResponseBase:
    """Make a link that lets one person in; the page that follows is the only one to show it."""
    days = request.POST.get("days", "")
    try:
        token = invitations.invite(
            request.tenant,
            actor=request.user,
            role=request.POST.get("role", ""),
            days=int(days) if days in {str(number) for number in invitations.DAYS} else 0,
            email=request.POST.get("email", ""),
            ip=client_ip(request),
        )
    except InvalidInput as error:
        return _settings(request, status=400, error=str(error))
    request.session[_NEW_LINK] = seal(f"{request.tenant.pk} {token}")
    return SeeOther(f"{reverse('tenant_settings', args=[request.tenant.slug])}#new-link")


def _new_link(request: MemberRequest) -> str:
    """Return the link that was made a moment ago in this login session, once; empty otherwise."""
    tenant, _space, token = unseal(request.session.pop(_NEW_LINK, "")).partition(" ")
    if tenant != str(request.tenant.pk):
        return ""
    return request.build_absolute_uri(reverse("invite", args=[token]))


@admin
@require_POST
def invitation_revoke(request: MemberRequest, invitation_id: int) -> HttpResponseBase:
    """Close a link before somebody uses it."""
    invitations.revoke(
        request.tenant, invitation_id=invitation_id, actor=request.user, ip=client_ip(request)
    )
    return _back(request)


@require_http_methods(["GET", "POST"])
def invite(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show where the link leads; let in, once, who is logged in and says yes."""
    user: User | AnonymousUser = request.user
    if request.method == "POST" and isinstance(user, User):
        try:
            membership = invitations.accept(token, user=user, ip=client_ip(request))
        except NotFound:
            return _invite_page(request, token)
        return SeeOther(reverse("new_session", args=[membership.tenant.slug]))
    return _invite_page(request, token)


def _invite_page(request: HttpRequest, token: str) -> HttpResponse:
    found = invitations.look(token)
    status = {"ok": 200, "unknown": 404}.get(found.state, 410)
    page = {"state": found.state, "invitation": found.invitation, "next": request.path}
    return render(request, "accounts/invite.html", page, status=status)
