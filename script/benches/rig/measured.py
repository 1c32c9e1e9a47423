"""What one contestant showed over all of its rounds."""

from dataclasses import asdict, dataclass, field
from typing import Any

from .client import Sample
from .tally import Faults, faults, numbered, percentile


@dataclass(slots=True)
class Measured:
    """All rounds of one contestant with so many people and tokens. Times in ms."""

    contestant: str
    people: int
    tokens: int
    rounds: int = 0
    replies: int = 0
    first: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=dict)
    frames: int = 0
    received_bytes: int = 0
    faults: Faults = field(default_factory=Faults)
    out_of_turn: int = 0
    without_memory: int = 0
    errors: list[str] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)

    def add(self, samples: list[Sample], floor: float | None) -> None:
        """Take in one round; `floor` is the delay of the model itself in the same round."""
        self.rounds += 1
        for sample in samples:
            text, turns = numbered(sample.frames) if sample.frames else (sample.text, 0)
            self.replies += 1
            self.faults += faults(text, tag=sample.tag, tokens=self.tokens)
            self.out_of_turn += turns
            self.without_memory += not sample.recalled
            self.frames += sum(sample.counts.values())
            self.received_bytes += sample.received_bytes
            self.gaps += [1000 * gap for gap in sample.gaps]
            for stage, seconds in sample.times.items():
                self.stages.setdefault(stage, []).append(1000 * seconds)
            if sample.error or sample.status != "complete":
                self.errors.append(f"{sample.tag}: {sample.error or sample.status}")
            if sample.first is None or sample.last is None:
                continue
            self.first.append(1000 * sample.first)
            self.whole.append(1000 * sample.last)
            if floor is not None:
                self.added.append(1000 * sample.first - floor)

    def spend(
        self,
        before: dict[str, float],
        after: dict[str, float],
        idle: dict[str, float],
        seconds: float,
    ) -> None:
        """Take in what processes used in one round, less what they use when nobody asks."""
        for name, used in after.items():
            net = used - before[name] - idle[name] * seconds
            self.cpu[name] = self.cpu.get(name, 0.0) + 1000 * net

    @property
    def cpu_a_reply(self) -> float | None:
        """CPU of web and workers in ms, for one reply."""
        if not self.cpu or not self.replies:
            return None
        return (self.cpu["web"] + self.cpu["workers"]) / self.replies

    def shown(self) -> dict[str, Any]:
        """Return the figures for the JSON file."""
        replies = max(self.replies, 1)
        return {
            "contestant": self.contestant,
            "people": self.people,
            "tokens": self.tokens,
            "rounds": self.rounds,
            "replies": self.replies,
            "first_token_ms": spread(self.first),
            "added_ms": spread(self.added),
            "last_token_ms": spread(self.whole),
            "gap_ms": spread(self.gaps),
            "stage_ms": {name: spread(times) for name, times in self.stages.items()},
            "frames_a_reply": self.frames / replies,
            "bytes_a_reply": self.received_bytes / replies,
            "cpu_ms_a_reply": {name: used / replies for name, used in self.cpu.items()},
            "faults": asdict(self.faults) | {"out_of_turn": self.out_of_turn},
            "without_memory": self.without_memory,
            "errors": self.errors[:20],
        }


def spread(values: list[float]) -> dict[str, float] | None:
    """Return the usual percentiles; None for no values."""
    if not values:
        return None
    return {f"p{part}": round(percentile(values, part), 3) for part in (50, 95, 100)}
