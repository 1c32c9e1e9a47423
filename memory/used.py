"""Whether a reply names a memory. Pure: by the words that the memory has of its own."""

from memory.folding import words
from memory.stop_words import STOP_WORDS

SHARE = 0.5
_OF_ANY_FACT = frozenset({"user", "person", "nutzer", "utilisateur", "usuario", "always", "likes"})


def names(reply: str, memory: str, *, question: str) -> bool:
    """Tell whether at least half of a memory's own words stand in a reply.

    Its own are those that neither the question has nor every text: a reply that only takes up the
    question names nothing.
    """
    own = set(words(memory)) - STOP_WORDS - _OF_ANY_FACT - set(words(question))
    own = {word for word in own if len(word) > 2 or word.isdigit()}
    if not own:
        return False
    said = set(words(reply))
    found = sum(1 for word in own if word in said or _stem(word) in map(_stem, said))
    return found >= max(1, SHARE * min(len(own), 8))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") else word
