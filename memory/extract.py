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
from accounts.scope import Scope
from accounts.text import one_line
from memory import jobs
from memory.commands import told_to_remember
from memory.consolidate import Draft, consolidate
from memory.embedder import current as current_embedder
from memory.exchange import Exchange
from memory.find import Here, Hit, find
from memory.folding import words
from memory.gate import Claimed, refusal
from memory.jobs import Claim
from memory.keys import entries_of, spell
from memory.llm import Endpoint, complete_json
from memory.models import Memory
from memory.prompts import EXAMPLES, FACTS_SCHEMA, MOST_FACTS, extraction_messages, new_fence
from memory.suspicion import reason_to_wait
from memory.vectors import Embedded

logger = logging.getLogger(__name__)

MODEL_SECONDS = 75  # within a task's soft limit
KNOWN_FACTS = 8
CLAIMS = tuple(kind for kind in Memory.Kind.values if kind != Memory.Kind.EXCHANGE)
_TEMPLATES = [form for example in EXAMPLES for form in example]
# An answer of which nothing is left for these reasons was no answer.
_UNUSABLE = {"template", "reasoning", "not_plain_text", "too_long", "empty", "not_one_sentence"}


def ordered_drafts(claimed: Claim, exchange: Exchange) -> list[Draft]:
    """Return what the person orders to be remembered, in their own words; embeds it."""
    if claimed.step == "told":
        return []
    return _drafts(claimed.scope, exchange, _orders(exchange))


def _orders(exchange: Exchange) -> list[Claimed]:
    told = told_to_remember(exchange.question.text)
    return [Claimed(text=text, first_person=text, quote=text) for text in told]


def extract(claimed: Claim, exchange: Exchange, endpoint: Endpoint) -> None:
    """Learn from the person's words with a model's help, and close the job with what came of it.

    What the model finds is kept if the gate lets it through; what the person orders to be
    remembered is kept in any case. A model's answer that can't be used is told as `rejected`.
    Raises ProviderError when the model is away; orders are kept by then.
    """
    orders = [] if claimed.step == "told" else _orders(exchange)
    try:
        near = _near(claimed, exchange)
        answer = _ask(claimed.scope, endpoint, exchange, near)
    except Rejected as error:
        logger.warning("job %s: the extractor's answer was rejected: %s", claimed.id, error.code)
        _close(claimed, _drafts(claimed.scope, exchange, orders), rejected=error.code)
    except ProviderError:
        if orders:
            drafts = _drafts(claimed.scope, exchange, orders)
            with jobs.writing(claimed) as scope:
                jobs.step_done(claimed, "told", **learn(scope, claimed, drafts))
        raise
    else:
        _accept(claimed, exchange, orders, answer, near)


def _close(claimed: Claim, drafts: Sequence[Draft], **result: Any) -> None:
    with jobs.writing(claimed) as scope:
        jobs.finish(claimed, **learn(scope, claimed, drafts), **result)


def learn(scope: Scope, claimed: Claim, drafts: Sequence[Draft]) -> dict[str, Any]:
    """Return what became of the drafts, for the job's result; in the transaction that closes it."""
    if drafts and _forgotten(scope, drafts[0].memory.source):
        drafts = []
    outcome = consolidate(scope, drafts, at=timezone.now())
    before = claimed.result
    return {
        "facts": [*before.get("facts", []), *(str(fact) for fact in outcome.added)],
        "confirmed": [*before.get("confirmed", []), *(str(one) for one in outcome.confirmed)],
        "superseded": [str(old) for old in outcome.superseded],
    }


def _forgotten(scope: Scope, source: UUID | None) -> bool:
    """Tell whether the person has forgotten this exchange, also while it was being read."""
    trash = Memory.objects.within(scope).filter(status=Memory.Status.TRASH)
    return trash.filter(kind=Memory.Kind.EXCHANGE, source=source).exists()


def _near(claimed: Claim, exchange: Exchange) -> list[Hit]:
    """Return the known claims that the new ones may supersede."""
    question = claimed.question
    if question is None or question.model != current_embedder().name:
        made = current_embedder().embed([exchange.question.text[:2_000]])[0].tolist()
        question = Embedded(current_embedder().name, made)
    return find(
        claimed.scope,
        question=exchange.question.text,
        vector=question.vector,
        model=question.model,
        limit=KNOWN_FACTS,
        today=exchange.question.at.date(),
        here=Here([exchange.question.id], exchange.session_key),
        kinds=CLAIMS,
    )


def _ask(
    scope: Scope, endpoint: Endpoint, exchange: Exchange, near: Sequence[Hit]
) -> list[Claimed]:
    person = User.objects.only("time_zone").get(pk=scope.user_id)
    messages = extraction_messages(
        exchange.question.text,
        before=exchange.tail,
        known=[one.row.text for one in near],
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
    orders: Sequence[Claimed],
    answer: Sequence[Claimed],
    near: Sequence[Hit],
) -> None:
    """Keep what the gate lets through; an order in a model's own form is not kept twice."""
    statement = exchange.question.text
    told = told_to_remember(statement)
    refused: Counter[str] = Counter()
    accepted: list[Claimed] = []
    supersedes: list[UUID | None] = []
    covered: set[str] = set()
    for number, fact in enumerate(answer):
        code = refusal(fact, statement, templates=_TEMPLATES)
        code = "too_many" if number >= MOST_FACTS else code
        said = [text for text in told if _overlap(fact.quote, text)]
        if not code and claimed.step == "told" and said:
            code = "told"  # kept already, in the person's own words
        if code:
            refused[code] += 1
            continue
        covered.update(said)
        accepted.append(fact)
        supersedes.append(_old(fact.supersedes, near))
    left = [order for order in orders if order.text not in covered]
    unusable = min(refused.keys() & _UNUSABLE, default="") if not accepted else ""
    result: dict[str, Any] = {"refused": dict(refused)} if refused else {}
    if unusable:
        result["rejected"] = unusable
        logger.warning("job %s: the extractor's answer was not usable: %s", claimed.id, unusable)
    drafts = _drafts(claimed.scope, exchange, accepted + left, supersedes)
    _close(claimed, drafts, **result)


def _overlap(quote: str, order: str) -> bool:
    one, other = set(words(quote)), set(words(order))
    return len(one & other) >= 0.6 * min(len(one), len(other)) > 0


def _old(number: str, near: Sequence[Hit]) -> UUID | None:
    place = number.rstrip(".").removeprefix("#")
    if not place.isascii() or not place.isdigit() or not 1 <= int(place) <= len(near):
        return None
    return near[int(place) - 1].row.memory


def _drafts(
    scope: Scope,
    exchange: Exchange,
    facts: Sequence[Claimed],
    supersedes: Sequence[UUID | None] = (),
) -> list[Draft]:
    """Return the facts as they would be stored, with their vectors; outside a transaction."""
    if not facts:
        return []
    memories = [_as_memory(scope, exchange, fact) for fact in facts]
    olds = [*supersedes, *[None] * (len(facts) - len(supersedes))]
    return [
        Draft(memory, entry, old)
        for memory, entry, old in zip(memories, entries_of(memories), olds, strict=True)
    ]


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
