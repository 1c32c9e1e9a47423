"""E-mail addresses as they are stored: plain ASCII, so that two that look alike are alike."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput

EMAIL_CHARS = 254


def email_address(text: str) -> str:
    """Return the address with its domain in lower case and ASCII (xn--); InvalidInput otherwise.

    Letters outside ASCII before the @ are refused: with a dotless i, two accounts
    would look like one.
    """
    local, at, domain = text.strip().rpartition("@")
    try:
        address = f"{local}{at}{domain.encode('idna').decode().lower()}"
        validate_email(address)
    except (UnicodeError, ValidationError):
        address = ""
    if not address or not address.isascii() or len(address) > EMAIL_CHARS:
        raise InvalidInput(_("That is no e-mail address that we can use."))
    return address
