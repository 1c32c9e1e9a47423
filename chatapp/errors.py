"""The pages for what went wrong outside our own errors: Django's handlers, in one look."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from accounts.errors import AppError, InvalidInput, NotFound
from chatapp.middleware import error_response


class Forbidden(AppError):
    """The request was understood, and refused."""

    code = "forbidden"
    http_status = 403
    message = _("This was refused.")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what could not be read."""
    return error_response(request, InvalidInput())


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what is not allowed."""
    return error_response(request, Forbidden())


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an address that there is not, with the words for one that is not theirs."""
    return error_response(request, NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer after a mistake of ours, which is in the log; the page needs nothing else to work."""
    if "application/json" in request.headers.get("Accept", "") or request.headers.get("HX-Request"):
        return error_response(request, AppError())
    return render(request, "errors/500.html", status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form whose token is missing or old: most often the login was renewed elsewhere."""
    if "application/json" in request.headers.get("Accept", "") or request.headers.get("HX-Request"):
        return error_response(
            request,
            Forbidden(_("This page is out of date. Reload it and try again."), code="csrf"),
        )
    return render(request, "403_csrf.html", status=403)
