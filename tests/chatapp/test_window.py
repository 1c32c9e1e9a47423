"""Which messages go to the model again."""

from chatapp.prompts import INSTRUCTIONS, prompt
from chatapp.window import Said, tokens, window


def talk(turns: int) -> list[Said]:
    return [
        said
        for number in range(1, turns + 1)
        for said in (Said("user", f"q{number}"), Said("assistant", f"a{number}"))
    ]


def texts(messages: list[Said]) -> list[str]:
    return [said.text for said in messages]


def test_the_last_forty_messages_are_kept() -> None:
    kept = window(talk(25), 40, 16_000)
    assert len(kept) == 40
    assert texts(kept)[:2] == ["q6", "a6"]
    assert texts(kept)[-1] == "a25"


def test_it_never_begins_with_an_answer() -> None:
    assert texts(window(talk(3), 3, 16_000)) == ["q3", "a3"]
    assert texts(window([Said("assistant", "a0"), *talk(1)], 40, 16_000)) == ["q1", "a1"]


def test_the_budget_keeps_whole_exchanges() -> None:
    long = [Said("user", "x" * 300), Said("assistant", "y" * 300)]
    cost = sum(tokens(said.text) for said in talk(1))
    assert texts(window([*long, *talk(1)], 40, cost + 100)) == ["q1", "a1"]
    assert window(talk(1), 40, cost - 1) == []


def test_a_reply_that_failed_is_left_out_and_its_question_joined_to_the_next() -> None:
    said = [*talk(1), Said("user", "q2"), Said("assistant", ""), *talk(3)[4:]]
    assert texts(window(said, 40, 16_000)) == ["q1", "a1", "q2\n\nq3", "a3"]


def test_roles_alternate_up_to_the_new_message() -> None:
    history = window([*talk(1), Said("user", "unanswered"), Said("assistant", " ")], 40, 16_000)
    messages = prompt(history, Said("user", "new"), memory="MEMORY")
    assert [message["role"] for message in messages] == [
        *("system", "system", "user", "assistant", "user")
    ]
    assert messages[0]["content"] == INSTRUCTIONS
    assert messages[1]["content"] == "MEMORY"
    assert messages[-1]["content"] == "unanswered\n\nnew"


def test_without_memories_there_is_no_memory_message() -> None:
    assert [message["role"] for message in prompt([], Said("user", "new"))] == ["system", "user"]


def test_going_on_shows_the_model_what_it_had_said() -> None:
    messages = prompt([], Said("user", "new"), so_far="Once upon")
    assert [message["role"] for message in messages][-2:] == ["assistant", "user"]
    assert messages[-2]["content"] == "Once upon"


def test_tokens_are_estimated_on_the_safe_side() -> None:
    assert tokens("hello") >= 2
    assert tokens("成語しりとり") >= 6
