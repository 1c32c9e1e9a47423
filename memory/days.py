"""The days that a question names: `on 5 May 2023`, `last week`, `in March`."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from memory.folding import folded

MOST_DAYS = 31  # a longer range is looked up by its months
MOST_MONTHS = 24

_MONTHS = """
january jan januar janner janvier enero gennaio janeiro januari
february feb februar fevrier febrero febbraio fevereiro februari
march mar marz mars marzo marco maart
april apr avril abril aprile
may mai mayo maggio maio mei maj
june jun juni juin junio giugno junho
july jul juli juillet julio luglio julho
august aug aout agosto augustus augusti
september sep sept septembre septiembre settembre setembro
october oct oktober okt octobre octubre ottobre outubro
november nov novembre noviembre novembro
december dec dezember dez decembre diciembre dicembre dezembro
"""
MONTHS = {
    name: number
    for number, line in enumerate(_MONTHS.strip().splitlines(), 1)
    for name in line.split()
}
_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
_WEEKDAYS = """
monday montag lundi lunes lunedi segunda-feira maandag
tuesday dienstag mardi martes martedi terca-feira dinsdag
wednesday mittwoch mercredi miercoles mercoledi quarta-feira woensdag
thursday donnerstag jeudi jueves giovedi quinta-feira donderdag
friday freitag vendredi viernes venerdi sexta-feira vrijdag
saturday samstag sonnabend samedi sabado sabato zaterdag
sunday sonntag dimanche domingo domenica zondag
"""
WEEKDAYS = {
    name: number
    for number, line in enumerate(_WEEKDAYS.strip().splitlines())
    for name in line.split()
}
_DAY_NAMES = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
_NUMBERS = {
    word: number
    for number, words in enumerate(
        [
            "one a an",
            "two a couple of",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        1,
    )
    for word in words.split(" ", 1)
}

_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DOTTED = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.(\d{4})\b")
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?({_NAMES})\b\.?"
    r"(?:,?\s+(?:de\s+|del\s+)?(\d{4})\b)?"
)
_MONTH_DAY = re.compile(
    rf"\b({_NAMES})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(\d{{4}})\b)?"
)
_MONTH_YEAR = re.compile(rf"\b({_NAMES})\.?,?\s+(?:of\s+|de\s+|del\s+)?((?:19|20)\d\d)\b")
_IN_MONTH = re.compile(
    rf"\b(?:in|during|since|last|this|of|early|late|mid|im|en|em|au mois de|seit)[\s-]+({_NAMES})\b"
)
_IN_YEAR = re.compile(r"\b(?:in|during|since|of|im jahr|en|em|nel)\s+((?:19|20)\d\d)\b")
_AGO = re.compile(
    r"\b(\d{1,3}|one|an|a couple of|a|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r"\s+(day|week|month|year)s?\s+ago\b"
)
_LAST = re.compile(r"\b(last|this|past)\s+(week|weekend|month|year)\b")
_LAST_DAY = re.compile(rf"\b(?:last|this|on|letzten|am)\s+({_DAY_NAMES})\b")
_WORDS_OF_DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "heute": 0, "aujourd'hui": 0, "hoy": 0, "oggi": 0,
    "hoje": 0, "vandaag": 0, "今日": 0, "今天": 0,
    "yesterday": 1, "last night": 1, "gestern": 1, "hier": 1, "ayer": 1, "ieri": 1, "ontem": 1,
    "gisteren": 1, "昨日": 1, "昨天": 1,
    "the day before yesterday": 2, "vorgestern": 2, "anteayer": 2,
}  # fmt: skip
_WEEKS = {
    "letzte woche": 1, "vorige woche": 1, "la semaine derniere": 1, "la semana pasada": 1,
    "la settimana scorsa": 1, "semana passada": 1, "vorige week": 1, "先週": 1, "上周": 1,
    "diese woche": 0, "cette semaine": 0, "esta semana": 0, "今週": 0, "这周": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Days:
    """A range of days, both ends within it."""

    first: date
    last: date

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def names(self) -> list[str]:
        """Return what its days are indexed by: each day, or of a long range each month."""
        length = (self.last - self.first).days + 1
        if length < MOST_DAYS - 3:
            days = (self.first + timedelta(days=number) for number in range(length))
            return [f"@{day:%Y-%m-%d}" for day in days]
        months: list[str] = []
        month = self.first.replace(day=1)
        while month <= self.last and len(months) < MOST_MONTHS:
            months.append(f"@{month:%Y-%m}")
            month = (month + timedelta(days=31)).replace(day=1)
        return months


def days_named(text: str, *, today: date) -> list[Days]:
    """Return the ranges of days that a text names, as seen from `today`, each once.

    A date without its year is the last one that has been. Nothing is guessed of a season.
    """
    found = list(dict.fromkeys(_days(folded(text).replace("’", "'"), today)))
    return [
        one for one in found if not any(one != other and _within(other, one) for other in found)
    ]


def _within(inner: Days, outer: Days) -> bool:
    return inner.first in outer and inner.last in outer


def _days(text: str, today: date) -> Iterator[Days]:
    for found in _ISO.finditer(text):
        yield from _day(int(found[1]), int(found[2]), int(found[3]))
    for found in _DOTTED.finditer(text):
        yield from _day(int(found[3]), int(found[2]), int(found[1]))
    for found in _DAY_MONTH.finditer(text):
        yield from _dated(found[3], MONTHS[found[2]], int(found[1]), today)
    for found in _MONTH_DAY.finditer(text):
        yield from _dated(found[3], MONTHS[found[1]], int(found[2]), today)
    for found in _MONTH_YEAR.finditer(text):
        yield _month(int(found[2]), MONTHS[found[1]])
    for found in _IN_MONTH.finditer(text):
        if not re.match(r"\.?,?\s+(?:of\s+)?\d", text[found.end() :]):
            month = MONTHS[found[1]]
            yield _month(today.year - (month > today.month), month)
    for found in _IN_YEAR.finditer(text):
        yield Days(date(int(found[1]), 1, 1), date(int(found[1]), 12, 31))
    for found in _AGO.finditer(text):
        yield from _ago(found[1], found[2], today)
    for found in _LAST.finditer(text):
        yield _last(found[2], back=found[1] != "this", today=today)
    for found in _LAST_DAY.finditer(text):
        back = (today.weekday() - WEEKDAYS[found[1]] - 1) % 7 + 1
        yield Days(today - timedelta(days=back), today - timedelta(days=back))
    for words, back in _WORDS_OF_DAYS.items():
        if _has(words, text):
            yield Days(today - timedelta(days=back), today - timedelta(days=back))
    for words, back in _WEEKS.items():
        if _has(words, text):
            yield _last("week", back=bool(back), today=today)


def _has(words: str, text: str) -> bool:
    if not words.isascii():
        return words in text
    return re.search(rf"\b{words}\b", text) is not None


def _day(year: int, month: int, day: int) -> Iterator[Days]:
    try:
        one = date(year, month, day)
    except ValueError:
        return
    yield Days(one, one)


def _dated(year: str | None, month: int, day: int, today: date) -> Iterator[Days]:
    if year is not None:
        yield from _day(int(year), month, day)
        return
    yield from _day(today.year - ((month, day) > (today.month, today.day)), month, day)


def _month(year: int, month: int) -> Days:
    return Days(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))


def _last(unit: str, *, back: bool, today: date) -> Days:
    monday = today - timedelta(days=today.weekday() + 7 * back)
    if unit == "week":
        return Days(monday, monday + timedelta(days=6))
    if unit == "weekend":
        return Days(monday + timedelta(days=5), monday + timedelta(days=6))
    if unit == "month":
        first = today.replace(day=1)
        first = (first - timedelta(days=1)).replace(day=1) if back else first
        return _month(first.year, first.month)
    year = today.year - back
    return Days(date(year, 1, 1), date(year, 12, 31))


def _ago(number: str, unit: str, today: date) -> Iterator[Days]:
    count = int(number) if number.isdecimal() else _NUMBERS.get(number, 1)
    if unit == "day":
        day = today - timedelta(days=count)
        yield Days(day, day)
    elif unit == "week":
        day = today - timedelta(weeks=count)
        yield Days(day - timedelta(days=3), day + timedelta(days=3))
    elif unit == "month":
        months = today.year * 12 + today.month - 1 - count
        if months >= 12:
            yield _month(months // 12, months % 12 + 1)
    elif today.year > count:
        year = today.year - count
        yield Days(date(year, 1, 1), date(year, 12, 31))
