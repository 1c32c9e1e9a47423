"""What two claims have to do with each other: rules that are sure, or silent."""

import pytest

from memory.claims import (
    attribute_of,
    contradicts,
    is_safety,
    same_claim,
    same_matter,
    subject_of,
    tells_change,
)

CONTRARY = [
    ("The user works at Birch.", "The user works at Acme.", True),
    ("The user left Acme.", "The user works at Acme.", False),
    ("The user no longer works at Acme.", "The user works at Acme.", False),
    ("The user lives in Bergen.", "The user lives in Oslo.", True),
    ("The user moved to Bergen.", "The user lives in Oslo.", True),
    ("The user's name is Maria.", "The user is called Ines.", True),
    ("The user cannot stand spicy food.", "The user loves spicy food.", False),
    ("The user can't stand spicy food any more.", "The user loves spicy food.", False),
    ("The user dislikes spicy food.", "The user loves spicy food.", False),
    ("The user does not like spicy food.", "The user loves spicy food.", False),
    ("The user is not vegetarian.", "The user is vegetarian.", False),
    ("The user eats meat.", "The user does not eat meat.", False),
    ("Der Nutzer wohnt in Bergen.", "Der Nutzer wohnt in Oslo.", True),
    ("Der Nutzer ist kein Vegetarier.", "Der Nutzer ist Vegetarier.", False),
    ("L'utilisateur n'aime pas le fromage.", "L'utilisateur aime le fromage.", False),
    ("El usuario no come carne.", "El usuario come carne.", False),
    ("My sister is not called Ada.", "My sister is called Ada.", False),
]
NOT_SURE = [
    # No change was spoken of: both may hold.
    ("The user lives in Bergen.", "The user lives in Oslo.", False),
    ("The user works at Birch.", "The user works at Acme.", False),
    ("The user lives in Bergen.", "The user's sister lives in Oslo.", True),
    ("The user lives in Oslo.", "The user lives in Oslo, Norway.", True),
    ("The user lives in Bergen.", "The user lives in Oslo in summer.", True),
    ("The user works at night.", "The user works at Acme.", True),
    ("The user owns a boat.", "The user lives in Oslo.", True),
    ("The user does not drink coffee after 6.", "The user drinks coffee.", True),
    ("The user loves football.", "The user loves spicy food.", True),
    ("Jack hates football.", "The user loves football.", True),
    ("The user likes tea.", "The user does not like coffee.", True),
    ("The user left Birch.", "The user works at Acme.", True),
]


@pytest.mark.parametrize(("new", "old", "changed"), CONTRARY)
def test_what_is_plainly_contrary_is_seen(new: str, old: str, changed: bool) -> None:
    assert contradicts(new, old, changed=changed)


@pytest.mark.parametrize(("new", "old", "changed"), NOT_SURE)
def test_where_it_is_not_sure_nothing_is_contrary(new: str, old: str, changed: bool) -> None:
    assert not contradicts(new, old, changed=changed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user's sister is called Ada.", "The user has a sister called Ada."),
        ("The user's sister's name is Ada.", "The user's sister is called Ada."),
        ("The user's sister is called Ada.", "My sister is called Ada."),
        ("The user is vegetarian.", "I am vegetarian."),
    ],
)
def test_nearly_the_same_words_are_the_same_claim(one: str, other: str) -> None:
    assert same_claim(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Jack is taller than Ada.", "Ada is taller than Jack."),
        ("The user flies before 9 am.", "The user flies after 9 am."),
        ("The user loves tea.", "The user hates tea."),
        ("The user has 2 cats.", "The user has 3 cats."),
        ("The user lives in Oslo.", "The user does not live in Oslo."),
        ("The user likes it.", "The user has it."),
    ],
)
def test_other_words_are_another_claim(one: str, other: str) -> None:
    assert not same_claim(one, other)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("The user lives in Oslo.", "user"),
        ("I live in Oslo.", "user"),
        ("The user's name is Ines.", "user"),
        ("The user's sister lives in Bergen.", "user's sister"),
        ("My sister lives in Bergen.", "user's sister"),
        ("Jack hates football.", "jack"),
    ],
)
def test_whom_a_claim_is_about(text: str, subject: str) -> None:
    assert subject_of(text) == subject


def test_a_thing_of_somebodys_is_the_same_matter_as_having_it() -> None:
    assert same_matter("The user's dog died.", "The user has a dog called Rex.")
    assert not same_matter("The user lives in Bergen.", "The user's sister lives in Bergen.")


def test_one_value_is_read_where_a_claim_says_nothing_else() -> None:
    assert attribute_of("The user lives in Oslo.") == ("user", "lives", "oslo")
    assert attribute_of("The user is employed by Acme.") == ("user", "works", "acme")
    assert attribute_of("The user lives in Oslo and works at Acme.") is None
    assert attribute_of("The user does not live in Oslo.") is None


@pytest.mark.parametrize(
    "said",
    [
        "I left Acme, I'm at Birch now.",
        "I moved to Bergen.",
        "Ich bin umgezogen.",
        "Je ne travaille plus chez Acme.",
        "我搬到上海了",
    ],
)
def test_a_change_is_heard(said: str) -> None:
    assert tells_change(said)


def test_a_plain_statement_tells_no_change() -> None:
    assert not tells_change("I live in Oslo and work at Acme.")


@pytest.mark.parametrize(
    "text",
    [
        "The user is allergic to nuts.",
        "The user never flies before 9 am.",
        "Der Nutzer ist Diabetiker.",
        "L'utilisateur est allergique aux noix.",
        "El usuario tiene alergia a las nueces.",
        "用户对花生过敏。",
        "ユーザーは卵アレルギーです。",
    ],
)
def test_health_and_never_are_safety(text: str) -> None:
    assert is_safety(text)


@pytest.mark.parametrize(
    "text", ["The user loves tea.", "The user has never been to Rome.", "The user is a nurse."]
)
def test_other_claims_are_not(text: str) -> None:
    assert not is_safety(text)
