"""script/bench memory: what finding memories costs, for a person with 1,000 and with 10,000.

The floor is a count over the same index, in the same scope: the least that reading all of a
person's search keys can cost. Half of the memories are exchanges, which have two keys each. Twenty
other people have memories in the same tables.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import psutil
from local.front import command
from local.progress import say, step
from local.refusal import Refusal

from .rig.floors import StartFailed
from .rig.installation import seed, vacuum
from .rig.people import QUESTIONS, Someone
from .rig.processes import cpu_of
from .rig.tally import percentile, table

OTHERS = 20
FLOOR = (
    "select count(*) from memory_searchkey where tenant_id = %(tenant)s and user_id = %(user)s"
    " and model = %(model)s and dims <= 1024"
)


@dataclass(slots=True)
class Timed:
    """Repeated runs of one thing: wall time, and CPU here and in Postgres, in ms."""

    name: str
    work: Callable[[int], object]
    wall: list[float] = field(default_factory=list)
    ours: float = 0.0
    postgres: float = 0.0

    def run(self, number: int) -> None:
        """Do it once."""
        used = time.process_time()
        start = time.perf_counter()
        self.work(number)
        self.wall.append(1000 * (time.perf_counter() - start))
        self.ours += 1000 * (time.process_time() - used)

    def row(self, floor: "Timed") -> list[object]:
        """Return a line of the table."""
        count = len(self.wall)
        return [
            self.name,
            percentile(self.wall, 50),
            percentile(self.wall, 95),
            statistics.fmean(self.wall),
            self.ours / count,
            self.postgres / count,
            percentile(self.wall, 50) / percentile(floor.wall, 50),
        ]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; write JSON where asked for."""
    parser = argparse.ArgumentParser(prog="script/bench memory", description="Measure recall.")
    parser.add_argument("--memories", default="1000,10000", help="of each person, with commas")
    parser.add_argument("--times", type=int, default=100, help="how often each is run")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    wanted = parser.parse_args(arguments)
    try:
        sizes = [int(size) for size in wanted.memories.split(",")]
    except ValueError:
        parser.error("--memories takes whole numbers with commas, as in 1000,10000")
    if not all(1 <= size <= 20_000 for size in sizes) or not 2 <= wanted.times <= 10_000:
        parser.error("--memories takes numbers from 1 to 20,000, --times from 2 to 10,000")
    try:
        with step(f"People with {wanted.memories} memories, and {OTHERS} others"):
            people = seed(
                *({"people": 1, "memories": size, "sessions": 0} for size in sizes),
                {"people": OTHERS, "memories": 1_000, "sessions": 0},
            )[: len(sizes)]
            vacuum()
    except StartFailed as failure:
        raise Refusal(str(failure)) from failure
    report = {}
    for size, someone in zip(sizes, people, strict=True):
        with step(f"{size:,} memories, {wanted.times} times each"):
            timed = measured(someone, wanted.times)
        head = [f"{size:,} memories, ms", "p50", "p95", "mean", "CPU here", "CPU Postgres"]
        rows = [one.row(timed[0]) for one in timed]
        print("\n" + table([*head, "p50 : floor's"], rows), flush=True)
        report[size] = {
            one.name: {
                "p50_ms": percentile(one.wall, 50),
                "p95_ms": percentile(one.wall, 95),
                "cpu_ms": one.ours / wanted.times,
                "postgres_cpu_ms": one.postgres / wanted.times,
            }
            for one in timed
        }
    if wanted.json:
        Path(wanted.json).write_text(json.dumps(report, indent=1) + "\n")
        say(f"Written to {wanted.json}.")
    return 0


def measured(someone: Someone, times: int) -> list[Timed]:
    """Return the timings for one person, the floor first."""
    import django

    django.setup()
    from django.db import connection

    from accounts.scope import Scope, read_once
    from memory.embedder import current
    from memory.providers.base import provider
    from memory.recall import recall
    from memory.terms import read_question

    scope = Scope(someone.tenant_id, someone.user_id)
    embedder = current()
    vectors = embedder.embed(QUESTIONS)
    given = {"tenant": scope.tenant_id, "user": scope.user_id, "model": embedder.name}

    def question(number: int) -> str:
        return QUESTIONS[number % len(QUESTIONS)]

    def vector(number: int) -> list[float]:
        row: list[float] = vectors[number % len(QUESTIONS)].tolist()
        return row

    timed = [
        Timed("floor: count over the index", lambda number: read_once(scope, FLOOR, given)),
        Timed(
            "search (the provider)",
            lambda number: provider().recall(
                scope,
                question=read_question(question(number), today=date.today()),  # noqa: DTZ011
                vector=vector(number),
                model=embedder.name,
                limit=16,
            ),
        ),
        Timed(
            "recall (settings, search, choice)",
            lambda number: recall(scope, question=question(number), vector=vector(number)),
        ),
        Timed("embedding the question", lambda number: embedder.embed([question(number)])),
    ]
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        backend = cursor.fetchone()[0]
    postgres = psutil.Process(backend).ppid()
    for one in timed:
        one.run(0)
        one.wall.clear()
        one.ours = 0.0
    for start in range(0, times, 10):
        for one in timed:
            before = cpu_of([postgres])
            for number in range(start, min(start + 10, times)):
                one.run(number)
            one.postgres += 1000 * (cpu_of([postgres]) - before)
    return timed


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    command(main)
