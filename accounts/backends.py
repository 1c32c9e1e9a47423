"""Log in by e-mail, in any case of its letters."""

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest

from accounts.models import User


class EmailBackend(BaseBackend):
    """Knows people by address and password; spends the same time on unknown addresses."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        if username is None or password is None:
            return None
        user = User.objects.with_email(username)
        if user is None:
            User().set_password(password)  # the work of a check, so that time tells nothing
            return None
        return user if user.check_password(password) and user.is_active else None

    def get_user(self, user_id: int) -> User | None:
        return User.objects.filter(pk=user_id, is_active=True).first()
