"""The tenant's admin: people with counts, purge of what one of them is remembered by, the audit."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from accounts.audit import record, record_look
from accounts.client import client_ip
from accounts.door import MemberRequest, admin
from accounts.errors import NotFound
from accounts.models import AuditEntry, Departure, Membership, User
from accounts.scope import Scope, entered_tenant, reviewing
from accounts.text import clean_text
from accounts.web import whole_cursor
from chatapp.models import ChatSession
from memory.models import Job, Memory
from memory.purge import What, preview, purge

PAGE = 50
LEFT = "left-"  # begins the cursors of those who left
WHAT: tuple[What, ...] = ("memories", "everything")


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """Up to 50 people with counts and never any text, and the cursor of the next page, or ""."""

    people: list[dict[str, Any]]
    next: str


def _people(tenant_id: int, query: str, after: str) -> PeoplePage:
    """Return the members in the order in which they came, then those who left, the latest first."""
    departed, place = after.startswith(LEFT), whole_cursor(after.removeprefix(LEFT))
    with reviewing(tenant_id):
        found: list[Membership | Departure] = []
        if not departed:
            members = Membership.objects.filter(tenant_id=tenant_id, pk__gt=place)
            found += _named(members, query).order_by("pk")[: PAGE + 1]
        if len(found) <= PAGE:
            left = Departure.objects.filter(tenant_id=tenant_id)
            if departed and place:
                left = left.filter(pk__lt=place)
            found += _named(left, query).order_by("-pk")[: PAGE + 1 - len(found)]
        page = found[:PAGE]
        rows = _counted_rows(tenant_id, page)
    return PeoplePage(rows, _next(page[-1], found[PAGE]) if len(found) > PAGE else "")


def _named[Rows: QuerySet[Any]](people: Rows, query: str) -> Rows:
    """Return those whose name or address has these characters, with the accounts."""
    people = people.select_related("user")
    if not query:
        return people
    return people.filter(Q(user__name__icontains=query) | Q(user__email__icontains=query))


def _next(last: Membership | Departure, following: Membership | Departure) -> str:
    """Return the cursor behind the last person of a page."""
    if isinstance(following, Membership):
        return str(last.pk)
    return f"{LEFT}{last.pk if isinstance(last, Departure) else ''}"


def _counted_rows(tenant_id: int, page: list[Membership | Departure]) -> list[dict[str, Any]]:
    """Return what the list shows of each person. Call it as the reviewer."""
    rows = {"tenant_id": tenant_id, "user_id__in": [one.user_id for one in page]}
    lasts = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    live, waits = lasts & ~Q(status=Memory.Status.TRASH), lasts & Q(status=Memory.Status.WAITING)
    kept: dict[int, tuple[int, int]] = {
        user: (count, waiting)
        for user, count, waiting in Memory.unscoped.filter(**rows)
        .values("user_id")
        .annotate(count=Count("pk", filter=live), waiting=Count("pk", filter=waits))
        .values_list("user_id", "count", "waiting")
    }
    sessions: dict[int, tuple[int, datetime | None]] = {
        user: (count, last)
        for user, count, last in ChatSession.unscoped.filter(**rows)
        .values("user_id")
        .annotate(count=Count("pk"), last=Max("last_activity_at"))
        .values_list("user_id", "count", "last")
    }
    parked = Counter(
        Job.unscoped.filter(**rows, state=Job.State.PARKED).values_list("user_id", flat=True)
    )
    return [
        {
            "membership": one if isinstance(one, Membership) else None,
            "user": one.user,
            "memories": kept.get(one.user_id, (0, 0))[0],
            "waiting": kept.get(one.user_id, (0, 0))[1],
            "failed": parked[one.user_id],
            "sessions": sessions.get(one.user_id, (0, None))[0],
            "last_active": sessions.get(one.user_id, (0, None))[1],
        }
        for one in page
    ]


@admin
@require_GET
def people(request: MemberRequest) -> HttpResponseBase:
    """Show who belongs to the tenant and how much is kept of each; never what."""
    query = clean_text(request.GET.get("q", "")).strip()
    record_look(request.tenant, actor=request.user, action="people.listed", ip=client_ip(request))
    found = _people(request.tenant.pk, query, request.GET.get("after", ""))
    shown = {"people": found.people, "q": query, "next": found.next}
    return render(request, "admin/people.html", shown)


def _subject(request: MemberRequest, user_id: int) -> Membership | Departure:
    """Return the person's place in the tenant, also of one who has left; NotFound otherwise."""
    tenant_id = request.tenant.pk
    found: Membership | Departure | None
    with entered_tenant(tenant_id):
        here = Membership.objects.select_related("user")
        found = here.filter(tenant_id=tenant_id, user_id=user_id).first()
        if found is None:
            gone = Departure.objects.select_related("user")
            found = gone.filter(tenant_id=tenant_id, user_id=user_id).first()
    if found is None:
        raise NotFound
    return found


def _choices(scope: Scope) -> list[dict[str, Any]]:
    """Return what can be purged, with the exact counts of each."""
    choices = []
    for what in WHAT:
        counts = preview(scope, what=what)
        total = sum(counts.get(kind, 0) for kind in ("memories", "sessions", "messages"))
        choices.append({"value": what, "counts": _counted(counts), "total": total})
    return choices


def _counted(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"label": label, "count": count} for label, count in counts.items()]


@admin
@require_http_methods(["GET", "POST"])
def purge_person(request: MemberRequest, user_id: int) -> HttpResponseBase:
    """Preview with exact counts; then, with the address typed, erase for good and say how much."""
    subject = _subject(request, user_id)
    context: dict[str, Any] = {
        "subject": subject.user,
        "phrase": subject.user.email,
        "chosen": request.POST.get("what", "memories"),
        "reason": request.POST.get("reason", ""),
    }
    if request.method == "GET":
        return render(request, "admin/purge.html", context | {"choices": _choices(subject.scope)})
    problems = _problems(request, subject.user)
    if problems:
        shown = context | problems | {"choices": _choices(subject.scope)}
        return render(request, "admin/purge.html", shown, status=400)
    with transaction.atomic():  # nothing is erased that the audit does not know of
        counts = purge(subject.scope, what=cast("What", context["chosen"]))
        record(
            request.tenant,
            actor=request.user,
            subject=subject.user,
            action=f"{context['chosen']}.purged",
            counts=counts,
            reason=context["reason"],
            ip=client_ip(request),
        )
    return render(request, "admin/purge.html", context | {"receipt": _counted(counts)})


def _problems(request: MemberRequest, subject: User) -> dict[str, str]:
    """Return a sentence for each field that is not as it must be before anything is erased."""
    problems = {}
    typed = request.POST.get("confirm", "").strip()
    if request.POST.get("what", "memories") not in WHAT:
        problems["error"] = _("Choose what to erase. Nothing was erased.")
    elif typed.casefold() != subject.email.casefold():
        problems["error"] = _("Type the address exactly to confirm. Nothing was erased.")
    if not request.POST.get("reason", "").strip():
        problems["reason_error"] = _("Say why; it is written to the audit. Nothing was erased.")
    return problems


@admin
@require_GET
def audit(request: MemberRequest) -> HttpResponse:
    """Show who did what to whom, newest first; there is no text of anybody's in it."""
    before = whole_cursor(request.GET.get("before", ""))
    with entered_tenant(request.tenant.pk):
        entries = AuditEntry.objects.filter(tenant_id=request.tenant.pk).order_by("-pk")
        if before:
            entries = entries.filter(pk__lt=before)
        page = list(entries[: PAGE + 1])
    return render(
        request,
        "admin/audit.html",
        {"entries": page[:PAGE], "next": str(page[PAGE - 1].pk) if page[PAGE:] else ""},
    )
