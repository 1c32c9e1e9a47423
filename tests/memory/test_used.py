"""A reply names a memory by words that the memory has of its own."""

import pytest

from memory.used import names


@pytest.mark.parametrize(
    ("reply", "memory", "question", "named"),
    [
        ("Ask Ottilie, your sister.", "The user's sister is Ottilie.", "Who can help?", True),
        ("A vegan risotto, then.", "The user is vegan.", "What shall I cook?", True),
        ("Two boats lie there.", "The user owns a boat.", "What is in the harbour?", True),
        ("I do not know.", "The user is vegan.", "What shall I cook?", False),
        # It only takes up the question.
        ("Your boat is fine.", "The user has a boat.", "How is my boat?", False),
        ("You said so.", "The user", "What?", False),
    ],
)
def test_a_reply_names_what_it_takes_from_a_memory(
    reply: str, memory: str, question: str, named: bool
) -> None:
    assert names(reply, memory, question=question) is named
