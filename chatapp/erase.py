"""Erase a person's sessions and messages for good, also those that are being written."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from django.db import connection, transaction

from accounts.scope import Scope, entered
from chatapp import bells, journal
from chatapp.models import ChatSession, Message, ReplyTicket


def preview_sessions(scope: Scope) -> dict[str, int]:
    """Return how many sessions and messages `erase_sessions` would erase."""
    with entered(scope):
        return {
            "sessions": ChatSession.objects.within(scope).count(),
            "messages": Message.objects.within(scope).count(),
        }


def erase_sessions(scope: Scope) -> dict[str, int]:
    """Erase all sessions and messages of the scope; return how many there were.

    What is being written ends, and finds no row to store itself in. After the commit the journals
    in Redis go and the open pages are told.
    """
    owner = [scope.tenant_id, scope.user_id]
    with entered(scope), connection.cursor() as cursor:
        # The sessions' rows first, as everywhere else, so that nothing is added meanwhile.
        cursor.execute(
            "select id from chatapp_chatsession where tenant_id = %s and user_id = %s"
            " order by id for update",
            owner,
        )
        sessions = cursor.rowcount
        tickets = ReplyTicket.objects.filter(tenant_id=scope.tenant_id, user_id=scope.user_id)
        running = list(tickets.values_list("reply_id", flat=True))
        tickets.delete()
        cursor.execute("delete from chatapp_message where tenant_id = %s and user_id = %s", owner)
        messages = cursor.rowcount
        cursor.execute(
            "delete from chatapp_chatsession where tenant_id = %s and user_id = %s", owner
        )
        transaction.on_commit(partial(_after, scope, running), robust=True)
    return {"sessions": sessions, "messages": messages}


def _after(scope: Scope, running: Sequence[UUID]) -> None:
    bells.erased(scope)
    journal.forget(running)
