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
