"""What a run of the chat benchmark is reported as: targets, figures for programs, a text."""

import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import psutil

from .bench import DIRECT, RELAY, Bench
from .floors import FIRST_TOKEN, PER_TOKEN
from .measured import Measured, spread
from .processes import cpu_of
from .tally import Faults, Target, line, percentile, table

SHIPPED = "daphne"
TOKENS, FEW_TOKENS = 200, 20
FIT_PEOPLE = 10
MOST_ADDED = {1: (40.0, None), 10: (120.0, None), 50: (500.0, 1_000.0)}  # ms: p50, p95
CPU_A_REPLY, CPU_A_TOKEN = 30.0, 0.25  # ms
STAGES = ("stored", "started", "recalled", "delta", "finished")
PACKAGES = ("django", "channels", "daphne", "uvicorn", "celery", "websockets")


class Others:
    """How much of the processors programs that are no part of the benchmark use meanwhile."""

    def __init__(self, postgres: list[int]) -> None:
        self.pids = [os.getpid(), *postgres]
        self.before = self._used()

    def _used(self) -> tuple[float, float, float]:
        times = psutil.cpu_times()
        return sum(times), times.idle + getattr(times, "iowait", 0.0), cpu_of(self.pids)

    def share(self, gone: float) -> float:
        """Return their share since the beginning, from 0 to 1.

        `gone` are the CPU seconds of processes of ours that have ended since.
        """
        whole, idle, ours = (
            now - then for now, then in zip(self._used(), self.before, strict=True)
        )
        return min(1.0, max(0.0, (whole - idle - ours - gone) / whole)) if whole else 0.0


def fitted(bench: Bench, server: str) -> tuple[float, float] | None:
    """Return (a, b): CPU ms of web and workers for a reply, and for each of its tokens."""
    points = []
    for tokens in (FEW_TOKENS, TOKENS):
        result = bench.results.get((server, FIT_PEOPLE, tokens))
        if result is not None and result.cpu_a_reply is not None:
            points.append((float(tokens), result.cpu_a_reply))
    return line(points) if len(points) == 2 else None


def targets_of(bench: Bench, *, memories: int) -> list[Target]:
    """Return the targets with what was measured; those of the server that we ship."""
    ours = bench.of_product()
    found = [
        target for result in ours if result.contestant == SHIPPED for target in _of_result(result)
    ]
    total = sum((result.faults for result in bench.results.values()), Faults())
    found += [
        Target(f"tokens {name}, of {total.expected:,}", getattr(total, name), 0, "")
        for name in ("lost", "doubled", "reordered", "mixed", "altered")
    ]
    if ours:
        counted = {
            "frames out of turn": sum(result.out_of_turn for result in ours),
            "replies that failed": sum(len(result.errors) for result in ours),
            f"replies stored otherwise, of {len(bench.sent):,}": len(bench.wrong),
        }
        if memories:
            without = sum(result.without_memory for result in ours)
            counted["replies that went without memory"] = without
        found += [Target(name, count, 0, "") for name, count in counted.items()]
    return found


def _of_result(result: Measured) -> list[Target]:
    found = []
    if result.tokens == TOKENS and result.people in MOST_ADDED and result.added:
        for part, most in zip((50, 95), MOST_ADDED[result.people], strict=True):
            if most is not None:
                name = f"added before the first token, {result.people} at once, p{part}"
                found.append(Target(name, percentile(result.added, part), most))
    if result.cpu_a_reply is not None:
        name = f"CPU of a reply of {result.tokens} tokens, {result.people} at once"
        most = CPU_A_REPLY + CPU_A_TOKEN * result.tokens
        found.append(Target(name, result.cpu_a_reply, most))
    return found


def reported(bench: Bench, targets: list[Target], *, others: float) -> dict[str, Any]:
    """Return everything that was measured, for the JSON file."""
    fits = {server: fitted(bench, server) for server in bench.servers}
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processors": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "used_by_others": round(others, 3),
            "versions": {name: version(name) for name in PACKAGES},
        },
        "stub": {"first_token_ms": 1000 * FIRST_TOKEN, "token_ms": 1000 * PER_TOKEN},
        "targets": [asdict(target) | {"met": target.met} for target in targets],
        "results": [result.shown() for result in bench.results.values()],
        "cpu_fit_ms": {
            server: {"a_reply": fit[0], "a_token": fit[1]} for server, fit in fits.items() if fit
        },
        "idle_cpu_ms_a_second": {
            server: {part: 1000 * used for part, used in parts.items()}
            for server, parts in bench.idle.items()
        },
        "very_first_reply_ms": bench.first,
        "memory_mib": bench.memory,
        "stored_otherwise": bench.wrong[:20],
        "all_jobs_done": bench.drained,
    }


def told(bench: Bench, report: dict[str, Any], targets: list[Target]) -> str:
    """Return the report for people."""
    machine, stub = report["machine"], report["stub"]
    parts = [
        f"\n{machine['processors']} processors shared by all, {machine['memory_gib']} GiB, Python"
        f" {machine['python']}; other programs used {machine['used_by_others']:.0%} of them."
        f"\nThe stub takes {stub['first_token_ms']:g} ms to its first token and"
        f" {stub['token_ms']:g} ms for each further one.\n",
        _delays(bench),
        _stages(bench),
        _costs(bench, report),
        _memory(bench),
    ]
    first = ", ".join(f"{name} {ms:,.0f} ms" for name, ms in report["very_first_reply_ms"].items())
    parts.append(f"The very first reply's first token: {first}\n")
    parts += [
        f"{one.contestant}: {error}" for one in bench.of_product() for error in one.errors[:3]
    ]
    parts += bench.wrong[:5]
    if not bench.drained:
        parts.append("Some jobs were not done in time: the workers' CPU is too low above.")
    parts += [target.shown() for target in targets]
    return "\n".join(part for part in parts if part)


def _delays(bench: Bench) -> str:
    rows: list[list[object]] = []
    order = [DIRECT, RELAY, *bench.servers]
    for key in sorted(bench.results, key=lambda key: (-key[2], key[1], order.index(key[0]))):
        result, relay = bench.results[key], bench.results.get((RELAY, *key[1:]))
        first, added = spread(result.first) or {}, spread(result.added) or {}
        theirs = (spread(relay.first) or {}) if relay else {}
        ours, replies = result in bench.of_product(), max(result.replies, 1)
        rows.append(
            [
                f"{key[0]}, {key[1]} at once, {key[2]} tokens",
                first.get("p50"),
                first.get("p95"),
                added.get("p50"),
                added.get("p95"),
                first["p50"] / theirs["p50"] if first and theirs else None,
                (spread(result.whole) or {}).get("p50"),
                (spread(result.gaps) or {}).get("p95"),
                result.frames / replies or None,
                result.received_bytes / 1024 / replies or None,
                len(result.errors),
                result.without_memory if ours else None,
            ]
        )
    head = ["first token, ms", "p50", "p95", "added p50", "added p95", "p50 : relay's"]
    head += ["last token", "gap p95", "frames", "KiB", "failed", "no memory"]
    return table(head, rows) + "\n"


def _stages(bench: Bench) -> str:
    rows: list[list[object]] = []
    for result in bench.of_product():
        if result.tokens == TOKENS:
            times = [(spread(result.stages.get(stage, [])) or {}).get("p50") for stage in STAGES]
            rows.append([f"{result.contestant}, {result.people} at once", *times])
    return table(["p50 until this frame, ms", *STAGES], rows) + "\n" if rows else ""


def _costs(bench: Bench, report: dict[str, Any]) -> str:
    rows: list[list[object]] = [
        [f"{result.contestant}, {result.people} at once, {result.tokens} tokens"]
        + [result.cpu[part] / result.replies for part in ("web", "workers", "postgres")]
        + [result.cpu_a_reply]
        for result in bench.of_product()
        if result.cpu
    ]
    if not rows:
        return ""
    head = ["CPU a reply, ms", "web", "workers", "postgres", "web + workers"]
    lines = [table(head, rows)]
    for server, fit in report["cpu_fit_ms"].items():
        lines.append(f"{server}: {fit['a_reply']:.1f} ms a reply + {fit['a_token']:.3f} ms a token")
    for server, idle in report["idle_cpu_ms_a_second"].items():
        used = ", ".join(f"{part} {ms:.1f}" for part, ms in idle.items())
        lines.append(f"{server}, while nobody asks: {used} ms of CPU a second (taken off above)")
    return "\n".join(lines) + "\n"


def _memory(bench: Bench) -> str:
    rows: list[list[object]] = []
    for server, held in bench.memory.items():
        for name, after in held["after"].items():
            before = held["before"][name]
            shown = name if name.startswith("web") else f"{name}, beside {server}"
            rows.append([shown, before["rss"], after["rss"], before["pss"], after["pss"]])
    head = ["memory, MiB", "RSS before", "RSS after", "PSS before", "PSS after"]
    return table(head, rows) + "\n" if rows else ""
