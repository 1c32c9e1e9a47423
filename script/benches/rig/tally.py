"""What measurements amount to: percentiles, faults in a stream, a fitted line, targets met."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from pathlib import Path

TOKENIZER = Path(__file__).parents[3] / "memory/tokenizers/all-MiniLM-L6-v2/tokenizer.json"
WORD = re.compile(r"[a-z]{3,7}")


def percentile(values: Iterable[float], part: float) -> float:
    """Return the value below which `part` percent of the values lie, between neighbours linearly.

    Raises ValueError for no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = (len(ordered) - 1) * part / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@cache
def words() -> list[str]:
    """Return the words that the stub's answers are made of, always in the same mixed order.

    Each is one piece to the embedder, as a model's token mostly is: words out of letters and
    numbers would make remembering a reply several times as dear as it is.
    """
    vocabulary = json.loads(TOKENIZER.read_text())["model"]["vocab"]
    fitting = sorted(word for word in vocabulary if WORD.fullmatch(word))
    random.Random(5).shuffle(fitting)
    return fitting


def meant(tag: str, tokens: int) -> list[str]:
    """Return the tokens of the stub's answer to a question that begins with this tag.

    A tag is a letter and a number. Up to sixty tags in a row share none of 200 tokens each.
    """
    start, known = tokens * int(tag[1:]), words()
    return [known[place % len(known)] for place in range(start, start + tokens)]


def answer(tag: str, tokens: int) -> str:
    """Return the text of the stub's answer to a question that begins with this tag."""
    return "".join(f"{token} " for token in meant(tag, tokens))


@dataclass(slots=True)
class Faults:
    """How many tokens of how many went astray; `altered` counts other differences in the text."""

    expected: int = 0
    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    mixed: int = 0
    altered: int = 0
    stored_otherwise: int = 0

    def __add__(self, other: "Faults") -> "Faults":
        names = [item.name for item in fields(self)]
        return Faults(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def none(self) -> bool:
        """Nothing went astray."""
        return self == Faults(expected=self.expected)


def faults(received: str, *, tag: str, tokens: int) -> Faults:
    """Compare the text that a person received with the one that was meant for them."""
    found = Faults(expected=tokens)
    if received == answer(tag, tokens):
        return found
    places = {token: place for place, token in enumerate(meant(tag, tokens))}
    own = [places[token] for token in received.split() if token in places]
    found.mixed = len(received.split()) - len(own)
    counts = Counter(own)
    found.lost = tokens - len(counts)
    found.doubled = sum(counts.values()) - len(counts)
    first = list(dict.fromkeys(own))
    found.reordered = sum(later < before for before, later in pairwise(first))
    if found.none:
        found.altered = 1
    return found


def numbered(frames: Sequence[tuple[int, str]]) -> tuple[str, int]:
    """Return the frames' text, and how many frames were out of turn.

    Frames are numbered from 1 without a gap; a frame of another kind may hold a number of its own,
    with an empty text.
    """
    turns = sum(number != place for place, (number, _) in enumerate(frames, start=1))
    return "".join(text for _, text in frames), turns


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return (a, b) of the least-squares line y = a + b x.

    Raises ValueError unless there are two different x.
    """
    count = len(points)
    mean_x = sum(x for x, _ in points) / count if count else 0.0
    mean_y = sum(y for _, y in points) / count if count else 0.0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        raise ValueError("a line needs two different x")
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope


@dataclass(frozen=True, slots=True)
class Target:
    """A figure beside the most that it may be."""

    name: str
    measured: float
    most: float
    unit: str = "ms"

    @property
    def met(self) -> bool:
        return self.measured <= self.most

    def shown(self) -> str:
        """Return the target as a line for people."""
        word = "met   " if self.met else "MISSED"
        return f"{word}  {self.name}: {self.measured:,.2f} {self.unit} (at most {self.most:g})"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as aligned columns: the first column to the left, the others to the right."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        first, *others = (
            value.ljust(width) if place == 0 else value.rjust(width)
            for place, (value, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
