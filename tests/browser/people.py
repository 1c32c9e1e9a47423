"""People at their browsers: what a journey can do and see, in the words of the pages."""

import re
import time
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Response,
    WebError,
    expect,
)

from tests.browser.product import Product

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
PASSWORD = "a long walk by the sea"
NUMBERS = count(1)
RUNNING = ("waiting", "streaming")


@dataclass
class Watch:
    """Notes what no page may do: errors in the console (the CSP's among them), 5xx answers."""

    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", self._web_error)
        context.on("response", self._response)

    def allow(self, *patterns: str) -> None:
        """Let pass what this journey brings about on purpose."""
        self.allowed += patterns

    def _note(self, problem: str) -> None:
        if not any(re.search(pattern, problem) for pattern in self.allowed):
            self.problems.append(problem)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(f"console: {message.text} ({message.location.get('url', '')})")

    def _web_error(self, error: WebError) -> None:
        self._note(f"page error: {error.error}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self._note(f"HTTP {response.status}: {response.request.method} {response.url}")


class Tab:
    """One page of the product in one tab."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def composer(self) -> Locator:
        return self.page.get_by_role("textbox", name="Your message")

    @property
    def exchanges(self) -> Locator:
        return self.page.locator("#thread article.exchange")

    @property
    def replies(self) -> Locator:
        return self.page.locator("#thread .reply")

    @property
    def reply(self) -> Locator:
        """The newest reply."""
        return self.replies.last

    @property
    def words(self) -> Locator:
        """The newest reply's words alone."""
        return self.reply.locator(".reply-body")

    @property
    def sessions(self) -> Locator:
        return self.page.locator("#session-list li.session")

    @property
    def session_url(self) -> re.Pattern[str]:
        return re.compile(r"/sessions/[0-9a-f-]{36}/$")

    def say(self, text: str) -> None:
        """Write a message and send it with Enter."""
        self.composer.fill(text)
        self.composer.press("Enter")

    def reconnect(self) -> None:
        """Let the page try at once, as it does when the network is back."""
        self.page.evaluate("dispatchEvent(new Event('online'))")

    def ended(self, status: str = "complete", *, timeout: float = 20_000) -> Locator:
        """Wait until the newest reply has ended so."""
        expect(self.reply).to_have_attribute("data-status", status, timeout=timeout)
        return self.reply

    def ask(self, text: str, *, status: str = "complete") -> Locator:
        """Say something and wait for the end of its reply."""
        before = self.replies.count()
        self.say(text)
        expect(self.replies).to_have_count(before + 1)
        return self.ended(status)

    def learnt(self, *, timeout: float = 30_000) -> Locator:
        """Wait until the newest reply says what became of it in memory."""
        learnt = self.reply.locator(".learnt")
        expect(learnt).to_have_attribute("data-state", "done", timeout=timeout)
        return learnt


class Person(Tab):
    """Somebody with an account and a browser of their own; acts in the first tab."""

    def __init__(
        self, product: Product, browser: Browser, watch: Watch, name: str, **options: Any
    ) -> None:
        number = next(NUMBERS)
        self.product = product
        self.name = name
        self.email = f"{name.lower()}.{number}@example.org"
        self.password = PASSWORD
        self.context = browser.new_context(
            **{
                "base_url": product.address,
                "viewport": DESKTOP,
                "locale": "en-GB",
                "timezone_id": "Europe/Lisbon",
                "reduced_motion": "reduce",
                **options,
            }
        )
        self.context.set_default_timeout(20_000)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        watch.over(self.context)
        super().__init__(self.context.new_page())

    def sign_up(self) -> None:
        """Make the account, without the form's page, and open a new session."""
        self.product.forgive()
        request = self.context.request
        found = re.search(r'csrfmiddlewaretoken" value="(\w+)"', request.get("/signup/").text())
        assert found, "the sign-up form has no token"
        account = {
            "csrfmiddlewaretoken": found[1],
            "email": self.email,
            "name": self.name,
            "password": self.password,
            "time_zone": "Europe/Lisbon",
        }
        answer = request.post("/signup/", form=account, headers={"Referer": self.product.address})
        assert answer.ok, answer.text()
        self.page.goto(answer.url)

    def sign_up_by_hand(self) -> None:
        """Make the account with the sign-up form, and arrive in a new session."""
        self.product.forgive()
        self.page.goto("/signup/")
        self.fill_account()
        self.page.get_by_role("button", name="Sign up").click()
        self.page.wait_for_url("**/t/*/")

    def fill_account(self) -> None:
        """Fill in who one is, on the page that makes an account."""
        self.page.get_by_label("E-mail").fill(self.email)
        self.page.get_by_label("Name").fill(self.name)
        for box in self.page.locator("input[type=password]").all():
            box.fill(self.password)

    def log_in(self) -> None:
        """Log in with the form."""
        self.page.goto("/login/")
        self.page.get_by_label("E-mail").fill(self.email)
        self.page.get_by_label("Password").fill(self.password)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/t/*/")

    def log_in_as(self, other: "Person") -> None:
        """Be the same person in another browser: log in as them."""
        self.email, self.password = other.email, other.password
        self.product.forgive()
        self.log_in()

    @cached_property
    def home(self) -> str:
        """The address of the person's own tenant."""
        found = re.match(r"/t/[^/]+/", urlsplit(self.page.url).path)
        assert found, f"not inside a tenant: {self.page.url}"
        return found[0]

    def new_session(self) -> None:
        """Open the page of a new session."""
        self.page.goto(self.home)
        expect(self.composer).to_be_editable()

    def add_note(self, text: str) -> None:
        """Write a note on the memory page, and stay there."""
        path = f"{self.home}memory/"
        if urlsplit(self.page.url).path != path:
            self.page.goto(path)
        self.page.get_by_role("textbox", name="Something to remember").fill(text)
        self.page.get_by_role("button", name="Remember", exact=True).click()
        expect(self.page.locator("#memory-rows .memory-row").first).to_contain_text(text)
        expect(self.page.get_by_role("textbox", name="Something to remember")).to_have_value("")

    def begin_rename(self) -> Locator:
        """Open the field for the session's title."""
        self.page.get_by_label("Rename or delete this session").click()
        self.page.get_by_role("button", name="Rename").filter(visible=True).click()
        box = self.page.locator("input:focus")
        expect(box).to_be_visible()
        return box

    def rename(self, title: str) -> None:
        """Give the open session another title."""
        self.begin_rename().fill(title)
        self.page.keyboard.press("Enter")

    def found_tenant(self, name: str) -> None:
        """Make a tenant for several people, and be at home there from now on."""
        self.page.goto("/organisations/new/")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Make it").click()
        self.page.wait_for_url("**/t/*/**")
        self.__dict__.pop("home", None)

    def another_tab(self, address: str = "") -> Tab:
        """The same person in a second tab."""
        page = self.context.new_page()
        page.goto(address or self.page.url)
        return Tab(page)

    def remembering_is_over(self, seconds: float = 30) -> None:
        """Wait until no job of this person waits or runs: what will be kept is kept."""
        deadline = time.monotonic() + seconds
        query = "select 1 from memory_job where kind = 'remember' and state <> 'done'"
        while self.product.rows(self.email, query):
            assert time.monotonic() < deadline, "a job of the memory is not done"
            time.sleep(0.1)

    def stored(self) -> list[tuple[str, str, str]]:
        """Role, status and text of every message that is kept of this person, oldest first."""
        return self.product.rows(
            self.email,
            "select role, status, text from chatapp_message order by created_at, position",
        )

    def memories(self, status: str = "current") -> list[str]:
        """The texts that are remembered of this person, the words of exchanges left out."""
        return [
            text
            for text, kind, state in self.product.rows(
                self.email, "select text, kind, status from memory_memory order by created_at"
            )
            if kind != "exchange" and state == status
        ]
