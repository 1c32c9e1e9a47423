"""Which messages must never be remembered again: an HMAC of their ids, never of their words."""

import hashlib
import hmac
from collections.abc import Iterable
from uuid import UUID

from django.conf import settings

from accounts.scope import Scope
from memory.models import Tombstone


def marks_of(source: UUID) -> list[str]:
    """Return the message's marks: by the key in force first, then by the older ones."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [
        hmac.new(f"memory.tombstone {key}".encode(), source.bytes, hashlib.sha256).hexdigest()
        for key in keys
    ]


def bar(scope: Scope, sources: Iterable[UUID]) -> int:
    """Let nothing come back from these messages; return how many. Inside the caller's scope."""
    rows = [
        Tombstone(tenant_id=scope.tenant_id, user_id=scope.user_id, mark=marks_of(source)[0])
        for source in set(sources)
    ]
    Tombstone.objects.within(scope).bulk_create(rows, ignore_conflicts=True, batch_size=5_000)
    return len(rows)


def barred(scope: Scope, source: UUID) -> bool:
    """Tell whether nothing may be remembered from this message."""
    return Tombstone.objects.within(scope).filter(mark__in=marks_of(source)).exists()
