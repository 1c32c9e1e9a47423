"""Facts out of an exchange: from the person's own words only, and checked hard."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone

from accounts.errors import ProviderError, Rejected
from accounts.models import User
from accounts.scope import Scope, entered
from accounts.text import one_line
from memory import jobs
from memory.commands import told_to_remember
from memory.consolidate import Draft, consolidate
from memory.embedder import current as current_embedder
from memory.exchange import Exchange
from memory.folding import words
from memory.gate import Claimed, refusal
from memory.jobs import Claim
from memory.keys import entries_of, spell
from memory.llm import Endpoint, complete_json
from memory.model_choice import current_endpoint
from memory.models import Memory
from memory.prompts import EXAMPLES, FACTS_SCHEMA, MOST_FACTS, extraction_messages, new_fence
from memory.providers.base import Found, provider
from memory.suspicion import reason_to_wait

logger = logging.getLogger(__name__)

MODEL_SECONDS = 75  # within a task's soft limit
KNOWN_FACTS = 8
_TEMPLATES = [form for example in EXAMPLES for form in example]
# An answer of which nothing is left for these reasons was no answer.
_UNUSABLE = {"template", "reasoning", "not_plain_text", "too_long", "empty", "not_one_sentence"}


def extract(claimed: Claim, exchange: Exchange) -> Claim:
    """Return the claim with what was learnt: facts added, confirmed, superseded, refused and why.

    With a model, what it finds and the gate lets through; without one nothing is guessed. What the
    person orders to be remembered is kept in either case. A model's answer that can't be used is
    told as `rejected`. Raises ProviderError when the model is away; orders are kept by then.
    """
    if claimed.step in {"learnt", "extracted"}:
        return claimed
    if claimed.step != "told":
        known = _learnt_before(claimed.scope, exchange.question.id)
        if known:
            return _noted(claimed, facts=[str(fact) for fact in known])
    orders = [] if claimed.step == "told" else told_to_remember(exchange.question.text)
    endpoint = current_endpoint() if claimed.result.get("auto_store", True) else None
    if endpoint is None:
        return _write(claimed, exchange, [_ordered(text) for text in orders], step="learnt")
    try:
        near = _near(claimed.scope, exchange)
        answer = _ask(claimed.scope, endpoint, exchange, near)
    except Rejected as error:
        logger.warning("job %s: the extractor's answer was rejected: %s", claimed.id, error.code)
        ordered = [_ordered(text) for text in orders]
        return _write(claimed, exchange, ordered, step="learnt", rejected=error.code)
    except ProviderError:
        if orders:
            _write(claimed, exchange, [_ordered(text) for text in orders], step="told")
        raise
    return _accept(claimed, exchange, orders, answer, near)


def _learnt_before(scope: Scope, source: UUID) -> list[UUID]:
    """Return the facts that came from this message; whatever became of them, there are no more."""
    with entered(scope):
        facts = Memory.objects.within(scope).facts().filter(source=source)
        return list(facts.order_by("created_at").values_list("pk", flat=True))


def _noted(claimed: Claim, **result: Any) -> Claim:
    with jobs.writing(claimed):
        return jobs.step_done(claimed, "learnt", **result)


def _near(scope: Scope, exchange: Exchange) -> list[Found]:
    """Return the known facts that the new ones may supersede."""
    vector = current_embedder().embed([exchange.question.text[:2_000]])[0].tolist()
    found = provider().recall(
        scope,
        vector=vector,
        model=current_embedder().name,
        limit=4 * KNOWN_FACTS,
        exclude_sources=[exchange.question.id],
    )
    return [one for one in found if one.kind != Memory.Kind.EXCHANGE][:KNOWN_FACTS]


def _ask(
    scope: Scope, endpoint: Endpoint, exchange: Exchange, near: Sequence[Found]
) -> list[Claimed]:
    person = User.objects.only("time_zone").get(pk=scope.user_id)
    messages = extraction_messages(
        exchange.question.text,
        before=exchange.tail,
        known=[one.text for one in near],
        said_at=exchange.question.at.astimezone(ZoneInfo(person.time_zone)),
        fence=new_fence(),
    )
    answer = complete_json(endpoint, messages, FACTS_SCHEMA, timeout=MODEL_SECONDS, name="facts")
    return [
        Claimed(
            text=one_line(fact["text"]),
            first_person=one_line(fact["first_person"]),
            quote=fact["quote"],
            supersedes=fact["supersedes"].strip(),
        )
        for fact in answer["facts"]
    ]


def _accept(
    claimed: Claim,
    exchange: Exchange,
    orders: Sequence[str],
    answer: Sequence[Claimed],
    near: Sequence[Found],
) -> Claim:
    statement = exchange.question.text
    told = told_to_remember(statement)
    refused: Counter[str] = Counter()
    accepted: list[tuple[Claimed, UUID | None]] = []
    covered: set[str] = set()
    for number, fact in enumerate(answer):
        code = (
            "too_many" if number >= MOST_FACTS else refusal(fact, statement, templates=_TEMPLATES)
        )
        orders_said = [text for text in told if _overlap(fact.quote, text)]
        if not code and claimed.step == "told" and orders_said:
            code = "told"  # kept already, in the person's own words
        if code:
            refused[code] += 1
            continue
        covered.update(orders_said)
        accepted.append((fact, _old(fact.supersedes, near)))
    accepted += [(_ordered(text), None) for text in orders if text not in covered]
    unusable = "" if accepted or not refused.keys() & _UNUSABLE else min(refused.keys() & _UNUSABLE)
    result: dict[str, Any] = {"refused": dict(refused)} if refused else {}
    if unusable:
        result["rejected"] = unusable
        logger.warning(
            "job %s: nothing of the extractor's answer was usable: %s", claimed.id, unusable
        )
    return _write(
        claimed,
        exchange,
        [fact for fact, _old_id in accepted],
        step="learnt",
        supersedes=[old for _fact, old in accepted],
        **result,
    )


def _overlap(quote: str, order: str) -> bool:
    one, other = set(words(quote)), set(words(order))
    return len(one & other) >= 0.6 * min(len(one), len(other)) > 0


def _old(number: str, near: Sequence[Found]) -> UUID | None:
    place = number.rstrip(".").removeprefix("#")
    if not place.isascii() or not place.isdigit() or not 1 <= int(place) <= len(near):
        return None
    return near[int(place) - 1].memory


def _ordered(text: str) -> Claimed:
    return Claimed(text=text, first_person=text, quote=text)


def _write(
    claimed: Claim,
    exchange: Exchange,
    facts: Sequence[Claimed],
    *,
    step: str,
    supersedes: Sequence[UUID | None] = (),
    **result: Any,
) -> Claim:
    """Store what was accepted, and that this step is done, in one transaction."""
    memories = [_as_memory(claimed.scope, exchange, fact) for fact in facts]
    entries = entries_of(memories) if memories else []
    olds = supersedes or [None] * len(memories)
    drafts = [
        Draft(memory, entry, old)
        for memory, entry, old in zip(memories, entries, olds, strict=True)
    ]
    with jobs.writing(claimed) as scope:
        outcome = consolidate(scope, drafts, at=timezone.now())
        added = [*claimed.result.get("facts", []), *(str(fact) for fact in outcome.added)]
        confirmed = [*claimed.result.get("confirmed", []), *(str(one) for one in outcome.confirmed)]
        return jobs.step_done(
            claimed,
            step,
            facts=added,
            confirmed=confirmed,
            superseded=[str(old) for old in outcome.superseded],
            **result,
        )


def _as_memory(scope: Scope, exchange: Exchange, fact: Claimed) -> Memory:
    because = reason_to_wait(fact.text) or reason_to_wait(exchange.question.text)
    text = fact.text if fact.text[-1:] in ".!?。！？" else f"{fact.text}."
    fact = replace(fact, text=text[:1].upper() + text[1:])
    return spell(
        Memory(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            kind=Memory.Kind.FACT,
            text=fact.text,
            first_person=fact.first_person if fact.first_person != fact.text else "",
            origin=Memory.Origin.OWN_WORDS,
            status=Memory.Status.WAITING if because else Memory.Status.CURRENT,
            because=because,
            quote=fact.quote[:2_000],
            source=exchange.question.id,
            session_key=exchange.session_key,
            valid_from=exchange.question.at,
        )
    )
