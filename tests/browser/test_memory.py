"""What is remembered is known in the next session, is shown, and can be corrected and erased."""

import json
import re

from playwright.sync_api import WebSocketRoute, expect

from tests.browser.conftest import Meet
from tests.browser.extractor import finds
from tests.browser.people import Person, Watch
from tests.browser.product import Product
from tests.stub_model import StubModel

FACT = "The user is vegetarian and never flies before 9 am."


def prompts(stub: StubModel, question: str) -> list[str]:
    """What reached the model with this question as the newest."""
    return [request.prompt for request in stub.asked("chat") if question in request.question]


def test_a_fact_is_known_in_a_new_session_after_a_restart_and_to_nobody_else(
    mara: Person, bob: Person, meet: Meet, stub: StubModel, product: Product, watch: Watch
) -> None:
    """A1, A2: told in one chat, known in another, in a new browser and after a restart: the prompt
    holds the fact and the reply shows what was used; B's prompt and his list hold nothing of it."""
    watch.allow("WebSocket", "net::ERR_")
    stub.extract = finds({"I'm vegetarian and never fly before 9 am": FACT})
    bob.add_note("I collect stamps.")
    told = mara
    told.ask("I'm vegetarian and never fly before 9 am.")
    told.learnt()
    told.context.close()
    product.restart_all()

    mara = meet("Mara", signed_up=False)
    mara.log_in_as(told)
    mara.ask("Find a flight and dinner.")
    [prompt] = prompts(stub, "Find a flight and dinner.")
    assert FACT in prompt
    pill = mara.reply.locator(".recalled a")
    expect(pill).to_contain_text(re.compile(r"\d+ memor"))
    pill.click()
    sheet = mara.page.get_by_role("dialog", name="What was used")
    expect(sheet).to_contain_text("vegetarian")
    expect(sheet.locator(".source").first).to_contain_text(re.compile(r"score \d\.\d\d"))
    expect(sheet.get_by_role("link", name=re.compile("I'm vegetarian")).first).to_be_visible()
    expect(sheet.locator(".source").filter(has_text=FACT)).to_have_count(1)
    mara.page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()

    bob.new_session()
    bob.ask("Find a flight and dinner.")
    [_, prompt] = prompts(stub, "Find a flight and dinner.")
    assert "vegetarian" not in prompt
    assert "9 am" not in prompt
    assert "stamps" in prompt
    bob.remembering_is_over()
    bob.page.goto(f"{bob.home}memory/")
    expect(bob.page.locator("#memory-rows .memory-row .memory-text")).to_have_text(
        [re.compile("Find a flight and dinner."), "I collect stamps."]
    )


def test_a_notice_whose_frame_was_lost_comes_to_the_truth_all_the_same(
    mara: Person, stub: StubModel
) -> None:
    lost: list[str] = []

    def without_learnt(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def pass_on(frame: str | bytes) -> None:
            if json.loads(frame)["type"] == "learnt":
                lost.append(str(frame))
            else:
                socket.send(frame)

        server.on_message(pass_on)

    mara.page.route_web_socket(re.compile("/ws/"), without_learnt)
    mara.page.reload()
    mara.ask("Hello.")
    mara.learnt()
    lost.clear()  # the first message opens the session: its notice may be part of the page
    mara.ask("And again.")
    expect(mara.learnt()).to_contain_text("Remembered")
    for _ in range(100):
        if lost:
            break
        mara.page.wait_for_timeout(100)
    assert lost


def test_what_was_learnt_shows_under_the_reply_and_undo_takes_it_back(
    mara: Person, stub: StubModel
) -> None:
    stub.extract = finds({"I'm vegetarian and never fly before 9 am": FACT})
    mara.ask("I'm vegetarian and never fly before 9 am.")
    learnt = mara.learnt()
    expect(learnt).to_contain_text("Learnt 1")
    expect(learnt).to_contain_text("vegetarian")
    learnt.get_by_role("button", name=re.compile("Undo|Forget")).click()
    expect(learnt.get_by_role("button", name="Keep it after all")).to_be_visible()
    assert mara.memories() == []

    mara.page.goto(f"{mara.home}memory/")
    expect(mara.page.locator("#memory-list")).not_to_contain_text("vegetarian")
    mara.new_session()
    mara.ask("What may I eat?")
    [prompt] = prompts(stub, "What may I eat?")
    assert "vegetarian" not in prompt


def test_the_memory_page_adds_finds_corrects_and_forgets(mara: Person, stub: StubModel) -> None:
    """A4, A26 and B10 by hand: a note is there at once, marked as added by the person, found,
    corrected and forgotten, and the next prompt holds what the page shows."""
    page = mara.page
    page.goto(f"{mara.home}memory/")
    expect(page.get_by_role("heading", name="Nothing is remembered yet.")).to_be_visible()
    mara.add_note("Mara always wants an aisle seat.")
    mara.add_note("I have a dog called Rex.")
    mara.add_note("My brother plays the cello.")
    rows = page.locator("#memory-rows .memory-row")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="aisle")).to_contain_text("added by you")

    search = page.get_by_role("searchbox", name="Search your memories")
    search.fill("dog")
    expect(rows.first).to_contain_text("Rex")
    rows.filter(has_text="Rex").get_by_role("link", name="Edit").click()
    box = page.get_by_role("textbox", name="The memory’s text")
    expect(box).to_be_focused()
    box.fill("I have a cat called Miso.")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(rows.filter(has_text="Miso")).to_have_count(1)
    search.fill("cat")
    expect(rows.first).to_contain_text("Miso")
    search.fill("")
    expect(rows).to_have_count(3)
    expect(page.locator("#memory-list")).not_to_contain_text("Rex")

    rows.filter(has_text="cello").get_by_role("button", name="Forget").click()
    gone = rows.filter(has_text="Forgotten:")
    expect(gone).to_contain_text("cello")
    gone.get_by_role("button", name="Undo").click()
    expect(rows.filter(has_text="Forgotten:")).to_have_count(0)
    expect(rows.filter(has_text="cello")).to_have_count(1)
    rows.filter(has_text="cello").get_by_role("button", name="Forget").click()
    expect(rows.filter(has_text="Forgotten:")).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(2)

    mara.new_session()
    mara.ask("Which seat do I want, and what is my cat called?")
    [prompt] = prompts(stub, "Which seat do I want")
    assert "aisle seat" in prompt
    assert "Miso" in prompt
    assert "Rex" not in prompt
    assert "cello" not in prompt


def test_the_switches_decide_what_is_stored_and_recalled(mara: Person, stub: StubModel) -> None:
    """A3: what was said with memory switched off is recalled by no later chat."""
    page = mara.page
    mara.add_note("I keep bees.")
    page.get_by_role("switch", name="Remember after each reply").uncheck()
    expect(page.locator("#memory-settings")).to_contain_text("Saved.")
    page.reload()
    expect(page.get_by_role("switch", name="Remember after each reply")).not_to_be_checked()
    mara.new_session()
    expect(page.locator("#composer")).to_contain_text("Recalls, stores nothing")
    mara.ask("My house is yellow.")
    mara.remembering_is_over()
    mara.new_session()
    mara.ask("What colour is my house, and what do I keep?")
    [prompt] = prompts(stub, "What colour is my house")
    assert "bees" in prompt
    assert "yellow" not in prompt

    page.goto(f"{mara.home}memory/")
    page.get_by_role("switch", name="Recall before each reply").uncheck()
    expect(page.locator("#memory-settings")).to_contain_text("Saved.")
    mara.new_session()
    expect(page.locator("#composer")).to_contain_text("Memory is off")
    mara.ask("What do I keep in the garden?")
    [prompt] = prompts(stub, "in the garden")
    assert "bees" not in prompt


def test_a_number_is_refused_in_a_sentence_and_what_was_unfolded_stays_open(
    mara: Person, watch: Watch
) -> None:
    watch.allow("400")
    page = mara.page
    page.goto(f"{mara.home}memory/")
    page.get_by_text("Advanced").click()
    budget = page.get_by_label("Room for memories, in tokens")
    settings = page.locator("#memory-settings")
    for typed, said in (("99", "from 100 to 20,000, or leave it empty."), ("", "Saved.")):
        budget.fill(typed)
        budget.blur()
        expect(settings).to_contain_text(said)
        expect(budget).to_be_visible()
        expect(budget).to_have_value(typed)
    expect(budget).to_have_attribute("placeholder", "1500")


def test_what_could_not_be_learnt_is_learnt_by_itself_once_the_extractor_is_back(
    mara: Person, stub: StubModel
) -> None:
    """B9: "I'm allergic to nuts" while the extractor answers 500: the reply comes all the same, the
    memory page shows one that waits, and after recovery the fact is there once, by itself."""
    fact = "The user is allergic to nuts."
    stub.script(kind="json", status=500)
    reply = mara.ask("I'm allergic to nuts.")
    expect(mara.words).to_have_text("Hello from the stub model.")
    learnt = reply.locator(".learnt")
    expect(learnt).to_contain_text("tried again by itself")
    memory = mara.another_tab(f"{mara.home}memory/")
    expect(memory.page.locator(".notice")).to_contain_text("1 message waits to be remembered.")
    assert mara.memories() == []

    stub.reset()
    stub.extract = finds({"allergic to nuts": fact})
    expect(learnt).to_contain_text(fact, timeout=60_000)  # on the page that was left as it is
    mara.remembering_is_over()
    assert mara.memories() == [fact]
    memory.page.reload()
    expect(memory.page.locator(".notice")).to_have_count(0)
    expect(memory.page.locator("#memory-rows .memory-row").filter(has_text=fact)).to_have_count(1)
    assert len(stub.asked("chat")) == 0  # the reply was not asked for again


def test_forget_everything_erases_all_and_says_how_much(mara: Person, stub: StubModel) -> None:
    """A44, in the browser: the receipt says how much, and nothing is left to find."""
    page = mara.page
    mara.ask("I was born in Porto.")
    mara.learnt()
    mara.add_note("I collect stamps.")
    page.get_by_role("link", name="Forget everything about me").click()
    page.get_by_label("Everything: memories, sessions and messages").check()
    confirm = page.get_by_label(re.compile("Type .* to confirm"))
    erase = page.get_by_role("button", name="Erase for good")
    confirm.fill("forget everything")
    erase.click()
    receipt = page.locator(".receipt")
    expect(receipt).to_contain_text("Erased")
    expect(receipt).to_contain_text(re.compile(r"[Mm]emories\s*2"))
    assert mara.memories() == []
    assert mara.stored() == []
    page.goto(mara.home)
    expect(mara.sessions).to_have_count(0)
    expect(page.get_by_role("heading", name="Nothing is remembered yet.")).to_be_visible()
    mara.ask("Where was I born?")
    [prompt] = prompts(stub, "Where was I born?")
    assert "Porto" not in prompt


def test_the_numbers_above_the_list_follow_what_is_done_in_it(mara: Person) -> None:
    page = mara.page
    for note in ("I own a boat.", "My cat is called Miso."):
        mara.add_note(note)
    tools = page.locator("#memory-tools")
    expect(tools.get_by_role("link", name="Current 2")).to_be_visible()
    row = page.locator("#memory-rows .memory-row").first
    row.hover()
    row.get_by_role("button", name="Forget").click()
    expect(tools.get_by_role("link", name="Current 1")).to_be_visible()
    expect(tools.get_by_role("link", name="In the trash 1")).to_be_visible()
    expect(page.locator("#memory-total")).to_have_text("1")
    expect(row).to_be_focused()
    row.get_by_role("button", name="Undo").click()
    expect(tools.get_by_role("link", name="Current 2")).to_be_visible()
    page.goto(f"{mara.home}memory/?state=trash")
    expect(page.locator("#memory-none")).to_contain_text("The trash is empty")
