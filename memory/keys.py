"""What each memory is found by: the texts that are embedded for it, and the provider's entry."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from django.db import connection

from accounts.errors import InvalidInput, ProviderError
from accounts.zones import zone_of
from memory import embedder
from memory.exchange import Speaker
from memory.folding import claim_key, folded
from memory.limits import UTC
from memory.models import Memory
from memory.places import place_alone, place_in_session
from memory.providers.base import Entry, Unit
from memory.vectors import Embedded

logger = logging.getLogger(__name__)

# An embedder reads about 256 word pieces; what the person said at greater length is found by its
# parts. Of the assistant's words the beginning does: embedding is what remembering costs.
PASSAGE_CHARS = 900
PASSAGES = 6
ANSWER_CHARS = 240
_BREAKS = [re.compile(pause) for pause in (r"\n\s*\n", r"\n", r"[.!?。！？]\s|[。！？]", r"\s")]


def findable(memory: Memory) -> bool:
    """Tell whether a memory may be recalled: held true now, and trusted."""
    return memory.status == Memory.Status.CURRENT and memory.trusted


def spell(memory: Memory) -> Memory:
    """Return the memory with the columns that follow from its text set anew."""
    memory.folded = folded(f"{memory.text}\n{memory.answer}" if memory.answer else memory.text)
    memory.key = claim_key(memory.text)
    return memory


@dataclass(frozen=True, slots=True)
class Part:
    """What of a memory is found by itself: the whole text for its words, and what is embedded."""

    speaker: Speaker
    name: str
    text: str
    passages: Sequence[str]


def parts_of(memory: Memory) -> list[Part]:
    """Return a fact as one part, embedded in the first person, and an exchange by its messages."""
    if memory.kind != Memory.Kind.EXCHANGE:
        # As the person would say it: that sets related and unrelated further apart.
        embedded = (memory.first_person or memory.text)[:PASSAGE_CHARS]
        return [Part(Speaker.PERSON, memory.said_by, memory.text, [embedded])]
    said = Part(Speaker.PERSON, memory.said_by, memory.text, passages(memory.text))
    if not memory.answer.strip():
        return [said]
    answered = passages(memory.answer, most=1, size=ANSWER_CHARS)
    return [said, Part(Speaker.ASSISTANT, memory.answered_by, memory.answer, answered)]


def place_of(memory: Memory, number: int) -> int:
    """Return where a memory's part stands: a known message in its session, all else alone."""
    exchange = memory.kind == Memory.Kind.EXCHANGE
    if not exchange or memory.session_key is None or memory.position is None:
        return place_alone(memory.pk, number)
    return place_in_session(memory.session_key, memory.position + number)


def passages(text: str, *, most: int = PASSAGES, size: int = PASSAGE_CHARS) -> list[str]:
    """Return the text in at most `most` parts of `size` characters, cut where it pauses."""
    parts: list[str] = []
    text = text.strip()
    while text and len(parts) < most:
        if len(text) <= size:
            parts.append(text)
            break
        end = _pause(text, size)
        parts.append(text[:end].strip())
        text = text[end:].strip()
    return [part for part in parts if any(character.isalnum() for character in part)]


def _pause(text: str, size: int) -> int:
    """Return where the first part ends: at a paragraph's end, a line's, a sentence's, a word's."""
    for pause in _BREAKS:
        ends = [one.end() for one in pause.finditer(text, size // 2, size)]
        if ends:
            return ends[-1]
    return size


def entries_of(
    memories: Sequence[Memory],
    *,
    known: Mapping[str, Embedded] | None = None,
    within: float | None = None,
    zone: ZoneInfo | None = None,
) -> list[Entry]:
    """Return what the provider is told of these memories; embeds them, so outside a transaction.

    `known` has vectors that were made already, by their texts; another embedder's are left alone.
    `zone` is where their one owner is, if that is known; else it is looked up. Raises ProviderError
    when the embedder is away, or not done `within` seconds. A memory without a word that can be
    embedded has no vectors.
    """
    chosen = embedder.current()
    parts = [parts_of(memory) for memory in memories]
    made = {
        text: embedded.vector
        for text, embedded in (known or {}).items()
        if embedded.model == chosen.name
    }
    texts = dict.fromkeys(text for one in parts for part in one for text in part.passages)
    lacking = [text for text in texts if text not in made]
    try:
        if lacking:
            vectors = embedder.embed(lacking, within=within, by=chosen)
            made |= zip(lacking, vectors.tolist(), strict=True)
    except InvalidInput:
        if len(memories) > 1:
            return [
                entry
                for memory in memories
                for entry in entries_of([memory], known=known, within=within, zone=zone)
            ]
        made = {}
    return list(_entries(memories, parts, chosen.name, made, zone))


def entries_in_time(
    memories: Sequence[Memory],
    *,
    known: Mapping[str, Embedded] | None = None,
    within: float = embedder.PATIENCE,
    zone: ZoneInfo | None = None,
) -> list[Entry]:
    """Return what the provider is told of these memories: no vectors, if none came in time."""
    try:
        return entries_of(memories, known=known, within=within, zone=zone)
    except ProviderError as error:
        logger.warning("kept without vectors (%s)", error.code)
    parts = [parts_of(memory) for memory in memories]
    return list(_entries(memories, parts, embedder.current().name, {}, zone))


def _entries(
    memories: Sequence[Memory],
    parts: Sequence[Sequence[Part]],
    model: str,
    made: Mapping[str, Sequence[float]],
    zone: ZoneInfo | None = None,
) -> Iterator[Entry]:
    zones = {} if zone else _zones_of(memories)
    for memory, own in zip(memories, parts, strict=True):
        fact = memory.kind != Memory.Kind.EXCHANGE
        said_at = memory.valid_from if fact else memory.created_at
        day = said_at.astimezone(zone or zones.get(memory.user_id, UTC)).date()
        yield Entry(
            memory=memory.pk,
            kind=memory.kind,
            at=memory.created_at,
            source=memory.source,
            session_key=memory.session_key,
            model=model,
            units=[
                Unit(
                    place=place_of(memory, number),
                    speaker=part.speaker,
                    name=part.name,
                    day=day,
                    text=part.text,
                    vectors=[made[text] for text in part.passages if text in made],
                )
                for number, part in enumerate(own)
            ],
        )


def _zones_of(memories: Sequence[Memory]) -> dict[int, ZoneInfo]:
    people = list({memory.user_id for memory in memories})
    with connection.cursor() as cursor:
        cursor.execute("select id, time_zone from accounts_user where id = any(%s)", [people])
        return {pk: zone_of(name) for pk, name in cursor.fetchall()}
