"""The operator's page in a running installation: what is chosen there answers the next question."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.people import Person
from tests.browser.product import Product
from tests.stub_model import StubModel


@pytest.fixture
def olga(mara: Person, product: Product) -> Iterator[Person]:
    """Mara, as the operator; afterwards embeddings are local again."""
    with product.owner() as connection:
        connection.execute(
            "update accounts_user set is_operator = true where email = %s", [mara.email]
        )
    yield mara
    choose(mara, "local")


def choose(olga: Person, kind: str, stub: StubModel | None = None) -> None:
    page = olga.page
    page.goto("/operator/")
    form = page.locator("form:has(#embeddings-model)")
    form.locator(f"input[name=embeddings][value={kind}]").check(force=True)
    if stub:
        page.locator("#embeddings-base-url").fill(stub.base_url)
        page.locator("#embeddings-model").fill("embed-1")
    form.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()


def embedded(olga: Person, model: str, seconds: float = 60) -> None:
    """Wait until everything that is remembered of her has a key of this embedder."""
    deadline = time.monotonic() + seconds
    kept = "select id from memory_memory where status = 'current'"
    keys = "select memory_id, model from memory_searchkey"

    def without() -> set[Any]:
        rows = olga.product.rows(olga.email, keys)
        return {row[0] for row in olga.product.rows(olga.email, kept)} - {
            memory for memory, made_by in rows if made_by == model
        }

    while without():
        assert time.monotonic() < deadline, f"not everything has a key of {model}"
        time.sleep(0.2)


def test_from_384_to_1024_dimensions_everything_works_and_the_progress_shows(
    olga: Person, stub: StubModel, product: Product
) -> None:
    """B13: ten memories, a switch; list, add, edit, delete and chat work during it and after, the
    search is right once it is done, and the operator's page shows how far it is, by itself."""
    page = olga.page
    for number in range(10):
        olga.add_note(f"I know a tale of number {number}.")
    embedded(olga, "all-MiniLM-L6-v2-int8")
    stub.script(kind="embeddings", dims=1024)
    slow = "I know a tale of number"
    stub.script(kind="embeddings", contains=slow, dims=1024, first_token=12)
    choose(olga, "openai", stub)
    progress = page.locator("#embedding")
    expect(progress).to_contain_text("Embedder in force: embed-1")
    expect(progress.get_by_role("progressbar")).to_be_visible()  # the page was not touched
    expect(progress).to_contain_text("memories are found by meaning (")

    # During it.
    rows = page.locator("#memory-rows .memory-row")
    page.goto(f"{olga.home}memory/")
    expect(rows).to_have_count(10)
    expect(page.locator(".notice")).to_contain_text("Until then they are found by their words.")
    olga.add_note("I own a canoe.")
    search = page.get_by_role("searchbox", name="Search your memories")
    search.fill("number 7")
    expect(rows.first).to_contain_text("I know a tale of number 7.")
    rows.first.get_by_role("link", name="Edit").click()
    box = page.get_by_role("textbox", name="The memory’s text")
    box.fill("I know a song about the seven seas.")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(rows.filter(has_text="seven seas")).to_have_count(1)
    search.fill("number 8")
    expect(rows.first).to_contain_text("I know a tale of number 8.")
    rows.first.get_by_role("button", name="Forget").click()
    expect(rows.filter(has_text="Forgotten:")).to_have_count(1)
    olga.new_session()
    olga.ask("Do I own a canoe?")
    assert "I own a canoe." in prompt_of(stub, "a canoe?")

    # And after it.
    embedded(olga, "embed-1")
    page.goto("/operator/")
    expect(progress).to_contain_text("All memories are found by meaning.", timeout=90_000)
    expect(progress).to_contain_text("embed-1, 1024 dimensions")
    expect(progress.get_by_role("progressbar")).to_have_count(0)
    dims = product.rows(olga.email, "select distinct model, dims from memory_searchkey")
    assert dims == [("embed-1", 1024)]
    page.goto(f"{olga.home}memory/")
    expect(page.locator(".notice")).to_have_count(0)
    for query, found in (
        ("What song do I know?", "seven seas"),
        ("Which tale has the number 3?", "number 3."),
        ("canoe", "canoe"),
    ):
        search.fill(query)
        expect(rows.first).to_contain_text(found)
        expect(rows.first).to_contain_text("Score")
    search.fill("number 8")
    expect(page.locator("#memory-rows")).not_to_contain_text("number 8")
    olga.add_note("I collect stamps.")
    olga.new_session()
    olga.ask("What do I collect, and which song do I know?")
    asked = prompt_of(stub, "which song")
    assert "I collect stamps." in asked
    assert "seven seas" in asked
    olga.remembering_is_over()
    stub.reset()


def prompt_of(stub: StubModel, words: str) -> str:
    [request] = [one for one in stub.asked("chat") if words in one.question]
    return request.prompt


def test_a_silent_embedder_keeps_nobody_waiting_and_the_page_says_so(
    olga: Person, stub: StubModel
) -> None:
    """A hanging embeddings server: a note is there at once, the search goes by words, and once the
    server answers again everything is found by meaning by itself."""
    page = olga.page
    olga.add_note("I own a canoe.")
    choose(olga, "openai", stub)
    embedded(olga, "embed-1")
    stub.script(kind="embeddings", first_token=600)
    page.goto(f"{olga.home}memory/")
    olga.add_note("I keep bees in the garden.")
    row = page.locator("#memory-rows .memory-row").first
    expect(row).to_contain_text("Found by its words for now")
    page.get_by_role("searchbox", name="Search your memories").fill("bees")
    expect(page.locator("#memory-list .notice")).to_contain_text("Searched by words alone")
    expect(row).to_contain_text("I keep bees in the garden.")
    page.goto("/operator/")
    expect(page.locator("#embedding")).to_contain_text("is left, of 1 person.")
    stub.reset()
    embedded(olga, "embed-1", seconds=120)
    expect(page.locator("#embedding")).to_contain_text(
        "All memories are found by meaning.", timeout=60_000
    )


def test_an_embedder_that_is_chosen_on_the_page_answers_the_next_question(
    olga: Person, stub: StubModel
) -> None:
    """Point 6, embeddings from an address: the web process, which runs already, asks it for the
    next question's vector; old memories are found again once the worker has embedded them."""
    olga.add_note("I keep bees in the garden.")
    embedded(olga, "all-MiniLM-L6-v2-int8")
    choose(olga, "openai", stub)
    olga.new_session()
    first = "What do I keep in the garden?"
    olga.ask(first)
    assert first in [request.prompt for request in stub.asked("embeddings")]

    embedded(olga, "embed-1")
    olga.new_session()
    olga.ask("And what do I keep in my garden?")
    [request] = [one for one in stub.asked("chat") if "my garden" in one.question]
    assert "I keep bees in the garden." in request.prompt

    choose(olga, "local")
    stub.requests.clear()
    olga.new_session()
    olga.ask("What else do I keep in the garden?")
    [request] = [one for one in stub.asked("chat") if "What else" in one.question]
    assert "I keep bees in the garden." in request.prompt
    assert not [one for one in stub.asked("embeddings") if "What else" in one.prompt]
    olga.remembering_is_over()
    embedded(olga, "all-MiniLM-L6-v2-int8")
