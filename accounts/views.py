"""Come in, go out, and be somebody: log in, sign up, log out, the theme, the way home."""

from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import first, throttle
from accounts.client import client_network
from accounts.door import TENANT_COOKIE, UserRequest, last_used, logged_in, memberships_of
from accounts.errors import AppError, InvalidInput, NotFound, TooMuch
from accounts.forms import LoginForm, SignUpForm, refuse
from accounts.identify import identify
from accounts.invite import look
from accounts.join import AddressTaken, new_person
from accounts.models import Invitation, User
from accounts.signals import end_login
from accounts.web import SeeOther, next_address

THEME_COOKIE = "theme"
YEAR = 60 * 60 * 24 * 365


def waiting(response: HttpResponse, error: AppError) -> HttpResponse:
    """Return the page, saying to programs as well when to try again."""
    if isinstance(error, TooMuch):
        response["Retry-After"] = str(error.retry_after)
    return response


@logged_in
@require_GET
def home(request: UserRequest) -> HttpResponseBase:
    """Lead to the tenant that was used last in this browser, or by this person, or their own."""
    found = last_used(memberships_of(request.user.pk), request.COOKIES.get(TENANT_COOKIE, ""))
    return HttpResponseRedirect(reverse("new_session", args=[found.tenant.slug]))


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def log_in(request: HttpRequest) -> HttpResponseBase:
    """Log in by address and password, and go on to where the person wanted to go."""
    wanted = next_address(request)
    if request.user.is_authenticated:
        return SeeOther(wanted or reverse("home"))
    form = LoginForm(request.POST or None)
    page = {"form": form, "next": wanted}
    if request.method == "GET":
        return render(request, "accounts/login.html", page)
    if not form.is_valid():
        return render(request, "accounts/login.html", page, status=400)
    try:
        user = identify(request, **form.cleaned_data)
    except (InvalidInput, TooMuch) as error:
        status = refuse(form, error)
        return waiting(render(request, "accounts/login.html", page, status=status), error)
    login(request, user)
    return SeeOther(wanted or reverse("home"))


@require_POST
def log_out(request: HttpRequest) -> HttpResponseBase:
    """End this login session, and have the browser forget what it kept of our pages."""
    user_id, session_key = request.user.pk, request.session.session_key
    logout(request)
    if user_id is not None and session_key:
        end_login(user_id=user_id, session_key=session_key)
    return forgetting(SeeOther(reverse("login")))


def forgetting(response: HttpResponse) -> HttpResponse:
    """Return the answer with the order to drop caches and storage, and which tenant was open."""
    response["Clear-Site-Data"] = '"cache", "storage"'
    response.delete_cookie(TENANT_COOKIE)
    return response


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_up(request: HttpRequest) -> HttpResponseBase:
    """Make an account with a personal tenant, and be logged in."""
    wanted = next_address(request)
    if request.user.is_authenticated:
        return SeeOther(wanted or reverse("home"))
    form = SignUpForm(request.POST or None)
    page = {"form": form, "next": wanted, "invitation": _invitation(wanted)}
    if request.method == "GET":
        return render(request, "accounts/signup.html", page)
    if not form.is_valid():
        return render(request, "accounts/signup.html", page, status=400)
    try:
        throttle.take(throttle.Try(throttle.SIGN_UP_NETWORK, client_network(request)))
        user = new_person(**form.cleaned_data)
    except (InvalidInput, TooMuch) as error:
        status = refuse(form, error, "email" if isinstance(error, AddressTaken) else None)
        return waiting(render(request, "accounts/signup.html", page, status=status), error)
    login(request, user)
    return SeeOther(wanted or reverse("home"))


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def first_operator(request: HttpRequest, token: str) -> HttpResponseBase:
    """Make the first operator, once: a new account, or the one of who is logged in."""
    here = request.user if isinstance(request.user, User) else None
    if not first.usable(token):
        return render(request, "accounts/first.html", {"state": "used"}, status=404)
    form = SignUpForm(request.POST or None)
    page = {"state": "ok", "form": None if here else form, "person": here}
    if request.method == "GET":
        return render(request, "accounts/first.html", page)
    try:
        if here:
            first.promote(token, user=here)
        elif form.is_valid():
            login(request, first.make_operator(token, **form.cleaned_data))
        else:
            return render(request, "accounts/first.html", page, status=400)
    except NotFound:
        return render(request, "accounts/first.html", {"state": "used"}, status=404)
    except InvalidInput as error:
        status = refuse(form, error, "email" if isinstance(error, AddressTaken) else None)
        return render(request, "accounts/first.html", page, status=status)
    return SeeOther(reverse("operator"))


@require_POST
def theme(request: HttpRequest) -> HttpResponseBase:
    """Keep the choice of theme, for the person and for this browser."""
    chosen = request.POST.get("theme", "")
    if chosen not in User.Theme.values:
        raise InvalidInput(_("There is no such theme."))
    if isinstance(request.user, User) and request.user.theme != chosen:
        request.user.theme = chosen
        request.user.save(update_fields=["theme"])
    scripted = bool(request.headers.get("HX-Request"))
    response: HttpResponse = (
        HttpResponse(status=204) if scripted else SeeOther(next_address(request, reverse("home")))
    )
    response.set_cookie(
        THEME_COOKIE, chosen, max_age=YEAR, samesite="Lax", secure=request.is_secure()
    )
    return response


def _invitation(address: str) -> Invitation | None:
    """Return the open invitation that the person came by, if their way leads to one."""
    try:
        match = resolve(address.partition("?")[0])
    except Resolver404:
        return None
    if match.url_name != "invite":
        return None
    found = look(str(match.kwargs["token"]))
    return found.invitation if found.state == "ok" else None
