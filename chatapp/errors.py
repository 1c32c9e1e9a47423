"""The pages for what went wrong outside our own errors: Django's handlers, in one look."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from accounts.errors import AppError, InvalidInput, NotFound
from chatapp.middleware import error_response
from chatapp.steps import Away


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
    """Answer after a mistake of ours, which is in the log, or while the database is away.

    The answer needs neither the database nor anything else that may be what went wrong.
    """
    if not isinstance(sys.exception(), OperationalError | InterfaceError):
        return error_response(request, AppError())
    response = error_response(request, Away())
    response["Retry-After"] = "5"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form whose token is missing or old: most often the login was renewed elsewhere."""
    if "application/json" in request.headers.get("Accept", "") or request.headers.get("HX-Request"):
        return error_response(
            request,
            Forbidden(_("This page is out of date. Reload it and try again."), code="csrf"),
        )
    return render(request, "403_csrf.html", status=403)
