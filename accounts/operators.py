"""Who runs the installation: there is always somebody, once there has been."""

from django.db import connection

from accounts.models import User


def operator_exists() -> bool:
    """Tell whether somebody who can log in runs the installation."""
    return User.objects.filter(is_operator=True, is_active=True).exists()


def only_operator(user_id: int) -> bool:
    """Tell whether this person runs the installation and nobody else who can log in does."""
    operators = User.objects.filter(is_operator=True, is_active=True)
    return list(operators.values_list("pk", flat=True)[:2]) == [user_id]


def one_at_a_time() -> None:
    """Let nobody else make or lose an operator until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(hashtext('recollect.operators'))")
