"""Small things that several pages need of HTTP."""

from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput


class SeeOther(HttpResponseRedirect):
    """After a form was accepted: fetch this page, by GET whatever was done before."""

    status_code = 303


def whole_cursor(value: str) -> int:
    """Return the place in a list that a cursor names, 0 for its beginning; or InvalidInput."""
    if value and not (value.isascii() and value.isdigit() and len(value) < 19):
        raise InvalidInput(_("That page of the list does not exist."))
    return int(value or 0)


def next_address(request: HttpRequest, default: str = "") -> str:
    """Return where the person wanted to go, if it is a page of ours; else the default."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours else default
