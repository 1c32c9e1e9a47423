"""script/bench recall DATA...: how much of the evidence is found, on conversations with questions.

Each DATA is a folder with `<set>.messages.jsonl` and `<set>.questions.jsonl`, or one such file of
messages. A line of messages has user_id, session_id, message_id, timestamp, speaker, text; one of
questions question_id, user_id, question, evidence (message ids) and category. The messages enter
through the rows that auto-store writes, one memory each; the questions through memory.find. No
language model takes part. Beside the whole, the arms alone: cosine, and BM25.

Recall at k is the share of a question's evidence among the first k; `all@k` the share of questions
with all of it there; intervals are 95 %, by bootstrap over conversations.
"""

import argparse
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from local.front import command
from local.progress import say, step
from local.refusal import Refusal

from .rig.tally import table

if TYPE_CHECKING:
    from accounts.scope import Scope

DEEP = 20
COLUMNS = ("R@1", "R@5", "R@10", "R@20", "all@5", "all@10", "MRR", "nDCG@10")
ROLES = frozenset({"user", "assistant"})
REMEMBERED_AT_ONCE = 64

type Row = Mapping[str, Any]
type Ranker = Callable[[str], list[str]]


@dataclass(slots=True)
class Told:
    """One conversation in the database: which memory is which message, and the last day."""

    scope: "Scope"
    message_of: dict[UUID, str] = field(default_factory=dict)
    message_at: dict[int, str] = field(default_factory=dict)
    today: date = date.min


def main(arguments: Sequence[str]) -> int:
    """Measure each set and print its tables; write the rankings where asked for."""
    parser = argparse.ArgumentParser(prog="script/bench recall", description=__doc__)
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rankings there")
    wanted = parser.parse_args(arguments)
    rankings: dict[str, dict[str, list[str]]] = {}
    for messages in _sets(wanted.data):
        name = messages.name.removesuffix(".messages.jsonl")
        rankings[name] = _measured(name, messages)
    if wanted.json:
        wanted.json.write_text(json.dumps(rankings) + "\n")
        say(f"Written to {wanted.json}.")
    return 0


def _sets(given: Sequence[Path]) -> list[Path]:
    files = [
        file
        for place in given
        for file in (sorted(place.glob("*.messages.jsonl")) if place.is_dir() else [place])
    ]
    for file in files:
        if not file.is_file() or not _questions_of(file).is_file():
            raise Refusal(f"There is no {file} with its questions beside it.")
    if not files:
        raise Refusal("No file of messages is there: <set>.messages.jsonl.")
    return files


def _questions_of(messages: Path) -> Path:
    return messages.with_name(messages.name.replace(".messages.", ".questions."))


def _read(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def _measured(name: str, file: Path) -> dict[str, list[str]]:
    questions = _read(_questions_of(file))
    by_person: defaultdict[str, list[Row]] = defaultdict(list)
    for message in _read(file):
        by_person[message["user_id"]].append(message)
    with step(f"{name}: {sum(map(len, by_person.values())):,} messages of {len(by_person)} people"):
        told = {person: _tell(person, messages) for person, messages in by_person.items()}
    ways: dict[str, list[dict[str, float]]] = {"dense alone": [], "BM25 alone": [], "whole": []}
    kept: dict[str, list[str]] = {}
    with step(f"{name}: {len(questions):,} questions"):
        for question in questions:
            rankers = _rankers(told[question["user_id"]])
            for way, ranker in rankers.items():
                ranking = ranker(question["question"])
                ways[way].append(metrics(ranking, question["evidence"]))
                if way == "whole":
                    kept[question["question_id"]] = ranking
    people = [question["user_id"] for question in questions]
    categories = [question["category"] for question in questions]
    for way, found in ways.items():
        rows: list[list[object]] = []
        for category in [*sorted(set(categories)), "all"]:
            some = [
                one for one, own in zip(found, categories, strict=True) if category in {own, "all"}
            ]
            means = [round(100 * _mean(some, column), 1) for column in COLUMNS]
            rows.append([category, len(some), *means])
        print("\n" + table([f"{name}, {way}", "n", *COLUMNS], rows), flush=True)
    whole = ways["whole"]
    for column in ("R@5", "R@10", "nDCG@10"):
        low, high = interval([one[column] for one in whole], people)
        print(f"{name} {column} {_mean(whole, column):.3f} [{low:.3f}, {high:.3f}]")
    print(
        f"all {name} "
        + " ".join(f"recall@{k} {_mean(whole, f'R@{k}'):.4f}" for k in (1, 5, 10, 20)),
        flush=True,
    )
    return kept


def _mean(rows: Sequence[Mapping[str, float]], column: str) -> float:
    return sum(row[column] for row in rows) / len(rows)


def metrics(ranking: Sequence[str], evidence: Sequence[str]) -> dict[str, float]:
    """Return how well a ranking of message ids finds the evidence; a repeated id counts once."""
    gold = set(evidence)
    hits = [one in gold for one in dict.fromkeys(ranking)]
    measured = {f"R@{k}": sum(hits[:k]) / len(gold) for k in (1, 5, 10, 20)}
    measured |= {f"all@{k}": float(sum(hits[:k]) == len(gold)) for k in (5, 10)}
    first = hits.index(True) + 1 if True in hits else math.inf
    gained = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits[:10]))
    most = sum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))
    return measured | {"MRR": 1 / first, "nDCG@10": gained / most}


def interval(
    values: Sequence[float], groups: Sequence[str], *, times: int = 2_000
) -> Sequence[float]:
    """Return the 95 % percentile interval of the mean, by bootstrap over the groups."""
    by_group: defaultdict[str, list[float]] = defaultdict(list)
    for value, group in zip(values, groups, strict=True):
        by_group[group].append(value)
    sums = np.array([sum(one) for one in by_group.values()])
    sizes = np.array([len(one) for one in by_group.values()])
    drawn = np.random.default_rng(0).integers(0, len(sums), (times, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return [low, high]


def _tell(person: str, messages: Sequence[Row]) -> Told:
    """Return a new person to whom these messages are known, as auto-store would have kept them."""
    from django.db import connection

    from accounts.ids import random_id
    from accounts.join import new_person
    from accounts.models import Membership
    from accounts.scope import entered, entered_person
    from memory import embedder
    from memory.exchange import Speaker
    from memory.keys import ANSWER_CHARS, passages, spell
    from memory.models import Memory
    from memory.places import place_in_session
    from memory.providers.base import Entry, Unit, provider

    account = new_person(email=f"{random_id()}@example.org", password=None, name=person[:40])
    with entered_person(account.pk):
        told = Told(Membership.objects.get(user=account).scope)
    chosen = embedder.current()
    sessions: dict[str, UUID] = {}
    positions: defaultdict[str, int] = defaultdict(int)
    for start in range(0, len(messages), REMEMBERED_AT_ONCE):
        memories, parts = [], []
        for message in messages[start : start + REMEMBERED_AT_ONCE]:
            session = sessions.setdefault(message["session_id"], random_id())
            at = datetime.fromisoformat(message["timestamp"]).replace(tzinfo=UTC)
            assistant = message["speaker"] == "assistant"
            memory = spell(
                Memory(
                    tenant_id=told.scope.tenant_id,
                    user_id=told.scope.user_id,
                    kind=Memory.Kind.EXCHANGE,
                    text=message["text"] or "…",
                    origin=Memory.Origin.OWN_WORDS,
                    source=random_id(),
                    session_key=session,
                    created_at=at,
                    valid_from=at,
                )
            )
            place = place_in_session(session, positions[message["session_id"]])
            positions[message["session_id"]] += 1
            texts = (
                passages(memory.text, most=1, size=ANSWER_CHARS)
                if assistant
                else passages(memory.text)
            )
            name = "" if message["speaker"] in ROLES else str(message["speaker"])
            speaker = Speaker.ASSISTANT if assistant else Speaker.PERSON
            memories.append(memory)
            parts.append((place, speaker, name, at.date(), texts))
            told.message_of[memory.pk] = told.message_at[place] = message["message_id"]
            told.today = max(told.today, at.date())
        every = [text for *_rest, texts in parts for text in texts]
        vectors = iter(chosen.embed(every).tolist() if every else [])
        with entered(told.scope):
            Memory.unscoped.bulk_create(memories)
            for memory, (place, speaker, name, day, texts) in zip(memories, parts, strict=True):
                own = [next(vectors) for _text in texts]
                unit = Unit(place, speaker, name, day, memory.text, own)
                entry = Entry(
                    memory.pk,
                    memory.kind,
                    memory.created_at,
                    memory.source,
                    memory.session_key,
                    chosen.name,
                    [unit],
                )
                provider().remember(told.scope, entry=entry)
    connection.close()
    return told


def _rankers(told: Told) -> dict[str, Ranker]:
    from memory import embedder
    from memory.find import find
    from memory.providers.pgvector import PgvectorProvider
    from memory.terms import read_question

    chosen = embedder.current()

    def vector(question: str) -> list[float]:
        made: list[float] = chosen.embed([question])[0].tolist()
        return made

    def whole(question: str) -> list[str]:
        hits = find(
            told.scope,
            question=question,
            vector=vector(question),
            model=chosen.name,
            limit=DEEP,
            today=told.today,
        )
        return [told.message_of[hit.row.memory] for hit in hits]

    def arm(question: str, column: str) -> list[str]:
        ranked = PgvectorProvider().arms(
            told.scope,
            question=read_question(question, today=told.today),
            vector=vector(question),
            model=chosen.name,
        )
        every = ranked(len(told.message_of))
        score = np.nan_to_num(getattr(every, column), nan=-1.0)
        best = np.argsort(-score, kind="stable")[:DEEP]
        return [told.message_at[place] for place in every.places[best].tolist()]

    return {
        "dense alone": lambda question: arm(question, "cosine"),
        "BM25 alone": lambda question: arm(question, "bm25"),
        "whole": whole,
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    import django

    django.setup()
    command(main)
