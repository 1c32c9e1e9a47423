"""What a memory was before, and what each change made of its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Literal
from uuid import UUID

from accounts.scope import Scope, entered
from memory.edit import one
from memory.models import MemoryVersion

# More words than this are compared as one: an exchange may hold 64 KiB.
MOST_WORDS = 2_000

type Part = tuple[Literal["same", "gone", "new"], str]


@dataclass(frozen=True, slots=True)
class Version:
    """A memory as it stood until `at`, when `change` came: edited, forgotten, superseded.

    `diff` leads from this text to the one that came after it, word by word: (same, gone or new,
    words). `number` is what `edit.restore` takes as the version.
    """

    number: int
    text: str
    status: str
    change: str
    at: datetime
    diff: Sequence[Part]


def versions(scope: Scope, *, memory: UUID) -> list[Version]:
    """Return what the memory was before, newest first; empty if it never changed.

    Raises NotFound for a memory that does not exist or is not this person's.
    """
    found = one(scope, memory)
    with entered(scope):
        rows = MemoryVersion.objects.within(scope).filter(memory=found)
        kept = list(rows.order_by("-pk"))
    after = found.text
    history = []
    for row in kept:
        history.append(
            Version(row.pk, row.text, row.status, row.change, row.at, diff(row.text, after))
        )
        after = row.text
    return history


def diff(before: str, after: str) -> list[Part]:
    """Return how one text became another, word by word; neighbours of one sort are joined."""
    old, new = before.split(), after.split()
    if max(len(old), len(new)) > MOST_WORDS:
        return [("same", before)] if before == after else [("gone", before), ("new", after)]
    parts: list[Part] = []
    for sort, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if sort == "equal":
            parts.append(("same", " ".join(old[a:b])))
            continue
        if b > a:
            parts.append(("gone", " ".join(old[a:b])))
        if d > c:
            parts.append(("new", " ".join(new[c:d])))
    return parts
