"""Days in what a person says, as dates: `tomorrow` is a day, and which one, where they are.

A fact is read long after it was said, so that "tomorrow" in it would mislead. Only what is sure is
turned into a date: day words and so many days or weeks from now. Pure functions.
"""

import re
from datetime import date, datetime, time, timedelta, tzinfo

_TWO_LATER = (
    "the day after tomorrow|übermorgen|après-demain|pasado mañana|dopodomani|depois de amanhã"
    "|overmorgen|后天|後天|明後日|あさって"
)
_LATER = "tomorrow|morgen|demain|mañana|domani|amanhã|明天|明日|あした"
_NOW = "today|heute|aujourd'hui|hoy|oggi|hoje|vandaag|今天|今日"
_TWO_AGO = (
    "the day before yesterday|vorgestern|avant-hier|anteayer|l'altro ieri|anteontem|eergisteren"
    "|前天|一昨日|おととい"
)
_AGO = "yesterday|gestern|hier|ayer|ieri|ontem|gisteren|昨天|昨日|きのう"
_DAYS = {
    word: days
    for words, days in ((_TWO_LATER, 2), (_LATER, 1), (_NOW, 0), (_TWO_AGO, -2), (_AGO, -1))
    for word in words.split("|")
}
# How a date is led in by a word of that language; where none is, it stands by itself.
_LEADS = {
    "on": "the day after tomorrow|tomorrow|today|the day before yesterday|yesterday",
    "am": "übermorgen|heute|vorgestern|gestern",
    "le": "après-demain|demain|aujourd'hui|avant-hier|hier",
    "el": "pasado mañana|mañana|hoy|anteayer|ayer",
    "il": "dopodomani|domani|oggi|l'altro ieri|ieri",
    "em": "depois de amanhã|amanhã|hoje|anteontem|ontem",
    "op": "overmorgen|vandaag|eergisteren|gisteren",
}
_LEAD = {word: lead for lead, words in _LEADS.items() for word in words.split("|")}
_PARTS = {
    "morning": "in the morning", "afternoon": "in the afternoon", "evening": "in the evening",
    "night": "at night",
}  # fmt: skip
_NUMBERS = {
    "one": 1, "a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10,
    "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "un": 1, "une": 1, "deux": 2,
    "trois": 3, "dos": 2, "tres": 3, "due": 2, "tre": 3, "dois": 2, "duas": 2, "twee": 2,
    "drie": 3,
}  # fmt: skip
_NUMBER = rf"\d{{1,3}}|{'|'.join(_NUMBERS)}"
_DAY = "day|days|tag|tagen|jour|jours|día|días|giorno|giorni|dia|dias|dag|dagen"
_WEEK = "week|weeks|woche|wochen|semaine|semaines|semana|semanas|settimana|settimane|weken"
_UNITS = {**dict.fromkeys(_DAY.split("|"), 1), **dict.fromkeys(_WEEK.split("|"), 7)}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_SPACED = "|".join(
    re.escape(word) for word in sorted(_DAYS, key=len, reverse=True) if word[0] < "\u2000"
)
_GLUED = "|".join(word for word in sorted(_DAYS, key=len, reverse=True) if word[0] > "\u2000")
_DAY_WORD = re.compile(
    rf"(?<![\w-])(?P<word>{_SPACED})(?![\w-])(?:\s+(?P<part>morning|afternoon|evening|night)\b)?"
    rf"|(?P<glued>{_GLUED})",
    re.I,
)
_IN = re.compile(
    r"(?<!\w)(?:in|dans|en|dentro de|tra|fra|em|over)\s+"
    rf"(?P<count>{_NUMBER})\s+(?P<unit>{_UNIT})(?!\w)(?!\s+(?:ago|a row|time|per|each))",
    re.I,
)
_SINCE = re.compile(
    rf"(?<!\w)(?:(?P<count>{_NUMBER})\s+(?P<unit>{_UNIT})\s+(?:ago|fa|atrás|geleden)"
    rf"|(?:vor|il y a|hace|há)\s+(?P<count2>{_NUMBER})\s+(?P<unit2>{_UNIT}))(?!\w)",
    re.I,
)
# "morgen" is also the morning; "heute Morgen" and "am Morgen" are no day after this one.
_MORNING = re.compile(
    r"(?:heute|gestern|am|jeden|guten|de la|por la|por|la|esta|van|in de|'s)\s*$", re.I
)
# "nur heute", "today's" and "these days" stay; so does "hier" in a text that is no French.
_FRENCH = re.compile(r"\b(?:je|j'|mon|ma|mes|nous|suis|ai|le|la|les|une?|est|et|du|des)\b", re.I)
_DUTCH = re.compile(r"\b(?:ik|wij|het|een|naar|mijn|gebruiker|van|de)\b", re.I)
_OTHER_TIME = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:next|last|this|coming)\s+\w+|\bweekend\b"
    r"|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)s?\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves"
    r"|viernes|sábado|domingo|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)s?\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet"
    r"|août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto"
    r"|septiembre|octubre|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio"
    r"|settembre|ottobre|dicembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro"
    r"|novembro|dezembro|januari|februari|maart|mei|augustus)\b"
    r"|\b(?:nächste\w*|letzte\w*|kommende\w*|prochain\w*|dernier\w*|próxim\w+|pasad[oa]|prossim\w+"
    r"|scors[oa]|volgende|vorige|months?|years?|monat\w*|jahr\w*|mois|ans|meses|años?|mesi|anni"
    r"|maand\w*|jaar|since|seit|depuis|desde|until|till|bis|jusqu\w*|hasta|fino|até|tot|for|now|jetzt"
    r"|spring|summer|autumn|fall|winter|sommer|herbst|frühling|verano|verão|zomer)\b"
    r"|\d|[周週月年]|星期|来|去",
    re.I,
)
_ISO = re.compile(r"(?<![\d-])\d{4}-\d{2}-\d{2}(?![\d-])")
EARLIEST, LATEST = 120, 60  # years before and after what is said that a date may lie


def with_dates(text: str, said_at: datetime) -> str:
    """Return the text with its day words as dates of the calendar where `said_at` was said.

    `Tomorrow I fly to Rome` said at 01:30 on 2 March is `On 2026-03-03 I fly to Rome`.
    """
    today = said_at.date()

    def word(found: "re.Match[str]") -> str:
        said = found["word"] or found["glued"]
        days = _days_of(said, text, found.start())
        if days is None or text[found.end() : found.end() + 2].lower() in {"'s", "’s"}:
            return found.group()
        part = f" {_PARTS[found['part'].lower()]}" if found["part"] else ""
        lead = _LEAD.get(said.lower(), "")
        if said.lower() == "morgen":
            lead = "op" if _DUTCH.search(text) else "am"
        return _led(lead, today, days, text, found) + part

    def count(found: "re.Match[str]") -> str:
        days = _span(found["count"], found["unit"])
        lead = "on" if found.group().lower().startswith("in ") and _english(text) else ""
        return _led(lead, today, days, text, found)

    def ago(found: "re.Match[str]") -> str:
        days = -_span(found["count"] or found["count2"], found["unit"] or found["unit2"])
        lead = "on" if found.group().lower().endswith("ago") else ""
        return _led(lead, today, days, text, found)

    dated = _SINCE.sub(ago, text)
    text = dated
    dated = _IN.sub(count, text)
    text = dated
    return _DAY_WORD.sub(word, text.replace("aujourd’hui", "aujourd'hui"))


def _english(text: str) -> bool:
    return re.search(r"\b(?:days?|weeks?)\b", text, re.I) is not None


def _led(lead: str, today: date, days: int, text: str, found: "re.Match[str]") -> str:
    """Return the date, led in as its language does, with a capital at the start of the text."""
    before = text[: found.start()].rstrip().lower()
    if lead and re.search(
        r"(?:\b(?:on|by|from|until|till|since|before|after|for)|[bv]on|bis|seit)$", before
    ):
        lead = ""
    spelt = f"{lead} {today + timedelta(days=days):%Y-%m-%d}".strip()
    return spelt[:1].upper() + spelt[1:] if not before else spelt


def _days_of(said: str, text: str, start: int) -> int | None:
    """Return how many days from today a word names; None where it may mean something else."""
    spelt = said.lower()
    before = text[:start]
    if spelt in {"morgen", "mañana"} and (
        _MORNING.search(before) or (said[:1].isupper() and before.strip())
    ):
        return None
    if spelt == "hier" and not _FRENCH.search(text):
        return None
    return _DAYS[spelt]


def _span(count: str, unit: str) -> int:
    number = int(count) if count.isdigit() else _NUMBERS[count.lower()]
    return number * _UNITS[unit.lower()]


def named_days(statement: str, said_at: datetime) -> set[str] | None:
    """Return the dates that a statement names, as ISO; None if it has other words of time as well.

    Only with a set is it certain which dates a fact from it may hold.
    """
    dated = with_dates(statement, said_at)
    days = {found.group() for found in _ISO.finditer(dated)}
    return None if _OTHER_TIME.search(_ISO.sub(" ", dated)) else days


def other_days(fact: str, statement: str, said_at: datetime) -> bool:
    """Tell whether a fact holds a date that is certainly not one that the statement names."""
    given = {found.group() for found in _ISO.finditer(fact)}
    if not given:
        return False
    sure = named_days(statement, said_at)
    return sure is not None and bool(sure) and not given <= sure


def tells_time(statement: str, said_at: datetime) -> bool:
    """Tell whether a statement has any word of time: else no date of a fact rests on it."""
    named = named_days(statement, said_at)
    return named is None or bool(named)


def day_start(given: str, *, said_at: datetime, zone: tzinfo) -> datetime | None:
    """Return when an ISO day begins in a zone; None for what is no plausible day."""
    if not _ISO.fullmatch(given.strip()):
        return None
    try:
        day = date.fromisoformat(given.strip())
    except ValueError:
        return None
    if not said_at.year - EARLIEST <= day.year <= said_at.year + LATEST:
        return None
    return datetime.combine(day, time(), zone)
