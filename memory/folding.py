"""Text as it is compared: the stored text stays as it was written."""

import hashlib
import re
import unicodedata

_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def folded(text: str) -> str:
    """Return the text without case, accents and full-width forms: `Größe, CAFÉ` is `grosse, cafe`.

    Marks that make other letters (Japanese voicing, Indic vowels) stay.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = (mark for mark in text if not "\u0300" <= mark <= "\u036f")
    return unicodedata.normalize("NFKC", "".join(kept))


def words(text: str) -> list[str]:
    """Return the folded words, in order."""
    return _WORDS.findall(folded(text).replace("’", "'"))


def claim_key(text: str) -> str:
    """Return what is equal for two spellings of the same claim: a SHA-256 over its words."""
    spelt = " ".join(words(text)) or " ".join(folded(text).split())
    return hashlib.sha256(spelt.encode()).hexdigest()
