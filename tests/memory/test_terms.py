from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from memory.terms import ASKS, TELLS_TIME, Question, flags_of, hash_of, read_question, terms_of

TODAY = date(2026, 11, 30)  # a Monday


def asked(text: str) -> Question:
    return read_question(text, today=TODAY, speakers=["Anna", "José"])


def meets(question: str, text: str) -> set[str]:
    """The words of the question that the text is found by."""
    indexed = terms_of(text)
    return {word.written for word in asked(question).words if indexed.keys() & set(word.terms)}


SAVED = ["今日は成語しりとりをした", "我对花生过敏", "Größe 42, café", "I went to a rock concert."]


@pytest.mark.parametrize(
    ("question", "right"),
    [("しりとり", 0), ("花生", 1), ("CAFE", 2), ("grosse", 2), ("ｃａｆé", 2), ("Konzert rock", 3)],
)
def test_each_word_finds_its_own_text_and_no_other(question: str, right: int) -> None:
    assert [bool(meets(question, text)) for text in SAVED] == [
        number == right for number in range(len(SAVED))
    ]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("hiking trips", "We hiked in the Alps on a trip with my sister."),
        ("Katze", "Wir haben gestern zwei Katzen aus dem Tierheim geholt."),
        ("Katzen", "Meine Katze schläft den ganzen Tag auf dem Sofa."),
        ("Größe Schuh", "Ich habe bei den Schuhen die Größe 42."),
        ("allergie noix", "Je suis allergique aux noix depuis toujours, des allergies sévères."),
        ("gatos", "Tengo un gato negro que se llama Luna."),
        ("viagens", "A minha próxima viagem é para o Porto."),
        ("fietsen", "Ik fiets elke dag naar het werk."),
        ("красивая кошка", "У меня есть красивый дом и две кошки."),
        ("koirat", "Minulla on koira ja se on musta."),
        ("cykla", "Jag cyklar till jobbet varje dag och det är bra."),
        ("γάτα", "Έχω δύο γάτες στο σπίτι."),
        ("बिल्ली", "मेरे पास एक बिल्ली है।"),
        ("고양이", "나는 고양이를 좋아한다"),
        ("แมว", "ฉันมีแมวสองตัว"),
        ("猫", "私は猫が好き"),
        ("10000 steps", "I walked 10,000 steps today"),
    ],
)
def test_a_short_question_meets_the_forms_of_its_words(question: str, text: str) -> None:
    assert meets(question, text) >= {asked(question).words[0].written}


@pytest.mark.parametrize("text", ["Katzen", "Berlin Katzen", "gatos pretos", "chats noirs"])
def test_a_text_in_no_sure_language_is_found_by_a_whole_sentence_and_by_itself(text: str) -> None:
    sentences = {
        "Katzen": "Habe ich eine Katze, und wie heißt sie?",
        "Berlin Katzen": "Habe ich eine Katze, und wie heißt sie?",
        "gatos pretos": "Você sabe quantos gatos eu tenho em casa?",
        "chats noirs": "Est-ce que j'ai un chat, et comment est-il ?",
    }
    assert meets(sentences[text], text)
    assert len(meets(text, text)) == len(text.split())


def test_stop_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert terms_of("I have the cat") == terms_of("cat and the")
    assert meets("Who am I?", "Who am I?") == {"who", "am", "i"}
    assert not meets("What do I have?", "The cat sat on the mat.")


def test_what_is_a_stop_word_elsewhere_is_found() -> None:
    assert meets("red hat", "My friend has a red hat.") == {"red", "hat"}
    assert meets("dog", "Do you remember that I have a dog?") == {"dog"}
    assert [word.may_be_stop for word in asked("der Hund").words] == [True, False]


def test_apostrophes_join_no_words() -> None:
    assert meets("Anna's dog", "Anna has a dog.") == {"anna", "dog"}
    assert meets("eau", "J'aime l’eau froide et je suis dans l’eau.") == {"eau"}
    assert meets("did I drop it?", "I didn’t drop it.") == {"drop"}


def test_counts_are_of_words_and_hashes_are_signed_and_stable() -> None:
    counts = terms_of("The cat saw a cat.")
    assert counts[hash_of("cat")] == 2
    assert hash_of("cat") == 1_787_499_195
    assert all(-(2**31) <= term < 2**31 for term in terms_of(" ".join(map(str, range(500)))))


def test_a_speaker_and_a_day_are_terms_too() -> None:
    indexed = terms_of("hello", speaker="José", day=date(2023, 5, 8))
    assert indexed.keys() >= terms_of("hello").keys() | {
        hash_of("@2023-05-08"),
        hash_of("@2023-05"),
    }
    assert set(asked("jose").terms) & indexed.keys()
    assert set(asked("What was on May 8, 2023?").of_days) & indexed.keys()
    assert set(asked("What was in May 2023?").of_days) & indexed.keys()
    assert not set(asked("What was in June 2023?").of_days) & indexed.keys()


@pytest.mark.parametrize("text", ["", "   ", "?!…", "🙂", "\ud800", "_", "'", "’’"])
def test_text_without_words_has_no_terms(text: str) -> None:
    assert terms_of(text) == {}
    assert asked(text).terms == []


def test_the_same_terms_come_of_every_thread() -> None:
    texts = [f"running runners ran {number} Häuser" for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(terms_of, texts)) == [terms_of(text) for text in texts]


def test_a_question_names_speakers_and_asks_when() -> None:
    assert asked("When did JOSE call?").named == {"jose"}
    assert asked("When did JOSE call?").asks_when
    assert asked("Since when does Annabel know?").named == frozenset()
    assert asked("Wann war Anna da?").asks_when
    assert asked("いつ会った？").asks_when
    assert not asked("What did Anna say?").asks_when


def test_flags_tell_questions_and_words_of_time() -> None:
    assert flags_of("Is it so? ") == ASKS
    assert flags_of("本当？") == ASKS
    assert flags_of("I went there last week.") == TELLS_TIME
    assert flags_of("Did you go in 2022?") == ASKS | TELLS_TIME
    assert flags_of("I may go.") == 0
