"""Which messages must never be remembered again: an HMAC of their ids, never of their words."""

import hashlib
import hmac
from collections.abc import Iterable
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.scope import Scope
from memory.models import Tombstone


def marks_of(source: UUID) -> list[str]:
    """Return the message's marks: by the key in force first, then by the older ones."""
    return [_mark(source, key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def _mark(source: UUID, key: str) -> str:
    return hmac.digest(f"memory.tombstone {key}".encode(), source.bytes, hashlib.sha256).hex()


def bar(scope: Scope, sources: Iterable[UUID]) -> int:
    """Let nothing come back from these messages; return how many. Inside the caller's scope.

    A message that is barred already stays so, once.
    """
    marks = [_mark(source, settings.SECRET_KEY) for source in set(sources)]
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into memory_tombstone (tenant_id, user_id, mark, at)"
            " select %s, %s, mark, %s from unnest(%s::text[]) as given (mark)"
            " on conflict (tenant_id, user_id, mark) do nothing",
            [scope.tenant_id, scope.user_id, timezone.now(), marks],
        )
    return len(marks)


def barred(scope: Scope, source: UUID) -> bool:
    """Tell whether nothing may be remembered from this message. Inside the caller's scope."""
    return Tombstone.objects.within(scope).filter(mark__in=marks_of(source)).exists()
