"""Make the first operator by a one-time link, so that nobody has to edit a database."""

from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import NotFound
from accounts.join import new_person
from accounts.models import OperatorLink, User
from accounts.operators import one_at_a_time, operator_exists
from accounts.tokens import new_token, token_hash

LIFE = timedelta(hours=24)


@transaction.atomic
def new_link() -> str | None:
    """Return the token of a new link that replaces any before; None if there is an operator."""
    one_at_a_time()
    if operator_exists():
        return None
    OperatorLink.objects.filter(used_at=None).delete()
    token = new_token()
    OperatorLink.objects.create(token_hash=token_hash(token), expires_at=timezone.now() + LIFE)
    return token


def usable(token: str) -> bool:
    """Tell whether the link can make an operator now."""
    return not operator_exists() and _open(token).exists()


def make_operator(
    token: str, *, email: str, password: str, name: str, time_zone: str = "UTC"
) -> User:
    """Return the new first operator, with a personal tenant; NotFound if the link is used up."""
    return _use(
        token,
        lambda: new_person(
            email=email, password=password, name=name, time_zone=time_zone, is_operator=True
        ),
    )


def promote(token: str, *, user: User) -> User:
    """Return the person, who had an account already, as first operator; NotFound as above."""

    def become() -> User:
        user.is_operator = True
        user.save(update_fields=["is_operator"])
        return user

    return _use(token, become)


@transaction.atomic
def _use(token: str, make: Callable[[], User]) -> User:
    one_at_a_time()
    if operator_exists() or not _open(token).update(used_at=timezone.now()):
        raise NotFound(_("This link can't be used any more."))
    return make()


def _open(token: str) -> QuerySet[OperatorLink]:
    return OperatorLink.objects.filter(
        token_hash=token_hash(token), used_at=None, expires_at__gt=timezone.now()
    )
