"""Find one's own memories: by the words as they stand, and by meaning."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from django.db import OperationalError
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.errors import AppError, InvalidInput
from accounts.scope import Scope, entered, read_once
from memory import embedder
from memory.find import Here, Hit, find
from memory.folding import folded, words
from memory.limits import limits_of
from memory.models import Memory, MemoryQuerySet, Usage
from memory.providers.base import Why

PAGE = 50
BY_MEANING = 20
# Below this a neighbour is one only because nothing nearer is there (measured with the default
# embedder: "diet" and a vegetarian have 0.40, "dog" and a cat's name 0.31; a question about the
# diet and a boat 0.05).
NEAR_ENOUGH = 0.25
NEAR_ENOUGH_FOR_A_WORD = 0.36


@dataclass(frozen=True, slots=True)
class Found:
    """A page of memories, and the cursor of the next ("" at the end).

    `near` says of those that a search by words and meaning finds how near each is, and why.
    """

    memories: list[Memory] = field(default_factory=list)
    next: str = ""
    total: int = 0
    near: Mapping[UUID, Hit] = field(default_factory=dict)


def search(
    scope: Scope,
    *,
    query: str = "",
    kind: str = "",
    state: str = "",
    before: str = "",
    limit: int = PAGE,
) -> Found:
    """Return memories, newest first; with a query those that hold its words, then those near it.

    `kind` and `state` narrow it down; the state is "current" unless another is asked for. `before`
    is the cursor of an earlier page. Words are found whatever their case and accents, `%` and `_`
    mean themselves. With the embedder away only words are found. Raises InvalidInput for a kind, a
    state or a cursor that does not exist.
    """
    rows_wanted = _filtered(scope, kind=kind, state=state)
    query = query.strip()
    near: dict[UUID, Hit] = {}
    if query and not before and state in {"", Memory.Status.CURRENT}:
        near = _near(scope, query, kind)
    with entered(scope):
        literal = rows_wanted.filter(_says(query)) if query else rows_wanted
        total = literal.count()
        page = list(_behind(literal, before).order_by("-created_at", "-pk")[: limit + 1])
        more, page = page[limit:], page[:limit]
        if near:
            shown = {memory.pk for memory in page}
            # Those that hold the words come anyway, on this page or a later one.
            by_id = {
                memory.pk: memory
                for memory in rows_wanted.filter(pk__in=near.keys() - shown).exclude(_says(query))
            }
            page += [by_id[memory] for memory in near if memory in by_id]
            total += len(by_id)
    return Found(page, _cursor(page[limit - 1]) if more else "", total, near)


def _filtered(scope: Scope, *, kind: str, state: str) -> MemoryQuerySet:
    if kind and kind not in Memory.Kind.values:
        raise InvalidInput("There is no such kind of memory.")
    if state and state not in Memory.Status.values:
        raise InvalidInput("There is no such state of a memory.")
    rows = Memory.objects.within(scope).filter(status=state or Memory.Status.CURRENT).unexpired()
    return rows.filter(kind=kind) if kind else rows


def _says(query: str) -> Q:
    return Q(folded__contains=folded(query))


def _near(scope: Scope, query: str, kind: str) -> dict[UUID, Hit]:
    """Return what recall would find for the query, nearest first; by words with the embedder away.

    What stays in one session is found as well: this is for its owner's eyes. What is neither near
    in meaning nor shares a word is left out: something is always nearest.
    """
    vector: list[float] | None = None
    with suppress(AppError):  # Words alone, then.
        vector = embedder.embed([query[:2_000]])[0].tolist()
    try:
        hits = find(
            scope,
            question=query,
            vector=vector,
            model=embedder.current().name,
            limit=BY_MEANING,
            today=timezone.now().astimezone(limits_of(scope).zone).date(),
            here=Here(everywhere=True),
            kinds=(kind,) if kind else (),
            within_ms=2_000,
        )
    except (AppError, OperationalError):
        return {}
    enough = NEAR_ENOUGH if len(words(query)) > 1 else NEAR_ENOUGH_FOR_A_WORD
    return {hit.row.memory: hit for hit in hits if _bears_on(hit, enough)}


def _bears_on(hit: Hit, enough: float) -> bool:
    if any(reason.code in {Why.WORDS, Why.DAY} for reason in hit.because):
        return True
    return hit.cosine is not None and hit.cosine >= enough


def _behind(rows: MemoryQuerySet, cursor: str) -> QuerySet[Memory]:
    if not cursor:
        return rows
    at, pk = _place(cursor)
    return rows.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))


def _cursor(memory: Memory) -> str:
    place = f"{memory.created_at.isoformat()}|{memory.pk.hex}"
    return base64.urlsafe_b64encode(place.encode()).decode()


def _place(cursor: str) -> tuple[datetime, UUID]:
    try:
        at, _bar, pk = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise ValueError("naive")
        # In UTC, as it was made: a moment outside the calendar fails here, not in the query.
        return moment.astimezone(UTC), UUID(pk)
    except (ValueError, OverflowError, binascii.Error, UnicodeError) as error:
        raise InvalidInput("That page of the list does not exist.") from error


# Read from an index alone: 100,000 memories are counted while the page is drawn.
_COUNTS = """
select status, kind, count(*) from memory_memory
where tenant_id = %(tenant)s and user_id = %(user)s
  and (expires_at is null or expires_at > now())
group by status, kind
"""


def counts(scope: Scope, *, state: str = "") -> tuple[dict[str, int], dict[str, int]]:
    """Return how many memories there are of each state, and of each kind in this state."""
    rows = read_once(scope, _COUNTS, {"tenant": scope.tenant_id, "user": scope.user_id})
    return (
        {one: sum(n for status, _k, n in rows if status == one) for one in Memory.Status.values},
        {
            one: sum(
                n
                for status, kind, n in rows
                if kind == one and status == (state or Memory.Status.CURRENT)
            )
            for one in Memory.Kind.values
        },
    )


def usage_of(scope: Scope, memories: Sequence[Memory]) -> dict[UUID, int]:
    """Return how often each of these memories went before the model; zeros left out."""
    with entered(scope):
        rows = Usage.objects.within(scope).filter(memory__in=[memory.pk for memory in memories])
        return dict(rows.values_list("memory_id", "recalled_count"))
