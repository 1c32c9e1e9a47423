import pytest

from accounts.errors import InvalidInput
from accounts.text import clean_text, cut, one_line, required_text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("as it is: \u200d \u202e é e\u0301 日本", "as it is: \u200d \u202e é e\u0301 日本"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\ud83d\ude00", "\U0001f600"),  # two halves that belong together
        ("a\ud83db\udc00", "a\ufffdb\ufffd"),
    ],
)
def test_text_is_cleaned_of_what_nobody_means_and_kept_otherwise(given: str, kept: str) -> None:
    assert clean_text(given) == kept


@pytest.mark.parametrize("given", [None, 7, "", " \n", "\x00", "\u200b\u2060", "x" * 11, "é" * 6])
def test_required_text_is_text_that_shows_and_fits(given: object) -> None:
    with pytest.raises(InvalidInput):
        required_text(given, what="It", max_chars=10, max_bytes=10)


def test_a_text_that_is_a_little_too_long_is_not_said_to_be_just_as_long_as_it_may_be() -> None:
    with pytest.raises(InvalidInput, match="65 of 64 KiB"):
        required_text("é" * 32_769, what="It", max_chars=65_536, max_bytes=65_536)


def test_required_text_comes_back_stripped() -> None:
    assert required_text(" Ada\x00 ", what="It", max_chars=3, max_bytes=3) == "Ada"


def test_one_line_is_one_line() -> None:
    assert one_line(" a \n\n b\t\u00a0c ") == "a b c"


@pytest.mark.parametrize(
    ("given", "limit", "kept"),
    [
        ("short", 5, "short"),
        ("a longer one", 9, "a longer…"),
        ("cafe\u0301s and more", 5, "caf…"),  # the accent goes with its letter
        ("x\U0001f469\u200d\U0001f4bbyz1", 4, "x…"),  # nor is a joined sign cut in two
    ],
)
def test_a_cut_leaves_whole_characters_and_shows(given: str, limit: int, kept: str) -> None:
    assert cut(given, limit) == kept
    assert len(kept) <= limit
