"""Find one's own memories: by the words as they stand, and by meaning."""

import base64
import binascii
import logging
from collections.abc import Mapping, Sequence
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

logger = logging.getLogger(__name__)

PAGE = 50
MOST_LISTED = 1_000
BY_MEANING = 100
SEARCH_MS = 2_000
# Below this a neighbour is one only because nothing nearer is there (measured with the default
# embedder: "diet" and a vegetarian have 0.40, "dog" and a cat's name 0.31; a question about the
# diet and a boat 0.05).
NEAR_ENOUGH = 0.25
NEAR_ENOUGH_FOR_A_WORD = 0.36
_REST = b"~"  # begins the cursor of those that are near and not shown yet


@dataclass(frozen=True, slots=True)
class Found:
    """A page of memories, and the cursor of the next ("" at the end).

    `ranked` says of those that a search finds how near each is, and why; what only holds the words
    somewhere may be far down and have no rank. `by_words` tells that meaning was not searched,
    because the embedder or the search did not answer in time.
    """

    memories: list[Memory] = field(default_factory=list)
    next: str = ""
    total: int = 0
    ranked: Mapping[UUID, Hit] = field(default_factory=dict)
    by_words: bool = False


def search(
    scope: Scope,
    *,
    query: str = "",
    kind: str = "",
    state: str = "",
    before: str = "",
    limit: int = PAGE,
) -> Found:
    """Return a page of memories, newest first; with a query those that hold its words, newest
    first, then the BY_MEANING nearest of the others, nearest first.

    `kind` and `state` narrow it down; the state is "current" unless another is asked for. `before`
    is the cursor of an earlier page: whatever is remembered or changed between two pages, none is
    there twice, and none is missing that was there at the first. Words are found whatever their
    case and accents, `%` and `_` mean themselves. A slow embedder is not waited for: then only
    words are found. Raises InvalidInput for a kind, a state or a cursor that does not exist.
    """
    rows = _filtered(scope, kind=kind, state=state)
    query = query.strip()
    place = _place(before) if before else None
    if isinstance(place, list) and not query:
        raise _no_such_page()
    hits: dict[UUID, Hit] = {}
    by_words = False
    if query and state in {"", Memory.Status.CURRENT}:
        hits, by_words = _ranked(scope, query, kind)
    enough = NEAR_ENOUGH if len(words(query)) > 1 else NEAR_ENOUGH_FOR_A_WORD
    bearing = [memory for memory, hit in hits.items() if _bears_on(hit, enough)]
    with entered(scope):
        literal = rows.filter(_says(query)) if query else rows
        total = literal.count()
        near: list[UUID] = []
        if bearing:
            others = rows.filter(pk__in=bearing).exclude(_says(query))
            kept = set(others.values_list("pk", flat=True))
            near = [memory for memory in bearing if memory in kept]
            total += len(near)
        page: list[Memory] = []
        if isinstance(place, list):
            near = place
        else:
            behind = _behind(literal, place).order_by("-created_at", "-pk")
            page = list(behind[: limit + 1])
        if len(page) > limit:
            page = page[:limit]
            following = _cursor(page[-1])
        else:
            shown, rest = near[: limit - len(page)], near[limit - len(page) :]
            by_id = rows.in_bulk(shown) if shown else {}
            page += [by_id[memory] for memory in shown if memory in by_id]
            following = _cursor_of(rest) if rest else ""
    here = {memory.pk: hits[memory.pk] for memory in page if memory.pk in hits}
    return Found(page, following, total, here, by_words)


def listed(limit: int) -> int:
    """Return the limit; InvalidInput unless it is a number from 1 to MOST_LISTED."""
    if not 1 <= limit <= MOST_LISTED:
        raise InvalidInput(f"The limit is a number from 1 to {MOST_LISTED:,}.")
    return limit


def _filtered(scope: Scope, *, kind: str, state: str) -> MemoryQuerySet:
    if kind and kind not in Memory.Kind.values:
        raise InvalidInput("There is no such kind of memory.")
    if state and state not in Memory.Status.values:
        raise InvalidInput("There is no such state of a memory.")
    rows = Memory.objects.within(scope).filter(status=state or Memory.Status.CURRENT).unexpired()
    return rows.filter(kind=kind) if kind else rows


def _says(query: str) -> Q:
    return Q(folded__contains=folded(query))


def _ranked(scope: Scope, query: str, kind: str) -> tuple[dict[UUID, Hit], bool]:
    """Return what recall would find for the query, nearest first, and whether by words alone.

    What stays in one session is found as well: this is for its owner's eyes.
    """
    vector: list[float] | None = None
    by_words = False
    try:
        vector = embedder.embed([query[:2_000]], within=embedder.PATIENCE)[0].tolist()
    except InvalidInput:
        pass  # Nothing in it that could be near to anything.
    except AppError as error:
        logger.warning("a search goes by words alone (%s)", error.code)
        by_words = True
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
            within_ms=SEARCH_MS,
        )
    except (AppError, OperationalError) as error:
        logger.warning("a search goes by words alone (%s)", type(error).__name__)
        return {}, True
    return {hit.row.memory: hit for hit in hits}, by_words


def _bears_on(hit: Hit, enough: float) -> bool:
    """Tell whether a memory is near in meaning or shares a word: something is always nearest."""
    if any(reason.code in {Why.WORDS, Why.DAY} for reason in hit.because):
        return True
    return hit.cosine is not None and hit.cosine >= enough


type _Place = tuple[datetime, UUID]


def _behind(rows: MemoryQuerySet, place: _Place | None) -> QuerySet[Memory]:
    if place is None:
        return rows
    at, pk = place
    return rows.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))


def _cursor(memory: Memory) -> str:
    place = f"{memory.created_at.isoformat()}|{memory.pk.hex}"
    return base64.urlsafe_b64encode(place.encode()).decode()


def _cursor_of(rest: Sequence[UUID]) -> str:
    """Return the cursor that names those to come: their order changes with all that is remembered
    meanwhile, and no place in it would be theirs."""
    packed = _REST + b"".join(memory.bytes for memory in rest)
    return base64.urlsafe_b64encode(packed).decode()


def _place(cursor: str) -> _Place | list[UUID]:
    """Return behind which memory a page begins, or which memories are still to come."""
    try:
        packed = base64.urlsafe_b64decode(cursor.encode())
        if packed.startswith(_REST):
            return _rest(packed.removeprefix(_REST))
        at, _bar, pk = packed.decode().partition("|")
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise ValueError("naive")
        # In UTC, as it was made: a moment outside the calendar fails here, not in the query.
        return moment.astimezone(UTC), UUID(pk)
    except (ValueError, OverflowError, binascii.Error, UnicodeError) as error:
        raise _no_such_page() from error


def _rest(packed: bytes) -> list[UUID]:
    if not packed or len(packed) % 16 or len(packed) > 16 * BY_MEANING:
        raise ValueError("no ids")
    ids = [UUID(bytes=packed[start : start + 16]) for start in range(0, len(packed), 16)]
    return list(dict.fromkeys(ids))


def _no_such_page() -> InvalidInput:
    return InvalidInput("That page of the list does not exist.")


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
