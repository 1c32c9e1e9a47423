"""Where a request comes from."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_ip(request: HttpRequest) -> str | None:
    """Return the address of the browser, or None where there is none to be known.

    Each of the TRUSTED_PROXIES in front of us adds the address that it saw to the end of
    X-Forwarded-For; what stands further left was sent by the browser and means nothing.
    """
    seen = request.META.get("REMOTE_ADDR") or ""
    proxies = settings.TRUSTED_PROXIES
    if proxies:
        chain = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
        seen = chain[-proxies] if len(chain) >= proxies else seen
    try:
        return str(ipaddress.ip_address(seen))
    except ValueError:
        return None


def client_network(request: HttpRequest) -> str:
    """Return what tries are counted by: the address, or an IPv6 address's /64, one household's."""
    ip = client_ip(request)
    if ip is None:
        return "unknown"
    address = ipaddress.ip_address(ip)
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return ip
