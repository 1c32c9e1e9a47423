"""Whether a reply names a memory. Pure: by the words and names that the memory has of its own."""

import re
from collections.abc import Iterable

from memory.days import MONTHS, WEEKDAYS
from memory.folding import folded, words
from memory.languages import languages_of
from memory.stop_words import STOP_WORDS
from memory.terms import pairs_of

SHARE = 0.5
MOST = 8  # of a long text's words; a reply takes up no more of it
_OF_ANY_FACT_LIST = """
user person always likes like loves love enjoys prefers wants has have owns own lives live works
work called named name goes uses moved born years year old new got much many time day week
nutzer wohnt wohne lebt lebe arbeitet arbeite heisst heisse besitzt besitze mag liebt jahre jahr
alt neu tag woche utilisateur habite travaille appelle aime possede ans usuario vive vivo trabaja
trabajo llama gusta anos utente abita lavora chiama piace anni mora trabalha chama gosta woont
werkt heet houdt jaar
"""
_OF_ANY_FACT = frozenset(_OF_ANY_FACT_LIST.split()) | frozenset([*MONTHS, *WEEKDAYS])
_OF_ANY_PAIR = frozenset(("用户", "使用", "ユー", "ーザ", "ザー", "我的", "です", "ます", "ない"))
_CAPITAL = r"[^\W\d_][\w’'-]*"
# Within a sentence: behind a word or a comma, not behind an end, a bullet or a heading's mark.
_WITHIN = re.compile(rf"(?<=[^\W_] |[,;(] |[’'”)] )\W?({_CAPITAL})")
_ANYWHERE = re.compile(rf"({_CAPITAL})")
_HEADING = re.compile(r"^\s*(?:#+ .*|\*\*[^*\n]+\*\*:?)$", re.M)
# German writes every noun with a capital: a name is what stands where names do.
_GERMAN_NAME = re.compile(
    rf"(?:\b(?:heißt|heiße|heißen|namens|genannt|in|bei|aus)|\b[A-ZÄÖÜ][\w-]+) (?=({_CAPITAL}))"
)
_NUMBER = re.compile(r"\d{3,}")
_YEAR = re.compile(r"(?:19|20)\d\d")


def named(reply: str, memories: Iterable[tuple[str, str]], *, question: str) -> list[bool]:
    """Tell of each memory whether a reply names it; of an exchange both halves are given.

    It has one of the memory's names or long numbers, or at least half of its own words. Its own are
    those that neither the question has nor every text: a reply that only takes up the question
    names nothing. A name is told by its capital, also in the reply; in Chinese and Japanese, where
    there is none, it is not told from other words.
    """
    said = _Reply(reply, question)
    return [said.names(text, other_half) for text, other_half in memories]


class _Reply:
    """A reply as it is held against each memory."""

    def __init__(self, reply: str, question: str) -> None:
        self.german = _is_german(reply)
        self.asked = _forms(words(question))
        self.asked_pairs = set(pairs_of(question)) | _OF_ANY_PAIR
        self.said = _forms(words(reply)) | set(pairs_of(reply))
        self.told = _capitals(_ANYWHERE.findall(reply)) | _numbers(reply)
        self.within = _capitals(_WITHIN.findall(_HEADING.sub("", reply)))

    def names(self, memory: str, other_half: str) -> bool:
        """Tell whether it names this memory."""
        whole = f"{memory} {other_half}"
        own = {
            form
            for form in _forms(words(whole))
            if form not in self.asked and (len(form) > 2 or form.isdigit())
        }
        marks = own & _marks(memory)
        if (marks | (own & self._opening(memory))) & self.told:
            return True
        pairs = set(pairs_of(whole)) - self.asked_pairs
        own = {form for form in own if form.isascii() or not pairs_of(form)} | pairs
        needed = SHARE * (min(len(own - marks), MOST) + 2 * len(marks))
        return bool(own) and len(own & self.said) >= max(1, needed)

    def _opening(self, memory: str) -> set[str]:
        """Return what is a name though the memory only opens with it: so it stands within."""
        if self.german or _is_german(memory):
            return set()
        return _capitals(_ANYWHERE.findall(memory)) & self.within


def _forms(said: Iterable[str]) -> set[str]:
    """Return the words that say something, without the endings of a plural and a possessive."""
    plain = (word.removesuffix("'s").rstrip("'") for word in said if word not in STOP_WORDS)
    return {
        word[:-1] if len(word) > 4 and word.endswith("s") else word
        for word in plain
        if word not in _OF_ANY_FACT
    }


def _marks(memory: str) -> set[str]:
    """Return the forms that tell by themselves what is meant: names, and numbers but years."""
    pattern = _GERMAN_NAME if _is_german(memory) else _WITHIN
    return _capitals(pattern.findall(memory)) | _numbers(memory)


def _numbers(text: str) -> set[str]:
    return {number for number in _NUMBER.findall(folded(text)) if not _YEAR.fullmatch(number)}


def _capitals(found: Iterable[str]) -> set[str]:
    return _forms(word for one in found if one[:1].isupper() for word in words(one))


def _is_german(text: str) -> bool:
    return "german" in languages_of(words(text))[0]
