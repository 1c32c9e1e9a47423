"""What people fill in; each field is cleaned at this edge."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.password_validation import (
    validate_password,
)
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.emails import EMAIL_CHARS, email_address
from accounts.errors import AppError, InvalidInput
from accounts.join import NAME_CHARS, clean_name
from accounts.models import User
from accounts.zones import known_zone, zone_names

# Hashing costs the more the longer the password is; nobody's is longer than this.
PASSWORD_CHARS = 1_000


def refuse(form: forms.BaseForm, error: AppError, field: str | None = None) -> int:
    """Show the error in the form; return the status that the page has then."""
    form.add_error(field, str(error))
    return error.http_status


class EmailField(forms.CharField):
    """An address in the form in which it is stored."""

    widget = forms.EmailInput(attrs={"autocomplete": "email"})

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("label", _("E-mail address"))
        super().__init__(max_length=EMAIL_CHARS, **kwargs)

    def clean(self, value: Any) -> str:
        try:
            return email_address(super().clean(value))
        except InvalidInput as error:
            raise ValidationError(str(error)) from error


class NameField(forms.CharField):
    """A name on one line that shows something."""

    widget = forms.TextInput(attrs={"autocomplete": "name"})

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("label", _("Your name"))
        super().__init__(max_length=NAME_CHARS, **kwargs)

    def clean(self, value: Any) -> str:
        try:
            return clean_name(super().clean(value))
        except InvalidInput as error:
            raise ValidationError(str(error)) from error


class PasswordField(forms.CharField):
    """A password, kept exactly as it was typed."""

    def __init__(self, *, new: bool = False, **kwargs: Any) -> None:
        kwargs.setdefault("label", _("Password"))
        kind = "new-password" if new else "current-password"
        widget = forms.PasswordInput(attrs={"autocomplete": kind})
        super().__init__(strip=False, max_length=PASSWORD_CHARS, widget=widget, **kwargs)


class LoginForm(forms.Form):
    # Any text may be tried; what is no address is simply unknown.
    email = forms.CharField(
        label=_("E-mail address"),
        max_length=EMAIL_CHARS,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = PasswordField()


class SignUpForm(forms.Form):
    email = EmailField()
    name = NameField()
    password = PasswordField(new=True, help_text=_("At least 10 characters."))
    time_zone = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def clean_time_zone(self) -> str:
        return known_zone(self.cleaned_data["time_zone"])

    def clean(self) -> None:
        super().clean()
        password = self.cleaned_data.get("password")
        if password:
            user = User(
                email=self.cleaned_data.get("email", ""), name=self.cleaned_data.get("name", "")
            )
            try:
                validate_password(password, user)
            except ValidationError as error:
                self.add_error("password", error)


class AddressForm(forms.Form):
    email = EmailField()


class NewPasswordForm(SetPasswordForm[User]):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _bound_length(self)


class ChangePasswordForm(PasswordChangeForm):
    """The old password is asked by the view, which counts the tries."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _bound_length(self)

    def clean_old_password(self) -> str:
        return str(self.cleaned_data["old_password"])


def _bound_length(form: forms.BaseForm) -> None:
    for field in form.fields.values():
        if isinstance(field, forms.CharField):
            field.validators.append(_short_enough)
    form.fields["new_password1"].help_text = _("At least 10 characters.")


def _short_enough(password: str) -> None:
    if len(password) > PASSWORD_CHARS:
        raise ValidationError(_("That is too long."))


class AccountForm(forms.Form):
    name = NameField()
    time_zone = forms.ChoiceField(label=_("Time zone"))
    theme = forms.ChoiceField(label=_("Theme"), choices=User.Theme.choices)

    def __init__(self, data: Any, *, person: User) -> None:
        kept = {"name": person.name, "time_zone": person.time_zone, "theme": person.theme}
        super().__init__(data, initial=kept)
        zone = self.fields["time_zone"]
        assert isinstance(zone, forms.ChoiceField)  # noqa: S101 - tells mypy what it is
        names = sorted({*zone_names(), person.time_zone})
        zone.choices = [(name, name.replace("_", " ")) for name in names]


class PasswordForm(forms.Form):
    password = PasswordField(label=_("Your password"))


class NewAddressForm(forms.Form):
    email = EmailField(label=_("New e-mail address"))
    password = PasswordField(label=_("Your password"))


class TenantForm(forms.Form):
    name = NameField(
        label=_("Name of the space"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
