"""Letters that look like Latin ones and are none: what hides `system` in Cyrillic letters.

A small table after Unicode's confusables.txt (UTS 39): the letters that a reader, and a model,
takes for a Latin one. Text that people read is never changed by it but where a whole word is a
disguise; it is for comparing.
"""

import re

# Each Latin letter with its look-alikes: Cyrillic, Greek, Armenian, small capitals, IPA.
_ALIKE = {
    "a": "аαɑᴀⱥ", "b": "Ьʙ", "c": "сϲᴄⅽҫ", "d": "ԁɗᴅժⅾ", "e": "еεєҽᴇ", "f": "ϝғꜰ", "g": "ɡɢց",
    "h": "һнհʜ", "i": "іιӏıɪίїꙇǀ", "j": "јϳᴊ", "k": "кκᴋ", "l": "ⅼʟⳑւ", "m": "мᴍⅿ", "n": "пηɴո",
    "o": "оοσօᴏӧόჿ", "p": "рρᴘ", "q": "ԛգ", "r": "гɼʀᴦꮁ", "s": "ѕꜱʂ", "t": "тτᴛ", "u": "υսцᴜʋ",
    "v": "ѵνᴠⅴ", "w": "ѡωԝաᴡшϖ", "x": "хχⅹ", "y": "уүγʏყ", "z": "ᴢʐ",
    "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙӀ", "J": "Ј", "K": "КΚ",
    "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ", "S": "ЅⱾ", "T": "ТΤ", "X": "ХΧ", "Y": "УҮΥ",
    "Z": "Ζ",
}  # fmt: skip
# Letters in boxes and circles that have no decomposition.
_BOXES = {
    first + number: chr(ord("a") + number)
    for first in (0x1F150, 0x1F170, 0x1F1E6)
    for number in range(26)
}
_LATIN = {ord(other): latin for latin, others in _ALIKE.items() for other in others} | _BOXES
_SOME = re.compile("[" + "".join(re.escape(chr(code)) for code in _LATIN) + "]")
_WORD = re.compile(r"[^\W\d_]+|[\U0001f150-\U0001f1ff]+")
_ASCII = re.compile(r"[A-Za-z]+")


def in_latin(text: str) -> str:
    """Return the text with every look-alike as the Latin letter that it looks like."""
    if text.isascii() or not _SOME.search(text):
        return text
    return text.translate(_LATIN)


def unmasked(text: str, masks: frozenset[str]) -> str:
    """Return the text with those words in plain letters that only look like one of `masks`.

    Honest Russian and Greek stay as they are: of the roles of a chat, no word of them is made of
    look-alikes only.
    """
    if not _SOME.search(text):
        return text
    return _WORD.sub(lambda found: _plain(found.group(), masks), text)


def _plain(word: str, masks: frozenset[str]) -> str:
    latin = word.translate(_LATIN)
    return latin if latin != word and _ASCII.fullmatch(latin) and latin.lower() in masks else word
