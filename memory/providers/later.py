"""What a provider outside the database needs: to be told once the transaction has come true."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from accounts.errors import ProviderError
from accounts.scope import Scope, entered
from memory import jobs
from memory.models import Job, Memory
from memory.providers.base import Ability, Entry, Found, MemoryProvider
from memory.providers.pgvector import PgvectorProvider
from memory.terms import Question

logger = logging.getLogger(__name__)

REPAIR_AFTER = timedelta(seconds=30)


class AfterCommit:
    """Stands before a provider that takes no part in transactions; for the rest is that provider.

    Inside a transaction, what is to be remembered or forgotten waits for the commit: a rollback
    leaves nothing behind, and nobody waits for a network with rows locked. A provider that is away
    then fails nobody: a job makes up for it (memory.reembed). Outside one it raises Unavailable.

    `purge` alone is done at once, and undoes the transaction when it fails: what is said to be
    erased must be. Should the transaction fail after it, that job fills the provider again.

    The default's tables may hold what was remembered before the switch: whatever is written, or
    erased, here leaves them in the same transaction. So nobody finds it there by its old words
    after a switch back, and no word of what was erased stays.
    """

    def __init__(self, inner: MemoryProvider) -> None:
        self.inner = inner
        self._default = PgvectorProvider()

    @property
    def abilities(self) -> frozenset[Ability]:
        return self.inner.abilities

    def remember(self, scope: Scope, *, entry: Entry, fresh: bool = False) -> None:
        if not fresh:
            self._default.forget(scope, memories=[entry.memory])
        if connection.in_atomic_block:
            _afterwards(partial(self._remember, scope, entry, fresh))
        else:
            self.inner.remember(scope, entry=entry, fresh=fresh)

    def _remember(self, scope: Scope, entry: Entry, fresh: bool) -> None:
        with _made_up_for(scope):
            self.inner.remember(scope, entry=entry, fresh=fresh)
            # A purge or an edit may have come since the commit; one under way is waited for.
            with entered(scope):
                jobs.hold(scope)
                current = Memory.objects.within(scope).current().filter(trusted=True)
                stands = current.filter(pk=entry.memory).exists()
            if not stands:
                self.inner.forget(scope, memories=[entry.memory])

    def recall(
        self,
        scope: Scope,
        *,
        question: Question,
        vector: Sequence[float] | None,
        model: str,
        limit: int,
        deadline_ms: int | None = None,
    ) -> list[Found]:
        return self.inner.recall(
            scope,
            question=question,
            vector=vector,
            model=model,
            limit=limit,
            deadline_ms=deadline_ms,
        )

    def list(self, scope: Scope, *, model: str, dims: int | None = None) -> set[UUID]:
        return self.inner.list(scope, model=model, dims=dims)

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        """Return how many documents that erased; 0 where it waits for the commit."""
        self._default.forget(scope, memories=memories)
        if not connection.in_atomic_block:
            return self.inner.forget(scope, memories=memories)
        _afterwards(partial(self._forget, scope, list(memories)))
        return 0

    def _forget(self, scope: Scope, memories: Collection[UUID]) -> None:
        with _made_up_for(scope):
            self.inner.forget(scope, memories=memories)

    def purge(self, scope: Scope) -> int:
        before = self._default.purge(scope)
        return before + self.inner.purge(scope)


def _afterwards(act: Callable[[], None]) -> None:
    # What has been committed stands, whatever becomes of this.
    transaction.on_commit(act, robust=True)


class _made_up_for:
    """Lets a job put right what a provider that is away was not told."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, ProviderError):
            return False
        logger.warning("the memory provider was not told (%s); a job will", error.code)
        with entered(self.scope):
            jobs.enqueue(self.scope, kind=Job.Kind.EMBED, due_at=timezone.now() + REPAIR_AFTER)
        return True
