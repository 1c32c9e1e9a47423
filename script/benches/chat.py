"""script/bench chat: what we add to a model's streamed reply, beside two floors in the same run.

The stub model takes 50 ms to its first token and 5 ms for each further one. People ask at once: the
model itself (floor A), a bare relay of it on Channels and Daphne (floor B), and Recollect with
memory on, a real login, 1,000 memories a person and its workers at work. Everything shares this
machine's processors. docs/performance.md tells how to read the figures.
"""

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from local.front import command
from local.progress import say, step
from local.refusal import Refusal

from .rig.bench import IDLE_SECONDS, Bench
from .rig.floors import StartFailed, floors, log_folder
from .rig.installation import Installation, postgres_pids, seed, stored_otherwise, vacuum
from .rig.load import Load, LoadFailed
from .rig.people import Someone
from .rig.report import (
    FEW_TOKENS,
    FIT_PEOPLE,
    SHIPPED,
    TOKENS,
    Others,
    reported,
    targets_of,
    told,
)
from .rig.tally import Target

ABOUT = "Measure what we add to a model's streamed reply, beside two floors."
ROUNDS = {1: 12, 10: 5, 50: 4}

type Plan = list[tuple[int, int, int]]


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table, and write JSON where asked for."""
    wanted = parsed(arguments)
    try:
        report, targets = run(wanted)
    except (StartFailed, LoadFailed) as failure:
        raise Refusal(str(failure)) from failure
    if wanted.json:
        Path(wanted.json).write_text(json.dumps(report, indent=1) + "\n")
        say(f"Written to {wanted.json}.")
    missed = [target for target in targets if not target.met]
    return 1 if wanted.check and missed else 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="script/bench chat", description=ABOUT)
    parser.add_argument("--people", default="1,10,50", help="how many ask at once, with commas")
    parser.add_argument("--rounds", type=int, help="of each kind (fewer with more people)")
    parser.add_argument("--memories", type=int, default=1_000, help="of each person")
    parser.add_argument(
        "--server",
        action="append",
        choices=["daphne", "uvicorn"],
        default=[],
        help="measure with this web server too, after Daphne",
    )
    parser.add_argument("--floors", action="store_true", help="only the two floors")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    options = parser.parse_args(arguments)
    try:
        options.counts = [int(count) for count in options.people.split(",")]
    except ValueError:
        parser.error("--people takes whole numbers with commas, as in 1,10,50")
    if not all(1 <= count <= 200 for count in options.counts):
        parser.error("--people takes numbers from 1 to 200")
    if options.rounds is not None and not 1 <= options.rounds <= 100:
        parser.error("--rounds takes a number from 1 to 100")
    if not 0 <= options.memories <= 20_000:
        parser.error("--memories takes a number from 0 to 20,000")
    options.servers = list(dict.fromkeys([SHIPPED, *options.server]))
    return options


def planned(wanted: argparse.Namespace) -> Plan:
    """Return what is measured: people at once, tokens, rounds."""
    plan = [(people, TOKENS, wanted.rounds or ROUNDS.get(people, 4)) for people in wanted.counts]
    fit = wanted.rounds or ROUNDS[FIT_PEOPLE]
    if FIT_PEOPLE not in wanted.counts:
        plan.append((FIT_PEOPLE, TOKENS, fit))
    return [*plan, (FIT_PEOPLE, FEW_TOKENS, fit)]


def run(wanted: argparse.Namespace) -> tuple[dict[str, Any], list[Target]]:
    """Do all that the options ask for; return the report and the targets."""
    plan = planned(wanted)
    most = max(people for people, _, _ in plan)
    with ExitStack() as stack:
        with step("Stub model and bare relay"):
            stub, relay = stack.enter_context(floors(log_folder()))
            load = stack.enter_context(Load())
        people: list[Someone] = []
        if not wanted.floors:
            sessions = (sum(rounds for _, _, rounds in plan) + 2) * len(wanted.servers)
            with step(f"{most} people with {wanted.memories:,} memories each"):
                people = seed({"people": most, "memories": wanted.memories, "sessions": sessions})
                vacuum()
        bench = Bench(load, stub, relay, people)
        others = Others([] if wanted.floors else postgres_pids())
        gone = 0.0
        if wanted.floors:
            measured(bench, plan)
        for server in [] if wanted.floors else wanted.servers:
            with ExitStack() as running:
                with step(f"Workers, and {server} as the web server"):
                    bench.installation = running.enter_context(Installation(stub.url, server))
                if server == wanted.servers[0]:
                    with step(f"{most} people log in"):
                        bench.people = [bench.installation.log_in(one) for one in people]
                measured(bench, plan)
                used = bench.installation.cpu()
                gone += used["web"] + used["workers"]
        share = others.share(gone)
        if bench.sent:
            with step(f"{len(bench.sent):,} stored replies compared"):
                bench.wrong = stored_otherwise(bench.sent)
        targets = targets_of(bench, memories=wanted.memories)
        report = reported(bench, targets, others=share)
        print(told(bench, report, targets), flush=True)
        return report, targets


def measured(bench: Bench, plan: Plan) -> None:
    """Warm up, rest, and run the plan."""
    most = max(people for people, _, _ in plan)
    with step("The very first reply, and rounds to warm up"):
        bench.measure(1, FEW_TOKENS, 1, keep=False)
        bench.measure(most, FEW_TOKENS, 1, keep=False)
    if bench.installation:
        with step(f"Nobody asks for {IDLE_SECONDS:g} s"):
            bench.rest()
    bench.weigh("before")
    for people, tokens, rounds in plan:
        with step(f"{people} at once, {tokens} tokens, {rounds} rounds"):
            bench.measure(people, tokens, rounds)
    bench.weigh("after")


if __name__ == "__main__":
    command(main)
