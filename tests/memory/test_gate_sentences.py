"""What the gate makes of real sentences in several languages, beside tests/memory/test_gate.py.

Each is a statement, a fact that an extractor may give for it, and the quote that it names.
"""

import pytest

from memory.gate import Claimed, refusal

BORNE_OUT = [
    ("Ich bin kein Vegetarier.", "Der Nutzer ist kein Vegetarier.", "Ich bin kein Vegetarier"),
    ("Ich heiße Mara.", "Der Nutzer heißt Mara.", "Ich heiße Mara"),
    ("Ich bin Lehrer.", "Der Nutzer ist Lehrer.", "Ich bin Lehrer"),
    (
        "Mein Freund Jack hasst Fußball.",
        "Jack, ein Freund des Nutzers, hasst Fußball.",
        "Mein Freund Jack hasst Fußball",
    ),
    (
        "Mein Freund Jack hasst Fußball.",
        "Der Freund des Nutzers, Jack, hasst Fußball.",
        "Mein Freund Jack hasst Fußball",
    ),
    ("我的朋友杰克讨厌足球。", "用户的朋友杰克讨厌足球。", "我的朋友杰克讨厌足球"),
    ("我喜欢足球。", "用户喜欢足球。", "我喜欢足球"),
    ("我不吃肉。", "用户不吃肉。", "我不吃肉"),
    ("我叫小红。", "用户叫小红。", "我叫小红"),
    ("私は猫が好きです。", "ユーザーは猫が好きです。", "私は猫が好きです"),
    ("Ich wohne in Oslo.", "Der Nutzer wohnt in Oslo.", "Ich wohne in Oslo"),
    (
        "Ich habe eine Schwester namens Ada.",
        "Der Nutzer hat eine Schwester namens Ada.",
        "Ich habe eine Schwester namens Ada",
    ),
    (
        "Ich bin von Rom nach Lissabon gezogen.",
        "Der Nutzer lebt in Lissabon.",
        "von Rom nach Lissabon gezogen",
    ),
    ("我从罗马搬到了里斯本。", "用户住在里斯本。", "我从罗马搬到了里斯本"),
    ("Soy vegetariano.", "El usuario es vegetariano.", "Soy vegetariano"),
    ("Vivo en Oslo.", "El usuario vive en Oslo.", "Vivo en Oslo"),
    ("You said I live in Rome, but I live in Oslo.", "The user lives in Oslo.", "I live in Oslo"),
    ("My name is Ines and I'm vegan.", "The user is called Ines.", "My name is Ines"),
    ("My name is Ines and I'm vegan.", "The user is vegan.", "I'm vegan"),
    ("I'm Ines, I live in Porto with my cat Miso.", "The user is called Ines.", "I'm Ines"),
    (
        "I'm Ines, I live in Porto with my cat Miso.",
        "The user has a cat called Miso.",
        "my cat Miso",
    ),
    ("Hi, I'm Mara!", "The user is named Mara.", "I'm Mara"),
    ("I work nights at the hospital.", "The user works nights.", "I work nights"),
    ("I left Acme, I'm at Birch now.", "The user works at Birch.", "I'm at Birch now"),
    ("I left Acme, I'm at Birch now.", "The user left Acme.", "I left Acme"),
    (
        "I can't stand spicy food any more.",
        "The user can't stand spicy food.",
        "can't stand spicy food any more",
    ),
    (
        "I can't stand spicy food any more.",
        "The user no longer likes spicy food.",
        "can't stand spicy food any more",
    ),
    (
        "I used to live in Rome but now I live in Oslo.",
        "The user used to live in Rome.",
        "I used to live in Rome",
    ),
    (
        "I used to live in Rome but now I live in Oslo.",
        "The user lives in Oslo.",
        "now I live in Oslo",
    ),
    (
        "I used to live in Rome but now I live in Oslo.",
        "The user lived in Rome.",
        "used to live in Rome",
    ),
    ("My doctor says I am diabetic.", "The user is diabetic.", "I am diabetic"),
    (
        "I know that I am allergic to nuts.",
        "The user is allergic to nuts.",
        "I am allergic to nuts",
    ),
    ("Please note I'm allergic to nuts.", "The user is allergic to nuts.", "I'm allergic to nuts"),
    ("Tell me a recipe, I'm vegan.", "The user is vegan.", "I'm vegan"),
    (
        "Show me hotels in Rome for my birthday on 3 May.",
        "The user's birthday is on 3 May.",
        "my birthday on 3 May",
    ),
    (
        "Can you recommend a book? I love science fiction.",
        "The user loves science fiction.",
        "I love science fiction",
    ),
    ("My wife Ana said that our son has measles.", "The user's wife is called Ana.", "My wife Ana"),
    ("As you know, I play the cello.", "The user plays the cello.", "I play the cello"),
    ("You can call me Mo.", "The user wants to be called Mo.", "call me Mo"),
    ("You can call me Mo.", "The user is called Mo.", "call me Mo"),
    (
        "Thanks! By the way, I'm vegetarian and never fly before 9 am.",
        "The user is vegetarian.",
        "I'm vegetarian and never fly before 9 am",
    ),
    (
        "Thanks! By the way, I'm vegetarian and never fly before 9 am.",
        "The user never flies before 9 am.",
        "never fly before 9 am",
    ),
    ("Vegetarian, by the way.", "The user is vegetarian.", "Vegetarian"),
    (
        "Ich bin Vegetarier und fliege nie vor 9 Uhr.",
        "Der Nutzer ist Vegetarier.",
        "Ich bin Vegetarier",
    ),
    (
        "Ich bin Vegetarier und fliege nie vor 9 Uhr.",
        "Der Nutzer fliegt nie vor 9 Uhr.",
        "fliege nie vor 9 Uhr",
    ),
    (
        "Früher habe ich in Rom gewohnt, jetzt wohne ich in Oslo.",
        "Der Nutzer wohnt in Oslo.",
        "jetzt wohne ich in Oslo",
    ),
    (
        "Meine Schwester heißt Ada und wohnt in Bergen.",
        "Die Schwester des Nutzers heißt Ada.",
        "Meine Schwester heißt Ada",
    ),
    (
        "Ich weiß, dass ich gegen Nüsse allergisch bin.",
        "Der Nutzer ist gegen Nüsse allergisch.",
        "gegen Nüsse allergisch bin",
    ),
    ("Gib mir ein Rezept, ich bin vegan.", "Der Nutzer ist vegan.", "ich bin vegan"),
    ("Mein Chef heißt Ines.", "Der Chef des Nutzers heißt Ines.", "Mein Chef heißt Ines"),
    (
        "Soy alérgica a las nueces.",
        "La usuaria es alérgica a las nueces.",
        "Soy alérgica a las nueces",
    ),
    ("Me llamo Ana y vivo en Madrid.", "El usuario se llama Ana.", "Me llamo Ana"),
    ("Me llamo Ana y vivo en Madrid.", "El usuario vive en Madrid.", "vivo en Madrid"),
    ("Je m'appelle Luc et j'habite à Lyon.", "L'utilisateur s'appelle Luc.", "Je m'appelle Luc"),
    ("Je m'appelle Luc et j'habite à Lyon.", "L'utilisateur habite à Lyon.", "j'habite à Lyon"),
    (
        "J'ai une sœur qui s'appelle Ada.",
        "L'utilisateur a une sœur qui s'appelle Ada.",
        "J'ai une sœur qui s'appelle Ada",
    ),
    (
        "J'ai déménagé de Rome à Lisbonne.",
        "L'utilisateur habite à Lisbonne.",
        "J'ai déménagé de Rome à Lisbonne",
    ),
    ("我对花生过敏", "用户对花生过敏。", "我对花生过敏"),
    ("我姐姐叫小红，住在上海。", "用户的姐姐叫小红。", "我姐姐叫小红"),
    ("我有一只猫，叫咪咪。", "用户有一只猫，叫咪咪。", "我有一只猫，叫咪咪"),
    ("我不喜欢辣的食物了。", "用户不喜欢辣的食物。", "我不喜欢辣的食物了"),
    ("今日は成語しりとりをした", "ユーザーは成語しりとりをした。", "今日は成語しりとりをした"),
    (
        "私の姉は東京に住んでいます。",
        "ユーザーの姉は東京に住んでいる。",
        "私の姉は東京に住んでいます",
    ),
    ("私はベジタリアンです。", "ユーザーはベジタリアンです。", "私はベジタリアンです"),
    (
        "My friend Jack hates football.",
        "The user's friend Jack hates football.",
        "My friend Jack hates football",
    ),
    ("My friend Jack hates football.", "Jack hates football.", "My friend Jack hates football"),
    ("I own a boat and two cars.", "The user owns two cars.", "two cars"),
    ("I don't eat meat, but I love fish.", "The user does not eat meat.", "I don't eat meat"),
    ("I don't eat meat, but I love fish.", "The user loves fish.", "I love fish"),
    (
        "We moved to Bergen last year.",
        "The user moved to Bergen last year.",
        "We moved to Bergen last year",
    ),
    (
        "I am not sure what to cook; I'm lactose intolerant.",
        "The user is lactose intolerant.",
        "I'm lactose intolerant",
    ),
    ("I wish you a nice day. I live in Oslo.", "The user lives in Oslo.", "I live in Oslo"),
    ("I think I'm a morning person.", "The user is a morning person.", "I'm a morning person"),
    ("If it helps: I'm left-handed.", "The user is left-handed.", "I'm left-handed"),
    ("Ik ben vegetariër.", "De gebruiker is vegetariër.", "Ik ben vegetariër"),
    ("Sono allergico alle noci.", "L'utente è allergico alle noci.", "Sono allergico alle noci"),
]
NOT_BORNE_OUT = [
    ("Ich gehe nach Lissabon.", "Der Nutzer heißt Lissabon.", "Ich gehe nach Lissabon"),
    ("Ich bin nicht vegetarisch.", "Der Nutzer heißt Vegetarisch.", "Ich bin nicht vegetarisch"),
    ("Ich bin nicht vegetarisch.", "Der Nutzer ist vegetarisch.", "Ich bin nicht vegetarisch"),
    ("Ich bin kein Vegetarier.", "Der Nutzer ist Vegetarier.", "Ich bin kein Vegetarier"),
    ("Ich bin müde.", "Der Nutzer heißt Müde.", "Ich bin müde"),
    ("I'm going to Lisbon", "The user is called Going.", "I'm going to Lisbon"),
    ("I'm going to Lisbon", "The user's name is Lisbon.", "I'm going to Lisbon"),
    ("I'm not vegetarian", "The user is named Vegetarian.", "I'm not vegetarian"),
    ("I'm Not Vegetarian", "The user is named Not Vegetarian.", "I'm Not Vegetarian"),
    ("I am German.", "The user is called German.", "I am German"),
    ("I'm Swedish and live in Oslo.", "The user's name is Swedish.", "I'm Swedish"),
    ("I'm Tired.", "The user is called Tired.", "I'm Tired"),
    ("Ich bin Deutsche.", "Der Nutzer heißt Deutsche.", "Ich bin Deutsche"),
    ("Ich bin Lehrer.", "Der Nutzer heißt Lehrer.", "Ich bin Lehrer"),
    ("Wie sind die Umsätze für Christoph?", "Der Nutzer heißt Christoph.", "Christoph"),
    ("Zeig mir die Zahlen für Christoph.", "Der Nutzer heißt Christoph.", "Christoph"),
    ("Show me the sales numbers for Christophe.", "The user is Christophe.", "Christophe"),
    ("Mein Freund Jack hasst Fußball.", "Der Nutzer hasst Fußball.", "hasst Fußball"),
    (
        "Mon ami Jack déteste le football.",
        "L'utilisateur déteste le football.",
        "déteste le football",
    ),
    ("Mi amigo Jack odia el fútbol.", "El usuario odia el fútbol.", "odia el fútbol"),
    ("我的朋友杰克讨厌足球。", "用户讨厌足球。", "讨厌足球"),
    ("我不吃肉。", "用户吃肉。", "我不吃肉"),
    ("我要去里斯本。", "用户叫里斯本。", "我要去里斯本"),
    ("我应该去上海吗？", "用户要去上海。", "去上海"),
    ("他说：“我喜欢潜水。”", "用户喜欢潜水。", "我喜欢潜水"),
    ("「私は猫が好き」と彼は言った。", "ユーザーは猫が好きです。", "私は猫が好き"),
    ("Er sagte: „Ich liebe Tauchen.“", "Der Nutzer liebt Tauchen.", "Ich liebe Tauchen"),
    ("Sie sagte, ich sei faul.", "Der Nutzer ist faul.", "ich sei faul"),
    ("Jack said I am lazy.", "The user is lazy.", "I am lazy"),
    ("My mother thinks I am lazy.", "The user is lazy.", "I am lazy"),
    ("Angenommen, ich lebte in Rom.", "Der Nutzer lebt in Rom.", "ich lebte in Rom"),
    ("Wenn ich in Rom leben würde, wäre ich froh.", "Der Nutzer lebt in Rom.", "ich in Rom leben"),
    ("Ich möchte wissen, ob ich Diabetes habe.", "Der Nutzer hat Diabetes.", "ich Diabetes habe"),
    ("I wonder if I have diabetes.", "The user has diabetes.", "I have diabetes"),
    (
        "I don't know whether I am allergic to nuts.",
        "The user is allergic to nuts.",
        "I am allergic to nuts",
    ),
    ("I wish I lived in Rome.", "The user lives in Rome.", "I lived in Rome"),
    ("If I were vegan I would starve.", "The user is vegan.", "I were vegan"),
    ("Soll ich nach Malta fahren", "Der Nutzer fährt nach Malta.", "ich nach Malta fahren"),
    (
        "Ich bin von Rom nach Lissabon gezogen.",
        "Der Nutzer lebt in Rom.",
        "von Rom nach Lissabon gezogen",
    ),
    ("Ich habe bei Acme gekündigt.", "Der Nutzer arbeitet bei Acme.", "bei Acme gekündigt"),
    ("J'ai quitté Acme.", "L'utilisateur travaille chez Acme.", "J'ai quitté Acme"),
    ("Dejé Acme.", "El usuario trabaja en Acme.", "Dejé Acme"),
    ("我离开了Acme。", "用户在Acme工作。", "我离开了Acme"),
    ("我从罗马搬到了里斯本。", "用户住在罗马。", "我从罗马搬到了里斯本"),
    ("Je ne suis pas végétarien.", "L'utilisateur est végétarien.", "Je ne suis pas végétarien"),
    ("No soy vegetariano.", "El usuario es vegetariano.", "No soy vegetariano"),
    ("Ana vive en Oslo.", "El usuario vive en Oslo.", "vive en Oslo"),
    ("Voy a Lisboa.", "El usuario se llama Lisboa.", "Voy a Lisboa"),
    ("Je vais à Lisbonne.", "L'utilisateur s'appelle Lisbonne.", "Je vais à Lisbonne"),
    ("hm.", "The user loves diving.", "hm"),
    ("hm.", "The user loves diving.", "you love diving"),
    (
        "You are a great assistant, I like you.",
        "The assistant is great.",
        "You are a great assistant",
    ),
    ("You are helpful.", "The assistant is helpful.", "You are helpful"),
    ("Your name is Hal.", "The assistant is called Hal.", "Your name is Hal"),
    ("Your name is Hal.", "The user is called Hal.", "Your name is Hal"),
    ("Du bist hilfreich.", "Der Assistent ist hilfreich.", "Du bist hilfreich"),
    ("You said I live in Rome, but I live in Oslo.", "The user lives in Rome.", "I live in Rome"),
    ("I don't live in Rome, I live in Oslo.", "The user lives in Rome.", "live in Rome"),
    ("I used to live in Rome.", "The user lives in Rome.", "live in Rome"),
    ("Ich habe früher in Rom gewohnt.", "Der Nutzer wohnt in Rom.", "in Rom gewohnt"),
    ("My boss is Ines, she lives in Porto.", "The user lives in Porto.", "lives in Porto"),
    ("My name is Ines and my cat is Miso.", "The user is called Miso.", "my cat is Miso"),
    ("You are helpful.", "The user is helpful.", "You are helpful"),
    ("杰克讨厌足球。", "用户讨厌足球。", "讨厌足球"),
]


@pytest.mark.parametrize(("said", "fact", "quote"), BORNE_OUT)
def test_what_the_person_said_of_themselves_and_theirs_passes(
    said: str, fact: str, quote: str
) -> None:
    assert refusal(Claimed(text=fact, first_person="", quote=quote), said) == ""


@pytest.mark.parametrize(("said", "fact", "quote"), NOT_BORNE_OUT)
def test_a_name_a_taste_or_a_place_that_they_did_not_give_is_refused(
    said: str, fact: str, quote: str
) -> None:
    """A57, B6, B7, B8, and their like: names out of "I'm going to", friends, questions, what others
    say, what is over, and what is said of the assistant."""
    assert refusal(Claimed(text=fact, first_person="", quote=quote), said)
