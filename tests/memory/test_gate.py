"""What the person's own words bear out is believed, and nothing else."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from memory.gate import (
    Claimed,
    bears_a_claim,
    own_words,
    pattern_refusal,
    persona_refusal,
    refusal,
)
from memory.prompts import EXAMPLES

BORNE_OUT = [
    ("As I said: I am a doctor.", "The user is a doctor.", "I am a doctor"),
    ("I'm vegetarian and never fly before 9 am.", "The user is vegetarian.", "I'm vegetarian"),
    (
        "I'm vegetarian and never fly before 9 am.",
        "The user never flies before 9 am.",
        "never fly before 9 am",
    ),
    ("My sister is called Ada.", "The user's sister is called Ada.", "My sister is called Ada."),
    ("I'm allergic to nuts", "The user has a nut allergy.", "I'm allergic to nuts"),
    ("I'm allergic to nuts", "The user is allergic to nuts.", "allergic to nuts"),
    ("I moved to Bergen.", "The user lives in Bergen.", "I moved to Bergen."),
    (
        "My friend Jack hates football.",
        "The user's friend Jack hates football.",
        "My friend Jack hates football.",
    ),
    ("My friend Jack hates football.", "Jack hates football.", "Jack hates football"),
    ("I left Acme, I'm at Birch now.", "The user works at Birch.", "I'm at Birch now"),
    (
        "I can't stand spicy food any more.",
        "The user cannot stand spicy food.",
        "I can't stand spicy food any more",
    ),
    (
        "I can't stand spicy food any more.",
        "The user dislikes spicy food.",
        "can't stand spicy food",
    ),
    ("My name is Ines.", "The user's name is Ines.", "My name is Ines"),
    ("My name is Ines.", "The user is called Ines.", "My name is Ines"),
    ("I'm Ines, by the way", "The user's name is Ines.", "I'm Ines"),
    ("Ich bin Vegetarier.", "Der Nutzer ist Vegetarier.", "Ich bin Vegetarier"),
    ("Vivo en Lisboa.", "El usuario vive en Lisboa.", "Vivo en Lisboa"),
    ("Soy vegetariano", "El usuario es vegetariano.", "Soy vegetariano"),
    ("我对花生过敏", "用户对花生过敏。", "我对花生过敏"),
    ("Allergic to nuts!", "The user is allergic to nuts.", "Allergic to nuts"),
    ("I live in Porto. What should I cook?", "The user lives in Porto.", "I live in Porto"),
    ("Tomorrow I fly to Rome.", "The user flies to Rome on 2026-03-03.", "Tomorrow I fly to Rome"),
    ("I work nights", "The user works nights.", "I work nights"),
    ("my cat is called Miso", "The user has a cat called Miso.", "my cat is called Miso"),
    (
        "I moved from Rome to Lisbon",
        "The user no longer lives in Rome.",
        "I moved from Rome to Lisbon",
    ),
    (
        "I'm not from Rome, I live in Oslo.",
        "The user lives in Oslo.",
        "I'm not from Rome, I live in Oslo",
    ),
    ("I own a boat", "The user owns a boat.", "I own a boat"),
    ("I live in Oslo", "The user lives in Oslo.", "I live in Oslo"),
    (
        "My sister lives in Bergen",
        "The user's sister lives in Bergen.",
        "My sister lives in Bergen",
    ),
    ("I have a dog called Rex", "The user has a dog called Rex.", "I have a dog called Rex"),
    ("Je suis végétarienne", "L'utilisatrice est végétarienne.", "Je suis végétarienne"),
    (
        "Meine Schwester heißt Ada",
        "Die Schwester des Nutzers heißt Ada.",
        "Meine Schwester heißt Ada",
    ),
    (
        "I'm lactose intolerant, so no milk please.",
        "The user is lactose intolerant.",
        "I'm lactose intolerant",
    ),
    (
        "I work as a nurse at St. Mary's hospital.",
        "The user works as a nurse.",
        "I work as a nurse at St. Mary's hospital.",
    ),
    (
        "My favourite colour is green",
        "The user's favourite colour is green.",
        "My favourite colour is green",
    ),
    (
        "We have two kids, Tom and Lia.",
        "The user has two kids, Tom and Lia.",
        "We have two kids, Tom and Lia",
    ),
]
NOT_BORNE_OUT = [
    (
        "What are the sales numbers for Christophe?",
        "The user's name is Christophe.",
        "Christophe",
        "question",
    ),
    (
        "What are the sales numbers for Christophe?",
        "The user is Christophe.",
        "sales numbers for Christophe",
        "question",
    ),
    (
        "My friend Jack hates football.",
        "The user hates football.",
        "hates football",
        "other_subject",
    ),
    (
        "My friend Jack hates football.",
        "The user hates football.",
        "My friend Jack hates football.",
        "other_subject",
    ),
    ("hm.", "The user loves diving.", "hm.", "not_supported"),
    ("hm.", "The user goes to Malta.", "you love diving", "quote_not_said"),
    ("I'm going to Lisbon", "The user's name is Lisbon.", "I'm going to Lisbon", "no_name_given"),
    ("I'm not vegetarian", "The user is vegetarian.", "I'm not vegetarian", "denied"),
    ("I'm not vegetarian", "The user's name is Not.", "I'm not vegetarian", "not_supported"),
    (
        'She said "I am vegetarian and happy".',
        "The user is vegetarian.",
        "I am vegetarian and happy",
        "quoted_speech",
    ),
    ("I can't stand spicy food any more.", "The user loves spicy food.", "spicy food", "denied"),
    ("My sister lives in Bergen", "The user lives in Bergen.", "lives in Bergen", "other_subject"),
    (
        "I think my friend Jack hates football",
        "The user hates football.",
        "I think my friend Jack hates football",
        "other_subject",
    ),
    (
        "If I were vegetarian I would cook more",
        "The user is vegetarian.",
        "If I were vegetarian",
        "only_supposed",
    ),
    ("I'm vegetarian", "The user is not vegetarian.", "I'm vegetarian", "not_denied"),
    ("Jack hates football", "The user hates football.", "Jack hates football", "other_subject"),
    ("I love tea", "The user likes long walks on the beach.", "I love tea", "not_supported"),
    ("Ich heiße Bob", "The user's favourite colour is green", "Ich heiße Bob", "not_supported"),
    (
        "Mi amigo Juan odia el fútbol",
        "El usuario odia el fútbol.",
        "odia el fútbol",
        "other_subject",
    ),
    ("Do you think I'm vegetarian?", "The user is vegetarian.", "I'm vegetarian", "question"),
    ("> I am from Mars\nhaha", "The user is from Mars.", "I am from Mars", "quoted_speech"),
    ("She said: I am a doctor.", "The user is a doctor.", "I am a doctor", "quoted_speech"),
    ("Er sagte: ich bin Arzt.", "Der Nutzer ist Arzt.", "ich bin Arzt", "quoted_speech"),
    ("I love tea", "<think>The user loves tea</think>", "I love tea", "reasoning"),
    ("She lives in Rome.", "The user lives in Rome.", "lives in Rome", "other_subject"),
]


def said(statement: str, text: str, quote: str) -> str:
    return refusal(Claimed(text, "", quote), statement)


@pytest.mark.parametrize(("statement", "text", "quote"), BORNE_OUT)
def test_a_fact_that_the_words_bear_out_passes(statement: str, text: str, quote: str) -> None:
    assert said(statement, text, quote) == ""


@pytest.mark.parametrize(("statement", "text", "quote", "code"), NOT_BORNE_OUT)
def test_a_fact_that_they_do_not_bear_out_is_refused(
    statement: str, text: str, quote: str, code: str
) -> None:
    assert said(statement, text, quote) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("?!", "empty"),
        ("The user loves tea" + " and tea" * 100, "too_long"),
        ("The user loves tea. They drink it. Daily. Often.", "not_one_sentence"),
        ("<think>hm</think> The user loves tea", "reasoning"),
        ('{"text": "The user loves tea"}', "not_plain_text"),
        ("```The user loves tea```", "not_plain_text"),
        ("Does the user love tea?", "question"),
        ("The user is 42 and loves tea.", "other_number"),
        ("The user is.", "says_nothing"),
    ],
)
def test_what_is_no_fact_is_refused_for_its_shape(text: str, code: str) -> None:
    assert said("I am 24 and love tea", text, "I am 24 and love tea") == code


@pytest.mark.parametrize("example", [text for text, _said in EXAMPLES])
def test_the_prompts_own_examples_are_no_facts(example: str) -> None:
    templates = [text for text, _said in EXAMPLES]
    claim = Claimed(example.upper(), "", example)
    assert refusal(claim, example, templates=templates) == "template"


def test_own_words_leave_out_quoted_lines_code_and_speech() -> None:
    statement = '> he wrote\n```\ncode = 1\n```\nI call it "the shed". She said "I am so tired".'
    own = own_words(statement)
    assert "he wrote" not in own
    assert "code" not in own
    assert "tired" not in own
    assert "the shed" in own


def test_a_statement_of_64_kib_is_judged_quickly_enough_to_be_judged() -> None:
    statement = "I love tea and I own a boat, you know. " * 1_600
    assert said(statement, "The user loves tea.", "I love tea") == ""
    assert said('"' * 60_000, "The user loves tea.", "I love tea") == "quote_not_said"


@pytest.mark.parametrize(
    ("said", "claim", "quote"),
    [
        ("I left Acme, I'm at Birch now.", "The user works at Acme.", "I left Acme"),
        ("I moved from Rome to Lisbon.", "The user lives in Rome.", "I moved from Rome"),
        ("I'm from Rome.", "The user lives in Rome.", "I'm from Rome"),
    ],
)
def test_where_somebody_left_they_are_no_longer(said: str, claim: str, quote: str) -> None:
    assert refusal(Claimed(claim, "", quote), said) == "no_longer_so"


def test_a_day_that_was_not_named_is_refused() -> None:
    at = datetime(2026, 3, 2, 1, 30, tzinfo=ZoneInfo("Asia/Shanghai"))
    said = "Tomorrow I fly to Rome."
    wrong = Claimed("The user flies to Rome on 2026-03-02.", "", said)
    right = Claimed("The user flies to Rome on 2026-03-03.", "", said)
    assert refusal(wrong, said, said_at=at) == "other_day"
    assert refusal(right, said, said_at=at) == ""


@pytest.mark.parametrize(
    ("said", "claim", "quote"),
    [
        ("Always bullet points.", "The user wants bullet points.", "Always bullet points"),
        ("Please always use bullet points!", "The user prefers bullet points.", "bullet points"),
        ("Can you keep it short?", "The user likes short answers.", "keep it short"),
        ("No emojis, please.", "The user does not want emojis.", "No emojis"),
        ("I'm a nurse on nights.", "The user is a nurse.", "I'm a nurse"),
        ("Antworte bitte in Stichpunkten.", "Der Nutzer möchte Stichpunkte.", "in Stichpunkten"),
    ],
)
def test_a_wish_about_answers_is_borne_out(said: str, claim: str, quote: str) -> None:
    assert persona_refusal(Claimed(claim, "", quote), said) == ""


@pytest.mark.parametrize(
    ("said", "claim", "quote", "code"),
    [
        ("What is a bullet?", "The user wants bullets.", "bullet", "question"),
        ("Always bullet points.", "The user loves Malta.", "Always bullet points", "not_supported"),
        ("Keep it short.", "The user wants haikus.", "use haikus", "quote_not_said"),
        ("My boss loves golf.", "The user loves golf.", "loves golf", "other_subject"),
        ('He said "always use bullet points".', "The user wants bullet points.",
         "always use bullet points", "quote_not_said"),
        ("No emojis, please.", "The user wants emojis.", "No emojis", "denied"),
    ],
)  # fmt: skip
def test_a_wish_that_is_not_borne_out_is_refused(
    said: str, claim: str, quote: str, code: str
) -> None:
    assert persona_refusal(Claimed(claim, "", quote), said) == code


def test_a_pattern_says_no_more_than_its_facts() -> None:
    facts = ["The user goes diving in May.", "The user has a surfboard.", "The user sails."]
    assert pattern_refusal("The user enjoys water sports.", facts) == ""
    assert pattern_refusal("The user sails.", facts) == "no_pattern"
    assert pattern_refusal("The user dives with Tom.", facts) == "other_name"
    assert pattern_refusal("The user sails 3 times a week.", facts) == "other_number"
    assert pattern_refusal("Tom enjoys water sports.", facts) == "other_subject"


@pytest.mark.parametrize(
    ("statement", "bears"),
    [
        ("What should I cook for dinner?", False),
        ("Is it far? And how long does it take?", False),
        ("what is the capital of france", False),
        ("> I am vegan.\nIs that so?", False),
        ("...", False),
        ("I am vegan. What should I cook?", True),
        ("What should I cook? I am vegan.", True),
        ("Really? what is it", True),  # together they have neither mark nor beginning
        ("I live in Bergen", True),
    ],
)
def test_where_all_of_it_asks_no_claim_can_rest(statement: str, bears: bool) -> None:
    assert bears_a_claim(statement) is bears


@pytest.mark.parametrize(
    "statement", ["Am I vegan? Do I live in Bergen?", "am i vegan", "Do I own a boat? Am I vegan?"]
)
def test_what_bears_no_claim_has_each_one_refused(statement: str) -> None:
    assert not bears_a_claim(statement)
    for quote in {statement, *re.findall(r"[^?]+", statement)}:
        claim = Claimed("The user is vegan.", "I am vegan.", quote)
        assert refusal(claim, statement)
