"""What a person says in so many words is to be remembered. Pure functions.

No model is asked: "remember that ..." and its like, at the start of a sentence, in the languages
below. What follows is kept in the person's own words.
"""

import re

from accounts.text import cut
from memory.prompts import ENTRY_CHARS

_POLITE = (
    r"(?:(?:please|kindly|also|and|ok(?:ay)?|hey|bitte|s'il (?:te|vous) pla[iî]t|por favor"
    r"|per favore|alsjeblieft)[,!.]?\s+){0,3}"
)
_ASKED = _POLITE + (
    r"(?:(?:can|could|will|would) you (?:please )?"
    r"|i(?:['’]d| would)? (?:like|want|need) you to )?(?:please )?(?:always )?"
)
# "that" begins what is to be kept; not so in "that time we went to Rome", which looks back, nor in
# "that was fun", which says nothing without what came before.
_NO_LOOK_BACK = (
    r"(?!\s*(?:(?:was|were|is|isn['’]t|wasn['’]t|will be|would)\b|['’]s\b|one\b(?! of\b)"
    r"|(?:(?:one|first|great|lovely|funny|crazy) )?(?:"
    r"(?:time|day|night|evening|morning|afternoon)\s+(?:in|at|back)\b"
    r"|(?:time|day|night|evening|morning|afternoon|spring|summer|autumn|winter|weekend|holiday"
    r"|vacation|trip|moment|place|restaurant|bar|caf[eé]|hotel|film|movie|show|song|book|guy|man"
    r"|woman|girl|boy|person|dinner|lunch|party|concert|talk|joke|story|thing)"
    r"\s+(?:when|where|who|that|which|we|i|you|he|she|they|my|our)\b)))"
)
_THAT = rf"\s*(?:,?\s*that\b{_NO_LOOK_BACK}|:)"
_ABOUT_ME = r"(?=(?:i|i['’]m|i['’]ve|i['’]d|my|we|our)\b)"
# After these words comes what is to be kept. (?P<full>) keeps the order itself as well; after
# (?P<last...>) the verb comes last.
_COMMANDS = (
    _ASKED + rf"remember(?:,| please)?\s+(?:that\b{_NO_LOOK_BACK}|this\s*[:,-]|the following\s*:)",
    _ASKED + r"remember\s*:",
    _ASKED + r"remember,?\s+" + _ABOUT_ME,
    _POLITE + r"(?P<full>remember to\b)",
    _ASKED + r"(?:do not|don['’]?t|never) forget" + _THAT,
    _ASKED + r"(?:do not|don['’]?t|never) forget,?\s+" + _ABOUT_ME,
    _ASKED + r"(?:keep|bear) in mind" + _THAT,
    _ASKED + r"(?:make|take) a note" + _THAT,
    _POLITE
    + r"(?:(?:kannst|k[oö]nntest|w[uü]rdest) du )?(?:dir )?merk(?:e|en)?(?: dir)?(?: bitte)?"
    + r"\s*(?:,?\s*(?P<last1>dass)\b|:|,)",
    _POLITE + r"vergiss(?: bitte)? nicht\s*(?:,?\s*(?P<last2>dass)\b|:)",
    _POLITE
    + r"(?:erinnere dich(?: daran)?|behalte(?: im kopf)?|notiere(?: dir)?|denke? daran)"
    + r"\s*(?:,?\s*(?P<last3>dass)\b|:)",
    _POLITE
    + r"(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|retiens|retenez|note[zs]?"
    + r"|n['’]oublie[zs]? pas)\s*(?:bien\s+)?(?:que\b|qu['’]|:)",
    _POLITE
    + r"(?:recuerda|recuerde|acu[eé]rdate(?: de)?|no olvides|no te olvides de|anota|apunta)"
    + r"\s*(?:que\b|:)",
    _POLITE + r"(?:ricorda(?:ti)?|ricordi|non dimenticare|tieni a mente|annota)\s*(?:che\b|:)",
    _POLITE
    + r"(?:lembra(?:-te)?|lembre(?:-se)?|n[aã]o (?:te )?esque[cç]as?|anota|anote|guarda)"
    + r"\s*(?:de\s+)?(?:que\b|:)",
    _POLITE + r"(?:onthoud|vergeet niet|noteer|denk eraan)\s*(?:,?\s*(?P<last4>dat)\b|:)",
    r"(?:请|請)?(?:你)?(?:帮我)?(?:记住|記住|记得|記得|记一下)(?:这一点)?\s*[:\uff1a,\uff0c]?",
    r"(?:覚えておいて(?:ください)?|メモして(?:ください)?)\s*[:\uff1a、]",
)
_COMMAND = [re.compile(pattern, re.I) for pattern in _COMMANDS]
_JAPANESE_END = re.compile(
    r"^(?P<what>.{2,}?)(?:を|と|ことを|って)覚えて(?:おいて)?(?:ください|ね)?$"
)
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
# A full stop behind these, or behind one letter, ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|mx|prof|st|nr|vs|approx|bzw|dra|sra|mme|mlle|dott)"
    r"|(?<![ap]\.)\b[^\W\d_])\.$",
    re.I,
)
_QUESTION = re.compile(r"(?:[?？]|吗[。.]?)[\s!！?？)\"'”’»]*$")
# What makes an order of a question: "Can you remember that ...?"
_REQUEST = re.compile(
    _POLITE
    + r"(?:(?:can|could|will|would) you (?:please\b|(?:always )?"
    + r"(?:remember|(?:keep|bear) in mind|(?:make|take) a note)(?: please|,)?\s*"
    + r"(?:that\b|this\b|the following\b|:))"
    + r"|(?:kannst|k[oö]nntest|w[uü]rdest) du\b)",
    re.I,
)
_AGREED = re.compile(
    r"[,.;]\s*(?:ok(?:ay)?|please|will you|would you|ja|bitte|d['’]accord|vale)\s*[?？]+$", re.I
)
_VERB_LAST = re.compile(r"^(?P<who>ich|wir|ik|wij)\s+(?P<what>.+?),?\s+(?P<verb>[^\W\d_]+)$", re.I)


def told_to_remember(text: str) -> list[str]:
    """Return each thing that the person orders to be remembered, as a sentence in their words.

    A question ("Do you remember that ...?", "Remember that time ...?"), a report ("I remember that
    ...") and a look back ("Remember, that was fun!") are no orders.
    """
    kept = (_ordered(one) for line in _own_lines(text).splitlines() for one in _sentences(line))
    return list(dict.fromkeys(one for one in kept if one))


def _sentences(line: str) -> list[str]:
    whole: list[list[str]] = []
    for part in _SENTENCES.split(line):
        # Only the last characters are looked at: a line may be one long run of "a. a. a.".
        if whole and _ABBREVIATION.search(whole[-1][-1][-12:]) and not _ordered(part):
            whole[-1].append(part)
        else:
            whole.append([part])
    return [" ".join(parts) for parts in whole]


def _own_lines(text: str) -> str:
    """Leave out quoted lines and code: those are somebody else's words."""
    text = re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.S)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))


def _ordered(sentence: str) -> str:
    sentence = _AGREED.sub("", sentence.strip(" \t-*•").rstrip())
    if _QUESTION.search(sentence) and not _REQUEST.match(sentence):
        return ""
    for pattern in _COMMAND:
        found = pattern.match(sentence)
        if found is None:
            continue
        named = found.groupdict()
        what = sentence[found.start("full") :] if named.get("full") else sentence[found.end() :]
        if any(word for name, word in named.items() if name.startswith("last")):
            what = _main_clause(what)
        return _sentence(what)
    found = _JAPANESE_END.match(sentence.rstrip("。！!."))
    return _sentence(found["what"]) if found else ""


def _main_clause(what: str) -> str:
    """Turn "ich Vegetarier bin" into "ich bin Vegetarier", where that is plain to see."""
    found = _VERB_LAST.match(what.strip(" .!?,"))
    return f"{found['who']} {found['verb']} {found['what']}" if found else what


def _sentence(what: str) -> str:
    what = " ".join(what.split()).strip(" ,:;-–").rstrip("?!.。！？ ")
    if sum(character.isalnum() for character in what) < 2:
        return ""
    end = "。" if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", what) else "."
    return cut(what[0].upper() + what[1:], ENTRY_CHARS - 1) + end
