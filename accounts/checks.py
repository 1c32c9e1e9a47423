"""`manage.py check --database default` tells whether the database's wall stands."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register


@register(Tags.database)
def the_wall_stands(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Return an error for each fault of the role that the application logs in with."""
    from accounts.wall import wall_faults

    if not databases or settings.AS_OWNER:
        return []
    return [Error(fault, id="accounts.E001") for fault in wall_faults()]
