"""The memory page: what is remembered, and every way to correct and erase it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.door import MemberRequest, member
from accounts.errors import InvalidInput
from accounts.scope import Scope, read_once
from accounts.text import clean_text, cut
from accounts.web import SeeOther, whole_cursor
from accounts.zones import zone_of
from memory import edit as verbs
from memory.exchange import read_sessions
from memory.find import Hit
from memory.jobs import retry_parked
from memory.learnt import evidence_of, failed_runs, learnt_for_replies
from memory.limits import limits_within
from memory.models import BOUNDS, MEMORY_CHARS, Memory, MemorySettings
from memory.preferences import InvalidPreferences, change_preferences, preferences_of
from memory.purge import What, preview, purge
from memory.reasons import Reasons
from memory.remember import add
from memory.review import acceptable
from memory.search import counts, search, usage_of
from memory.tenant_settings import tenant_settings_of
from memory.trash import empty_now

QUERY_CHARS = 300
PHRASE = "forget everything"


@member
@require_GET
def memory(request: MemberRequest) -> HttpResponse:
    """Show the memories, newest first or as found; the list alone, or its next rows, to scripts."""
    context = _list(request)
    if not request.htmx:
        return _page(request, context)
    rows = "memory/memory_rows.html" if request.GET.get("before") else "memory/memory_list.html"
    return render(request, rows, context)


def _list(request: MemberRequest) -> dict[str, Any]:
    query = cut(clean_text(request.GET.get("q", "")).strip(), QUERY_CHARS, "")
    kind, state = request.GET.get("kind", ""), request.GET.get("state", "")
    before = request.GET.get("before", "")
    found = search(request.membership.scope, query=query, kind=kind, state=state, before=before)
    context = {
        "memories": _dressed(request.membership.scope, found.memories, found.ranked, query),
        "total": found.total,
        "next": found.next,
        "q": query,
        "kind": kind,
        "state": state,
        "by_words": found.by_words,
    }
    if before:
        return context
    of_state, of_kind = counts(request.membership.scope, state=state)
    return context | {
        "acceptable": len(acceptable(request.membership.scope)) if state == "waiting" else 0,
        "states": [
            {"value": one.value, "label": one.label, "count": of_state[one.value]}
            for one in Memory.Status
            if one != Memory.Status.DECLINED or of_state[one.value] or one.value == state
        ],
        "kinds": [
            {"value": one.value, "count": of_kind[one.value]}
            for one in Memory.Kind
            if of_kind[one.value] or one.value == kind
        ],
    }


def _dressed(
    scope: Scope,
    memories: Sequence[Memory],
    ranked: Mapping[UUID, Hit] = MappingProxyType({}),
    query: str = "",
) -> Sequence[Memory]:
    """Return the memories with what a row shows beside the text: session, use, score."""
    why = Reasons()
    used = usage_of(scope, memories)
    trashed = [one for one in memories if one.status == Memory.Status.TRASH]
    versions = verbs.undoable(scope, trashed) if trashed else {}
    sessions = read_sessions(scope, [one.session_key for one in memories if one.session_key])
    resting = evidence_of(scope, memories)
    for one in memories:
        row = cast("Any", one)
        row.rests_on = [resting[pk] for pk in one.evidence if pk in resting]
        row.recalled_count = used.get(one.pk, 0)
        row.version = versions.get(one.pk)
        hit = ranked.get(one.pk)
        row.near = why.found(hit) if query else None
        row.session = sessions.get(one.session_key) if one.session_key else None
        one.text = cut(one.text, MEMORY_CHARS)
    return memories


def _page(request: MemberRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    jobs = read_once(
        request.membership.scope,
        "select count(*) filter (where kind = 'remember' and state in ('waiting', 'running')),"
        " max(finished_at) filter (where kind = 'remember'),"
        " coalesce(bool_or(kind = 'embed' and state <> 'done'), false)"
        " from memory_job where tenant_id = %(tenant)s and user_id = %(user)s"
        " and kind in ('remember', 'embed')",
        {"tenant": request.membership.scope.tenant_id, "user": request.membership.scope.user_id},
    )
    waiting, last, embedding = jobs[0]
    failed = len(failed_runs(request.membership.scope))
    shell = _settings(request, preferences_of(request.membership.scope)) | {
        "failed_jobs": failed,
        "waiting_jobs": waiting,
        "embedding": embedding,
        "last_learnt": last,
    }
    return render(request, "memory/page.html", shell | context, status=status)


def _back(request: MemberRequest) -> SeeOther:
    return SeeOther(reverse("memory", args=[request.tenant.slug]))


@member
@require_POST
def memory_add(request: MemberRequest) -> HttpResponseBase:
    """Keep a note; a script gets the new row for the top of its list."""
    text = request.POST.get("text", "")
    try:
        added = add(request.membership.scope, text=text, zone=zone_of(request.user.time_zone))
    except InvalidInput as error:
        refused = {"draft": text, "error": error.message}
        if request.htmx:
            return render(request, "memory/add_form.html", refused, status=400)
        return _page(request, _list(request) | refused, status=400)
    if not request.htmx:
        messages.success(request, _("Remembered."))
        return _back(request)
    of_state, _of_kind = counts(request.membership.scope)
    context = {
        "memory": _dressed(request.membership.scope, [added])[0],
        "total": of_state[Memory.Status.CURRENT],
    }
    return render(request, "memory/memory_added.html", context)


@member
@require_GET
def memory_row(request: MemberRequest, memory_id: UUID) -> HttpResponse:
    """Show one memory, to read or (?edit=1) to edit."""
    found = verbs.one(request.membership.scope, memory_id)
    return _row(request, found, editing=bool(request.GET.get("edit")))


def memory_row_of(request: MemberRequest, found: Memory) -> HttpResponse:
    """Show one memory after an act on it: its row to scripts, else a page of its own."""
    return _row(request, found)


def _row(
    request: MemberRequest, found: Memory, *, status: int = 200, **context: Any
) -> HttpResponse:
    seen = verbs.mark_of(found.text)  # of the whole: what is shown is cut
    shown = {
        "memory": _dressed(request.membership.scope, [found])[0],
        "state": _state_shown(request),
        "seen": seen,
    }
    if request.htmx:
        return render(request, "memory/memory_row.html", shown | context, status=status)
    single = {"memories": [found], "single": True, "state": found.status, "seen": seen}
    return _page(request, single | context, status=status)


def _state_shown(request: MemberRequest) -> str:
    """Return which list the row stands in, as the page that asks says in its address."""
    current = request.htmx.current_url_abs_path or "" if request.htmx else ""
    return "trash" if "state=trash" in current else ""


@member
@require_POST
def memory_edit(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Correct a memory; a refused text comes back in its form with the reason."""
    text = request.POST.get("text", "")
    try:
        seen = request.POST.get("seen", "")
        changed = verbs.edit(request.membership.scope, memory=memory_id, text=text, seen=seen)
    except InvalidInput as error:
        found = verbs.one(request.membership.scope, memory_id)
        if found.status == Memory.Status.TRASH:
            raise  # its row has no form: what was typed stays in the one that is open
        refused = {"editing": True, "draft": text, "error": error.message}
        return _row(request, found, status=400, **refused)
    return _row(request, changed) if request.htmx else _back(request)


@member
@require_POST
def memory_delete(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Put a memory into the trash; under a reply, as the Undo of what was learnt from it."""
    reply = _reply(request)
    fresh = bool(
        reply and learnt_for_replies(request.membership.scope, [reply]).get(reply, {}).get("fresh")
    )
    gone = verbs.forget(request.membership.scope, memory=memory_id, restore=fresh)
    if reply and request.htmx:
        return _learnt(request, reply)
    return _row(request, gone) if request.htmx else _back(request)


@member
@require_POST
def memory_undo(request: MemberRequest, memory_id: UUID) -> HttpResponseBase:
    """Take back the last edit or forgetting."""
    reply = _reply(request)
    named = request.POST.get("version", "")
    version = whole_cursor(named) if named else None
    found = verbs.undo(request.membership.scope, memory=memory_id, version=version)
    if reply and request.htmx:
        return _learnt(request, reply)
    return _row(request, found) if request.htmx else _back(request)


def _reply(request: MemberRequest) -> UUID | None:
    given = request.POST.get("reply", "")
    try:
        return UUID(given) if given else None
    except ValueError as error:
        raise InvalidInput(_("That reply does not exist.")) from error


def _learnt(request: MemberRequest, reply: UUID) -> HttpResponse:
    learnt = learnt_for_replies(request.membership.scope, [reply]).get(reply)
    context = {"reply": {"id": reply}, "learnt": learnt, "tenant": request.tenant}
    return render(request, "chat/learnt.html", context)


@member
@require_POST
def memory_settings(request: MemberRequest) -> HttpResponseBase:
    """Change how memory works; refused values come back with a sentence at each."""
    switches = {
        "recall_on": request.POST.get("recall_on", "") != "",
        "auto_store_on": request.POST.get("auto_store_on", "") != "",
        "tools_on": request.POST.get("tools_on", "") != "",
    }
    numbers: dict[str, Any] = {name: request.POST.get(name, "") for name in BOUNDS}
    try:
        changed = change_preferences(request.membership.scope, **switches, **numbers)
    except InvalidPreferences as error:
        shown = preferences_of(request.membership.scope)
        for name, value in (switches | numbers).items():
            setattr(shown, name, value)  # as typed; the other settings of the page as they are kept
        refused = _settings(request, shown) | {"errors": error.errors}
        if request.htmx:
            return render(request, "memory/settings.html", refused, status=400)
        return _page(request, _list(request) | refused, status=400)
    if request.htmx:
        saved = _settings(request, changed) | {"saved": True}
        return render(request, "memory/settings.html", saved)
    messages.success(request, _("Saved."))
    return _back(request)


def _settings(request: MemberRequest, shown: MemorySettings) -> dict[str, Any]:
    """Return what the settings' partials want: the person's, and what the tenant's make of them."""
    tenant = tenant_settings_of(request.tenant.pk)
    return {
        "memory_settings": shown,
        "tenant_memory": tenant,
        "limits": limits_within(tenant),
    }


@member
@require_POST
def memory_retry(request: MemberRequest) -> HttpResponseBase:
    """Start again what was given up after several tries."""
    if retry_parked(request.membership.scope):
        messages.success(request, _("It is tried again."))
    return _back(request)


@member
@require_POST
def memory_empty_trash(request: MemberRequest) -> HttpResponseBase:
    """Erase for good what is in the trash; say how much that was."""
    erased = empty_now(request.membership.scope)
    sentence = ngettext(
        "%(count)d memory was erased for good.", "%(count)d memories were erased for good.", erased
    )
    messages.success(request, sentence % {"count": erased})
    return SeeOther(reverse("memory", args=[request.tenant.slug]) + "?state=trash")


@member
@require_http_methods(["GET", "POST"])
def memory_forget(request: MemberRequest) -> HttpResponse:
    """Show what would be erased; erase it for good once the phrase is typed."""
    scope = request.membership.scope
    what = request.POST.get("what", "memories")
    problem = ""
    if request.method == "POST":
        said = " ".join(clean_text(request.POST.get("confirm", "")).split()).casefold()
        if what not in {"memories", "everything"}:
            problem = _("Choose what to erase.")
        elif said != PHRASE:
            problem = _("Type the words exactly to confirm. Nothing was erased.")
        else:
            erased = purge(scope, what=cast("What", what))
            return render(request, "memory/forget.html", {"receipt": _rows(erased)})
    context = {
        "choices": [
            _choice(request.membership.scope, "memories"),
            _choice(request.membership.scope, "everything"),
        ],
        "chosen": what,
        "phrase": PHRASE,
        "error": problem,
    }
    return render(request, "memory/forget.html", context, status=400 if problem else 200)


def _choice(scope: Scope, what: What) -> dict[str, Any]:
    counted = preview(scope, what=what)
    total = sum(counted.get(kind, 0) for kind in ("memories", "sessions", "messages"))
    return {"value": what, "counts": _rows(counted), "total": total}


def _rows(counted: dict[str, int]) -> list[dict[str, Any]]:
    return [{"label": kind, "count": count} for kind, count in counted.items()]
