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
        ("Could you please remember I'm vegan?", "I'm vegan."),
        ("Kannst du dir merken, dass ich Vegetarier bin?", "Ich bin Vegetarier."),
        ("Remember that I'm vegan, ok?", "I'm vegan."),
        ("Remember that every day I take a pill.", "Every day I take a pill."),
        ("Remember that last summer we moved to Rome.", "Last summer we moved to Rome."),
        ("Remember that winter in Oslo is too cold for me.", "Winter in Oslo is too cold for me."),
        ("Remember that time is short on Mondays.", "Time is short on Mondays."),
        ("Remember that dinner is at 8.", "Dinner is at 8."),
        ("Remember that one of my kids is deaf.", "One of my kids is deaf."),
        ("Remember that we went to Rome in May.", "We went to Rome in May."),
        ("Remember that my question is always why.", "My question is always why."),
    ],
)
def test_an_order_is_understood(said: str, kept: str) -> None:
    assert told_to_remember(said) == [kept]


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember that I am vegetarian?",
        "remember that time we went to Rome?",
        "Remember that time we went to Rome.",
        "Hey, remember that one time in Rome!",
        "Remember that restaurant we liked so much",
        "Remember that summer when it never rained.",
        "Can you remember that day in Rome?",
        "Don't forget that night I met Ada!",
        "remember, that was fun!",
        "Remember that is only a joke.",
        "Remember, that's all I ask.",
        "Remember that one?",
        "Remember that I am vegetarian?",
        "Remember, I told you about Rome?",
        "Can you remember my name?",
        "Could you remember where I live?",
        "Remember: what is my cat called?",
        "Souviens-toi que nous étions à Rome ?",
        "你记得我对花生过敏吗？",
        "记得我对花生过敏吗",
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
