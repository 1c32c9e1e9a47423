"""A reply names a memory by words that the memory has of its own."""

import pytest

from memory.used import named


@pytest.mark.parametrize(
    ("reply", "memory", "question", "told"),
    [
        ("Ask Ottilie, your sister.", "The user's sister is Ottilie.", "Who can help?", True),
        ("A vegan risotto, then.", "The user is vegan.", "What shall I cook?", True),
        ("Two boats lie there.", "The user owns a boat.", "What is in the harbour?", True),
        ("I do not know.", "The user is vegan.", "What shall I cook?", False),
        # It only takes up the question.
        ("Your boat is fine.", "The user has a boat.", "How is my boat?", False),
        ("You said so.", "The user", "What?", False),
        # A bare name is enough, at the beginning of either too.
        ("You could ask Ottilie.", "My sister is called Ottilie.", "Who can help me?", True),
        ("Ottilie could help.", "The user's sister Ottilie plays the cello.", "Who?", True),
        ("You could ask Ottilie's teacher.", "Ottilie plays the cello well.", "Who?", True),
        ("## Near Oslo\n- Bergen is a train away.", "The user has kin in Bergen.", "Trips?", True),
        ("Your extension is 40271.", "My extension at work is 40271.", "What do I dial?", True),
        ("Frag doch Ottilie.", "Die Schwester des Nutzers heißt Ottilie.", "Wer hilft?", True),
        ("In Oslo geht das.", "Der Nutzer wohnt seit zwei Jahren in Oslo.", "Wo?", True),
        ("因为你对花生过敏，请避开。", "我对花生过敏", "晚饭吃什么？", True),
        # The question has the name already.
        ("I do not know Ottilie.", "My sister is called Ottilie.", "Who is Ottilie?", False),
        # Words that many texts have, with a capital where every sentence or noun has one.
        ("That works well.", "The user works at Acme.", "Is it right?", False),
        ("Who owns it?", "The user owns a boat.", "Is it mine?", False),
        ("Dogs are welcome.", "Dogs of all kinds make the user sneeze badly.", "Where?", False),
        ("Time flies; a sister of his called.", "The user's sister is Ottilie.", "And?", False),
        ("## Dogs And Cats\nBoth.", "Dogs of all kinds make the user sneeze.", "What?", False),
        ("Der Garten blüht.", "Der Nutzer sucht Pflanzen für den Garten am Haus.", "Und?", False),
        ("It was founded in 2019.", "The user finished school in 2019 in a town.", "When?", False),
        ("See you in May, on a Monday.", "The user flies to see kin on Monday.", "When?", False),
        ("上海今天下雨。", "用户每个周末都去公园跑步", "天气怎么样？", False),
    ],
)
def test_a_reply_names_what_it_takes_from_a_memory(
    reply: str, memory: str, question: str, told: bool
) -> None:
    assert named(reply, [(memory, "")], question=question) == [told]


def test_each_memory_is_told_by_itself() -> None:
    texts = ("The user is vegan.", "The user owns a boat.", "The user has boats.")
    memories = [(text, "") for text in texts]
    assert named("Your boats are fine.", memories, question="Well?") == [False, True, True]
