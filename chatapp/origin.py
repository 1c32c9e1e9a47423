"""The outermost check of a websocket: the page that opens it must be one of ours."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class SameOrigin:
    """Lets sockets in whose Origin is the host that they ask for, or a trusted one.

    A browser sends cookies of a host to every port of it, so the port counts too (Channels'
    AllowedHostsOriginValidator passes any). A missing Origin, "null" and nonsense are refused.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", []))
        if is_ours(
            headers.get(b"origin", b"").decode("latin-1"),
            headers.get(b"host", b"").decode("latin-1"),
        ):
            await self.application(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": 4403})


def is_ours(origin: str, host: str) -> bool:
    """Tell whether a page of this origin may speak to this host."""
    try:
        parts = urlsplit(origin)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return False
    if _trusted(origin.lower(), parts.scheme, parts.hostname):
        return True
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        return False
    try:
        asked = urlsplit(f"{parts.scheme}://{host}")
        asked_port = asked.port or _PORTS[parts.scheme]
    except ValueError:
        return False
    return asked.hostname == parts.hostname and asked_port == port


def _trusted(origin: str, scheme: str, hostname: str) -> bool:
    for trusted in settings.CSRF_TRUSTED_ORIGINS:
        if trusted.lower() == origin:
            return True
        wanted_scheme, _, pattern = trusted.lower().partition("://")
        if pattern.startswith("*.") and scheme == wanted_scheme and hostname.endswith(pattern[1:]):
            return True
    return False
