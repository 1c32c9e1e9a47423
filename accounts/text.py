"""Text as it may enter the store: clean at the edge, otherwise as it was written."""

import re
import unicodedata

from accounts.errors import InvalidInput

# C0 controls but tab and newline, and DEL; Postgres refuses NUL, people never mean the others.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SURROGATE_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_JOINERS = {"\u200d", "\ufe0e", "\ufe0f"}

MESSAGE_BYTES = 64 * 1024


def clean_text(text: str) -> str:
    """Return the text without NUL, controls and lone surrogates; newlines are `\\n`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _SURROGATE_PAIR.sub(
        lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text
    )
    return _CONTROLS.sub("", _SURROGATE.sub("\ufffd", text))


def required_text(text: object, *, what: str, max_chars: int, max_bytes: int | None = None) -> str:
    """Return the cleaned, stripped text; InvalidInput if it is no text, blank or too long."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be text.")
    text = clean_text(text).strip()
    if not any(visible(character) for character in text):
        raise InvalidInput(f"{what} is empty.")
    if len(text) > max_chars:
        raise InvalidInput(f"{what} is too long: {len(text):,} of {max_chars:,} characters.")
    size = len(text.encode())
    if max_bytes is not None and size > max_bytes:
        begun = -(-size // 1024)
        raise InvalidInput(f"{what} is too long: {begun:,} of {max_bytes // 1024:,} KiB.")
    return text


def visible(character: str) -> bool:
    """Tell whether a person would see something of this character."""
    return unicodedata.category(character)[0] not in "ZC"


def one_line(text: str) -> str:
    """Return the text with every run of white space as one space."""
    return " ".join(clean_text(text).split())


def cut(text: str, limit: int, mark: str = "\u2026") -> str:
    """Return at most `limit` characters, never within a visible character; `mark` shows a cut."""
    if len(text) <= limit:
        return text
    end = limit - len(mark)
    while end > 0 and (
        unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] == "\u200d"
    ):
        end -= 1
    return text[:end].rstrip() + mark
