"""Which messages go to the model again."""

from uuid import uuid4

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


def acting(text: str, memory: object, **result: object) -> Said:
    call = {"id": "a", "name": "search_memory", "arguments": {"query": "boats"}}
    found = {"found": [{"id": "x", "memory": str(memory)}]} | result
    return Said("assistant", text, calls=(call | {"result": found},))


def test_a_result_never_stands_without_its_call() -> None:
    """A30, A35."""
    history = [Said("user", "q0"), acting("a0", uuid4()), *talk(3)]
    for limit in range(1, 9):
        for budget in (20, 60, 400):
            messages = prompt(window(history, limit, budget), Said("user", "new"))
            for number, message in enumerate(messages):
                if message["role"] == "tool":
                    before = messages[number - 1]
                    ids = [call["id"] for call in before["tool_calls"]]
                    assert message["tool_call_id"] in ids
                    assert messages[number - 2]["role"] == "user"


def test_calls_cost_what_they_say() -> None:
    history = [Said("user", "q0"), acting("a0", uuid4(), more="x" * 3_000), *talk(1)]
    assert texts(window(history, 40, 900)) == ["q1", "a1"]
    assert texts(window(history, 40, 9_000)) == ["q0", "a0", "q1", "a1"]


def test_what_a_call_found_reads_as_it_does_now() -> None:
    memory = uuid4()
    history = [Said("user", "q0"), acting("a0", memory)]
    told = [
        prompt(history, Said("user", "new"), texts=texts, shown=shown)[3]["content"]
        for texts, shown in (({memory: "owns a boat"}, ()), ({}, ()), ({memory: "-"}, {memory}))
    ]
    assert "owns a boat" in told[0]
    assert "no longer remembered" in told[1]
    assert "as you were told" in told[2]


def test_another_programs_calls_are_told_as_it_wrote_them() -> None:
    call = {"id": "a", "name": "weather", "arguments": '{"place": "Oslo"}', "result": "rain"}
    history = [Said("user", "q0"), Said("assistant", "a0", calls=(call,))]
    messages = prompt(history, Said("user", "new"))
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == '{"place": "Oslo"}'
    own = messages[2]["tool_calls"][0]["id"]
    assert messages[3] == {"role": "tool", "tool_call_id": own, "content": "rain"}
