"""The pages of the chat, and their parts."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.door import MemberRequest, member
from accounts.errors import AppError, InvalidInput, TooMuch
from accounts.scope import Scope, entered
from accounts.web import SeeOther
from accounts.zones import zone_of
from chatapp import bells, journal, turn
from chatapp import sessions as verbs
from chatapp.context import memory_counts
from chatapp.frames import uuid_of
from chatapp.models import ChatSession
from chatapp.shown import shown_reply
from memory.learnt import learnt_for_replies
from memory.model_choice import current_endpoint
from memory.preferences import preferences_of
from memory.recall import read_for_reply
from memory.tenant_settings import tenant_settings_of


def _wants_json(request: MemberRequest) -> bool:
    return bool(request.htmx) or "application/json" in request.headers.get("Accept", "")


def _refused(error: AppError) -> JsonResponse:
    return JsonResponse({"code": error.code, "message": str(error)}, status=error.http_status)


def _client_id(request: MemberRequest) -> UUID:
    """Return the id that the browser gave its message; a new one for a plain form."""
    given = request.POST.get("client_id", "")
    return uuid_of(given, "client_id") if given else uuid4()


def _switches(scope: Scope, session: ChatSession | None) -> dict[str, Any]:
    """Return what a session reads and writes: a tenant's "off" binds, its own word comes next."""
    settings = preferences_of(scope)
    may_store = tenant_settings_of(scope.tenant_id).auto_store_on
    if session is not None and session.auto_store is not None:
        settings.auto_store_on = session.auto_store
    settings.auto_store_on = settings.auto_store_on and may_store
    return {"memory_settings": settings, "may_store": may_store}


def _chat(request: MemberRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    switches = _switches(request.membership.scope, context.get("session"))
    shell: dict[str, Any] = {
        "session": None,
        "exchanges": [],
        "older": None,
        "model_ready": current_endpoint() is not None,
    }
    return render(request, "chat/page.html", shell | switches | context, status=status)


def _session_page(
    request: MemberRequest, session_id: UUID, *, status: int = 200, **context: Any
) -> HttpResponse:
    found = verbs.read(request.membership.scope, session_id)
    return _chat(
        request,
        status=status,
        session=found.session,
        exchanges=found.exchanges,
        older=found.older,
        **context,
    )


@member
@require_GET
def new_session(request: MemberRequest) -> HttpResponse:
    """Show an empty chat; the first message makes the session."""
    return _chat(request)


@member
@require_http_methods(["GET", "POST"])
def sessions(request: MemberRequest) -> HttpResponseBase:
    """Show the next rows of the sidebar, or begin a session with its first message."""
    if request.method == "POST":
        return _begin_session(request)
    if not request.htmx:
        return redirect("new_session", request.tenant.slug)
    found = verbs.page(
        request.membership.scope,
        zone=zone_of(request.user.time_zone),
        before=request.GET.get("before", ""),
    )
    context = {"sessions": found.rows, "next": found.next, "tenant": request.tenant}
    return render(request, "chat/sidebar_rows.html", context)


def _begin_session(request: MemberRequest) -> HttpResponseBase:
    text = request.POST.get("text", "")
    try:
        begun = verbs.create(request.membership.scope, text=text, client_id=_client_id(request))
    except InvalidInput as error:
        if _wants_json(request):
            return _refused(error)
        return _chat(request, status=400, draft=text, error=str(error))
    if begun.fresh:
        bells.waiting(request.membership.scope, begun.session.pk, begun.message.pk)
    url = reverse("session", args=[request.tenant.slug, begun.session.pk])
    return JsonResponse({"url": url}) if _wants_json(request) else SeeOther(url)


@member
@require_http_methods(["GET", "POST"])
def session(request: MemberRequest, session_id: UUID) -> HttpResponseBase:
    """Show a session; or, without JavaScript, take a message for it."""
    if request.method == "GET":
        return _session_page(request, session_id)
    text = request.POST.get("text", "")
    try:
        begun = turn.begin(
            request.membership.scope,
            session_id,
            text=text,
            client_id=_client_id(request),
            claiming=False,
        )
    except (InvalidInput, TooMuch) as error:
        if _wants_json(request):
            # A stranger learns no more than "not found".
            verbs.read(request.membership.scope, session_id)
            return _refused(error)
        return _session_page(
            request, session_id, status=error.http_status, draft=text, error=str(error)
        )
    if begun.fresh:
        bells.waiting(request.membership.scope, session_id, begun.message.pk)
    url = reverse("session", args=[request.tenant.slug, session_id])
    return JsonResponse({"url": url}) if _wants_json(request) else SeeOther(url)


@member
@require_GET
def session_messages(request: MemberRequest, session_id: UUID) -> HttpResponse:
    """Show the exchanges before a position."""
    if not request.htmx:
        verbs.read(request.membership.scope, session_id, before=1)
        return redirect("session", request.tenant.slug, session_id)
    before = request.GET.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) < 10):
        raise InvalidInput("This is no place in the session.")
    found = verbs.read(request.membership.scope, session_id, before=int(before) if before else None)
    context = {
        "session": found.session,
        "exchanges": found.exchanges,
        "older": found.older,
        "tenant": request.tenant,
    }
    return render(request, "chat/messages.html", context)


@member
@require_POST
def session_rename(request: MemberRequest, session_id: UUID) -> HttpResponseBase:
    """Give a session a new title; it keeps its place in the list."""
    try:
        renamed = verbs.rename(
            request.membership.scope, session_id, title=request.POST.get("title", "")
        )
    except InvalidInput as error:
        verbs.read(request.membership.scope, session_id, before=1)
        if _wants_json(request):
            return _refused(error)
        return _session_page(request, session_id, status=400, error=str(error))
    bells.session_changed(request.membership.scope, session_id)
    if not request.htmx:
        return SeeOther(reverse("session", args=[request.tenant.slug, renamed.pk]))
    row = verbs.row(request.membership.scope, session_id, zone=zone_of(request.user.time_zone))
    context = {"session": row, "tenant": request.tenant}
    return render(request, "chat/session_row.html", context)


@member
@require_POST
def session_remember(request: MemberRequest, session_id: UUID) -> HttpResponseBase:
    """Set whether this session is remembered: on, off, or as the person has set it."""
    choice = request.POST.get("auto_store", "")
    choices = {"on": True, "off": False, "": None}
    verbs.read(request.membership.scope, session_id, before=1)
    if choice not in choices:
        raise InvalidInput(_("Choose whether this session is remembered."))
    verbs.set_auto_store(request.membership.scope, session_id, on=choices[choice])
    return SeeOther(reverse("session", args=[request.tenant.slug, session_id]))


@member
@require_POST
def session_delete(request: MemberRequest, session_id: UUID) -> HttpResponseBase:
    """Erase a session with its messages; what was remembered stays."""
    running = verbs.delete(request.membership.scope, session_id)
    bells.session_gone(request.membership.scope, session_id)
    journal.forget(running)
    if request.htmx:
        return HttpResponse(status=204)
    return SeeOther(reverse("new_session", args=[request.tenant.slug]))


@member
@require_GET
def reply_sources(request: MemberRequest, reply_id: UUID) -> HttpResponse:
    """Show the memories that were used for a reply."""
    reply = verbs.reply_of(request.membership.scope, reply_id)
    found = read_for_reply(request.membership.scope, reply_id)
    keys = {source.session_key for source in found if source.session_key}
    with entered(request.membership.scope):
        known = ChatSession.objects.within(request.membership.scope).in_bulk(keys)
    sources = [
        {
            "id": source.id,
            "kind": source.kind,
            "text": source.text,
            "answer": source.answer,
            "score": source.score,
            "vector_part": source.vector_part,
            "text_part": source.text_part,
            "used": source.used,
            "always": source.always,
            "because": ", ".join(source.because),
            "created_at": source.created_at,
            "session": known.get(source.session_key) if source.session_key else None,
            "injected": source.injected,
            "gone": source.gone,
        }
        for source in found
    ]
    context = {
        "reply": shown_reply(reply),
        "tenant": request.tenant,
        "sources": sources,
        "groups": _groups(sources),
        "note": reply.memory_note,
    }
    return render(request, "chat/sources.html", context)


def _groups(sources: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the sources by why they are there: what the message found comes first."""
    groups = [
        (_("Found for your message"), [one for one in sources if not one["always"]]),
        (_("Always known"), [one for one in sources if one["always"]]),
    ]
    return [(title, members) for title, members in groups if members]


@member
@require_GET
def reply_learnt(request: MemberRequest, reply_id: UUID) -> HttpResponse:
    """Show what was learnt from a reply's exchange."""
    reply = verbs.reply_of(request.membership.scope, reply_id)
    if not request.htmx:
        return redirect("session", request.tenant.slug, reply.session_id)
    learnt = learnt_for_replies(request.membership.scope, [reply_id]).get(reply_id)
    context = {"reply": shown_reply(reply), "learnt": learnt, "tenant": request.tenant}
    return render(request, "chat/learnt.html", context)


@member
@require_GET
def memory_count(request: MemberRequest) -> HttpResponse:
    """Show how much is remembered, for the foot of the sidebar."""
    if not request.htmx:
        return redirect("memory", request.tenant.slug)
    counts = memory_counts(request.membership.scope)
    return render(request, "chat/memory_count.html", {"counts": counts})
