"""The admin's page of how memory works for everybody in the tenant."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from accounts.client import client_ip
from accounts.door import MemberRequest, admin
from accounts.web import SeeOther
from memory.limits import Limits
from memory.models import BOUNDS
from memory.preferences import InvalidPreferences
from memory.standing import standing_of_tenant
from memory.tenant_settings import change_tenant_settings, tenant_settings_of


@admin
@require_http_methods(["GET", "POST"])
def tenant_memory(request: MemberRequest) -> HttpResponseBase:
    """Show the tenant's settings of memory; change them, or say at each field what is wrong."""
    if request.method == "GET":
        return _page(request)
    switches = {name: request.POST.get(name, "") != "" for name in ("auto_store_on", "extract_on")}
    numbers: dict[str, Any] = {name: request.POST.get(name, "") for name in BOUNDS}
    try:
        change_tenant_settings(
            request.tenant, actor=request.user, ip=client_ip(request), **switches, **numbers
        )
    except InvalidPreferences as error:
        return _page(request, status=400, typed=switches | numbers, errors=error.errors)
    messages.success(request, _("Saved."))
    return SeeOther(reverse("tenant_memory", args=[request.tenant.slug]))


def _page(
    request: MemberRequest,
    *,
    status: int = 200,
    typed: dict[str, Any] | None = None,
    errors: Any = None,
) -> HttpResponse:
    shown = tenant_settings_of(request.tenant.pk)
    for name, value in (typed or {}).items():
        setattr(shown, name, value)
    context = {"tenant_memory": shown, "limits": Limits(), "errors": errors or {}}
    return render(request, "admin/memory.html", context | _embedding(request), status=status)


def _embedding(request: MemberRequest) -> dict[str, Any]:
    return {
        "standing": standing_of_tenant(request.tenant.pk),
        "again": reverse("tenant_embedding", args=[request.tenant.slug]),
    }


@admin
@require_GET
def tenant_embedding(request: MemberRequest) -> HttpResponseBase:
    """Show how far the tenant's memories are found by meaning; a page asks again and again."""
    if request.htmx:
        return render(request, "memory/embedding.html", _embedding(request))
    return SeeOther(reverse("tenant_memory", args=[request.tenant.slug]))
