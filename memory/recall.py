"""Bring the memories that bear on a message to its prompt, and say afterwards which they were."""

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from uuid import UUID

from django.db import OperationalError
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import ProviderError, Unavailable
from accounts.scope import Scope, entered, read_once, write_once
from memory import embedder
from memory.exchange import Speaker
from memory.find import Here, Hit, Row, find, read_core
from memory.folding import folded
from memory.jobs import lock_name
from memory.limits import Limits
from memory.models import Memory, Recalled
from memory.prompts import block_tokens, memory_line, tokens
from memory.reasons import Reasons
from memory.terms import terms_of
from memory.used import named

logger = logging.getLogger(__name__)

SPARE = 8  # Asked for beyond top k: what is passed over must not leave a place empty.
CORE_TEXT = 2 / 3  # of the budget: what is always there leaves room for what was asked
# Words alone get the rest of the deadline when both arms together take longer than this part.
FIRST_TRY = 0.7
SAID_AGAIN = 0.7  # of an exchange's words, in the facts learnt from it


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory that goes before the model: how near it is (0 to 1), and why it was chosen.

    Of an exchange, `text` is the person's half and `answer` the assistant's; `speaker` says whose
    words were near. The parts are what each arm had in the score.
    """

    id: UUID
    kind: str
    text: str
    answer: str
    score: float
    because: str
    source: UUID | None
    session_key: UUID | None
    at: datetime
    speaker: Speaker
    vector_part: float = 0.0
    text_part: float = 0.0
    always: bool = False  # whatever is asked, so that the score says nothing

    @property
    def created_at(self) -> datetime:
        """When it was remembered."""
        return self.at


@dataclass(frozen=True, slots=True)
class Recall:
    """What goes before the model, the core first and then the nearest first.

    `note` is the sentence for the person when memory was not available (`away`), or was searched
    by words alone. `passed_over` were found as well, and did not fit or said the same again. `zone`
    is the person's: days are days there.
    """

    memories: list[RecalledMemory] = field(default_factory=list)
    note: str | None = None
    passed_over: list[RecalledMemory] = field(default_factory=list)
    away: bool = False
    zone: tzinfo = UTC


def recall(
    scope: Scope,
    *,
    question: str,
    vector: Sequence[float] | None,
    reply: UUID | None = None,
    exclude_sources: Collection[UUID] = (),
    session_key: UUID | None = None,
) -> Recall:
    """Return what is remembered that bears on the question; never an error.

    The core is always there while it fits: what is pinned or about safety; persona, and of a
    person with few claims all of them, unless they set top k or min score themselves. Then come
    the best that the search finds, at most top k. `vector` is the question's (memory.embedder), or
    None when the embedder did not answer in time: then, and when both arms take longer than the
    deadline, words alone are searched, and a note says so. `exclude_sources` are the messages that
    the model sees anyway. Nothing is written, unless `reply` is given; on the way to the first
    token leave it out and call `record` later. Call it outside a transaction.
    """
    began = time.monotonic()
    here = Here(exclude_sources, session_key)
    if vector is not None and embedder.known_dims() not in {None, len(vector)}:
        vector = None  # The embedder was changed since the question was embedded.
    try:
        limits, always, claims = read_core(scope, here=here)
        if not limits.on:
            return Recall()
        hits, note = _searched(scope, question, vector, limits, here, began, len(claims))
    except ProviderError as error:
        return _unavailable(error.code)
    except OperationalError:
        logger.exception("recall failed")
        return _unavailable("database")
    core = _core(always, claims, limits)
    chosen = choose(hits, limits=limits, core=core)
    recalled = replace(chosen, note=note, zone=limits.zone)
    if reply is not None:
        record(scope, reply=reply, recall=recalled)
    return recalled


def _searched(
    scope: Scope,
    question: str,
    vector: Sequence[float] | None,
    limits: Limits,
    here: Here,
    began: float,
    claims: int,
) -> tuple[list[Hit], str | None]:
    """Return what the search finds, and what the person must know of how it went."""

    def left() -> int:
        return int(limits.deadline_ms - 1_000 * (time.monotonic() - began))

    def searched(vector: Sequence[float] | None, within_ms: int) -> list[Hit]:
        if within_ms <= 0:
            raise Unavailable("The search took too long.", code="too_slow")
        return find(
            scope,
            question=question,
            vector=vector,
            model=embedder.current().name,
            limit=limits.top_k + SPARE + claims,
            today=timezone.now().astimezone(limits.zone).date(),
            here=here,
            within_ms=within_ms,
        )

    if vector is not None:
        try:
            return searched(vector, int(FIRST_TRY * left())), None
        except Unavailable as error:
            logger.warning("recall: by words alone (%s)", error.code)
    else:
        logger.warning("recall: by words alone (no vector)")
    return searched(None, left()), _("Memory was searched by words alone for this reply.")


def _unavailable(code: str) -> Recall:
    logger.warning("recall: memory was not available (%s)", code)
    return Recall(note=_("Memory was not available for this reply."), away=True)


def _core(always: Sequence[Row], claims: Sequence[Row], limits: Limits) -> list[Row]:
    """Return what goes before the model whatever is asked, as far as it fits."""
    budget = limits.token_budget - block_tokens()
    kept: list[Row] = []
    left = CORE_TEXT * budget
    for row in always:
        if limits.chosen and not (row.pinned or row.safety):
            continue
        left -= _cost(Hit(row))
        if left < 0:
            break
        kept.append(row)
    if claims and sum(_cost(Hit(row)) for row in claims) <= CORE_TEXT * budget:
        have = {row.memory for row in kept}
        kept += [row for row in claims if row.memory not in have]
    return kept


def choose(hits: Iterable[Hit], *, limits: Limits, core: Sequence[Row] = ()) -> Recall:
    """Return which memories go in: the core, and at most top k others, within the budget.

    Nothing goes in twice: an exchange gives way to the facts that were learnt from it, and is left
    out where they say all that it says.
    """
    found = list(hits)
    by_id = {hit.row.memory: hit for hit in found}
    always = [replace(by_id.get(row.memory, Hit(row)), always=True) for row in core]
    in_core = {hit.row.memory for hit in always}
    rest = [
        hit
        for hit in found
        if hit.row.memory not in in_core
        and (limits.min_score is None or hit.score >= limits.min_score)
    ]
    told = _told([*always, *rest])
    first = [hit for hit in rest if hit.row.source not in told or not _is_exchange(hit)]
    later = [hit for hit in rest if hit.row.source in told and _is_exchange(hit)]
    left = limits.token_budget - block_tokens()
    said: set[str] = set()
    chosen: list[Hit] = []
    passed: list[Hit] = []
    searched = 0
    for hit in [*always, *first, *later]:
        heard = folded(_heard(hit))
        if (
            (hit.always or searched < limits.top_k)
            and heard not in said
            and not (_is_exchange(hit) and _says_nothing_new(hit, told))
            and (cost := _cost(hit)) <= left
        ):
            chosen.append(hit)
            said.add(heard)
            left -= cost
            searched += not hit.always
        elif len(passed) < limits.top_k:
            passed.append(hit)
    chosen.sort(key=lambda hit: (not (hit.row.pinned or hit.row.safety), -hit.score))
    why = Reasons()
    return Recall(
        [_recalled(hit, why.of(hit)) for hit in chosen],
        passed_over=[_recalled(hit, why.of(hit)) for hit in passed],
    )


def _is_exchange(hit: Hit) -> bool:
    return hit.row.kind == Memory.Kind.EXCHANGE


def _heard(hit: Hit) -> str:
    return hit.row.text if hit.speaker is Speaker.PERSON else hit.row.answer


def _told(hits: Iterable[Hit]) -> dict[UUID, list[str]]:
    """Return the facts that came from each message."""
    told: dict[UUID, list[str]] = {}
    for hit in hits:
        if hit.row.source and not _is_exchange(hit):
            told.setdefault(hit.row.source, []).append(hit.row.text)
    return told


def _says_nothing_new(hit: Hit, told: dict[UUID, list[str]]) -> bool:
    if hit.row.source is None or hit.row.source not in told or hit.speaker is Speaker.ASSISTANT:
        return False
    said = set(terms_of(hit.row.text))  # stems: "I live" and "the user lives" are the same
    facts = {term for fact in told[hit.row.source] for term in terms_of(fact)}
    return len(said & facts) >= SAID_AGAIN * len(said)


def as_read(memory: Memory, *, zone: tzinfo) -> str:
    """Return the line by which a model is told of a memory, without handle; the fence has no part.

    Of an exchange as where the person's half was near.
    """
    return memory_line(_As(memory.kind, memory.text, memory.answer, memory.created_at), zone=zone)


@dataclass(frozen=True, slots=True)
class _As:
    kind: str
    text: str
    answer: str
    at: datetime
    speaker: Speaker = Speaker.PERSON


# As long as those of memory.tools, so that the block fits its budget with them too.
_ANY_HANDLE = "0" * 8


def _cost(hit: Hit) -> int:
    return tokens(memory_line(_recalled(hit, ""), handle=_ANY_HANDLE)) + 1


def _recalled(hit: Hit, because: str) -> RecalledMemory:
    row = hit.row
    return RecalledMemory(
        id=row.memory,
        kind=row.kind,
        text=row.text,
        answer=row.answer,
        score=round(hit.score, 6),
        because=because,
        source=row.source,
        session_key=row.session_key,
        at=row.at,
        speaker=hit.speaker,
        vector_part=round(hit.vector_part, 4),
        text_part=round(hit.text_part, 4),
        always=hit.always,
    )


# The lock by itself and first: a purge and this must not wait for each other's rows, and what is
# written sees what a purge that it waited for has erased.
_RECORD = """
select pg_advisory_xact_lock_shared(hashtextextended(%(lock)s, 0));
with given as (
  select * from unnest(%(memories)s::uuid[], %(ranks)s::smallint[], %(scores)s::float8[],
    %(injected)s::bool[], %(because)s::text[], %(vector_parts)s::float8[], %(text_parts)s::float8[],
    %(always)s::bool[])
    as g (memory_id, rank, score, injected, because, vector_part, text_part, always)
), written as (
  insert into memory_recalled
    (tenant_id, user_id, reply, memory_id, rank, score, injected, because, vector_part, text_part,
     always, at)
  select m.tenant_id, m.user_id, %(reply)s, m.id, g.rank, g.score, g.injected, g.because,
    g.vector_part, g.text_part, g.always, %(now)s
  from given g join memory_memory m on m.id = g.memory_id
  where m.tenant_id = %(tenant)s and m.user_id = %(user)s
  on conflict (tenant_id, user_id, reply, memory_id) do update
    set injected = true where excluded.injected and not memory_recalled.injected
  returning tenant_id, user_id, memory_id, injected, at
)
insert into memory_usage (tenant_id, user_id, memory_id, recalled_count, last_recalled_at)
select tenant_id, user_id, memory_id, 1, at from written where injected order by memory_id
on conflict (memory_id) do update
  set recalled_count = memory_usage.recalled_count + 1, last_recalled_at = excluded.last_recalled_at
"""


def record(scope: Scope, *, reply: UUID, recall: Recall) -> None:
    """Keep which memories were found for a reply, with rank and score, and which went in.

    Once for each reply and memory; what did not fit at first may go in later, by a search of the
    model's own. A memory that was erased meanwhile is left out.
    """
    rows = [(one, True) for one in recall.memories] + [(one, False) for one in recall.passed_over]
    if not rows:
        return
    write_once(
        scope,
        _RECORD,
        {
            "lock": lock_name(scope),
            "memories": [one.id for one, _in in rows],
            "ranks": list(range(1, len(rows) + 1)),
            "scores": [one.score for one, _in in rows],
            "injected": [went_in for _one, went_in in rows],
            "because": [one.because[:200] for one, _in in rows],
            "vector_parts": [one.vector_part for one, _in in rows],
            "text_parts": [one.text_part for one, _in in rows],
            "always": [one.always for one, _in in rows],
            "reply": reply,
            "now": timezone.now(),
            "tenant": scope.tenant_id,
            "user": scope.user_id,
        },
    )


_INJECTED = """
select r.memory_id, m.text, m.answer from memory_recalled r join memory_memory m
  on m.id = r.memory_id and m.tenant_id = r.tenant_id and m.user_id = r.user_id
where r.tenant_id = %(tenant)s and r.user_id = %(user)s and r.reply = %(reply)s and r.injected
"""
_USED = """
update memory_recalled set used = true where tenant_id = %(tenant)s and user_id = %(user)s
  and reply = %(reply)s and memory_id = any(%(memories)s) returning 1
"""


def mark_used(scope: Scope, *, reply: UUID, question: str, answer: str) -> int:
    """Return how many of the memories that went before the model the answer names; kept with them.

    Told by their words (memory.used): no model is asked.
    """
    given = {"tenant": scope.tenant_id, "user": scope.user_id, "reply": reply}
    rows = read_once(scope, _INJECTED, given)
    if not rows:
        return 0
    told = named(answer, (row[1:] for row in rows), question=question)
    used = [row[0] for row, is_told in zip(rows, told, strict=True) if is_told]
    return len(write_once(scope, _USED, given | {"memories": used})) if used else 0


@dataclass(frozen=True, slots=True)
class Source:
    """A memory that was found for a reply, as it is now.

    `gone`: it was forgotten or has expired; then nothing of its words is told, nor what matched.
    """

    id: UUID
    kind: str
    text: str
    answer: str
    score: float
    because: list[str]
    created_at: datetime
    session_key: UUID | None
    source: UUID | None
    injected: bool
    gone: bool
    used: bool = False
    always: bool = False
    vector_part: float = 0.0
    text_part: float = 0.0


def read_for_reply(scope: Scope, reply: UUID) -> list[Source]:
    """Return the memories that went before the model for a reply, then those that did not."""
    with entered(scope):
        rows = list(
            Recalled.objects.within(scope)
            .filter(reply=reply)
            .select_related("memory")
            .order_by("-injected", "rank")
        )
    return [_source(row) for row in rows]


def _source(row: Recalled) -> Source:
    memory = row.memory
    gone = memory.is_gone
    return Source(
        id=memory.pk,
        kind=memory.kind,
        text="" if gone else memory.text,
        answer="" if gone else memory.answer,
        score=row.score,
        because=[] if gone else [reason for reason in row.because.split("; ") if reason],
        created_at=memory.created_at,
        session_key=memory.session_key,
        source=memory.source,
        injected=row.injected,
        gone=gone,
        used=row.used,
        always=row.always,
        vector_part=row.vector_part,
        text_part=row.text_part,
    )


def counts_for_replies(scope: Scope, replies: Collection[UUID]) -> dict[UUID, int]:
    """Return how many memories went before the model for each of these replies; zeros left out."""
    if not replies:
        return {}
    rows = read_once(
        scope,
        "select reply, count(*) from memory_recalled where tenant_id = %(tenant)s"
        " and user_id = %(user)s and injected and reply = any(%(replies)s) group by reply",
        {"tenant": scope.tenant_id, "user": scope.user_id, "replies": list(replies)},
    )
    return dict(rows)
