"""The operator's list of people: who has an account here, and who may log in."""

import logging

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponseBase, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts import join
from accounts.door import UserRequest
from accounts.door import operator as operators_only
from accounts.errors import NotFound
from accounts.models import User
from accounts.operators import one_at_a_time, only_operator
from accounts.text import clean_text, cut
from accounts.web import SeeOther, whole_cursor

logger = logging.getLogger(__name__)

PAGE = 50
QUERY_CHARS = 254


@operators_only
@require_GET
def people(request: UserRequest) -> HttpResponseBase:
    """Show who has an account, the newest first, or those of a name or an address."""
    query = cut(clean_text(request.GET.get("q", "")).strip(), QUERY_CHARS, "")
    found = User.objects.named(query).order_by("-pk")
    before = whole_cursor(request.GET.get("before", ""))
    if before:
        found = found.filter(pk__lt=before)
    page = list(found[: PAGE + 1])
    more = str(page[PAGE - 1].pk) if page[PAGE:] else ""
    shown = {"people": page[:PAGE], "q": query, "next": more}
    return render(request, "operator/people.html", shown)


@operators_only
@require_POST
def disable(request: UserRequest, user_id: int) -> HttpResponseBase:
    """Let somebody in no longer; their open pages close at once, and what is theirs stays."""
    person = _person(user_id)
    with transaction.atomic():
        one_at_a_time()
        if only_operator(person.pk):
            messages.error(
                request, _("Nobody else runs this installation. Make another operator first.")
            )
            return _back(request)
        join.disable(person)
    logger.info("account %s was disabled by operator %s", person.pk, request.user.pk)
    messages.success(
        request, _("%(name)s can't log in any more. Open pages are closed.") % {"name": person.name}
    )
    return _back(request)


@operators_only
@require_POST
def enable(request: UserRequest, user_id: int) -> HttpResponseBase:
    """Let a disabled person in again."""
    person = _person(user_id)
    join.enable(person)
    logger.info("account %s was enabled by operator %s", person.pk, request.user.pk)
    messages.success(request, _("%(name)s can log in again.") % {"name": person.name})
    return _back(request)


def _person(user_id: int) -> User:
    person = User.objects.filter(pk=user_id).first()
    if person is None:
        raise NotFound
    return person


def _back(request: UserRequest) -> SeeOther:
    """Return to the list as it was searched."""
    query = QueryDict(mutable=True)
    query["q"] = request.POST.get("q", "")
    return SeeOther(f"{reverse('operator_people')}?{query.urlencode()}")
