"""What is remembered reaches the next chat's prompt, and nothing else does."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.join import join
from accounts.models import Tenant
from accounts.scope import entered
from chatapp import sessions
from chatapp.visitor import visitor_of
from memory.edit import forget
from memory.mark import pin
from memory.models import Memory, MemorySettings
from memory.preferences import change_preferences
from memory.purge import preview
from memory.remember import add, enqueue_exchange
from memory.search import search
from tests.browser.extractor import finds
from tests.chatapp.conftest import (
    Browser,
    Person,
    chat,
    conversation,
    new_chat,
    prompt_to,
    said,
    work,
)
from tests.stub_model import StubModel

UNRELATED = (
    "My car is red.",
    "My printer is broken.",
    "I was born in May.",
    "I own three bicycles.",
    "I speak Latin.",
)
FIVE = (
    "my name is Ines",
    "I am vegan",
    "I live in Porto",
    "my cat is called Miso",
    "I work nights",
)
HTMX = {"HX-Request": "true"}


def set_up(who: Person, **given: Any) -> None:
    usual = {"recall_on": True, "auto_store_on": True, "top_k": 8, "min_score": None}
    change_preferences(who.scope, **(usual | given))


def known(who: Person) -> list[str]:
    """Return the texts of what may be recalled, exchanges included."""
    with entered(who.scope):
        rows = Memory.objects.within(who.scope).filter(status="current")
        return sorted(rows.values_list("text", flat=True))


def sources_page(who: Person, reply: str) -> str:
    return who.client.get(who.url(f"replies/{reply}/memories/"), headers=HTMX).content.decode()


def test_what_was_said_while_storing_was_off_is_not_recalled(
    mara: Person, model: StubModel
) -> None:
    """A3: what M said with storing switched off is in no later chat's prompt, nor in her list."""
    set_up(mara, auto_store_on=False)
    model.extract = finds({"My house is yellow": "The user's house is yellow."})
    chat(mara, new_chat(mara), "My house is yellow.")
    work(mara)
    assert known(mara) == []
    set_up(mara)
    chat(mara, new_chat(mara), "What colour is my house?")
    assert "yellow" not in prompt_to(model, "What colour is my house?")


@pytest.mark.parametrize("storing", [True, False])
def test_what_the_reply_names_is_marked_as_such_on_its_sources(
    mara: Person, model: StubModel, storing: bool
) -> None:
    """Told after the reply, by the job that remembers it; also when nothing is to be stored."""
    add(mara.scope, text="My sister is called Ottilie.")
    add(mara.scope, text="I own a boat.")
    set_up(mara, auto_store_on=storing)
    model.script(text="You could ask Ottilie, your sister.")
    tab = chat(mara, new_chat(mara), "Who could help me on Friday with the roof?")
    reply = tab.frames[-1]["reply"]
    assert "named in the reply" not in sources_page(mara, reply)
    work(mara)
    page = sources_page(mara, reply)
    named = [item for item in page.split("<li ") if "named in the reply" in item]
    assert len(named) == 1
    assert "Ottilie" in named[0]
    assert re.search(r"score <span class=\"number\">[01]\.\d\d", page)
    assert "because: " in named[0]


def test_what_is_always_known_says_why_and_keeps_its_score_in_the_details(
    mara: Person, model: StubModel
) -> None:
    """Apart from what the message found: of what is always there a bar would say nothing."""
    set_up(mara, top_k=5)
    pin(mara.scope, memory=add(mara.scope, text="I own a boat.").pk)
    add(mara.scope, text="My sister is called Ottilie.")
    tab = chat(mara, new_chat(mara), "What is my sister called?")
    page = sources_page(mara, tab.frames[-1]["reply"])
    found, always = page.split("Always known", 1)
    assert "Found for your message" in found
    assert "Ottilie" in found
    assert "shares" in found
    assert "boat" in always
    assert "always known, because: pinned" in always
    assert "shares" not in always
    assert re.search(r"<details.*score <span class=\"number\">[01]\.\d\d<", always, re.DOTALL)


def test_with_recall_off_nothing_goes_in_and_a_note_is_still_kept(
    mara: Person, model: StubModel
) -> None:
    """A3, the other switch: with recall off the prompt has no memory; switched on it has again."""
    add(mara.scope, text="My house is yellow.")
    set_up(mara, recall_on=False)
    chat(mara, new_chat(mara), "Which colour is my house?")
    assert "yellow" not in prompt_to(model, "Which colour is my house?")
    set_up(mara)
    chat(mara, new_chat(mara), "What colour is my house?")
    assert "yellow" in prompt_to(model, "What colour is my house?")


def test_a_note_by_hand_is_recalled_and_named_as_such(mara: Person, model: StubModel) -> None:
    """A4: a profile fact from the memory page is in the next chat; its source is "profile"."""
    mara.client.post(mara.url("memory/add/"), {"text": "Mara always wants an aisle seat."})
    model.extract = finds({"I am vegan": "The user is vegan."})
    chat(mara, new_chat(mara), "I am vegan.")
    work(mara)
    chat(mara, new_chat(mara), "Which seat do I want on the plane?")
    assert "Mara always wants an aisle seat." in prompt_to(model, "Which seat")
    with entered(mara.scope):
        origins = dict(Memory.objects.within(mara.scope).values_list("text", "origin"))
    assert origins["Mara always wants an aisle seat."] == "profile"
    assert origins["The user is vegan."] == "own_words"
    page = mara.client.get(mara.url("memory/")).content.decode()
    rows = set(re.findall(r"<li class=\"memory-row.*?</li>", page, re.S))
    by_hand = {row for row in rows if "added by you" in row}
    assert [row for row in by_hand if "aisle seat" not in row] == []
    assert len(by_hand) == 1


def test_below_the_minimum_there_is_no_block_at_all(mara: Person, model: StubModel) -> None:
    """A8: five unrelated facts and a minimum of 0.3: 0 memories go in, and there is no block."""
    for text in UNRELATED:
        add(mara.scope, text=text)
    question = "How do I bake sourdough bread?"
    chat(mara, new_chat(mara), question)
    # The minimum is off by default, and they go in.
    assert len(model.asked("chat")[-1].messages) == 3
    set_up(mara, min_score=0.3)
    with entered(mara.scope):
        Memory.objects.within(mara.scope).filter(kind="exchange").delete()
    tab = chat(mara, new_chat(mara), question)
    roles = [message["role"] for message in model.asked("chat")[-1].messages]
    assert roles == ["system", "user"]
    prompt = model.asked("chat")[-1].prompt
    assert not [text for text in UNRELATED if text in prompt]
    assert tab.of("recalled") == []


@pytest.mark.parametrize("by", ["note", "order", "extraction"])
def test_what_bears_on_the_plan_goes_in_and_is_listed(
    mara: Person, model: StubModel, by: str
) -> None:
    """B1: of five facts vegan and Porto reach the model, and the reply's sources show both."""
    if by == "extraction":
        model.extract = finds(
            {
                "my name is Ines": "The user's name is Ines.",
                "I am vegan": "The user is vegan.",
                "I live in Porto": "The user lives in Porto.",
                "my cat is called Miso": "The user's cat is called Miso.",
                "I work nights": "The user works nights.",
            }
        )
    for fact in FIVE:
        if by == "note":
            add(mara.scope, text=f"{fact[0].upper()}{fact[1:]}.")
        else:
            text = f"Remember that {fact}." if by == "order" else f"You know, {fact}."
            chat(mara, new_chat(mara), text)
    work(mara)
    with entered(mara.scope):
        assert Memory.objects.within(mara.scope).current().facts().count() == 5
    question = "Plan my Friday dinner at home in my city."
    tab = chat(mara, new_chat(mara), question)
    sources = sources_page(mara, tab.frames[-1]["reply"])
    for wanted in ("vegan", "Porto"):
        assert wanted in prompt_to(model, question)
        assert wanted in sources
    assert re.search(r"score <span class=\"number\">[01]\.\d\d<", sources)


def test_what_was_deleted_is_gone_everywhere_and_not_learnt_again(
    mara: Person, model: StubModel
) -> None:
    """B10: deleted: gone from list, search and prompt; extraction of the same chat again does not
    bring it back; a new statement later may."""
    fact = "The user is allergic to nuts."
    model.extract = finds({"allergic to nuts": fact})
    session = new_chat(mara)
    told = chat(mara, session, "I'm allergic to nuts.").frames[-1]["reply"]
    work(mara)
    assert known(mara) == ["I'm allergic to nuts.", fact]
    with entered(mara.scope):
        memory = Memory.objects.within(mara.scope).facts().get()
    mara.client.post(mara.url(f"memory/{memory.pk}/delete/"))

    def nowhere(question: str) -> None:
        assert "nuts" not in mara.client.get(mara.url("memory/")).content.decode()
        for query in ("nuts", "any allergies?"):
            found = search(mara.scope, query=query).memories
            assert not [memory.text for memory in found if "nuts" in memory.text]
        chat(mara, new_chat(mara), question)
        assert "nuts" not in prompt_to(model, question)

    nowhere("Any allergies?")
    for job in work(mara):
        assert job.source != told
    enqueue_exchange(mara.scope, reply_id=sessions.UUID(told), session_key=session.pk)
    work(mara)
    nowhere("Any allergies at all?")
    chat(mara, session, "What may I eat?")  # the old chat goes on
    work(mara)
    assert fact not in known(mara)

    chat(mara, new_chat(mara), "As of today I'm allergic to nuts.")
    work(mara)
    assert fact in known(mara)


# The same person in two tenants.


@pytest.fixture
def twin(mara: Person, eve: Person) -> Person:
    """Mara again, as a member of Beta, with the same login."""
    join(eve.tenant, mara.user)
    return Person(mara.user, eve.tenant, mara.client)


def test_one_person_in_two_tenants_is_two(mara: Person, twin: Person, model: StubModel) -> None:
    """A19: acme/mara and beta/mara share no chats, memories, settings or running replies; a purge
    of one leaves the other."""
    home = new_chat(mara, "A title in Acme")
    add(mara.scope, text="My wheelbarrow is green.")
    set_up(mara, top_k=3)
    (reply,) = said(mara, home, ("My desk is violet.", "Noted."))
    add(twin.scope, text="I keep bees in Beta.")

    counts = preview(twin.scope, what="everything")
    assert (counts["memories"], counts["sessions"], counts["messages"]) == (1, 0, 0)
    for path in ("", "memory/", "memory/?q=wheelbarrow", "memory/forget-everything/"):
        page = twin.client.get(twin.url(path)).content.decode()
        assert "A title in Acme" not in page
        assert "My wheelbarrow" not in page
    assert b"A title in Acme" in mara.client.get(mara.url()).content
    for path in (f"sessions/{home.pk}/", f"replies/{reply.pk}/memories/"):
        assert mara.client.get(mara.url(path)).status_code == 200
        assert twin.client.get(twin.url(path)).status_code == 404
    with entered(twin.scope):
        assert not MemorySettings.objects.within(twin.scope).filter(top_k=3).exists()

    question = "Which colour is my barrow, and what do I keep?"
    chat(twin, new_chat(twin), question)
    assert "bees" in prompt_to(model, question)
    assert "wheelbarrow" not in prompt_to(model, question)
    chat(mara, new_chat(mara), question)
    assert "wheelbarrow" in prompt_to(model, question)
    assert "bees" not in prompt_to(model, question)

    mara.client.post(
        mara.url("memory/forget-everything/"),
        {"what": "everything", "confirm": "forget everything"},
    )
    assert set(preview(mara.scope, what="everything").values()) == {0}
    assert preview(twin.scope, what="everything")["sessions"] == 1
    assert [memory.text for memory in search(twin.scope, query="bees").memories] == [
        "I keep bees in Beta."
    ]


def test_sockets_of_one_person_in_two_tenants_hear_nothing_of_each_other(
    mara: Person, twin: Person, model: StubModel
) -> None:
    """A19, the frames and the journal in Redis: what runs in Acme is unknown in Beta."""
    model.script(tokens=["one ", "two ", "three"], per_token=0.2)
    home, there = new_chat(mara), new_chat(twin)

    @conversation
    async def talk(browser: Browser) -> None:
        hers, side = await browser.open(mara, home), await browser.open(twin, None)
        other = await browser.open(twin, there)
        await hers.say("Count")
        delta = await hers.until("delta")
        await other.send({"type": "attach", "reply": delta["reply"], "after": 0})
        assert (await other.until("error"))["code"] == "not_found"
        await other.send({"type": "stop", "reply": delta["reply"]})
        assert (await other.until("error"))["code"] == "not_found"
        await hers.until("finished", status="complete")
        assert await side.quiet()
        assert [frame["type"] for frame in side.frames] == ["hello"]

    talk()


def test_a_login_opens_only_the_tenants_that_one_is_a_member_of(
    mara: Person, twin: Person, acme: Tenant
) -> None:
    """A19: the scope of each page is its address's tenant, never the last one that was open."""
    for where in (mara, twin, mara):
        found = visitor_of(mara.cookie, where.tenant.slug)
        assert found is not None
        assert found.scope == where.scope
    assert Client().get(twin.url()).status_code == 302


def test_a_forgotten_memory_is_in_no_prompt(mara: Person, model: StubModel) -> None:
    memory = add(mara.scope, text="I always want an aisle seat.")
    forget(mara.scope, memory=memory.pk)
    chat(mara, new_chat(mara), "Which seat do I want?")
    assert "aisle" not in prompt_to(model, "Which seat do I want?")
