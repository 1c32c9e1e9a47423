"""What comes to the prompt, and what never does."""

from uuid import UUID, uuid4

import pytest

from accounts.scope import Scope, entered
from memory import embedder
from memory.models import Memory, MemorySettings, Recalled, Usage
from memory.recall import Recall, counts_for_replies, read_for_reply, recall, record
from tests.memory.conftest import Conversation, keep, run

pytestmark = pytest.mark.django_db


def ask(scope: Scope, question: str, **given: object) -> Recall:
    vector = embedder.embed([question])[0].tolist()
    return recall(scope, question=question, vector=vector, **given)  # type: ignore[arg-type]


def texts(recalled: Recall) -> list[str]:
    return [memory.text for memory in recalled.memories]


def set_up(scope: Scope, **fields: object) -> None:
    with entered(scope):
        MemorySettings.objects.within(scope).update_or_create(
            tenant_id=scope.tenant_id, user_id=scope.user_id, defaults=fields
        )


def test_a_fact_is_found_by_other_words(mara: Scope) -> None:
    """A5, A6: "Am I vegetarian?" and, without a shared word, "Which diet do I follow?" both find
    "The user is vegetarian." first among others."""
    keep(mara, "The user is vegetarian.", first_person="I am vegetarian.")
    for other in ("own a boat", "work at night", "have a sister", "live in Porto", "speak Latin"):
        keep(mara, f"The user {other}s.", first_person=f"I {other}.")
    for question in ("Am I vegetarian?", "Which diet do I follow?"):
        assert texts(ask(mara, question))[0] == "The user is vegetarian."


def test_nothing_of_anybody_else_is_found(mara: Scope, bob: Scope) -> None:
    """A2: B's recall finds nothing of M, in his tenant or in hers."""
    keep(mara, "The user is vegetarian.")
    assert texts(ask(bob, "Am I vegetarian?")) == []
    assert texts(ask(Scope(bob.tenant_id, mara.user_id), "Am I vegetarian?")) == []


@pytest.mark.parametrize("kind", ["fact", "note", "persona", "insight", "exchange"])
@pytest.mark.parametrize(
    "text",
    [
        "The user is vegetarian.",
        "I always want an aisle seat!",
        "Meine Schwester heißt Ada, und ich wohne in Graz.",
        "我对花生过敏",
        "Can you plan a hike for Sunday? I like the coast, and I get up early. My knees are bad.",
        "My week: " + ", ".join(f"on {day} I work until {n}" for n, day in
                                enumerate(("Monday", "Tuesday", "Friday"), 4)) + ".",
    ],
    ids=["fact", "note", "german", "chinese", "sentences", "list"],
)  # fmt: skip
def test_a_memorys_own_text_finds_it_with_a_high_score(mara: Scope, kind: str, text: str) -> None:
    """A7: a memory's own text as the question scores at least 0.8, and comes first."""
    keep(mara, "The user's car is red.")
    more = {"source": uuid4(), "answer": "Gladly."} if kind == "exchange" else {}
    keep(mara, text, kind=kind, **more)
    found = ask(mara, text).memories
    assert found[0].text == text
    assert found[0].score >= 0.8
    assert found[1].score < found[0].score


def test_scores_are_honest(mara: Scope) -> None:
    """A7: an exact fact scores at least 0.8, a related one more than an unrelated, none 0.00."""
    keep(mara, "The user is vegetarian.", first_person="I am vegetarian.")
    keep(mara, "The user's car is red.", first_person="My car is red.")
    keep(mara, "Can you plan a hike for Sunday?", kind="exchange", answer="Gladly: the coast path.")
    exact = ask(mara, "I am vegetarian.").memories
    assert exact[0].score >= 0.8
    assert exact[1].score < exact[0].score
    assert ask(mara, "The user is vegetarian.").memories[0].score >= 0.8
    own = ask(mara, "Can you plan a hike for Sunday?").memories[0]
    assert own.text == "Can you plan a hike for Sunday?"
    assert own.score >= 0.8
    related, *_, unrelated = ask(mara, "What could I eat without meat?").memories
    assert related.text == "The user is vegetarian."
    assert related.score > unrelated.score
    assert all(0 <= memory.score <= 1 for memory in exact)
    assert related.score > 0


def test_scores_differ_from_each_other_and_from_zero(mara: Scope) -> None:
    """A7: no constant score: of five memories each has its own, and none shows as 0.00."""
    for text in ("eats no meat", "likes tea", "cooks on Fridays", "bakes bread", "hates olives"):
        keep(mara, f"The user {text}.")
    scores = [one.score for one in ask(mara, "What food do I like?").memories]
    assert len(set(scores)) == 5
    assert "0.00" not in [f"{score:.2f}" for score in scores]


def test_top_k_binds_and_the_nearest_come_first(mara: Scope) -> None:
    set_up(mara, top_k=3)
    for number in range(10):
        keep(mara, f"The user likes tea of sort {number}.")
    found = ask(mara, "Which tea do I like?").memories
    assert len(found) == 3
    assert [memory.score for memory in found] == sorted(
        (memory.score for memory in found), reverse=True
    )


def test_a_min_score_leaves_out_what_has_nothing_to_do_with_it(mara: Scope) -> None:
    """A8: a minimum of 0.3 leaves out five unrelated facts."""
    set_up(mara, min_score=0.3)
    for text in (
        "The user's car is red.",
        "The user's printer is broken.",
        "The user was born in May.",
        "The user owns three bicycles.",
        "The user speaks Latin.",
    ):
        keep(mara, text)
    assert ask(mara, "How do I bake sourdough bread?").memories == []


def test_pinned_memories_come_first_and_always(mara: Scope) -> None:
    set_up(mara, min_score=0.3, top_k=2)
    keep(mara, "The user is allergic to nuts.", pinned=True)
    keep(mara, "The user bakes sourdough bread.")
    keep(mara, "The user bakes rye bread.")
    found = ask(mara, "How do I bake bread?")
    assert texts(found)[0] == "The user is allergic to nuts."
    assert len(found.memories) == 3  # top k binds all but what is pinned


def test_what_the_window_shows_is_not_told_again(mara: Scope) -> None:
    source = uuid4()
    keep(mara, "The user is vegetarian.", source=source)
    keep(mara, "I'm vegetarian, by the way.", kind="exchange", source=source, answer="Noted.")
    keep(mara, "The user eats no fish.", source=uuid4())
    assert texts(ask(mara, "Am I vegetarian?", exclude_sources=[source])) == [
        "The user eats no fish."
    ]


@pytest.mark.parametrize(
    "state",
    [
        {"status": "past"},
        {"status": "waiting"},
        {"status": "trash"},
        {"trusted": False, "origin": "document"},
    ],
)
def test_only_what_is_current_and_trusted_is_recalled(mara: Scope, state: dict[str, str]) -> None:
    keep(mara, "The user is vegetarian.", **state)
    assert texts(ask(mara, "Am I vegetarian?")) == []


def test_a_key_that_was_left_behind_recalls_nothing(mara: Scope) -> None:
    memory = keep(mara, "The user is vegetarian.")
    with entered(mara):
        Memory.objects.within(mara).filter(pk=memory.pk).update(status="past")
    assert texts(ask(mara, "Am I vegetarian?")) == []


def test_the_same_words_are_told_once(mara: Scope) -> None:
    for _ in range(3):
        keep(mara, "Yes, tea please.", kind="exchange", source=uuid4(), answer="Here you are.")
    assert texts(ask(mara, "Would I like tea?")) == ["Yes, tea please."]


def test_an_exchange_gives_way_to_the_fact_that_was_learnt_from_it(mara: Scope) -> None:
    set_up(mara, top_k=1)
    source = uuid4()
    keep(mara, "I am vegetarian.", kind="exchange", source=source, answer="Noted.")
    keep(mara, "The user does not eat meat, being vegetarian.", source=source)
    assert texts(ask(mara, "I am vegetarian.")) == ["The user does not eat meat, being vegetarian."]


def test_the_budget_binds(mara: Scope) -> None:
    set_up(mara, token_budget=260, top_k=50)
    for number in range(20):
        keep(mara, f"The user drinks tea number {number} " + "very " * 20 + "slowly.")
    found = ask(mara, "Which tea?")
    assert 1 <= len(found.memories) < 20
    assert found.passed_over


def test_enough_are_found_even_when_one_memory_has_many_keys(mara: Scope) -> None:
    long = " ".join(f"Tea is drunk in the {number}th house of the street." for number in range(400))
    for _ in range(8):
        keep(mara, long + str(uuid4()), kind="exchange", source=uuid4(), answer=long)
    for number in range(8):
        keep(mara, f"The user drank tea in house {number}.")
    found = ask(mara, "Tea is drunk in the houses of the street.")
    assert len(found.memories) + len(found.passed_over) >= 8


def test_the_assistants_words_are_found_and_named_as_such(mara: Scope) -> None:
    keep(
        mara,
        "Where could I eat on Friday?",
        kind="exchange",
        source=uuid4(),
        answer="The restaurant Zambezi in Porto serves wonderful vegan stew.",
    )
    [found] = ask(mara, "What was the restaurant with the vegan stew in Porto?").memories
    assert found.speaker == "assistant"
    assert "assistant" in found.because


def test_switched_off_nothing_is_recalled_and_nothing_noted(mara: Scope) -> None:
    keep(mara, "The user is vegetarian.")
    set_up(mara, recall_on=False)
    assert ask(mara, "Am I vegetarian?") == Recall()


def test_with_the_embedder_down_words_are_searched_and_a_note_says_so(mara: Scope) -> None:
    set_up(mara, top_k=1)
    keep(mara, "The user owns a boat.")
    keep(mara, "The user is vegetarian.")
    answered = recall(mara, question="Am I vegetarian?", vector=None)
    assert texts(answered) == ["The user is vegetarian."]
    assert answered.memories[0].vector_part == 0 < answered.memories[0].text_part
    assert answered.note == "Memory was searched by words alone for this reply."
    assert recall(mara, question="What do I eat?", vector=None).memories == []


def test_over_the_deadline_there_is_a_note_and_no_error(
    mara: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(mara, "The user is vegetarian.")
    set_up(mara, deadline_ms=50)
    from memory.providers import pgvector

    asleep = "select 3, null::int, pg_sleep(5)::text::bytea union all "
    slow = asleep + pgvector._TOTALS
    monkeypatch.setattr(pgvector, "_TOTALS", slow)
    answered = ask(mara, "Am I vegetarian?")
    assert answered.memories == []
    assert answered.note == "Memory was not available for this reply."
    monkeypatch.undo()
    set_up(mara, deadline_ms=5_000)
    assert texts(ask(mara, "Am I vegetarian?")) == ["The user is vegetarian."]


def test_when_meaning_takes_too_long_words_are_searched_in_the_time_that_is_left(
    mara: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(mara, "The user is vegetarian.")
    set_up(mara, deadline_ms=4_000, top_k=3)
    from memory.providers import pgvector

    slow = pgvector._VECTORS.replace("-(embedding", "0 * length(pg_sleep(9)::text) - (embedding")
    monkeypatch.setattr(pgvector, "_VECTORS", slow)
    answered = ask(mara, "Am I vegetarian?")
    assert texts(answered) == ["The user is vegetarian."]
    assert answered.note == "Memory was searched by words alone for this reply."


def test_only_keys_of_the_embedder_in_force_are_compared(mara: Scope) -> None:
    set_up(mara, top_k=3)
    memory = keep(mara, "The user is vegetarian.")
    assert ask(mara, "Which diet do I follow?").memories[0].vector_part > 0
    with entered(mara):
        memory.search_keys.update(model="another")
    assert ask(mara, "Which diet do I follow?").memories == []


def test_what_was_recalled_is_kept_and_counted_once(mara: Scope, bob: Scope) -> None:
    memory = keep(mara, "The user is vegetarian.")
    other = keep(mara, "The user owns a boat.")
    reply = uuid4()
    recalled = ask(mara, "Am I vegetarian?")
    for _ in range(2):
        record(mara, reply=reply, recall=recalled)
    with entered(mara):
        assert Recalled.objects.within(mara).count() == 2
        usage = Usage.objects.within(mara).get(memory=memory)
        assert usage.recalled_count == 1
        assert usage.last_recalled_at is not None
        Memory.objects.within(mara).filter(pk=other.pk).update(status="trash")
    first, second = read_for_reply(mara, reply)
    assert (first.text, first.injected, first.gone) == ("The user is vegetarian.", True, False)
    assert "same words: vegetarian" in first.because
    assert (second.text, second.gone) == ("", True)
    assert counts_for_replies(mara, [reply, uuid4()]) == {reply: 2}
    assert read_for_reply(bob, reply) == []
    assert counts_for_replies(bob, [reply]) == {}


def test_what_did_not_fit_and_was_searched_for_later_went_before_the_model(mara: Scope) -> None:
    """A search of the model's own brings in what was passed over; it counts once."""
    keep(mara, "The user owns a boat.")
    found = recall(mara, question="boat", vector=None).memories
    reply = uuid4()
    record(mara, reply=reply, recall=Recall([], passed_over=found))
    assert [source.injected for source in read_for_reply(mara, reply)] == [False]
    for _again in range(2):
        record(mara, reply=reply, recall=Recall(found))
    assert [source.injected for source in read_for_reply(mara, reply)] == [True]
    assert counts_for_replies(mara, [reply]) == {reply: 1}
    with entered(mara):
        assert Usage.objects.within(mara).get().recalled_count == 1


def test_a_memory_that_was_erased_meanwhile_is_not_recorded(mara: Scope) -> None:
    memory = keep(mara, "The user is vegetarian.")
    recalled = ask(mara, "Am I vegetarian?")
    with entered(mara):
        Memory.objects.within(mara).filter(pk=memory.pk).delete()
    reply: UUID = uuid4()
    record(mara, reply=reply, recall=recalled)
    assert read_for_reply(mara, reply) == []


def test_what_bears_on_the_message_gets_in_among_five_exchanges_and_their_facts(
    talk: Conversation,
) -> None:
    """B1: of five facts vegan and Porto are recalled for a dinner at home in one's city."""
    for fact in (
        "my name is Ines",
        "I am vegan",
        "I live in Porto",
        "my cat is called Miso",
        "I work nights",
    ):
        talk.remember(f"Remember that {fact}.")
    told = " ".join(texts(ask(talk.scope, "Plan my Friday dinner at home in my city.")))
    assert "I am vegan." in told
    assert "I live in Porto." in told


def test_what_the_reply_names_is_kept_as_used(talk: Conversation) -> None:
    named = keep(talk.scope, "The user's sister is called Ottilie.")
    keep(talk.scope, "The user owns a boat.")
    question = "Who could help me on Friday with the roof?"
    exchange = talk.say(question, reply="You could ask Ottilie, your sister.")
    record(talk.scope, reply=exchange.reply.id, recall=ask(talk.scope, question))
    run(talk.scope, exchange)
    used = {source.text: source.used for source in read_for_reply(talk.scope, exchange.reply.id)}
    assert used == {named.text: True, "The user owns a boat.": False}


def test_an_exchange_that_its_facts_tell_whole_is_not_told_beside_them(mara: Scope) -> None:
    source = uuid4()
    keep(mara, "The user is vegetarian.", source=source)
    keep(mara, "The user lives in Porto.", source=source)
    said = {"kind": "exchange", "source": source, "answer": "Good to know."}
    exchange = keep(mara, "I'm vegetarian and I live in Porto.", **said)
    found = ask(mara, "Plan my Friday dinner at home.")
    assert sorted(texts(found)) == ["The user is vegetarian.", "The user lives in Porto."]
    assert [one.id for one in found.passed_over] == [exchange.pk]


def test_an_exchange_that_says_more_than_its_facts_is_told_behind_them(mara: Scope) -> None:
    source = uuid4()
    keep(mara, "The user is vegetarian.", source=source)
    said = {"kind": "exchange", "source": source, "answer": "Shall I look for a table?"}
    keep(mara, "I'm vegetarian. On Friday my parents visit from Lisbon, with two dogs.", **said)
    assert len(ask(mara, "Plan my Friday dinner at home.").memories) == 2
