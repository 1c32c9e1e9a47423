"""Forgotten and changed passwords."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from accounts.client import client_network
from accounts.door import UserRequest, logged_in
from accounts.errors import InvalidInput, TooMuch
from accounts.forms import AddressForm, ChangePasswordForm, NewPasswordForm, refuse
from accounts.identify import confirm_password
from accounts.reset import send_reset_link
from accounts.signals import end_login
from accounts.throttle import CONFIRM, RESET_ACCOUNT, RESET_NETWORK, Try, forget, take
from accounts.views import waiting
from accounts.web import SeeOther


@require_http_methods(["GET", "POST"])
def password_reset(request: HttpRequest) -> HttpResponseBase:
    """Send the link to whoever has the address; say the same whether anybody does."""
    form = AddressForm(request.POST or None)
    template = "accounts/password_reset.html"
    if request.method == "GET":
        return render(request, template, {"form": form})
    if not form.is_valid():
        return render(request, template, {"form": form}, status=400)
    email = form.cleaned_data["email"]
    try:
        take(Try(RESET_ACCOUNT, email.lower()), Try(RESET_NETWORK, client_network(request)))
    except TooMuch as error:
        status = refuse(form, error)
        return waiting(render(request, template, {"form": form}, status=status), error)
    send_reset_link(email, site=request.get_host(), secure=request.is_secure())
    return SeeOther(reverse("password_reset_done"))


@require_GET
def password_reset_done(request: HttpRequest) -> HttpResponseBase:
    """Say that a link is on its way, if there is an account."""
    return render(request, "accounts/password_reset_done.html")


class PasswordResetConfirm(PasswordResetConfirmView):
    """Sets a new password for who holds the link, and ends every login of theirs."""

    template_name = "accounts/password_reset_confirm.html"
    form_class = NewPasswordForm

    def get_success_url(self) -> str:
        return reverse("password_reset_complete")

    def form_valid(self, form: Any) -> HttpResponse:
        super().form_valid(form)
        forget(Try(CONFIRM, str(form.user.pk)))
        end_login(user_id=form.user.pk)
        return SeeOther(self.get_success_url())

    def form_invalid(self, form: Any) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=400)


@require_GET
def password_reset_complete(request: HttpRequest) -> HttpResponseBase:
    """Say that the new password holds."""
    return render(request, "accounts/password_reset_complete.html")


@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@logged_in
@require_http_methods(["GET", "POST"])
def password_change(request: UserRequest) -> HttpResponseBase:
    """Change the password; this login session goes on, all others of the person end."""
    template = "accounts/password_change.html"
    form = ChangePasswordForm(request.user, request.POST or None)
    if request.method == "GET":
        return render(request, template, {"form": form})
    if not form.is_valid():
        return render(request, template, {"form": form}, status=400)
    try:
        confirm_password(request.user, form.cleaned_data["old_password"])
    except (InvalidInput, TooMuch) as error:
        status = refuse(form, error, "old_password")
        return waiting(render(request, template, {"form": form}, status=status), error)
    user = form.save()
    before = request.session.session_key
    update_session_auth_hash(request, user)  # which also gives this login session another key
    end_login(user_id=user.pk, renewed=before)
    messages.success(request, _("Your password is changed. Other browsers are logged out."))
    return SeeOther(reverse("account"))
