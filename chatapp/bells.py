"""Doorbells between processes: what happened to whom, so that every open page can show it.

A bell goes over the channel layer to each web process that has the person's pages open. It may be
lost; nothing is sent only by bell that can't be read again from Postgres or a journal.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from channels.layers import get_channel_layer

from accounts.scope import Scope
from accounts.signals import login_ended
from memory.loops import wait_for

logger = logging.getLogger(__name__)

EVERYBODY = "everybody"
SEND_SECONDS = 2.0


class Hears(Protocol):
    """The pages that are open in one event loop (chatapp.hub.Hub)."""

    loop: asyncio.AbstractEventLoop

    def hear(self, bell: Mapping[str, Any]) -> None: ...

    def publish(self, group: str, bell: Mapping[str, Any]) -> None: ...


# The event loops of this process that have pages open: in a web server, one.
hubs: list[Hears] = []


def group_of(scope: Scope) -> str:
    """Return the channel layer's group for one person's pages in one tenant."""
    return f"person.{scope.tenant_id}.{scope.user_id}"


def ring(group: str, kind: str, **fields: Any) -> None:
    """Tell the pages in this process and in all others; from a thread without an event loop."""
    bell = {"type": "bell", "kind": kind} | fields
    heard = False
    for hub in list(hubs):
        try:
            hub.loop.call_soon_threadsafe(hub.hear, bell)
            hub.loop.call_soon_threadsafe(hub.publish, group, bell)
            heard = True
        except RuntimeError:  # its loop has ended
            hubs.remove(hub)
    if not heard:
        _send(group, bell)


def _send(group: str, bell: dict[str, Any]) -> None:
    try:
        # In a loop that stays, and its connection with it: a loop for each bell costs 3 ms.
        wait_for(_sent(group, bell))
    except Exception as error:  # redis', the socket's or the timeout's
        # The pages read it from Postgres when they are next opened.
        logger.warning("a bell was lost: %s", type(error).__name__)


async def _sent(group: str, bell: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is not None:
        async with asyncio.timeout(SEND_SECONDS):
            await layer.group_send(group, bell)


def learnt(scope: Scope, reply_id: UUID, session_key: UUID | None) -> None:
    """Tell the person's pages that there is news of what was learnt from a reply (in a worker)."""
    session = str(session_key) if session_key else None
    ring(group_of(scope), "learnt", person=_person(scope), session=session, reply=str(reply_id))


def session_changed(scope: Scope, session_id: UUID) -> None:
    """Tell the person's sidebars that a session is new, renamed or has moved."""
    ring(group_of(scope), "session", person=_person(scope), session=str(session_id))


def session_gone(scope: Scope, session_id: UUID) -> None:
    """Tell the person's sidebars that a session is deleted; what runs in it ends."""
    ring(group_of(scope), "session_gone", person=_person(scope), session=str(session_id))


def erased(scope: Scope) -> None:
    """Tell the person's pages that every session is gone; what runs in them ends."""
    ring(group_of(scope), "erased", person=_person(scope))


def waiting(scope: Scope, session_id: UUID, message_id: UUID) -> None:
    """Tell the pages of a new question, and some process to answer it."""
    ring(
        group_of(scope),
        "waiting",
        person=_person(scope),
        session=str(session_id),
        message=str(message_id),
    )


def _person(scope: Scope) -> list[int]:
    return [scope.tenant_id, scope.user_id]


def end_sockets(
    *,
    user_id: int,
    tenant_id: int | None = None,
    session_key: str | None = None,
    renewed: str | None = None,
    **kwargs: Any,
) -> None:
    """Close the sockets of a login that is over, in every process."""
    ring(
        EVERYBODY,
        "login_ended",
        user=user_id,
        tenant=tenant_id,
        login=session_key,
        renewed=renewed,
    )


login_ended.connect(end_sockets, dispatch_uid="chatapp.bells.end_sockets")
