"""Compared without case, accents and width; stored as written."""

import pytest

from memory.folding import claim_key, folded, words


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Größe 42, CAFÉ", "grosse 42, cafe"),
        ("ＡＢＣ１２", "abc12"),
        ("しりとり", "しりとり"),
        ("がぎ", "がぎ"),
        ("STRASSE", "strasse"),
        ("Ångström", "angstrom"),
    ],
)
def test_a_text_is_folded(text: str, plain: str) -> None:
    assert folded(text) == plain


def test_a_claim_is_the_same_in_another_spelling_and_not_in_other_words() -> None:
    assert claim_key("The user is vegetarian.") == claim_key("the USER is  vegetarian")
    assert claim_key("I’m here") == claim_key("I'm here")
    assert claim_key("The user is vegetarian.") != claim_key("The user is not vegetarian.")
    assert claim_key("👍") != claim_key("👎")


def test_words_keep_their_apostrophes() -> None:
    assert words("The user’s cat isn't here.") == ["the", "user's", "cat", "isn't", "here"]
