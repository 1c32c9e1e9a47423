"""Everything that can be done with what is remembered, from code, in one line each.

    import memory

    memory.remember(scope, text="I am vegetarian.")
    memory.recall(scope, "What do I eat?").memories

Each takes the scope first (whose: `accounts.scope.Scope(tenant_id, user_id)`) and touches nobody
else's rows; everything but a query goes by keyword. They are the verbs that the pages, the workers,
the model's tools and `manage.py memories` use. Call them outside a transaction: some wait for the
embedder.

Errors, all of them `accounts.errors.AppError`: NotFound for a memory that does not exist or is
somebody else's (the same words for both), InvalidInput for what can't be done, with a sentence
that says why. Without the embedder nothing fails: memories are found by their words, and by
meaning once it is back.
"""

import builtins
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from accounts.errors import InvalidInput, ProviderError
from accounts.scope import Scope, entered
from memory import edit as _edit
from memory import embedder, history, mark, trash
from memory import purge as _purge
from memory import search as _search
from memory.history import Version
from memory.models import Memory
from memory.purge import What
from memory.recall import Recall
from memory.recall import recall as _recall
from memory.remember import add

QUERY_CHARS = 2_000

__all__ = [
    "edit",
    "empty_trash",
    "expire",
    "forget",
    "keep_to",
    "list",
    "pin",
    "preview",
    "purge",
    "recall",
    "remember",
    "restore",
    "search",
    "tag",
    "undo",
    "unpin",
    "versions",
]


def remember(
    scope: Scope, *, text: str, tags: Iterable[str] = (), expires_at: datetime | None = None
) -> Memory:
    """Return the memory of one note, of at most 2,000 characters, findable at once.

    The same claim again is the same memory, seen once more (`.seen_count`). What reads like an
    order to the assistant waits for the person's review (`.status == "waiting"`, `.because`).
    `tags` and `expires_at` are as in `tag` and `expire`. Raises InvalidInput.
    """
    tags = mark.normal_tags(tags)
    kept = add(scope, text=text)
    if tags:
        kept = mark.tag(scope, memory=kept.pk, tags=[*kept.tags, *tags])
    if expires_at is not None:
        kept = mark.expire(scope, memory=kept.pk, at=expires_at)
    return kept


def recall(
    scope: Scope,
    query: str,
    *,
    limit: int | None = None,
    session_key: UUID | None = None,
    exclude_sources: Collection[UUID] = (),
) -> Recall:
    """Return what is remembered that bears on a text, as it would go before the model.

    `.memories` is a list of RecalledMemory (id, kind, text, answer, score from 0 to 1, because,
    source, session_key, at, speaker), at most as many as the person's settings say, or `limit`
    of them; empty where recall is switched off. `.note` is a sentence where memory was not
    available (`.away`), or was searched by words alone, and no error. `session_key` brings in what
    is kept to that session; what came from `exclude_sources` (ids of messages) is left out. Raises
    InvalidInput for a limit below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidInput("The limit is a number from 1.")
    query = query.strip()[:QUERY_CHARS]
    if not query:
        return Recall()
    try:
        vector = embedder.embed([query], within=embedder.PATIENCE)[0].tolist()
    except (ProviderError, InvalidInput):
        vector = None
    found = _recall(
        scope,
        question=query,
        vector=vector,
        exclude_sources=exclude_sources,
        session_key=session_key,
    )
    return replace(found, memories=found.memories[:limit])


def search(scope: Scope, query: str, *, limit: int = 50) -> builtins.list[Memory]:
    """Return current memories that hold these words, newest first, then those near in meaning.

    Words are found whatever their case and accents; `%` and `_` mean themselves. At most `limit`
    (1,000) of them; `memory.search.search` gives them in pages, each with its score and why.
    """
    return _search.search(scope, query=query, limit=_search.listed(limit)).memories


def list(
    scope: Scope, *, kind: str = "", state: str = "current", tag: str = "", limit: int = 50
) -> builtins.list[Memory]:
    """Return memories, newest first, at most `limit` (1,000) of them.

    `kind` is exchange, fact, persona, insight or note; `state` current, past, waiting, declined
    or trash; `tag` narrows to what bears it. What has expired is not among them. Raises
    InvalidInput for a kind or state that does not exist.
    """
    if kind and kind not in Memory.Kind.values:
        raise InvalidInput("There is no such kind of memory.")
    if state not in Memory.Status.values:
        raise InvalidInput("There is no such state of a memory.")
    with entered(scope):
        rows = Memory.objects.within(scope).unexpired().filter(status=state)
        if kind:
            rows = rows.filter(kind=kind)
        for one in mark.normal_tags([tag]):
            rows = rows.filter(tags__contains=[one])
        return [*rows.order_by("-created_at", "-pk")[: _search.listed(limit)]]


def edit(scope: Scope, *, memory: UUID, text: str) -> Memory:
    """Return the memory with a new text: found by it at once, and by the old one no more.

    What it said is kept as a version. Raises NotFound; InvalidInput for a text that is blank, too
    long, or remembered already.
    """
    return _edit.edit(scope, memory=memory, text=text)


def forget(scope: Scope, *, memory: UUID) -> Memory:
    """Return the memory, in the trash for 30 days: in no list, no search and no prompt any more.

    The exchange that it came from goes with it. Twice is the same as once. Raises NotFound.
    """
    return _edit.forget(scope, memory=memory)


def restore(scope: Scope, *, memory: UUID, version: int | None = None) -> Memory:
    """Return the memory, back from the trash; or with the text of an earlier version.

    `version` is a number from `versions`. Raises NotFound, InvalidInput.
    """
    return _edit.restore(scope, memory=memory, version=version)


def undo(scope: Scope, *, memory: UUID) -> Memory:
    """Return the memory as it was before it was last edited or forgotten.

    Raises NotFound, or InvalidInput when there is nothing to undo.
    """
    return _edit.undo(scope, memory=memory)


def versions(scope: Scope, *, memory: UUID) -> builtins.list[Version]:
    """Return what the memory was before, newest first.

    Each has number, text, status, change, at, and diff: how its words became the next text's, as
    a list of (same, gone or new, words). Raises NotFound.
    """
    return history.versions(scope, memory=memory)


def pin(scope: Scope, *, memory: UUID) -> Memory:
    """Return the memory, which from now on always goes before the model. NotFound, InvalidInput."""
    return mark.pin(scope, memory=memory)


def unpin(scope: Scope, *, memory: UUID) -> Memory:
    """Return the memory, one among the others again. Raises NotFound, InvalidInput."""
    return mark.pin(scope, memory=memory, pinned=False)


def tag(scope: Scope, *, memory: UUID, tags: Iterable[str]) -> Memory:
    """Return the memory with exactly these tags, at most 12 of 40 characters, in lower case.

    Raises NotFound, InvalidInput.
    """
    return mark.tag(scope, memory=memory, tags=tags)


def expire(scope: Scope, *, memory: UUID, at: datetime | None) -> Memory:
    """Return the memory, which ends at this time (aware, to come); None: it has no end.

    From then on it is in no list, search or prompt, and soon erased for good. Raises NotFound,
    InvalidInput.
    """
    return mark.expire(scope, memory=memory, at=at)


def keep_to(scope: Scope, *, memory: UUID, session: UUID | None) -> Memory:
    """Return the memory, which is used in this session alone; None: everywhere.

    Raises NotFound, InvalidInput.
    """
    return mark.keep_to(scope, memory=memory, session=session)


def empty_trash(scope: Scope) -> int:
    """Return how many memories were erased for good: all in the trash. There is no undo."""
    return trash.empty_now(scope)


def preview(scope: Scope, *, what: What = "memories") -> dict[str, int]:
    """Return what `purge` would erase, counted by kind; nothing is changed."""
    return _purge.preview(scope, what=what)


def purge(scope: Scope, *, what: What = "memories") -> dict[str, int]:
    """Return how much was erased for good, counted by kind, exactly; zeros when there was nothing.

    "memories" erases all that is remembered; "everything" the sessions and messages too. Nothing
    comes back: not from messages that stay, nor from work that runs meanwhile. There is no undo.
    """
    return _purge.purge(scope, what=what)
