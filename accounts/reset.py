"""Send somebody the link by which a forgotten password is set anew."""

from django.contrib.auth.tokens import default_token_generator
from django.template.loader import render_to_string
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts.mail import Letter, send_later
from accounts.models import User
from accounts.text import one_line


def send_reset_link(email: str, *, site: str, secure: bool) -> None:
    """Send the link if somebody who may log in has this address; take as long if nobody does."""
    user = User.objects.with_email(email)
    known = user is not None and user.is_active
    message = _message(user or User(pk=0, email=email), site, secure)
    if known:
        send_later(message)


def _message(user: User, site: str, secure: bool) -> Letter:
    context = {
        "user": user,
        "uid": urlsafe_base64_encode(force_bytes(user.pk)),
        "token": default_token_generator.make_token(user),
        "protocol": "https" if secure else "http",
        "domain": site,
    }
    return Letter(
        subject=one_line(render_to_string("accounts/password_reset_subject.txt", context)),
        body=render_to_string("accounts/password_reset_email.txt", context),
        to=[user.email],
    )
