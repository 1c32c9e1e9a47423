"""A person's own account: name, time zone, theme, where they belong, and the end of it."""

from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import address
from accounts.client import client_ip
from accounts.door import UserRequest, logged_in, memberships_of
from accounts.erase import counts_of, erase_account, refusal, scopes_of
from accounts.errors import InvalidInput, NotFound, TooMuch
from accounts.forms import AccountForm, NewAddressForm, PasswordForm, refuse
from accounts.identify import confirm_password
from accounts.join import change_person
from accounts.throttle import NEW_ADDRESS, RESET_ACCOUNT, Try, take
from accounts.views import THEME_COOKIE, YEAR, forgetting, waiting
from accounts.web import SeeOther


@logged_in
@require_http_methods(["GET", "POST"])
def account(request: UserRequest) -> HttpResponseBase:
    """Show and change how the person is called, where they live, and how pages look."""
    form = AccountForm(request.POST or None, person=request.user)
    page = {"form": form, "memberships": memberships_of(request.user.pk)}
    if request.method == "GET":
        return render(request, "accounts/account.html", page)
    if not form.is_valid():
        return render(request, "accounts/account.html", page, status=400)
    change_person(request.user, **form.cleaned_data)
    messages.success(request, _("Saved."))
    response = SeeOther(reverse("account"))
    response.set_cookie(
        THEME_COOKIE,
        form.cleaned_data["theme"],
        max_age=YEAR,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return response


@sensitive_post_parameters("password")
@logged_in
@require_http_methods(["GET", "POST"])
def email_change(request: UserRequest) -> HttpResponseBase:
    """Send a link to the address that the person wants to log in by, if the password is right."""
    template = "accounts/email_change.html"
    form = NewAddressForm(request.POST or None)
    if request.method == "GET":
        return render(request, template, {"form": form})
    if not form.is_valid():
        return render(request, template, {"form": form}, status=400)
    field = "password"
    try:
        confirm_password(request.user, form.cleaned_data["password"])
        field = "email"
        wanted = form.cleaned_data["email"]
        take(Try(NEW_ADDRESS, str(request.user.pk)), Try(RESET_ACCOUNT, wanted.lower()))
        address.ask(request.user, email=wanted, site=_site(request))
    except (InvalidInput, TooMuch) as error:
        status = refuse(form, error, field)
        return waiting(render(request, template, {"form": form}, status=status), error)
    messages.success(
        request,
        _("A link is on its way to %(email)s. Open it in this browser.") % {"email": wanted},
    )
    return SeeOther(reverse("account"))


def _site(request: HttpRequest) -> address.Site:
    return address.Site(request.get_host(), request.is_secure())


@logged_in
@require_http_methods(["GET", "POST"])
def email_confirm(request: UserRequest, token: str) -> HttpResponseBase:
    """Show the address that the link proves; then log in by it from now on."""
    template = "accounts/email_confirm.html"
    try:
        email = address.claimed(token, user=request.user)
        if request.method == "POST":
            address.change(token, user=request.user, site=_site(request))
    except NotFound:
        return render(request, template, {"email": ""}, status=404)
    except InvalidInput as error:
        return render(request, template, {"email": email, "error": str(error)}, status=400)
    if request.method == "GET":
        return render(request, template, {"email": email})
    messages.success(request, _("You log in by %(email)s from now on.") % {"email": email})
    return SeeOther(reverse("account"))


@sensitive_post_parameters("password")
@logged_in
@require_http_methods(["GET", "POST"])
def account_delete(request: UserRequest) -> HttpResponseBase:
    """Show what would go; then, with the address typed and the password, erase all of it."""
    user = request.user
    form = PasswordForm(request.POST or None)
    page = {
        "form": form,
        "phrase": user.email,
        "counts": counts_of(scopes_of(user.pk)),
        "error": refusal(user.pk),
    }
    template = "accounts/account_delete.html"
    if request.method == "GET":
        return render(request, template, page)
    if request.POST.get("confirm", "").strip().casefold() != user.email.casefold():
        wrong = _("Type the address exactly to confirm. Nothing was deleted.")
        return render(request, template, page | {"error": page["error"] or wrong}, status=400)
    if not form.is_valid():
        return render(request, template, page, status=400)
    try:
        confirm_password(user, form.cleaned_data["password"])
    except (InvalidInput, TooMuch) as error:
        status = refuse(form, error, "password")
        return waiting(render(request, template, page, status=status), error)
    try:
        erase_account(user, ip=client_ip(request))
    except InvalidInput as error:
        return render(request, template, page | {"error": str(error)}, status=400)
    logout(request)
    messages.success(request, _("Your account and everything in it is deleted."))
    return forgetting(SeeOther(reverse("login")))
