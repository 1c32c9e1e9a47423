"""What is ordered to be remembered, in the person's own words."""

import time

import pytest

from memory.commands import told_to_remember


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Remember that I am vegetarian.", "I am vegetarian."),
        ("remember: my cat is Miso", "My cat is Miso."),
        ("Please remember I'm allergic to nuts!", "I'm allergic to nuts."),
        ("Can you remember that I live in Porto?", "I live in Porto."),
        ("I'd like you to remember that I own a boat.", "I own a boat."),
        ("Don't forget that I work nights", "I work nights."),
        ("Keep in mind that my sister is called Ada.", "My sister is called Ada."),
        ("remember to call me Ines", "Remember to call me Ines."),
        ("Hi there. Remember that my flight is at 9. Thanks!", "My flight is at 9."),
        ("Remember: my dentist is Dr. Kim. Thanks!", "My dentist is Dr. Kim."),
        ("Remember that I vote for J. Smith", "I vote for J. Smith."),
        ("I take vitamin C. Remember that I take it daily.", "I take it daily."),
        ("Remember that my train leaves at 9 p.m. See you!", "My train leaves at 9 p.m."),
        ("Merk dir, dass ich Vegetarier bin.", "Ich bin Vegetarier."),
        ("Merke dir: Größe 42", "Größe 42."),
        ("Bitte vergiss nicht, dass meine Schwester Ada heißt", "Meine Schwester Ada heißt."),
        ("Souviens-toi que j'habite à Paris", "J'habite à Paris."),
        ("N'oublie pas que je suis végane.", "Je suis végane."),
        ("Recuerda que vivo en Lisboa.", "Vivo en Lisboa."),
        ("Ricorda che sono vegetariano", "Sono vegetariano."),
        ("Lembra-te que moro no Porto", "Moro no Porto."),
        ("Onthoud dat ik vegetariër ben", "Ik ben vegetariër."),
        ("请记住我对花生过敏。", "我对花生过敏。"),
        ("覚えておいて：猫の名前はミソ", "猫の名前はミソ。"),
    ],
)
def test_an_order_is_understood(said: str, kept: str) -> None:
    assert told_to_remember(said) == [kept]


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember that I am vegetarian?",
        "I remember that we met in Rome.",
        "Remember the Titans is a great film.",
        "Don't forget the milk.",
        "What should I remember: the date or the place?",
        "> Remember that I am vegetarian.",
        "```\nremember: x = 1\n```",
        "She said remember that.",
        "Remember that",
        "Remember that …",
        "",
    ],
)
def test_what_is_no_order_is_left_alone(said: str) -> None:
    assert told_to_remember(said) == []


def test_several_orders_are_several_facts_and_the_same_one_is_one() -> None:
    said = "Remember that I own a boat.\nRemember: I work nights\n- Remember that I own a boat."
    assert told_to_remember(said) == ["I own a boat.", "I work nights."]


def test_a_long_order_is_cut_to_what_a_memory_holds() -> None:
    [kept] = told_to_remember("Remember that I like " + "very " * 2_000 + "much tea.")
    assert len(kept) <= 2_000


def test_a_long_line_of_abbreviations_is_read_in_one_pass() -> None:
    began = time.perf_counter()
    assert told_to_remember("a. " * 21_000) == []
    assert time.perf_counter() - began < 5
