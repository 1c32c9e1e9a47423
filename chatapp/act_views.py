"""What the model did by itself for a reply: take it back, or do it after all."""

from uuid import UUID

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.door import MemberRequest, member
from accounts.web import SeeOther
from chatapp import sessions
from memory.tools import shown_acts, undo_act


@member
@require_POST
def reply_act(request: MemberRequest, reply_id: UUID, number: int) -> HttpResponseBase:
    """Take back one of a reply's acts, or do it again (`redo`); a script gets them all.

    The form says which, since another page may show the reply as it was before.
    """
    scope = request.membership.scope
    reply = sessions.reply_of(scope, reply_id)
    calls = reply.tool_calls or []
    undo_act(scope, calls, number=number, redo=bool(request.POST.get("redo")))
    if not request.htmx:
        return SeeOther(reverse("session", args=[request.tenant.slug, reply.session_id]))
    acts = shown_acts(scope, {reply_id: calls}).get(reply_id, [])
    context = {"reply": {"id": reply_id}, "acts": acts, "tenant": request.tenant}
    return render(request, "chat/acts.html", context)
