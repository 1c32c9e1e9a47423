"""What every page has: errors as people read them, privacy in caches, the person's time zone."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from accounts.errors import AppError, TooMuch
from accounts.zones import zone_of

type Respond = Callable[[HttpRequest], HttpResponse]


def error_response(request: HttpRequest, error: AppError) -> HttpResponse:
    """Return the error as a page, a fragment for htmx, or JSON, whichever was asked for."""
    shown = {"code": error.code, "message": str(error.message), "status": error.http_status}
    if "application/json" in request.headers.get("Accept", ""):
        response: HttpResponse = JsonResponse({"error": shown}, status=error.http_status)
    elif request.headers.get("HX-Request"):
        response = drawn_alone("errors/fragment.html", shown, status=error.http_status)
        response["HX-Retarget"], response["HX-Reswap"] = "#notices", "beforeend"
    else:
        template = f"errors/{error.http_status}.html"
        if error.http_status in {400, 403, 404, 429}:
            response = render(request, template, shown, status=error.http_status)
        else:
            template = template if error.http_status == 503 else "errors/500.html"
            asked = request.method in {"GET", "HEAD"}
            shown |= {"again": request.get_full_path() if asked else "", "sent": not asked}
            response = drawn_alone(template, shown, status=error.http_status)
    if isinstance(error, TooMuch):
        response["Retry-After"] = str(error.retry_after)
    return response


def drawn_alone(template: str, context: dict[str, Any], *, status: int) -> HttpResponse:
    """Return a page that reads nothing of who asks: the database may be what went wrong."""
    return HttpResponse(render_to_string(template, context), status=status)


class HeadAsGet:
    """Answers HEAD as GET without the body, whatever methods a view names."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method != "HEAD":
            return self.get_response(request)
        request.method = "GET"
        response = self.get_response(request)
        request.method = "HEAD"
        response.content = b""  # Content-Length stays what GET's is.
        return response


class ReadableCookies:
    """Drops a cookie that no store can look up: a quoted one may hold a NUL."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        for name in [name for name, value in request.COOKIES.items() if "\0" in value]:
            del request.COOKIES[name]
        return self.get_response(request)


class AppErrors:
    """Turns the errors of accounts.errors into answers; other exceptions stay Django's."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the answer for an AppError."""
        return error_response(request, exception) if isinstance(exception, AppError) else None


class PrivatePages:
    """Keeps pages of people out of every cache."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        add_never_cache_headers(response)
        response["Cache-Control"] = "no-store"
        response["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
        return response


class PersonsZone:
    """Shows times in the zone of the person who is logged in."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(zone_of(getattr(request.user, "time_zone", "UTC"))):
            return self.get_response(request)
