"""script/bench memory: what memories cost a person with few and one with very many.

One person each with 100, 1,000, 10,000 and 100,000 memories, among a million of 500 others. Half
of the memories are exchanges, which have two vectors each. The floor, in the same run and in turns
with recall, is what a program would do that has only a table: the exact query by psycopg, on a
copy of the table of vectors whose only indexes are the primary key and a B-tree on the owner.

    recall       as a reply does it: limits, core, both arms, scores, choice; embedding apart
    remember     a fact with its vector, stored and findable, in a transaction of its own
    edit         a fact's text changed, findable by it; embedding apart
    list page    the memory page, by the application, without the network
    purge        all memories of a person made for it, once

They run in turns, one of each of every person in a round, so that none finds the database's cache
filled by itself: as it is where many people ask.

The database takes some minutes the first time and 9 GB; it is kept, with what `remember` and
`edit` change taken back. `--sizes` and `--others` make a smaller one.
"""

import argparse
import json
import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from uuid import UUID

import numpy as np
from local.front import command
from local.progress import say, step

from .rig.crowd import SEARCHED, Measured, crowd, one_more, superuser
from .rig.people import QUESTIONS
from .rig.tally import percentile, table

if TYPE_CHECKING:
    from accounts.scope import Scope

SIZES = "100,1000,10000,100000"
OTHERS = 500
NEAREST = 10
TEXT = "I keep a green notebook with the number {number} in the drawer of my desk in Lisbon."
FLOOR = (
    "select memory_id, place, part from bench.floor where tenant_id = %(tenant)s"
    " and user_id = %(user)s order by embedding <=> %(vector)s::halfvec limit 10"
)


@dataclass(slots=True)
class Timed:
    """Repeated runs of one thing: wall time of each in ms."""

    name: str
    work: Callable[[int], object]
    wall: list[float] = field(default_factory=list)

    def run(self, number: int) -> None:
        """Do it once."""
        start = time.perf_counter()
        self.work(number)
        self.wall.append(1000 * (time.perf_counter() - start))

    def row(self, floor: float | None = None) -> list[object]:
        """Return a line of the table; with the floor's p50, this one's as a share of it."""
        share = "" if floor is None else percentile(self.wall, 50) / floor
        return [
            self.name,
            len(self.wall),
            percentile(self.wall, 50),
            percentile(self.wall, 95),
            statistics.fmean(self.wall),
            share,
        ]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; write JSON where asked for."""
    parser = argparse.ArgumentParser(
        prog="script/bench memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", default=SIZES, help="memories of each person, with commas")
    parser.add_argument("--others", type=int, default=OTHERS, help="people, with 2,000 each")
    parser.add_argument("--times", type=int, default=60, help="how often each is run")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    wanted = parser.parse_args(arguments)
    sizes = [int(size) for size in wanted.sizes.split(",") if size.isascii() and size.isdigit()]
    if (
        not sizes
        or not all(2 <= size <= 100_000 for size in sizes)
        or wanted.times < 2
        or wanted.others < 0
    ):
        parser.error("--sizes takes whole numbers from 2 to 100,000 with commas, --times 2 or more")
    import django

    django.setup()
    people = crowd(sizes, others=wanted.others)
    with ExitStack() as stack:
        timed = {person: timings(person, stack) for person in people}
        with step(f"{wanted.times} rounds, and one before that does not count"):
            rounds(list(timed.values()), wanted.times)
    report: dict[int, dict[str, list[float]]] = {}
    for person, ones in timed.items():
        with step(f"{person.memories:,} memories, purge"):
            ones.append(purged(person.memories))
        floor = percentile(ones[0].wall, 50)
        rows = [ones[0].row(), ones[1].row(floor), *(one.row() for one in ones[2:])]
        head = [f"{person.memories:,} memories, ms", "n", "p50", "p95", "mean", ": floor"]
        print("\n" + table(head, rows))
        print(exactness(person), flush=True)
        report[person.memories] = {one.name: one.wall for one in ones}
    print("\n" + table(["MiB", "table", "indexes"], sizes_of_tables()))
    if wanted.json:
        Path(wanted.json).write_text(json.dumps(report, indent=1) + "\n")
        say(f"Written to {wanted.json}.")
    return 0


def scope_of(person: Measured) -> "Scope":
    """Return whose rows these are."""
    from accounts.scope import Scope

    return Scope(person.tenant_id, person.user_id)


def rounds(people: Sequence[Sequence[Timed]], times: int) -> None:
    """Run everything of everybody so many times, in turns: nobody has the caches to themselves."""
    for number in range(times + 1):
        for timed in people:
            for one in timed:
                one.run(number)
        if not number:
            for one in (one for timed in people for one in timed):
                one.wall.clear()


def timings(person: Measured, stack: ExitStack) -> list[Timed]:
    """Return what is timed for one person: the floor, recall, and what else there is."""
    import psycopg
    from pgvector import HalfVector

    from memory.embedder import current
    from memory.recall import recall

    scope = scope_of(person)
    vectors = current().embed(QUESTIONS).tolist()
    bare = stack.enter_context(
        psycopg.connect(
            os.environ["DATABASE_URL"], options="-c role=recollect_app -c jit=off", autocommit=True
        )
    )

    def floor(number: int) -> object:
        vector = HalfVector(vectors[number % len(vectors)]).to_text()
        given = {"tenant": scope.tenant_id, "user": scope.user_id, "vector": vector}
        return bare.execute(FLOOR, given).fetchall()

    def recalled(number: int) -> object:
        asked = number % len(vectors)
        found = recall(scope, question=QUESTIONS[asked], vector=vectors[asked])
        if found.note and number:  # by words alone it would be quicker
            raise RuntimeError("a recall took longer than its deadline")
        return found

    changes = stack.enter_context(Changes(scope, vectors[0]))
    return [
        Timed("floor: the bare query", floor),
        Timed("recall", recalled),
        Timed("remember", changes.remember),
        Timed("edit", changes.edit),
        Timed("list page", page_of(person)),
    ]


class Changes:
    """What `remember` and `edit` do to a person's memories; taken back in the end."""

    def __init__(self, scope: "Scope", vector: Sequence[float]) -> None:
        self.scope, self.vector = scope, vector
        self.made: list[UUID] = []

    def __enter__(self) -> "Changes":
        return self

    def __exit__(self, *exception: object) -> None:
        from accounts.scope import entered
        from memory.models import Memory
        from memory.providers.base import provider

        with entered(self.scope):
            provider().forget(self.scope, memories=self.made)
            Memory.objects.within(self.scope).filter(pk__in=self.made).delete()

    def remember(self, number: int) -> None:
        """Store a fact and make it findable."""
        from memory.remember import keep

        memory = self._memory(number)
        keep(self.scope, memory, self._entry(memory))
        self.made.append(memory.pk)

    def edit(self, number: int) -> None:
        """Change the text of a fact that `remember` made."""
        from memory.edit import edit

        with patch("memory.edit.embedded_or_later", self._entry):
            edit(self.scope, memory=self.made[number % len(self.made)], text=self._text())

    def _memory(self, number: int) -> Any:
        from memory.keys import spell
        from memory.models import Memory

        del number
        return spell(
            Memory(
                tenant_id=self.scope.tenant_id,
                user_id=self.scope.user_id,
                kind=Memory.Kind.FACT,
                origin=Memory.Origin.OWN_WORDS,
                text=self._text(),
            )
        )

    def _entry(self, memory: Any, *, zone: Any = None) -> Any:
        from accounts.zones import zone_of
        from memory.embedder import current
        from memory.keys import entries_of
        from memory.vectors import Embedded

        known = {memory.text: Embedded(current().name, self.vector)}
        # A worker's job and a page know where the person is.
        return entries_of([memory], known=known, zone=zone or zone_of("UTC"))[0]

    @staticmethod
    def _text() -> str:
        return TEXT.format(number=time.monotonic_ns())


def page_of(person: Measured) -> Callable[[int], object]:
    """Return what asks the application for the memory page of a person."""
    from django.test import Client

    from accounts.models import User

    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(User.objects.get(pk=person.user_id))
    address = f"/t/{person.slug}/memory/"

    def ask(number: int) -> object:
        del number
        answer = client.get(address)
        if answer.status_code != 200:
            raise RuntimeError(f"the memory page answers {answer.status_code}")
        return answer

    return ask


def purged(size: int) -> Timed:
    """Return how long it takes to erase a person's memories, made for this."""
    from memory.purge import purge

    person = one_more(size, name=f"gone{time.monotonic_ns()}")
    timed = Timed("purge", lambda number: purge(scope_of(person)))
    timed.run(0)
    return timed


def exactness(person: Measured) -> str:
    """Return a line: whether the nearest are found, and what was read beside the indexes."""
    from django.utils import timezone

    from memory.embedder import current
    from memory.providers.pgvector import PgvectorProvider
    from memory.recall import recall
    from memory.terms import read_question

    scope = scope_of(person)
    model = current().name
    vectors = current().embed(QUESTIONS)
    with superuser() as connection:
        rows = connection.execute(
            "select place, embedding from memory_searchkey where tenant_id = %s and user_id = %s",
            [scope.tenant_id, scope.user_id],
        ).fetchall()
    places = np.array([row[0] for row in rows])
    kept = np.array([row[1].strip("[]").split(",") for row in rows], np.float32)
    shares = []
    for vector in vectors:
        cosines = kept @ vector
        # Of equals any will do: what counts is how near the found ones are.
        best: dict[int, float] = {}
        for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True):
            best[place] = max(cosine, best.get(place, -1.0))
        least = sorted(best.values(), reverse=True)[:NEAREST][-1]
        ranked = PgvectorProvider().arms(
            scope,
            question=read_question("", today=timezone.localdate()),
            vector=vector.tolist(),
            model=model,
        )(len(places))
        found = ranked.places[np.argsort(-ranked.cosine, kind="stable")][:NEAREST]
        shares.append(np.mean([best[place] >= least - 1e-4 for place in found.tolist()]))
    found_rows = recall(scope, question=QUESTIONS[0], vector=vectors[0].tolist())
    some = len(found_rows.memories) + len(found_rows.passed_over)
    return (
        f"  recall@{NEAREST} of the vectors against exact: {statistics.fmean(shares):.2f};"
        f" {some} memories in and passed over; heap fetches: {heap_fetches(scope, vectors[0])}"
    )


def heap_fetches(scope: "Scope", vector: Any) -> str:
    """Return how many rows each arm reads from its table, and not from the index."""
    from datetime import date

    from django.db import connection

    from accounts.scope import entered
    from memory.embedder import current
    from memory.providers import pgvector
    from memory.terms import read_question

    given: dict[str, Any] = {
        "tenant": scope.tenant_id,
        "user": scope.user_id,
        "model": current().name,
        "dims": len(vector),
        "vector": "[" + ",".join(map(str, vector)) + "]",
        "terms": read_question(QUESTIONS[0], today=date(2026, 1, 1)).terms,
    }
    told = []
    for name, query in (
        ("vectors", pgvector._VECTORS + pgvector._COVERED),
        ("postings", pgvector._POSTINGS),
    ):
        alone = query.replace("union all", "", 1)
        with entered(scope), connection.cursor() as cursor:
            cursor.execute(f"explain (analyze, costs off) {alone}", given)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        read = re.findall(r"Heap Fetches: (\d+)", plan)
        told.append(f"{name} {', '.join(read) if read else 'no index-only scan'}")
    return "; ".join(told)


def sizes_of_tables() -> list[list[object]]:
    """Return the size of each table and each of its indexes, in MiB."""
    with superuser() as connection:
        rows = connection.execute(
            "select c.relname, pg_table_size(c.oid), (select string_agg(i.indexrelid::regclass"
            " || ' ' || pg_relation_size(i.indexrelid) / 1048576, ', ' order by 1)"
            " from pg_index i where i.indrelid = c.oid)"
            " from pg_class c where c.oid = any(%s::regclass[]) order by 1",
            [[*SEARCHED, "bench.floor"]],
        ).fetchall()
    return [[name, size / 2**20, indexes] for name, size, indexes in rows]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    command(main)
