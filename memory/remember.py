"""Remember: an exchange after its reply, word for word; a note that a person adds by hand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.translation import gettext_noop

from accounts.scope import Scope, read_once
from accounts.text import required_text
from memory import embedder, jobs
from memory.claims import is_safety
from memory.consolidate import confirm, embed_later, known_claim, settle_exchange
from memory.exchange import Exchange, Utterance, read_exchange
from memory.extract import extract, learn, ordered_drafts
from memory.gate import bears_a_claim
from memory.insert import columns_of, insert, insertion
from memory.jobs import Claim
from memory.keys import entries_in_time, findable, spell
from memory.learn import consider
from memory.model_choice import current_endpoint
from memory.models import MEMORY_CHARS, NAME_CHARS, Job, Memory
from memory.profile import changed
from memory.providers.base import Entry, provider
from memory.recall import mark_used
from memory.suspicion import reason_to_wait
from memory.tombstones import marks_of
from memory.vectors import Embedded

WORKER_SECONDS = 10.0  # that an exchange waits for its vectors, before it is kept without


def enqueue_exchange(
    scope: Scope,
    *,
    reply_id: UUID,
    session_key: UUID,
    question: Embedded | None = None,
    auto_store: bool | None = None,
) -> UUID:
    """Return the id of the job that will remember this exchange, in the caller's transaction.

    `question` is the vector of the person's message, where it was made already. `auto_store` is
    what the session says of its own; None where it says nothing.

    The switches of the tenant, the person and the session count as they stand now. Asked for again,
    after another try of the reply, the job starts anew, and what it writes replaces the first.
    """
    return jobs.enqueue(
        scope,
        kind=Job.Kind.REMEMBER,
        source=reply_id,
        session_key=session_key,
        question=question,
        auto_store=auto_store,
    )


def remember_exchange(claimed: Claim) -> None:
    """Keep an exchange word for word, then learn facts from the person's half of it.

    Every write is once by constraint and re-checks the purge generation. While the embedder is away
    the exchange is found by its words. Raises ProviderError when facts can't be looked for, because
    the model or the embedder is away (what was done stays done), Overtaken when a purge has come.
    """
    exchange = read_exchange(claimed.scope, claimed.source)
    if exchange is None:
        jobs.finish(claimed, nothing="gone")
        return
    mark_used(
        claimed.scope,
        reply=claimed.source,
        question=exchange.question.text,
        answer=exchange.reply.text,
    )
    barred_now, learnt, knows = _before(claimed.scope, exchange.question)
    if barred_now:
        jobs.finish(claimed, nothing="barred")
        return
    auto_store = claimed.result.get("auto_store", True)
    extracting = auto_store and claimed.result.get("extract", True)
    endpoint = None
    if extracting and bears_a_claim(exchange.question.text):  # else no answer could be kept
        endpoint = current_endpoint()
    storing = auto_store and not claimed.step and not exchange.forgets
    store = _prepared(claimed, exchange) if storing else None
    if not set(learnt) <= set(exchange.saved) and claimed.step != "told":
        # A message is learnt from once, whatever became of it.
        with jobs.writing(claimed) as scope:
            kept = store(scope) if store else {}
            jobs.finish(claimed, facts=[str(fact) for fact in learnt], **kept)
    elif endpoint is None:
        drafts = ordered_drafts(claimed, exchange)
        with jobs.writing(claimed) as scope:
            kept = store(scope) if store else {}
            jobs.finish(claimed, **learn(scope, claimed, drafts), **kept)
            consider(scope, claimed, exchange.question.text)
    else:
        if store:
            with jobs.writing(claimed) as scope:
                claimed = jobs.step_done(claimed, "stored", **store(scope))
        else:
            jobs.renew(claimed)
        extract(claimed, exchange, endpoint, knows=knows)


_BEFORE = """
select exists (select 1 from memory_tombstone t where t.tenant_id = %(tenant)s
    and t.user_id = %(user)s and t.mark = any(%(marks)s))
  or exists (select 1 from memory_memorysettings s where s.tenant_id = %(tenant)s
    and s.user_id = %(user)s and s.purged_at >= %(said_at)s),
  array(select id from memory_memory m where m.tenant_id = %(tenant)s and m.user_id = %(user)s
    and m.source = %(source)s and m.kind <> 'exchange' order by m.created_at),
  exists (select from memory_memory m where m.tenant_id = %(tenant)s and m.user_id = %(user)s
    and m.status = 'current' and m.kind <> 'exchange')
"""


def _before(scope: Scope, question: Utterance) -> tuple[bool, list[UUID], bool]:
    """Return whether nothing may be remembered of a message, and the facts it gave before.

    And whether the person has any current claims.
    """
    rows = read_once(
        scope,
        _BEFORE,
        {
            "tenant": scope.tenant_id,
            "user": scope.user_id,
            "marks": marks_of(question.id),
            "said_at": question.at,
            "source": question.id,
        },
    )
    never, learnt, knows = rows[0]
    return bool(never), list(learnt), bool(knows)


def _prepared(claimed: Claim, exchange: Exchange) -> Callable[[Scope], dict[str, Any]]:
    """Return what stores the exchange, in the transaction; its vectors are made here, before."""
    memory = _as_memory(claimed.scope, exchange)
    known = {exchange.question.text.strip(): claimed.question} if claimed.question else {}
    entry = None
    if findable(memory):
        within = WORKER_SECONDS
        [entry] = entries_in_time([memory], known=known, within=within, zone=claimed.zone)

    def store(inside: Scope) -> dict[str, Any]:
        kept = _write_once(inside, memory, entry)
        if exchange.saved:  # and perhaps taken back since: the exchange goes with it
            settle_exchange(inside, memory.source, at=timezone.now())
        return {"exchange": str(kept)}

    return store


def _as_memory(scope: Scope, exchange: Exchange) -> Memory:
    because = reason_to_wait(exchange.question.text) or reason_to_wait(exchange.reply.text)
    return spell(
        Memory(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            kind=Memory.Kind.EXCHANGE,
            text=exchange.question.text,
            answer=exchange.reply.text,
            origin=Memory.Origin.OWN_WORDS,
            status=Memory.Status.WAITING if because else Memory.Status.CURRENT,
            because=because,
            source=exchange.question.id,
            session_key=exchange.session_key,
            position=exchange.question.position,
            said_by=exchange.question.name[:NAME_CHARS],
            answered_by=exchange.reply.name[:NAME_CHARS],
            created_at=exchange.question.at,
            valid_from=exchange.question.at,
        )
    )


def _write_once(scope: Scope, memory: Memory, entry: Entry | None) -> UUID:
    """Store the exchange, or its newer answer where the question is known; return the id."""
    if insert(memory):
        if entry is not None:
            make_findable(scope, memory, entry, fresh=True)
        return memory.pk
    known = Memory.objects.within(scope).get(source=memory.source, kind=Memory.Kind.EXCHANGE)
    if known.answer == memory.answer or known.status == Memory.Status.TRASH:
        return known.pk
    changes = {"answer": memory.answer, "folded": memory.folded, "updated_at": timezone.now()}
    if known.status == Memory.Status.CURRENT:
        changes |= {"status": memory.status, "because": memory.because}
        provider().forget(scope, memories=[known.pk])
        if entry is not None:
            entry = replace(entry, memory=known.pk)
            provider().remember(scope, entry=entry)
            embed_later(scope, entry)
    Memory.objects.within(scope).filter(pk=known.pk).update(**changes)
    return known.pk


# Whose words they are, where they are not the person's own.
ELSEWHERE = {
    Memory.Origin.IMPORTED: gettext_noop("It was imported; it is not used until you accept it."),
    Memory.Origin.DOCUMENT: gettext_noop(
        "It comes from a document; it is not used until you accept it."
    ),
    Memory.Origin.ASSISTANT: gettext_noop(
        "The assistant said it, not you; it is not used until you accept it."
    ),
}


def add(
    scope: Scope,
    *,
    text: str,
    origin: str = Memory.Origin.PROFILE,
    zone: ZoneInfo | None = None,
) -> Memory:
    """Return the note that a person just added by hand, findable at once.

    The same claim again is confirmed instead. What reads like an order to the assistant waits for
    review, and so does, untrusted, what is of another origin than the person's own words. With the
    embedder away or slow the note is kept and found by its words (`.by_words`), by its meaning
    once a job has made its vector. `zone` is where the person is, if that is known; else it is
    looked up. Raises InvalidInput for a blank or too long text. Call it outside a transaction.
    """
    text = required_text(text, what="A memory", max_chars=MEMORY_CHARS)
    elsewhere = ELSEWHERE.get(Memory.Origin(origin), "")
    because = reason_to_wait(text) or elsewhere
    note = spell(
        Memory(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            kind=Memory.Kind.NOTE,
            text=text,
            origin=origin,
            trusted=not elsewhere,
            status=Memory.Status.WAITING if because else Memory.Status.CURRENT,
            because=because,
            safety=is_safety(text),
        )
    )
    return keep(scope, note, embedded_or_later(note, zone=zone))


_SAME = (
    "from memory_memory where tenant_id = %(tenant)s and user_id = %(user)s"
    " and key = %(new_key)s and kind <> 'exchange'"
)
# The same claim held true is no new row by constraint; what waits is looked for.
_KNOWN = f"""(exists (select {_SAME} and status = 'current')
  or exists (select {_SAME} and status = 'waiting'))"""
_KEPT = """
select exists (select from memory_memory where tenant_id = %(tenant)s and user_id = %(user)s
    and id = %(new_id)s),
  exists (select from memory_profile where tenant_id = %(tenant)s and user_id = %(user)s
    and not stale)
"""


def keep(scope: Scope, note: Memory, entry: Entry | None) -> Memory:
    """Return the note, stored and findable by its entry; or the same claim, now confirmed."""
    given = {"tenant": scope.tenant_id, "user": scope.user_id, **columns_of(note)}
    new = insertion(unless=_KNOWN if note.status == Memory.Status.WAITING else "")
    with jobs.holding(scope, f"{new};{_KEPT}", given) as rows:
        kept, written_of = rows[0]
        known = None if kept else known_claim(scope, note)
        if known is not None:
            return confirm(scope, known, at=timezone.now())
        note._state.adding = False
        make_findable(scope, note, entry, fresh=True)
        if written_of:
            changed(scope)
    return note


def embedded_or_later(memory: Memory, *, zone: ZoneInfo | None = None) -> Entry | None:
    """Return what the memory is found by: by its words alone, if no embedder answers in time.

    None for what may not be recalled.
    """
    if not findable(memory):
        return None
    return all_embedded_or_later([memory], zone=zone)[0]


def all_embedded_or_later(
    memories: Sequence[Memory], *, zone: ZoneInfo | None = None
) -> list[Entry]:
    """Return what each of these memories is found by; they wait for the embedder together."""
    embedder.follow()  # what another one makes now would be found by nobody
    return entries_in_time(memories, zone=zone)


def make_findable(
    scope: Scope, memory: Memory, entry: Entry | None, *, fresh: bool = False
) -> None:
    """Tell the provider of a memory; let a job make the vectors it lacks. In the transaction.

    `fresh` tells that it was never findable. `memory.by_words` then tells that it is found by its
    words alone for now.
    """
    if not findable(memory) or entry is None:
        if not fresh:
            provider().forget(scope, memories=[memory.pk])
        return
    provider().remember(scope, entry=entry, fresh=fresh)
    memory.by_words = embed_later(scope, entry)
