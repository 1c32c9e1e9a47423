"""Bring the memories that bear on a message to its prompt, and say afterwards which they were."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import OperationalError
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import ProviderError
from accounts.scope import Scope, entered, read_once, write_once
from memory import embedder
from memory.exchange import Speaker
from memory.folding import folded, words
from memory.jobs import lock_name
from memory.models import Memory, Recalled
from memory.prompts import block_tokens, memory_line, tokens
from memory.providers.base import Found, provider
from memory.stop_words import STOP_WORDS

logger = logging.getLogger(__name__)

SPARE = 8  # Asked for beyond top k: what is passed over must not leave a place empty.
SHOWN_WORDS = 5


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory that goes before the model: how near it is (0 to 1), and why it was chosen.

    Of an exchange, `text` is the person's half and `answer` the assistant's; `speaker` says whose
    words were near.
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

    @property
    def created_at(self) -> datetime:
        """When it was remembered."""
        return self.at


@dataclass(frozen=True, slots=True)
class Recall:
    """What goes before the model, the pinned first and then the nearest first.

    `note` is the sentence for the person when memory was not available. `passed_over` were found
    as well, and did not fit or said the same again.
    """

    memories: list[RecalledMemory] = field(default_factory=list)
    note: str | None = None
    passed_over: list[RecalledMemory] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Limits:
    """How one person's recall is set."""

    on: bool = True
    top_k: int = 8
    min_score: float | None = None
    token_budget: int = 1_500
    deadline_ms: int = 1_000


def limits_of(scope: Scope) -> Limits:
    """Return the person's settings as recall needs them; the defaults while they set none."""
    rows = read_once(
        scope,
        "select recall_on, top_k, min_score, token_budget, deadline_ms from memory_memorysettings"
        " where tenant_id = %(tenant)s and user_id = %(user)s",
        {"tenant": scope.tenant_id, "user": scope.user_id},
    )
    return Limits(*rows[0]) if rows else Limits()


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

    `vector` is the question's (memory.embedder), or None when the embedder did not answer in
    time: then, and over the deadline, there is no memory but a note. `exclude_sources` are the
    messages that the model sees anyway. Nothing is written, unless `reply` is given; on the way
    to the first token leave it out and call `record` later. Call it outside a transaction.
    """
    limits = limits_of(scope)
    if not limits.on:
        return Recall()
    if vector is None or len(vector) != embedder.current().dims:
        return _unavailable("embedder")  # away, or changed since the question was embedded
    try:
        found = provider().recall(
            scope,
            vector=vector,
            model=embedder.current().name,
            limit=limits.top_k + SPARE,
            exclude_sources=exclude_sources,
            deadline_ms=limits.deadline_ms,
        )
    except ProviderError as error:
        return _unavailable(error.code)
    except OperationalError:
        logger.exception("recall failed")
        return _unavailable("database")
    recalled = choose(found, limits=limits, question=question)
    if reply is not None:
        record(scope, reply=reply, recall=recalled)
    return recalled


def _unavailable(code: str) -> Recall:
    logger.warning("recall: memory was not available (%s)", code)
    return Recall(note=_("Memory was not available for this reply."))


def choose(found: Iterable[Found], *, limits: Limits, question: str = "") -> Recall:
    """Return which of the found memories go in: at most top k, within the budget, nothing twice.

    An exchange gives way to the facts that were learnt from it: it says the same again.
    """
    asked = set(words(question)) - STOP_WORDS
    kept = [
        one
        for one in found
        if one.pinned or limits.min_score is None or one.score >= limits.min_score
    ]
    told = {one.source for one in kept if one.kind != Memory.Kind.EXCHANGE and one.source}
    first = [one for one in kept if one.kind != Memory.Kind.EXCHANGE or one.source not in told]
    later = [one for one in kept if one.kind == Memory.Kind.EXCHANGE and one.source in told]
    left = limits.token_budget - block_tokens()
    chosen: list[Found] = []
    passed: list[Found] = []
    said: set[str] = set()
    for one in first + later:
        same = folded(one.text if one.speaker is Speaker.PERSON else one.answer)
        cost = 0 if len(chosen) == limits.top_k else tokens(memory_line(one)) + 1
        if cost and cost <= left and same not in said:
            chosen.append(one)
            said.add(same)
            left -= cost
        elif len(passed) < limits.top_k:
            passed.append(one)
    chosen.sort(key=lambda one: (not one.pinned, -one.score))
    why = _Reasons()
    return Recall(
        [_recalled(one, why.of(one, asked)) for one in chosen],
        passed_over=[_recalled(one, why.of(one, asked)) for one in passed],
    )


class _Reasons:
    """Says why a memory was found, in the language of the moment."""

    def __init__(self) -> None:
        self.pinned, self.near = _("pinned"), _("near in meaning")
        self.shared, self.assistants = _("same words: %s"), _("in the assistant's words")

    def of(self, found: Found, asked: set[str]) -> str:
        heard = found.text if found.speaker is Speaker.PERSON else found.answer
        shared = [word for word in dict.fromkeys(words(heard)) if word in asked] if asked else []
        reasons = [self.pinned, self.near] if found.pinned else [self.near]
        if shared:
            reasons.append(self.shared % ", ".join(shared[:SHOWN_WORDS]))
        if found.speaker is Speaker.ASSISTANT:
            reasons.append(self.assistants)
        return "; ".join(reasons)


def _recalled(found: Found, because: str) -> RecalledMemory:
    return RecalledMemory(
        id=found.memory,
        kind=found.kind,
        text=found.text,
        answer=found.answer,
        score=round(found.score, 4),
        because=because,
        source=found.source,
        session_key=found.session_key,
        at=found.at,
        speaker=found.speaker,
    )


# The lock by itself and first: a purge and this must not wait for each other's rows, and what is
# written sees what a purge that it waited for has erased.
_RECORD = """
select pg_advisory_xact_lock_shared(hashtextextended(%(lock)s, 0));
with given as (
  select * from unnest(%(memories)s::uuid[], %(ranks)s::smallint[], %(scores)s::float8[],
    %(injected)s::bool[], %(because)s::text[]) as g (memory_id, rank, score, injected, because)
), written as (
  insert into memory_recalled
    (tenant_id, user_id, reply, memory_id, rank, score, injected, because, at)
  select m.tenant_id, m.user_id, %(reply)s, m.id, g.rank, g.score, g.injected, g.because, %(now)s
  from given g join memory_memory m on m.id = g.memory_id
  where m.tenant_id = %(tenant)s and m.user_id = %(user)s
  on conflict (tenant_id, user_id, reply, memory_id) do nothing
  returning tenant_id, user_id, memory_id, injected, at
)
insert into memory_usage (tenant_id, user_id, memory_id, recalled_count, last_recalled_at)
select tenant_id, user_id, memory_id, 1, at from written where injected order by memory_id
on conflict (memory_id) do update
  set recalled_count = memory_usage.recalled_count + 1, last_recalled_at = excluded.last_recalled_at
"""


def record(scope: Scope, *, reply: UUID, recall: Recall) -> None:
    """Keep which memories were found for a reply, with rank and score, and which went in.

    Once for each reply and memory. A memory that was erased meanwhile is left out.
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
            "reply": reply,
            "now": timezone.now(),
            "tenant": scope.tenant_id,
            "user": scope.user_id,
        },
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A memory that was found for a reply, as it is now; without text when it was forgotten."""

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
    gone = memory.status == Memory.Status.TRASH
    return Source(
        id=memory.pk,
        kind=memory.kind,
        text="" if gone else memory.text,
        answer="" if gone else memory.answer,
        score=row.score,
        because=[reason for reason in row.because.split("; ") if reason],
        created_at=memory.created_at,
        session_key=memory.session_key,
        source=memory.source,
        injected=row.injected,
        gone=gone,
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
