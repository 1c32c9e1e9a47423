"""script/bench chat: what we add to a model's streamed reply, beside two floors in the same run.

The stub model takes 50 ms to its first token and 5 ms for each further one. People ask at once: the
model itself (floor A), a bare relay of it on Channels and Daphne (floor B), and Recollect with
memory on, a real login, 1,000 memories a person and its workers at work. Everything shares this
machine's processors. docs/performance.md tells how to read the figures.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from local.front import command
from local.progress import say, step
from local.refusal import Refusal

from .rig.client import Sample
from .rig.floors import FIRST_TOKEN, PER_TOKEN, Relay, StartFailed, Stub, floors, log_folder
from .rig.installation import Installation, Web, seed, stored_otherwise, vacuum
from .rig.load import Load, LoadFailed
from .rig.measured import Measured, spread
from .rig.people import QUESTIONS, Someone
from .rig.processes import cpu_of
from .rig.tally import Faults, Target, line, percentile, table

ABOUT = "Measure what we add to a model's streamed reply, beside two floors."
DIRECT, RELAY = "model itself", "bare relay"
TOKENS, FEW_TOKENS = 200, 20
ROUNDS = {1: 12, 10: 5, 50: 4}
FIT_PEOPLE = 10
MOST_ADDED = {1: (40.0, None), 10: (120.0, None), 50: (500.0, 1_000.0)}  # ms: p50, p95
CPU_A_REPLY, CPU_A_TOKEN = 30.0, 0.25  # ms
IDLE_SECONDS = 15.0
ROUND_SECONDS = 60.0
SETTLE_SECONDS = 0.3


@dataclass(slots=True)
class Bench:
    """One run: the contestants, and what has been measured so far."""

    load: Load
    stub: Stub
    relay: Relay
    installation: Installation | None
    people: list[Someone]
    memories: int
    idle: dict[str, dict[str, float]] = field(default_factory=dict)
    results: dict[tuple[str, int, int], Measured] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    tags: int = 0
    drained: bool = True

    @property
    def contestants(self) -> list[str]:
        return [DIRECT, RELAY, *self.webs]

    @property
    def webs(self) -> dict[str, Web]:
        return self.installation.webs if self.installation else {}

    def measure(self, people: int, tokens: int, rounds: int, *, keep: bool = True) -> None:
        """Let all contestants run so many rounds, taking turns in who comes first."""
        self.stub.answers(tokens)
        names = self.contestants
        for number in range(rounds):
            # The floor comes first: what is added is counted from it.
            served = names[1:]
            order = [DIRECT, *served[number % len(served) :], *served[: number % len(served)]]
            floor: float | None = None
            for name in order:
                key = (name, people, tokens)
                result = self.results.get(key) or Measured(*key)
                samples = self._one(name, people, result)
                result.add(samples, floor)
                if name == DIRECT:
                    times = [1000 * sample.first for sample in samples if sample.first]
                    floor = percentile(times, 50) if times else None
                if keep:
                    self.results[key] = result

    def _one(self, name: str, people: int, result: Measured) -> list[Sample]:
        asked = []
        for number in range(people):
            # No two of them have a tag, and so a token, in common, nor with the round before.
            tag = f"t{self.tags + number}"
            asked.append({"tag": tag, "text": f"{tag} {QUESTIONS[number % len(QUESTIONS)]}"})
        self.tags += people
        if name == DIRECT:
            self.load.open("direct", asked, self.stub.url)
        elif name == RELAY:
            self.load.open("socket", [one | {"url": self.relay.url} for one in asked])
        else:
            self.load.open(
                "socket", [self._in_session(name, one, number) for number, one in enumerate(asked)]
            )
        time.sleep(SETTLE_SECONDS)
        before = self.installation.cpu(name) if self.installation and self._ours(name) else {}
        started = time.monotonic()
        samples = self.load.go(ROUND_SECONDS).samples
        if self.installation and self._ours(name):
            self.drained &= self.installation.drained()
            time.sleep(SETTLE_SECONDS)
            after = self.installation.cpu(name)
            result.spend(
                before,
                after,
                self.idle.get(name, dict.fromkeys(after, 0.0)),
                time.monotonic() - started,
            )
            for number, sample in enumerate(samples):
                owner = self.people[number]
                if sample.reply:
                    self.sent.append(
                        {
                            "tenant_id": owner.tenant_id,
                            "user_id": owner.user_id,
                            "reply": sample.reply,
                            "tag": sample.tag,
                            "tokens": result.tokens,
                        }
                    )
        self.load.close()
        return samples

    def _ours(self, name: str) -> bool:
        return name not in {DIRECT, RELAY}

    def _in_session(self, server: str, one: dict[str, str], number: int) -> dict[str, str]:
        web, someone = self.webs[server], self.people[number]
        # A session of its own for each round: an earlier reply is no part of the next prompt.
        return one | {
            "url": web.socket_url(someone, someone.sessions.pop()),
            "cookie": someone.cookie,
            "origin": web.origin,
        }

    def rest(self) -> None:
        """Measure what each server and the workers use while nobody asks."""
        if not self.installation:
            return
        self.installation.drained()
        before = {name: self.installation.cpu(name) for name in self.installation.webs}
        started = time.monotonic()
        time.sleep(IDLE_SECONDS)
        seconds = time.monotonic() - started
        for name, used in before.items():
            after = self.installation.cpu(name)
            self.idle[name] = {part: (after[part] - used[part]) / seconds for part in used}


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
        help="measure this web server too, beside Daphne",
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
    options.servers = tuple(dict.fromkeys(["daphne", *options.server]))
    return options


def run(wanted: argparse.Namespace) -> tuple[dict[str, Any], list[Target]]:
    """Do all that the options ask for; return the report and the targets."""
    plan = [(people, TOKENS, wanted.rounds or ROUNDS.get(people, 4)) for people in wanted.counts]
    plan.append((FIT_PEOPLE, FEW_TOKENS, wanted.rounds or ROUNDS[FIT_PEOPLE]))
    if all(people != FIT_PEOPLE for people, _, _ in plan[:-1]):
        plan.append((FIT_PEOPLE, TOKENS, wanted.rounds or ROUNDS[FIT_PEOPLE]))
    most = max(people for people, _, _ in plan)
    with ExitStack() as stack:
        logs = log_folder()
        with step("Stub model and bare relay"):
            stub, relay = stack.enter_context(floors(logs))
            load = stack.enter_context(Load())
        installation, people, memory_before = None, [], {}
        if not wanted.floors:
            sessions = (sum(rounds for _, _, rounds in plan) + 2) * len(wanted.servers)
            with step(f"{most} people with {wanted.memories:,} memories each"):
                people = seed({"people": most, "memories": wanted.memories, "sessions": sessions})
                vacuum()
            with step("Web servers and workers"):
                installation = stack.enter_context(Installation(stub.url, wanted.servers))
            with step(f"{most} people log in"):
                people = [installation.log_in(someone) for someone in people]
        bench = Bench(load, stub, relay, installation, people, wanted.memories)
        with step("The first reply of each, and one round to warm up"):
            bench.measure(1, FEW_TOKENS, 1)
            cold = {
                name: bench.results.pop((name, 1, FEW_TOKENS)).first for name in bench.contestants
            }
            bench.measure(most, FEW_TOKENS, 1, keep=False)
        others = Others(installation)
        if installation:
            with step(f"Nobody asks for {IDLE_SECONDS:g} s"):
                bench.rest()
            memory_before = installation.memory()
        for people_now, tokens, rounds in plan:
            with step(f"{people_now} at once, {tokens} tokens, {rounds} rounds"):
                bench.measure(people_now, tokens, rounds)
        wrong: list[str] = []
        memory_after = installation.memory() if installation else {}
        if installation:
            with step(f"{len(bench.sent):,} stored replies compared"):
                wrong = stored_otherwise(bench.sent)
        report = reported(bench, cold, wrong, memory_before, memory_after)
        report["machine"]["others"] = others.share()
        targets = targets_of(bench, wrong)
        report["targets"] = [asdict(target) | {"met": target.met} for target in targets]
        print(told(bench, report, targets))
        return report, targets


class Others:
    """How much of the processors programs that are no part of the benchmark have used."""

    def __init__(self, installation: Installation | None) -> None:
        self.pids = [os.getpid(), *(installation.server_pids() if installation else ())]
        self.before = self._used()

    def _used(self) -> tuple[float, float, float]:
        times = psutil.cpu_times()
        return sum(times), times.idle + getattr(times, "iowait", 0.0), cpu_of(self.pids)

    def share(self) -> float:
        """Return their share since the beginning, from 0 to 1."""
        whole, idle, ours = (
            now - then for now, then in zip(self._used(), self.before, strict=True)
        )
        return max(0.0, (whole - idle - ours) / whole) if whole else 0.0


def fitted(bench: Bench, server: str) -> tuple[float, float] | None:
    """Return (a, b): CPU ms of web and workers for a reply, and for each of its tokens."""
    points = []
    for tokens in (FEW_TOKENS, TOKENS):
        result = bench.results.get((server, FIT_PEOPLE, tokens))
        if result is not None and result.cpu_a_reply is not None:
            points.append((float(tokens), result.cpu_a_reply))
    return line(points) if len(points) == 2 else None


def targets_of(bench: Bench, wrong: list[str]) -> list[Target]:
    """Return the targets with what was measured; those of Daphne, the server that we ship."""
    found = []
    for (name, people, tokens), result in bench.results.items():
        if name != "daphne":
            continue
        if tokens == TOKENS and people in MOST_ADDED and result.added:
            for part, most in zip((50, 95), MOST_ADDED[people], strict=True):
                if most is not None:
                    found.append(
                        Target(
                            f"added before the first token, {people} at once, p{part}",
                            percentile(result.added, part),
                            most,
                        )
                    )
        if result.cpu_a_reply is not None:
            found.append(
                Target(
                    f"CPU of a reply of {tokens} tokens, {people} at once",
                    result.cpu_a_reply,
                    CPU_A_REPLY + CPU_A_TOKEN * tokens,
                )
            )
    total = sum((result.faults for result in bench.results.values()), Faults())
    found += [
        Target(f"tokens {name}, of {total.expected:,}", getattr(total, name), 0, "")
        for name in ("lost", "doubled", "reordered", "mixed", "altered")
    ]
    if bench.installation:
        turns = sum(result.out_of_turn for result in bench.results.values())
        errors = sum(len(result.errors) for result in bench.results.values())
        ours = [result for name, result in bench.results.items() if name[0] in bench.webs]
        without = sum(result.without_memory for result in ours)
        if bench.memories:
            found.append(Target("replies that went without memory", without, 0, ""))
        found.append(Target("frames out of turn", turns, 0, ""))
        found.append(Target("replies that failed", errors, 0, ""))
        found.append(Target(f"replies stored otherwise, of {len(bench.sent):,}", len(wrong), 0, ""))
    return found


def reported(
    bench: Bench,
    cold: dict[str, list[float]],
    wrong: list[str],
    memory_before: dict[str, Any],
    memory_after: dict[str, Any],
) -> dict[str, Any]:
    """Return everything that was measured, for the JSON file."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processors": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
            "versions": {
                name: version(name)
                for name in ("django", "channels", "daphne", "uvicorn", "celery", "websockets")
            },
        },
        "stub": {"first_token_ms": 1000 * FIRST_TOKEN, "token_ms": 1000 * PER_TOKEN},
        "first_reply_ms": {name: times[0] if times else None for name, times in cold.items()},
        "results": [result.shown() for result in bench.results.values()],
        "cpu_fit_ms": {
            name: dict(zip(("a_reply", "a_token"), fit, strict=True))
            for name in (bench.installation.webs if bench.installation else ())
            if (fit := fitted(bench, name))
        },
        "idle_cpu_ms_a_second": {
            name: {part: 1000 * used for part, used in parts.items()}
            for name, parts in bench.idle.items()
        },
        "memory_mib": {"before": memory_before, "after": memory_after},
        "stored_otherwise": wrong[:20],
        "all_jobs_done": bench.drained,
    }


def told(bench: Bench, report: dict[str, Any], targets: list[Target]) -> str:
    """Return the report for people."""
    machine = report["machine"]
    parts = [
        f"\n{machine['processors']} processors shared by all, {machine['memory_gib']} GiB, Python"
        f" {machine['python']}; other programs used {machine['others']:.0%} of them meanwhile."
        f" The stub takes"
        f" {report['stub']['first_token_ms']:g} ms to its first token and"
        f" {report['stub']['token_ms']:g} ms for each further one\n"
    ]
    rows: list[list[object]] = []
    for (name, people, tokens), result in sorted(
        bench.results.items(), key=lambda item: (-item[0][2], item[0][1])
    ):
        floor = bench.results.get((RELAY, people, tokens))
        first, whole, gap = spread(result.first), spread(result.whole), spread(result.gaps)
        rows.append(
            [
                f"{name}, {people} at once, {tokens} tokens",
                first["p50"] if first else None,
                first["p95"] if first else None,
                *(percentile(result.added, part) if result.added else None for part in (50, 95)),
                percentile(result.first, 50) / percentile(floor.first, 50)
                if result.first and floor and floor.first
                else None,
                whole["p50"] if whole else None,
                gap["p95"] if gap else None,
                result.frames / max(result.replies, 1) or None,
                result.received_bytes / 1024 / max(result.replies, 1) or None,
                len(result.errors),
                result.without_memory if name in bench.webs else None,
            ]
        )
    head = [
        "first token, ms",
        "p50",
        "p95",
        "added p50",
        "added p95",
        "p50 : relay's",
        "last token",
    ]
    parts.append(table([*head, "gap p95", "frames", "KiB", "failed", "no memory"], rows))
    stages: list[list[object]] = [
        [f"{result.contestant}, {result.people} at once"]
        + [_median(result.stages.get(stage)) for stage in STAGES]
        for result in bench.results.values()
        if result.tokens == TOKENS and "stored" in result.stages
    ]
    if stages:
        parts.append("\n" + table(["p50 until this frame, ms", *STAGES], stages))
    costs: list[list[object]] = [
        [f"{result.contestant}, {result.people} at once, {result.tokens} tokens"]
        + [result.cpu[part] / result.replies for part in ("web", "workers", "postgres")]
        + [result.cpu_a_reply]
        for result in bench.results.values()
        if result.cpu
    ]
    if costs:
        parts.append(
            "\n" + table(["CPU a reply, ms", "web", "workers", "postgres", "web + workers"], costs)
        )
    for name, fit in report["cpu_fit_ms"].items():
        parts.append(f"{name}: {fit['a_reply']:.1f} ms a reply + {fit['a_token']:.3f} ms a token")
    for name, parts_used in report["idle_cpu_ms_a_second"].items():
        used = ", ".join(f"{part} {value:.1f}" for part, value in parts_used.items())
        parts.append(f"{name}, while nobody asks: {used} ms of CPU a second (taken off above)")
    after = report["memory_mib"]["after"]
    if after:
        before = report["memory_mib"]["before"]
        memory = [
            [name, before[name]["rss"], held["rss"], before[name]["pss"], held["pss"]]
            for name, held in after.items()
        ]
        head = ["memory, MiB", "RSS before", "RSS after", "PSS before", "PSS after"]
        parts.append("\n" + table(head, memory))
    cold = ", ".join(
        f"{name} {value:.0f} ms" for name, value in report["first_reply_ms"].items() if value
    )
    parts.append(f"\nThe very first reply's first token: {cold}")
    for result in bench.results.values():
        parts += [f"{result.contestant}: {error}" for error in result.errors[:3]]
    parts += report["stored_otherwise"][:5]
    if not bench.drained:
        parts.append("Some jobs were not done in time: the workers' CPU is too low above.")
    parts += ["", *(target.shown() for target in targets)]
    return "\n".join(parts)


STAGES = ("stored", "started", "recalled", "delta", "finished")


def _median(values: list[float] | None) -> float | None:
    return percentile(values, 50) if values else None


if __name__ == "__main__":
    command(main)
