"""What is learnt by itself: what waits for the person, how learning works, and their profile."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from accounts.door import MemberRequest, member
from accounts.web import SeeOther
from memory import review
from memory.learn import set_learning
from memory.learnt import failed_runs
from memory.preferences import preferences_of
from memory.profile import profile_of
from memory.tenant_settings import tenant_settings_of
from memory.views import memory_row_of


def _back(request: MemberRequest, *, state: str = "") -> SeeOther:
    query = {"state": state} if state else {}
    return SeeOther(reverse("memory", args=[request.tenant.slug], query=query))


@member
@require_POST
def memory_accept(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Hold true what waited for review, was declined, or is not trusted yet."""
    found = review.accept(request.membership.scope, memory=memory_id)
    return memory_row_of(request, found) if request.htmx else _back(request, state="waiting")


@member
@require_POST
def memory_decline(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Decline what waits: it is not proposed again."""
    found = review.decline(request.membership.scope, memory=memory_id)
    return memory_row_of(request, found) if request.htmx else _back(request, state="waiting")


@member
@require_POST
def memory_accept_all(request: MemberRequest) -> HttpResponseBase:
    """Accept all that waits but what reads like an order; say how many those were."""
    taken = review.accept_all(request.membership.scope)
    sentence = ngettext("%(count)d was accepted.", "%(count)d were accepted.", taken)
    messages.success(request, sentence % {"count": taken})
    return _back(request, state="waiting")


@member
@require_POST
def memory_learning(request: MemberRequest) -> HttpResponseBase:
    """Change whether facts are looked for, and how persona and insights are learnt."""
    set_learning(
        request.membership.scope,
        mode=request.POST.get("learn", ""),
        extract_on=request.POST.get("extract_on", "") != "",
    )
    if request.htmx:
        context = {
            "memory_settings": preferences_of(request.membership.scope),
            "tenant_memory": tenant_settings_of(request.tenant.pk),
            "saved": True,
        }
        return render(request, "memory/learning.html", context)
    messages.success(request, _("Saved."))
    return _back(request)


@member
@require_GET
def memory_profile(request: MemberRequest) -> HttpResponse:
    """Show the profile, each sentence with the memories that it rests on."""
    context = {"profile": profile_of(request.membership.scope)}
    return render(request, "memory/profile.html", context)


@member
@require_GET
def memory_failures(request: MemberRequest) -> HttpResponse:
    """Show what could not be remembered or learnt, and why."""
    context = {"failures": failed_runs(request.membership.scope)}
    return render(request, "memory/failures.html", context)
