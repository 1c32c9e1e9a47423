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


# New, old, and what the person said, where it tells of a change.
CONTRARY_ELSEWHERE = [
    (
        "Der Nutzer wohnt in Lissabon.",
        "Der Nutzer wohnt in Rom.",
        "Ich bin von Rom nach Lissabon gezogen.",
    ),
    (
        "Der Nutzer lebt jetzt in Hamburg.",
        "Der Nutzer lebt in Berlin.",
        "Ich bin nach Hamburg umgezogen.",
    ),
    (
        "Der Nutzer ist nach Hamburg gezogen.",
        "Der Nutzer lebt in Berlin.",
        "Ich bin nach Hamburg gezogen.",
    ),
    (
        "Der Nutzer ist nach Hamburg umgezogen.",
        "Der Nutzer wohnt in Berlin.",
        "Ich bin nach Hamburg umgezogen.",
    ),
    (
        "Der Nutzer arbeitet bei Birch.",
        "Der Nutzer arbeitet bei Acme.",
        "Ich habe bei Acme gekündigt, ich bin jetzt bei Birch.",
    ),
    (
        "Der Nutzer arbeitet nicht mehr bei Acme.",
        "Der Nutzer arbeitet bei Acme.",
        "Ich arbeite nicht mehr bei Acme.",
    ),
    ("Der Nutzer hat Acme verlassen.", "Der Nutzer arbeitet bei Acme.", "Ich habe Acme verlassen."),
    (
        "Der Nutzer hasst scharfes Essen.",
        "Der Nutzer liebt scharfes Essen.",
        "Ich kann scharfes Essen nicht mehr ausstehen.",
    ),
    (
        "Der Nutzer mag kein scharfes Essen mehr.",
        "Der Nutzer liebt scharfes Essen.",
        "Ich mag kein scharfes Essen mehr.",
    ),
    ("Der Nutzer mag scharfes Essen nicht mehr.", "Der Nutzer mag scharfes Essen.", ""),
    ("Der Nutzer ist nicht vegetarisch.", "Der Nutzer ist vegetarisch.", ""),
    ("Der Nutzer ist kein Vegetarier mehr.", "Der Nutzer ist Vegetarier.", ""),
    ("Der Nutzer hat keinen Hund mehr.", "Der Nutzer hat einen Hund.", ""),
    (
        "Die Schwester des Nutzers lebt in Bergen.",
        "Die Schwester des Nutzers lebt in Oslo.",
        "Meine Schwester ist nach Bergen gezogen.",
    ),
    (
        "L'utilisateur habite à Lisbonne.",
        "L'utilisateur habite à Rome.",
        "J'ai déménagé de Rome à Lisbonne.",
    ),
    (
        "L'utilisateur a déménagé à Lisbonne.",
        "L'utilisateur habite à Rome.",
        "J'ai déménagé à Lisbonne.",
    ),
    ("L'utilisateur n'est plus végétarien.", "L'utilisateur est végétarien.", ""),
    ("L'utilisateur n'aime plus le café.", "L'utilisateur aime le café.", ""),
    ("L'utilisateur déteste le café.", "L'utilisateur aime le café.", ""),
    (
        "L'utilisateur travaille chez Birch.",
        "L'utilisateur travaille chez Acme.",
        "J'ai quitté Acme, je suis maintenant chez Birch.",
    ),
    (
        "La sœur de l'utilisateur habite à Bergen.",
        "La sœur de l'utilisateur habite à Oslo.",
        "Ma sœur a déménagé à Bergen.",
    ),
    ("El usuario vive en Lisboa.", "El usuario vive en Roma.", "Me mudé de Roma a Lisboa."),
    ("El usuario se mudó a Lisboa.", "El usuario vive en Roma.", "Me mudé a Lisboa."),
    ("El usuario ya no es vegetariano.", "El usuario es vegetariano.", ""),
    ("Al usuario no le gusta el café.", "Al usuario le gusta el café.", ""),
    (
        "Al usuario ya no le gusta la comida picante.",
        "Al usuario le encanta la comida picante.",
        "",
    ),
    (
        "El usuario trabaja en Birch.",
        "El usuario trabaja en Acme.",
        "Dejé Acme, ahora trabajo en Birch.",
    ),
    ("用户住在里斯本。", "用户住在罗马。", "我从罗马搬到了里斯本。"),
    ("用户搬到了里斯本。", "用户住在罗马。", "我搬到了里斯本。"),
    ("用户不喜欢辣的食物。", "用户喜欢辣的食物。", "我不喜欢辣的食物了。"),
    ("用户讨厌辣的食物。", "用户喜欢辣的食物。", ""),
    ("用户不再吃素。", "用户吃素。", ""),
    ("用户在Birch工作。", "用户在Acme工作。", "我离开了Acme，现在在Birch工作。"),
    ("用户离开了Acme。", "用户在Acme工作。", ""),
    ("用户不再住在罗马。", "用户住在罗马。", ""),
    ("用户没有猫了。", "用户有一只猫。", ""),
    ("ユーザーはリスボンに住んでいる。", "ユーザーはローマに住んでいる。", "引っ越した"),
    ("ユーザーは辛い食べ物が嫌いだ。", "ユーザーは辛い食べ物が好きです。", ""),
    ("ユーザーは辛い食べ物が好きではない。", "ユーザーは辛い食べ物が好きです。", ""),
]
NOT_SURE_ELSEWHERE = [
    (
        "Die Schwester des Nutzers lebt in Bergen.",
        "Der Nutzer lebt in Oslo.",
        "Meine Schwester ist nach Bergen gezogen.",
    ),
    ("Der Nutzer besitzt ein Boot.", "Der Nutzer lebt in Oslo.", "Ich bin umgezogen."),
    (
        "Der Nutzer lebt in Bergen.",
        "Die Schwester des Nutzers lebt in Oslo.",
        "Ich bin nach Bergen gezogen.",
    ),
    (
        "Der Nutzer arbeitet am Wochenende bei Birch.",
        "Der Nutzer arbeitet bei Acme.",
        "Ich arbeite jetzt am Wochenende auch bei Birch.",
    ),
    (
        "La sœur de l'utilisateur habite à Bergen.",
        "L'utilisateur habite à Oslo.",
        "Ma sœur a déménagé à Bergen.",
    ),
    ("El usuario no come carne.", "El usuario come pescado.", ""),
    ("用户的姐姐住在卑尔根。", "用户住在奥斯陆。", "我姐姐搬到了卑尔根。"),
    ("用户对花生过敏。", "用户住在奥斯陆。", "现在我过敏"),
    ("用户不喜欢咖啡。", "用户喜欢茶。", ""),
    ("用户没有狗。", "用户有一只猫。", ""),
    ("El usuario trabaja en Madrid.", "El usuario trabaja en Acme.", "Ahora trabajo en Madrid."),
    ("用户在上海工作。", "用户在Acme工作。", "我现在在上海工作。"),
    ("用户的猫叫咪咪。", "用户的姐姐叫小红。", "现在"),
    ("用户喜欢上海。", "用户住在上海。", "现在"),
    ("用户不吃肉。", "用户吃鱼。", ""),
    ("ユーザーの姉はベルゲンに住んでいる。", "ユーザーはオスロに住んでいる。", "引っ越した"),
    ("Der Nutzer arbeitet bei Birch.", "Der Nutzer wohnt bei Rom.", "jetzt"),
    # "en" and 在 stand before an employer and before a place: both are kept.
    ("El usuario trabaja en Birch.", "El usuario trabaja en Acme.", "Ahora trabajo en Birch."),
    ("L'utilisateur n'aime pas le thé.", "L'utilisateur aime le café.", ""),
    ("Der Nutzer lebt in Bergen.", "Der Nutzer lebt im Sommer in Oslo.", "Ich bin umgezogen."),
    ("用户住在上海，在Acme工作。", "用户住在罗马。", "我搬到上海了"),
]


@pytest.mark.parametrize(("new", "old", "said"), CONTRARY_ELSEWHERE)
def test_what_is_plainly_contrary_is_seen_in_other_languages(new: str, old: str, said: str) -> None:
    assert contradicts(new, old, changed=tells_change(said), told=said)


@pytest.mark.parametrize(("new", "old", "said"), NOT_SURE_ELSEWHERE)
def test_where_it_is_not_sure_two_are_kept_in_other_languages(
    new: str, old: str, said: str
) -> None:
    assert not contradicts(new, old, changed=tells_change(said), told=said)


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


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Der Nutzer wohnt in Oslo.", "Der Nutzer lebt in Oslo.", True),
        ("L'utilisateur aime le café.", "L'utilisateur adore le café.", True),
        ("用户喜欢咖啡。", "用户非常爱咖啡。", True),
        ("用户住在上海。", "用户现在住在上海。", True),
        ("用户喜欢咖啡。", "用户喜欢茶。", False),
        ("用户喜欢咖啡。", "用户不喜欢咖啡。", False),
        ("用户对花生过敏。", "用户对牛奶过敏。", False),
        ("用户的姐姐住在上海。", "用户住在上海。", False),
        ("El usuario vive en Oslo.", "La hermana del usuario vive en Oslo.", False),
        ("Die Schwester des Nutzers lebt in Bergen.", "Der Nutzer lebt in Bergen.", False),
    ],
)
def test_the_same_is_told_in_other_languages(one: str, other: str, same: bool) -> None:
    assert same_claim(one, other) is same


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
