"""Change the address by which somebody logs in: asked for, proved by a link, told to the old."""

from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db import IntegrityError, transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from accounts.emails import email_address
from accounts.errors import InvalidInput, NotFound
from accounts.join import AddressTaken
from accounts.mail import Letter, send_later
from accounts.models import User
from accounts.text import one_line

LIFE = 60 * 60 * 4  # seconds; as long as a link to a new password
_SALT = "accounts.address"


@dataclass(frozen=True, slots=True)
class Site:
    """Where the links in a mail lead."""

    host: str
    secure: bool

    def url(self, path: str) -> str:
        """Return the whole address of a page here."""
        return f"{'https' if self.secure else 'http'}://{self.host}{path}"


def ask(user: User, *, email: str, site: Site) -> str:
    """Send the link that proves the new address; return that address as it would be stored.

    Nothing is changed yet. Raises InvalidInput for what is no address or is theirs already,
    AddressTaken for one that somebody has.
    """
    email = email_address(email)
    if email == user.email:
        raise InvalidInput(_("That is your address already."))
    _refuse_taken(user, email)
    claim = {"user": user.pk, "email": email, "state": _state(user)}
    link = site.url(reverse("email_confirm", args=[signing.dumps(claim, salt=_SALT)]))
    _send("accounts/email_change", email, {"user": user, "link": link, "site": site.host})
    return email


def claimed(token: str, *, user: User) -> str:
    """Return the address that the link proves; NotFound unless it is theirs and still holds.

    It holds for four hours, until the address or the password is changed.
    """
    try:
        claim: dict[str, Any] = signing.loads(token, salt=_SALT, max_age=LIFE)
    except signing.BadSignature:
        raise NotFound from None
    if claim["user"] != user.pk or not constant_time_compare(claim["state"], _state(user)):
        raise NotFound
    return str(claim["email"])


def change(token: str, *, user: User, site: Site) -> None:
    """Let the person log in by the address that the link proves, and tell the old address.

    Raises NotFound as `claimed`, and AddressTaken for an address that somebody has got meanwhile.
    """
    with transaction.atomic():
        kept = User.objects.select_for_update().get(pk=user.pk)
        before, email = kept.email, claimed(token, user=kept)
        kept.email = email
        try:
            with transaction.atomic():
                kept.save(update_fields=["email"])
        except IntegrityError as error:
            if "user_once_per_email" not in str(error):
                raise
            raise _taken() from None
    user.email = email
    _send("accounts/email_changed", before, {"user": user, "site": site.host})


def _state(user: User) -> str:
    """Return what the link holds for: this address, and this password."""
    return salted_hmac(_SALT, f"{user.email}\0{user.password}", algorithm="sha256").hexdigest()


def _refuse_taken(user: User, email: str) -> None:
    other = User.objects.with_email(email)
    if other is not None and other.pk != user.pk:
        raise _taken()


def _taken() -> AddressTaken:
    return AddressTaken(_("There is already an account with this address."))


def _send(template: str, to: str, context: dict[str, Any]) -> None:
    subject = one_line(render_to_string(f"{template}_subject.txt", context))
    send_later(Letter(subject, render_to_string(f"{template}_email.txt", context), to=[to]))
