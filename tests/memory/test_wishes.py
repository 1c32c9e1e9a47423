"""What a claim asks of the answers is told from what it says of the person."""

import pytest

from memory.wishes import told_apart, wish_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user wants short answers.", "The user prefers concise replies."),
        ("The user likes bullet points.", "The user wants answers as bulleted lists."),
        ("The user does not want emojis.", "The user dislikes emojis in answers."),
        ("The user wants answers in metric units.", "The user prefers metric units."),
        ("Der Nutzer möchte kurze Antworten.", "Der Nutzer bevorzugt knappe Antworten."),
        ("L'utilisateur veut des réponses courtes.", "L'utilisateur préfère des réponses brèves."),
        ("El usuario prefiere respuestas cortas.", "El usuario quiere respuestas breves."),
        ("用户喜欢简短的回答。", "用户希望回答简洁。"),
    ],
)
def test_a_wish_is_the_same_in_other_words(one: str, other: str) -> None:
    assert wish_of(one) is not None
    assert wish_of(one) == wish_of(other)


@pytest.mark.parametrize(
    ("one", "other", "against"),
    [
        ("The user wants short answers.", "The user wants detailed answers.", True),
        ("The user wants answers in English.", "The user wants answers in German.", True),
        ("The user wants emojis.", "The user does not want emojis.", True),
        ("Der Nutzer möchte kurze Antworten.", "Der Nutzer möchte ausführliche Antworten.", True),
        ("The user wants short answers.", "The user wants formal answers.", False),
        ("The user wants bullet points.", "The user wants tables.", False),
        ("The user does not want long answers.", "The user wants short answers.", False),
    ],
)
def test_wishes_that_can_not_be_followed_together_are_told(
    one: str, other: str, against: bool
) -> None:
    first, second = wish_of(one), wish_of(other)
    assert first is not None
    assert second is not None
    assert first.against(second) is second.against(first) is against


@pytest.mark.parametrize(
    "text",
    [
        "The user likes short hikes.",
        "The user is short.",
        "The user speaks German.",
        "The user likes Italian.",
        "The user wants code examples in Python.",
        "The user enjoys water sports.",
        "用户喜欢爬山。",
    ],
)
def test_what_says_anything_else_is_no_wish(text: str) -> None:
    assert wish_of(text) is None


def test_texts_without_spaces_are_told_apart_by_their_characters() -> None:
    assert told_apart("用户喜欢爬山。", "用户喜欢游泳。")
    assert not told_apart("用户每天早上喝咖啡。", "用户每天早上都喝咖啡。")
    assert not told_apart("The user runs.", "The user swims.")
