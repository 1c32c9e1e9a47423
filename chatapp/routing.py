"""The websocket addresses."""

from typing import Any

from channels.routing import URLRouter
from django.urls import path, re_path

from chatapp.consumers import NoSocket, SessionSocket, SidebarSocket
from chatapp.origin import SameOrigin
from chatapp.outbox import unwritten

# Django's types of path() know views only, Channels' types of an application no plain dict.
_session: Any = SessionSocket.as_asgi()
_sidebar: Any = SidebarSocket.as_asgi()
_none: Any = NoSocket.as_asgi()

websocket_urlpatterns: list[Any] = [
    path("ws/t/<slug:tenant>/sessions/<uuid:session_id>/", _session),
    path("ws/t/<slug:tenant>/", _sidebar),
    re_path(r"", _none),
]

_routes: Any = URLRouter(websocket_urlpatterns)


async def _measured(scope: Any, receive: Any, send: Any) -> None:
    """Tell the socket how to ask the server what it has not yet written."""
    await _routes(dict(scope, unwritten=unwritten(send)), receive, send)


sockets = SameOrigin(_measured)
