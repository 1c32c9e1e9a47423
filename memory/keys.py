"""What each memory is found by: the texts that are embedded for it, and the provider's entry."""

import re
from collections.abc import Mapping, Sequence

from accounts.errors import InvalidInput
from memory import embedder
from memory.exchange import Speaker
from memory.folding import claim_key, folded
from memory.models import Memory
from memory.providers.base import Entry, Key
from memory.vectors import Embedded

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


def texts_of(memory: Memory) -> list[tuple[Speaker, str]]:
    """Return what is embedded: a fact in both its forms, an exchange by each of its messages."""
    if memory.kind != Memory.Kind.EXCHANGE:
        forms = dict.fromkeys(text for text in (memory.first_person, memory.text) if text)
        return [(Speaker.PERSON, form[:PASSAGE_CHARS]) for form in forms]
    said = [(Speaker.PERSON, one) for one in passages(memory.text)]
    answered = passages(memory.answer, most=1, size=ANSWER_CHARS)
    return said + [(Speaker.ASSISTANT, one) for one in answered]


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
    memories: Sequence[Memory], *, known: Mapping[str, Embedded] | None = None
) -> list[Entry]:
    """Return what the provider is told of these memories; embeds them, so outside a transaction.

    `known` has vectors that were made already, by their texts; another embedder's are left alone.
    Raises ProviderError when the embedder is away. A memory without a word that can be embedded
    has no keys.
    """
    chosen = embedder.current()
    texts = [texts_of(memory) for memory in memories]
    made = {
        text: embedded.vector
        for text, embedded in (known or {}).items()
        if embedded.model == chosen.name
    }
    lacking = [text for one in texts for _speaker, text in one if text not in made]
    try:
        made |= zip(lacking, chosen.embed(lacking).tolist(), strict=True) if lacking else ()
    except InvalidInput:
        if len(memories) > 1:
            return [entry for memory in memories for entry in entries_of([memory], known=known)]
        texts = [[] for _memory in memories]
    return [
        Entry(
            memory=memory.pk,
            kind=memory.kind,
            text=memory.text,
            answer=memory.answer,
            source=memory.source,
            session_key=memory.session_key,
            at=memory.created_at,
            pinned=memory.pinned,
            model=chosen.name,
            keys=[
                Key(position, speaker, made[text]) for position, (speaker, text) in enumerate(one)
            ],
        )
        for memory, one in zip(memories, texts, strict=True)
    ]
