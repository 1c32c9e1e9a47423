"""Small things that several pages need of HTTP."""

from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme


class SeeOther(HttpResponseRedirect):
    """After a form was accepted: fetch this page, by GET whatever was done before."""

    status_code = 303


def next_address(request: HttpRequest, default: str = "") -> str:
    """Return where the person wanted to go, if it is a page of ours; else the default."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours else default
