"""What the model does by itself is seen while it happens, stays seen, and is taken back."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.people import Person
from tests.stub_model import StubModel


def acts(stub: StubModel, *calls: dict[str, Any], text: str) -> None:
    stub.script(text=text, kind="chat", per_token=0.3)
    stub.script(tokens=[], calls=list(calls), kind="chat", times=1)


def test_what_the_model_saves_shows_while_it_speaks_and_undo_takes_it_back(
    mara: Person, stub: StubModel
) -> None:
    saving = {"text": "The user owns a boat.", "quote": "I own a boat"}
    acts(stub, {"name": "save_memory", "arguments": saving}, text="I will keep that in mind.")
    mara.say("Remember that I own a boat.")
    acted = mara.reply.locator(".acted")
    expect(acted).to_contain_text("Saved: The user owns a boat.")
    expect(mara.reply).to_have_attribute("data-status", "streaming")
    mara.ended()
    expect(acted).to_contain_text("Saved: The user owns a boat.")
    mara.page.reload()
    expect(acted).to_contain_text("Saved: The user owns a boat.")
    acted.get_by_role("button", name="Undo").click()
    expect(acted).to_contain_text("took it back")
    expect(acted).not_to_contain_text("boat")
    assert "The user owns a boat." not in mara.memories()
    acted.get_by_role("button", name="Do it after all").click()
    expect(acted).to_contain_text("Saved: The user owns a boat.")
    assert "The user owns a boat." in mara.memories()


def test_a_row_opens_to_its_pin_tags_and_versions(mara: Person) -> None:
    page = mara.page
    page.goto(f"{mara.home}memory/")
    mara.add_note("I have a dog called Rex.")
    row = page.locator("#memory-rows .memory-row")
    row.hover()
    row.get_by_role("button", name="Pin").click()
    expect(row.locator(".meta").first).to_contain_text("Pinned")
    row.get_by_role("link", name="Tags, end and versions").click()
    row.get_by_label("Tags, with commas").fill("Pets, #Home")
    row.get_by_label("Tags, with commas").press("Enter")
    expect(row.locator(".tags")).to_have_text("#home #pets")
    row.get_by_role("button", name="Undo").click()
    expect(row.locator(".tags")).to_have_count(0)
    row.get_by_role("link", name="Edit").click()
    row.get_by_label("The memory’s text").fill("I have a cat called Miso.")
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Miso")
    row.get_by_role("link", name="Tags, end and versions").click()
    expect(row.locator(".versions del").first).to_contain_text("dog")
    expect(row.locator(".versions ins").first).to_contain_text("cat")
    row.get_by_role("button", name="Bring back what it said").click()
    expect(row.locator(".memory-text")).to_have_text("I have a dog called Rex.")
