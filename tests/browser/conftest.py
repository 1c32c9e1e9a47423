"""The running product and people with browsers, for journeys that end with a clean console."""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, expect, sync_playwright

from chatapp.environment import Environment
from tests.browser.people import Person, Watch
from tests.browser.product import Product
from tests.stub_model import StubModel

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The browser speaks to the product and to nobody else.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-features=MediaRouter,OptimizationHints,Translate",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)

type Meet = Callable[..., Person]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Journeys come last: Playwright keeps an event loop running, in which the ORM refuses work."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
    items.sort(key=lambda item: item.path.is_relative_to(HERE))


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """The product, started once; each worker of pytest-xdist has its own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    number = 15 - (int(worker.removeprefix("gw")) + 1 if worker else 0)
    name = f"test_browser_{worker}" if worker else "test_browser"
    with Product(name, environ=Environment.read().given, redis_number=number % 16) as running:
        yield running


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    path = os.environ.get("RECOLLECT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), "")
    if not path:
        pytest.fail("Chromium is not on this machine: script/test says how to get it.")
    browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
    yield browser
    browser.close()


@pytest.fixture(autouse=True)
def _patience() -> None:
    """Time-outs for a machine that has other things to do as well."""
    expect.set_options(timeout=20_000)


@pytest.fixture
def stub(product: Product) -> Iterator[StubModel]:
    """The language model, with nothing scripted and nothing recorded."""
    product.stub.reset()
    yield product.stub
    product.stub.reset()


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What went wrong in any browser of this journey; none of it may."""
    noted = Watch()
    yield noted
    assert not noted.problems, "\n".join(noted.problems)


@pytest.fixture
def meet(
    product: Product,
    chromium: Browser,
    watch: Watch,
    stub: StubModel,
    request: pytest.FixtureRequest,
) -> Iterator[Meet]:
    """Makes people: `meet("Mara")` has signed up and looks at a new session."""
    met: list[Person] = []
    request.node.stash[MET] = met

    def person(name: str, *, signed_up: bool = True, **options: Any) -> Person:
        new = Person(product, chromium, watch, name, **options)
        met.append(new)
        if signed_up:
            new.sign_up()
        return new

    yield person
    for someone in met:
        someone.context.close()


@pytest.fixture
def mara(meet: Meet) -> Person:
    return meet("Mara")


@pytest.fixture
def bob(meet: Meet) -> Person:
    return meet("Bob")


MET = pytest.StashKey[list[Person]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the browsers showed, and the ends of the servers' logs."""
    report = yield
    running = getattr(item, "funcargs", {}).get("product")
    if report.failed and isinstance(running, Product):
        if call.when == "call":
            contexts = [someone.context for someone in item.stash.get(MET, [])]
            report.sections.append(("screenshots", "\n".join(_shots(running, item, contexts))))
        report.sections.append(("logs", running.log_tails()))
    return report


def _shots(running: Product, item: pytest.Item, contexts: list[BrowserContext]) -> list[str]:
    folder = running.folder / "failures"
    folder.mkdir(exist_ok=True)
    lines = []
    for number, page in enumerate(page for context in contexts for page in context.pages):
        path = folder / f"{item.name}-{number}.png"
        try:
            page.screenshot(path=path, timeout=5_000)
            lines.append(f"{page.url} {path}")
        except Exception as error:  # a report must not fail
            lines.append(f"{page.url} {error}")
    return lines
