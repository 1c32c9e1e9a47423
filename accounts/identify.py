"""Find out who somebody is by what they know, not too often, and telling strangers nothing."""

from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.client import client_network
from accounts.errors import InvalidInput
from accounts.models import User
from accounts.throttle import CONFIRM, LOGIN_ACCOUNT, LOGIN_NETWORK, Try, forget, take


def identify(request: HttpRequest, *, email: str, password: str) -> User:
    """Return the person with this address and password.

    InvalidInput, with the same words and after the same work, for an unknown address, a wrong
    password and a disabled account; TooMuch after too many tries.
    """
    network = client_network(request)
    account = Try(LOGIN_ACCOUNT, f"{email.strip().lower()}\0{network}\0{_kept_hash(email)}")
    taken = take(account, Try(LOGIN_NETWORK, network))
    user = authenticate(request, username=email, password=password)
    if not isinstance(user, User):
        raise InvalidInput(
            _("There is no account with this address and password."), code="unknown_login"
        )
    taken.give_back()
    forget(account)
    return user


def _kept_hash(email: str) -> str:
    """Return what a login is checked against: with a new password, counting begins anew."""
    user = User.objects.with_email(email)
    return user.password if user else ""


def confirm_password(user: User, password: str) -> None:
    """Let a person go on who knows their password; InvalidInput or TooMuch otherwise.

    A stolen login session must not become a place to guess the password in.
    """
    tried = Try(CONFIRM, str(user.pk))
    take(tried)
    if not user.check_password(password):
        raise InvalidInput(_("That is not your password."), code="wrong_password")
    forget(tried)
