"""A session's exchanges as memory is told of them."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from accounts.scope import Scope, entered
from chatapp.models import ChatSession, Message
from memory.exchange import Exchange, SessionLabel, Speaker, Utterance

TAIL = 6

_SPEAKERS = {
    Message.Role.USER.value: Speaker.PERSON,
    Message.Role.ASSISTANT.value: Speaker.ASSISTANT,
}


def read_exchange(scope: Scope, reply_id: UUID) -> Exchange | None:
    """Return the exchange that ends in this reply, with what was said just before.

    None if it is gone, or if its reply is still being written.
    """
    with entered(scope):
        messages = Message.objects.within(scope)
        reply = messages.replies().filter(pk=reply_id).select_related("question").first()
        if reply is None or reply.question is None:
            return None
        if reply.status in {Message.Status.WAITING, Message.Status.STREAMING}:
            return None
        before = (
            messages.filter(session_id=reply.session_id, position__lt=reply.question.position)
            .filter(role__in=_SPEAKERS)
            .exclude(Q(text=""))
            .order_by("-position")[:TAIL]
        )
        tail = [_utterance(message) for message in reversed(before)]
    return Exchange(_utterance(reply.question), _utterance(reply), reply.session_id, tail)


def read_sessions(scope: Scope, keys: Sequence[UUID]) -> dict[UUID, SessionLabel]:
    """Return the title of each of these sessions that is still there."""
    with entered(scope):
        kept = ChatSession.objects.within(scope).filter(pk__in=keys).values_list("pk", "title")
        return {pk: SessionLabel(pk, title) for pk, title in kept}


def _utterance(message: Message) -> Utterance:
    return Utterance(message.pk, message.text, message.created_at, _SPEAKERS[message.role])
