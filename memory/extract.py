"""Facts out of an exchange: from the person's own words only, and checked hard."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.utils import timezone

from accounts.errors import ProviderError, Rejected
from accounts.scope import Scope, entered
from accounts.text import one_line
from memory import jobs
from memory.answers import complete_json
from memory.claims import is_safety, same_claim, sentence, tells_change
from memory.commands import told_to_remember
from memory.consolidate import Draft, Old, consolidate
from memory.dates import day_start, tells_time, with_dates
from memory.embedder import current as current_embedder
from memory.exchange import Exchange
from memory.find import Here, Hit, find
from memory.folding import words
from memory.gate import Claimed, borne_part, refusal
from memory.jobs import Claim
from memory.keys import entries_in_time, spell
from memory.learn import consider
from memory.model_server import Endpoint
from memory.models import Memory
from memory.profile import changed
from memory.prompts import (
    EXAMPLES,
    FACTS_SCHEMA,
    MOST_FACTS,
    extraction_messages,
    list_of,
    new_fence,
)
from memory.suspicion import reason_for_claim, reason_to_wait
from memory.vectors import Embedded

logger = logging.getLogger(__name__)

MODEL_SECONDS = 75  # within a task's soft limit
KNOWN_FACTS = 8
CLAIMS = tuple(kind for kind in Memory.Kind.values if kind != Memory.Kind.EXCHANGE)
_TEMPLATES = [form for example in EXAMPLES for form in example]
# An answer of which nothing is left for these reasons was no answer.
UNUSABLE = {
    *("template", "reasoning", "not_plain_text", "too_long", "empty", "not_one_sentence"),
    "wrong_shape",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the extractor gave: the claims that have the right form, and how many have not."""

    claims: Sequence[Claimed] = ()
    refused: Counter[str] = field(default_factory=Counter)


def ordered_drafts(claimed: Claim, exchange: Exchange) -> list[Draft]:
    """Return what the person orders to be remembered, in their own words; embeds it."""
    if claimed.step == "told":
        return []
    orders = _orders(exchange, _saved(claimed.scope, exchange))
    return _drafts(claimed, exchange, orders)


def _orders(exchange: Exchange, saved: Sequence[str]) -> list[Claimed]:
    told = told_to_remember(exchange.question.text)
    orders = [Claimed(text=text, first_person="", quote=text) for text in told]
    return [order for order in orders if not _says(saved, order.text)]


def _saved(scope: Scope, exchange: Exchange) -> list[str]:
    """Return what the model kept by itself while it replied: that is not learnt once more.

    Also of what was taken back since: it does not return from the same message.
    """
    if not exchange.saved:
        return []
    with entered(scope):
        kept = Memory.objects.within(scope).filter(pk__in=exchange.saved)
        return list(kept.values_list("text", flat=True))


SAID_BY_SAVED = 0.75  # of a claim's words


def _says(saved: Sequence[str], text: str) -> bool:
    return any(
        same_claim(one, text) or borne_part(text, words(one)) >= SAID_BY_SAVED for one in saved
    )


def extract(claimed: Claim, exchange: Exchange, endpoint: Endpoint, *, knows: bool) -> None:
    """Learn from the person's words with a model's help, and close the job with what came of it.

    What the model finds is kept if the gate lets it through; what the person orders to be
    remembered is kept in any case. A model's answer that can't be used is told as `rejected`.
    `knows` is whether there are claims that a new one may supersede.
    Raises ProviderError when the model is away; orders are kept by then.
    """
    saved = _saved(claimed.scope, exchange)
    orders = [] if claimed.step == "told" else _orders(exchange, saved)
    try:
        near = _near(claimed, exchange) if knows else []
        answer = _ask(claimed, endpoint, exchange, near)
    except Rejected as error:
        logger.warning("job %s: the extractor's answer was rejected: %s", claimed.id, error.code)
        drafts = _drafts(claimed, exchange, orders)
        _close(claimed, exchange, drafts, rejected=error.code)
    except ProviderError:
        if orders:
            drafts = _drafts(claimed, exchange, orders)
            with jobs.writing(claimed) as scope:
                jobs.step_done(claimed, "told", **learn(scope, claimed, drafts))
        raise
    else:
        _accept(claimed, exchange, orders, answer, near, saved)


def _close(
    claimed: Claim,
    exchange: Exchange,
    drafts: Sequence[Draft],
    *,
    refused: Counter[str] | None = None,
    **result: Any,
) -> None:
    with jobs.writing(claimed) as scope:
        learnt = learn(scope, claimed, drafts)
        counts = Counter(learnt.pop("refused", {})) + (refused or Counter())
        if counts:
            result["refused"] = dict(counts)
        jobs.finish(claimed, **learnt, **result)
        consider(scope, claimed, exchange.question.text)


def learn(scope: Scope, claimed: Claim, drafts: Sequence[Draft]) -> dict[str, Any]:
    """Return what became of the drafts, for the job's result; in the transaction that closes it."""
    if drafts and _forgotten(scope, drafts[0].memory.source):
        drafts = []
    outcome = consolidate(scope, drafts, at=timezone.now())
    before = claimed.result
    result: dict[str, Any] = {
        "facts": [*before.get("facts", []), *(str(fact) for fact in outcome.added)],
        "confirmed": [*before.get("confirmed", []), *(str(one) for one in outcome.confirmed)],
        "superseded": [str(old) for old in outcome.superseded],
    }
    if outcome.rejected:
        result["refused"] = dict(outcome.rejected)
    if outcome.added or outcome.superseded:
        changed(scope)
    return result


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
        today=exchange.question.at.astimezone(claimed.zone).date(),
        here=Here([exchange.question.id], exchange.session_key),
        kinds=CLAIMS,
    )


def _ask(claimed: Claim, endpoint: Endpoint, exchange: Exchange, near: Sequence[Hit]) -> Answer:
    messages = extraction_messages(
        exchange.question.text,
        before=exchange.tail,
        known=[one.row.text for one in near],
        said_at=exchange.question.at.astimezone(claimed.zone),
        fence=new_fence(),
    )
    answer = complete_json(
        endpoint,
        messages,
        FACTS_SCHEMA,
        timeout=MODEL_SECONDS,
        name="facts",
        accepts=list_of("facts"),
    )
    read = [_claim(given) for given in answer["facts"]]
    claims = [claim for claim in read if claim is not None]
    lacking = len(read) - len(claims)
    return Answer(claims, Counter({"wrong_shape": lacking} if lacking else {}))


def _claim(given: Any) -> Claimed | None:
    """Return a fact as the extractor gives it; None without a text and what it rests on."""
    if not isinstance(given, dict):
        return None
    told = {name: given.get(name) for name in _TEXTS}
    if not isinstance(told["text"], str) or not isinstance(told["quote"], str):
        return None
    spelt = {name: text if isinstance(text, str) else "" for name, text in told.items()}
    return Claimed(
        text=one_line(spelt["text"]),
        first_person=one_line(spelt["first_person"]),
        quote=spelt["quote"],
        supersedes=spelt["supersedes"].strip(),
        valid_from=spelt["valid_from"].strip(),
        valid_until=spelt["valid_until"].strip(),
        safety=given.get("safety") is True,
    )


_TEXTS = ("text", "first_person", "quote", "supersedes", "valid_from", "valid_until")


def _accept(
    claimed: Claim,
    exchange: Exchange,
    orders: Sequence[Claimed],
    answer: Answer,
    near: Sequence[Hit],
    saved: Sequence[str],
) -> None:
    """Keep what the gate lets through; what is kept already in another form is not kept twice."""
    statement = exchange.question.text
    said_at = exchange.question.at.astimezone(claimed.zone)
    told = told_to_remember(statement)
    refused = Counter(answer.refused)
    accepted: list[Claimed] = []
    covered: set[str] = set()
    for number, given in enumerate(answer.claims):
        fact = replace(
            given,
            text=with_dates(given.text, said_at),
            first_person=with_dates(given.first_person, said_at),
        )
        code = refusal(fact, statement, templates=_TEMPLATES, said_at=said_at)
        code = "too_many" if number >= MOST_FACTS else code
        said = [text for text in told if _overlap(fact.quote, text)]
        if not code and claimed.step == "told" and said:
            code = "told"  # kept already, in the person's own words
        if not code and _says(saved, fact.text):
            code = "saved"
        if code:
            refused[code] += 1
            continue
        covered.update(said)
        accepted.append(fact)
    left = [order for order in orders if order.text not in covered]
    unusable = min(refused.keys() & UNUSABLE, default="") if not accepted else ""
    result: dict[str, Any] = {}
    if unusable:
        result["rejected"] = unusable
        logger.warning("job %s: the extractor's answer was not usable: %s", claimed.id, unusable)
    before = len(told) if claimed.step == "told" else 0
    drafts = _drafts(claimed, exchange, accepted + left, near, before=before)
    _close(claimed, exchange, drafts, refused=refused, **result)


def _overlap(quote: str, order: str) -> bool:
    one, other = set(words(quote)), set(words(order))
    return len(one & other) >= 0.6 * min(len(one), len(other)) > 0


def _old(number: str, near: Sequence[Hit]) -> Hit | None:
    place = number.rstrip(".").removeprefix("#")
    if not place.isascii() or not place.isdigit() or not 1 <= int(place) <= len(near):
        return None
    return near[int(place) - 1]


def _drafts(
    claimed: Claim,
    exchange: Exchange,
    facts: Sequence[Claimed],
    near: Sequence[Hit] = (),
    *,
    before: int = 0,
) -> list[Draft]:
    """Return the facts as they would be stored, with their vectors; outside a transaction.

    `before` is how many the message has given already.
    """
    if not facts:
        return []
    said_at = exchange.question.at.astimezone(claimed.zone)
    memories = [
        _as_memory(claimed.scope, exchange, fact, number, said_at)
        for number, fact in enumerate(facts, before)
    ]
    olds = [_old(fact.supersedes, near) for fact in facts]
    nearness = _nearness(memories, olds)
    entries = entries_in_time(memories, zone=claimed.zone)
    return [
        Draft(
            memory,
            entry,
            Old(old.row.memory, old.row.text, nearness[memory.pk]) if old else None,
            changed=tells_change(exchange.question.text),
            told=exchange.question.text,
        )
        for memory, entry, old in zip(memories, entries, olds, strict=True)
    ]


def _nearness(memories: Sequence[Memory], olds: Sequence[Hit | None]) -> dict[UUID, float]:
    """Return how near each fact is to the one that it is said to make untrue: a cosine."""
    pairs = [(memory, old) for memory, old in zip(memories, olds, strict=True) if old]
    if not pairs:
        return {}
    texts = [text for memory, old in pairs for text in (memory.text, old.row.text)]
    vectors = current_embedder().embed(texts)
    return {
        memory.pk: float(np.dot(vectors[2 * number], vectors[2 * number + 1]))
        for number, (memory, _old) in enumerate(pairs)
    }


def _as_memory(
    scope: Scope, exchange: Exchange, fact: Claimed, number: int, said_at: datetime
) -> Memory:
    because = reason_for_claim(fact.text) or reason_to_wait(exchange.question.text)
    text = sentence(with_dates(fact.text, said_at))
    first_person = with_dates(fact.first_person, said_at)
    until = _valid_until(fact, exchange.question.text, said_at)
    return spell(
        Memory(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            kind=Memory.Kind.FACT,
            text=text,
            first_person=first_person if _is_form_of(first_person, text) else "",
            origin=Memory.Origin.OWN_WORDS,
            status=Memory.Status.WAITING if because else Memory.Status.CURRENT,
            because=because,
            quote=fact.quote[:2_000],
            source=exchange.question.id,
            session_key=exchange.session_key,
            safety=fact.safety or is_safety(text),
            # When it was said; in the order of the statement.
            created_at=exchange.question.at + timedelta(microseconds=number),
            valid_from=_valid_from(fact, exchange.question.text, said_at, until),
            valid_until=until,
        )
    )


def _is_form_of(first_person: str, text: str) -> bool:
    """Tell whether it is the same claim in the first person: it says no more than the third."""
    if not first_person or first_person == text or reason_for_claim(first_person):
        return False
    known = set(words(text))
    more = [word for word in words(first_person) if word not in known]
    return len(more) <= max(3, len(known) // 2)


def _valid_until(fact: Claimed, statement: str, said_at: datetime) -> datetime | None:
    """Return when a claim ends, if the person named a day to come; the end of that day there."""
    day = _named_day(fact.valid_until, statement, said_at)
    end = day + timedelta(days=1) if day else None
    return end if end and end > said_at else None


def _valid_from(
    fact: Claimed, statement: str, said_at: datetime, until: datetime | None
) -> datetime:
    day = _named_day(fact.valid_from, statement, said_at)
    return day if day and (until is None or day < until) else said_at


def _named_day(given: str, statement: str, said_at: datetime) -> datetime | None:
    """Return when a day begins that an extractor gives; None unless the person spoke of time."""
    if not given or said_at.tzinfo is None or not tells_time(statement, said_at):
        return None
    return day_start(given, said_at=said_at, zone=said_at.tzinfo)
