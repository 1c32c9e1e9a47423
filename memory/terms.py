"""What a text is found by in the text arm, and what a question asks for.

terms_of        the hashed terms of a message or fact, for its postings
flags_of        what the ranking must know of its text besides
read_question   the terms, days, names and kind of a question
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from memory.days import MONTHS, WEEKDAYS, Days, days_named
from memory.folding import folded
from memory.languages import ANY_STOP_WORD, UNSURE, every_latin, languages_of, stems, stop_words_of

# Trait bits of a text.
ASKS = 1  # it ends in a question mark
TELLS_TIME = 2  # it has a word of time, a weekday, a month, a date or a year

# Letters of scripts that put no spaces between words, and Hangul, whose particles are glued on.
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff"
    "\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u1049\u1780-\u17d3"
)
_MARKS = "\u0300-\u036f\u0483-\u0487\u064b-\u065f\u0900-\u0963\u0966-\u0d7f"
_TOKEN = re.compile(
    rf"(?P<run>[{_UNSPACED}]+)"
    r"|(?P<number>\d{1,3}(?:[,.\u202f\u00a0']\d{3})+(?!\d)|\d+)"
    rf"|(?P<word>(?:(?![{_UNSPACED}\d_])[\w{_MARKS}])(?:(?![{_UNSPACED}_])[\w{_MARKS}'])*)"
)
_HAN = re.compile(r"[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_NAMES = "|".join(name for name in [*MONTHS, *WEEKDAYS] if name not in {"may", "mar", "mai"})
_TIME = re.compile(
    rf"\b(?:{_NAMES}|yesterday|today|tonight|tomorrow|ago|weekend|weekends|(?:last|next|this|past)"
    r" (?:night|week|month|year|spring|summer|autumn|fall|winter|few|two|three)|in may|may \d+|"
    r"(?:two|three|four|five|six|seven|eight|nine|ten|\d+|few|couple of)"
    r" (?:days?|weeks?|months?|years?)|gestern|heute|morgen|vorgestern|letzte[nrs]?|nachste[nrs]?|"
    r"hier|aujourd'hui|demain|dernier|derniere|prochain|prochaine|ayer|hoy|manana|pasad[oa]|proxim[oa]|"
    r"ieri|oggi|domani|scors[oa]|ontem|hoje|amanha|gisteren|vandaag|(?:19|20)\d\d)\b"
    r"|\d{1,2}[./]\d{1,2}[./]\d{2,4}|昨日|今日|明日|昨天|今天|明天|先週|来週|上周|下周|去年|明年|\d月"
)
_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|week)\b"
    r"|\bhow (?:long|many (?:days|weeks|months|years)|recently)\b|\bwann\b|\bseit wann\b"
    r"|\bwelche[nrsm]? (?:tag|datum|monat|jahr)\b"
    r"|\bquand\b|\bcuando\b|\bquando\b|\bwanneer\b|\bkiedy\b|\bne zaman\b|когда|いつ|何時|何日"
    r"|什么时候|何时|哪天|언제"
)
_SAYING = "recommend|suggest|say|tell|give|advise|mention|explain|propose|list|write|describe"
_SAID = (
    "recommended|suggested|said|told|gave|given|advised|mentioned|explained|proposed|listed|wrote"
    "|written|described"
)
_ASSISTANT = re.compile(
    rf"\bdid you (?:\w+ )?(?:{_SAYING})\b|\b(?:had|have) you (?:\w+ )?(?:{_SAID})\b"
    rf"|\byou(?:'ve|'d| had| have)? (?:{_SAID})\b|\byour (?:advice|suggestions?|recommendations?)\b"
    r"|\bhast du (?:\w+ ){1,6}(?:empfohlen|vorgeschlagen|gesagt|genannt|geraten)\b"
    r"|\b(?:as-tu|avez-vous|tu as|vous avez) (?:recommande|suggere|dit|conseille|propose)\b"
    r"|\b(?:me )?(?:recomendaste|sugeriste|dijiste|aconsejaste)\b"
)
_NO_DIGIT = re.compile(r"\D")
_ENGLISH_ENDINGS = frozenset({"s", "t", "d", "m", "ll", "re", "ve"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: how it is written, and the terms of which any is a match.

    One that may be a stop word is no loss when no memory has it.
    """

    written: str
    terms: tuple[int, ...]
    may_be_stop: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What a question asks for.

    `days` are the ranges that it names, `of_days` the terms for them, `named` the speakers, folded.
    `asks_assistant` is whether it asks for what the assistant said.
    """

    text: str
    words: tuple[Word, ...]
    days: tuple[Days, ...]
    of_days: tuple[int, ...]
    named: frozenset[str]
    asks_when: bool
    asks_assistant: bool = False

    @property
    def terms(self) -> list[int]:
        """The terms whose postings it needs, each once."""
        every = [term for word in self.words for term in word.terms]
        return list(dict.fromkeys([*every, *self.of_days]))


def terms_of(text: str, *, speaker: str = "", day: date | None = None) -> dict[int, int]:
    """Return how often each term occurs in a text: signed 32 bit hash of the term -> count.

    Stop words of the text's language are left out, unless there is nothing else. A text in no
    known language has the stems of several. `speaker` is a person's name, indexed like a word;
    `day` (in the person's time zone) makes the text findable by the day and the month.
    """
    read = _read(text)
    counts: Counter[str] = Counter()
    named = _read(speaker).words if speaker else []
    for word, count in Counter([*read.words, *named]).items():
        for stem in stems(word, read.languages):
            counts[stem] += count
    counts.update(read.bigrams)
    hashed: dict[int, int] = {}
    for term, count in counts.items():
        number = hash_of(term)
        hashed[number] = hashed.get(number, 0) + count
    if day is not None:
        hashed.update(dict.fromkeys(_terms_of_day(day), 1))
    return hashed


def flags_of(text: str) -> int:
    """Return the trait bits of a text: ASKS, TELLS_TIME."""
    asks = text.rstrip(" \n\t\"'»”)*_").endswith(("?", "？", "؟"))
    return ASKS * asks | TELLS_TIME * bool(_TIME.search(folded(text)))


def read_question(text: str, *, today: date, speakers: Collection[str] = ()) -> Question:
    """Return what a question asks for; `today` is where the person is, for `last week`.

    Each word has its stems in every language that the question may be in, so that it meets a
    memory however that one's language was guessed.
    """
    read = _read(text)
    words = [
        Word(
            word,
            tuple(hash_of(stem) for stem in stems(word, _asked_in(read))),
            may_be_stop=folded(word) in ANY_STOP_WORD and not read.sure,
        )
        for word in dict.fromkeys(read.words)
    ]
    words += [Word(bigram, (hash_of(bigram),)) for bigram in dict.fromkeys(read.bigrams)]
    days = tuple(days_named(text, today=today))
    spoken = set(re.findall(r"\w+", folded(text)))
    return Question(
        text=text,
        words=tuple(words),
        days=days,
        of_days=tuple(dict.fromkeys(term for one in days for term in _terms_of_days(one))),
        named=frozenset(
            name for name in map(folded, speakers) if spoken & set(re.findall(r"\w+", name))
        ),
        asks_when=bool(_WHEN.search(folded(text))),
        asks_assistant=bool(_ASSISTANT.search(folded(text).replace("’", "'"))),
    )


@lru_cache(maxsize=50_000)
def hash_of(term: str) -> int:
    """Return the term's stable hash, a signed 32 bit integer."""
    digest = hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "big", signed=True)


@dataclass(frozen=True, slots=True)
class _Read:
    words: list[str]  # lower case; no stop words, if the language is sure
    bigrams: list[str]
    languages: tuple[str, ...]
    sure: bool


def _read(text: str) -> _Read:
    tokens: list[str] = []
    bigrams: list[str] = []
    for found in _TOKEN.finditer(_lower(text)):
        token = found.group()
        if found.lastgroup == "run":
            bigrams += _bigrams(folded(token))
        elif found.lastgroup == "number":
            tokens.append(_NO_DIGIT.sub("", token))
        else:
            tokens.append(token.strip("'"))
    plain = tokens if text.isascii() else [folded(token) for token in tokens]
    languages, sure = languages_of(plain)
    if not sure:
        languages = tuple(dict.fromkeys([*languages, *UNSURE]))
    stop_words = stop_words_of(languages) if sure else frozenset()
    kept = [
        word
        for token, fold in zip(tokens, plain, strict=True)
        if fold not in stop_words
        for word in _parts(token)
        if word == token or folded(word) not in stop_words
    ]
    return _Read(kept or ([] if bigrams else tokens), bigrams, languages, sure)


def _lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).replace(
        "’", "'"
    )


def _parts(token: str) -> list[str]:
    """Return the words that apostrophes join: `anna's` is anna, `l'eau` is eau and l."""
    if "'" not in token:
        return [token]
    parts = [part for part in token.split("'") if part]
    if len(parts) > 1 and parts[-1] in _ENGLISH_ENDINGS:
        parts = parts[:-1]
    return [part for part in parts if len(part) > 1] or parts


def _bigrams(run: str) -> Iterable[str]:
    """Return a run's pairs of neighbours, and each character that stands alone in its script."""
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    alone = [han for han in _HAN.findall(run) if len(han) == 1]
    return pairs + alone if pairs else [run]


def pairs_of(text: str) -> list[str]:
    """Return the folded pairs of neighbours in what is written without spaces between words."""
    runs = (found.group() for found in _TOKEN.finditer(_lower(text)) if found.lastgroup == "run")
    return [pair for run in runs for pair in _bigrams(folded(run))]


def _asked_in(read: _Read) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*read.languages, *(UNSURE if read.sure else every_latin())]))


def _terms_of_day(day: date) -> list[int]:
    return [hash_of(f"@{day:%Y-%m-%d}"), hash_of(f"@{day:%Y-%m}")]


def _terms_of_days(days: Days) -> list[int]:
    """Return the terms that every day of the range, and no other day or few, is indexed by."""
    return [hash_of(term) for term in days.names()]
