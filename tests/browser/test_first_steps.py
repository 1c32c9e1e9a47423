"""From the sign-up form to the first reply, with and without a model, and out again."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Meet
from tests.browser.people import PASSWORD, Person, Watch
from tests.browser.product import Product
from tests.stub_model import StubModel

MARKDOWN = """# Packing

Take **only** what you carry:

1. a coat
2. a `phrasebook`

```python
print("ready")
```

| day | place |
| --- | --- |
| 1 | Porto |

See [the map](https://maps.example.org/porto).
"""


@pytest.fixture
def no_model(product: Product) -> Iterator[None]:
    """The installation as it is on its first day: no model is set up."""
    product.without_model()
    yield
    product.with_model()


def test_a_stranger_signs_up_chats_and_sees_a_streamed_reply_as_markdown(
    meet: Meet, stub: StubModel
) -> None:
    stub.script(text=MARKDOWN, per_token=0.02)
    mara = meet("Mara", signed_up=False)
    mara.sign_up_by_hand()
    expect(mara.page.get_by_role("heading", name="Nothing is remembered yet.")).to_be_visible()

    mara.say("What do I pack for Porto?")
    expect(mara.exchanges).to_have_count(1)
    expect(mara.page.get_by_role("button", name="Stop")).to_be_visible()
    expect(mara.words).to_contain_text("Take only what")
    expect(mara.reply).to_have_attribute("data-status", "streaming")

    reply = mara.ended()
    expect(reply.get_by_role("heading", name="Packing")).to_be_visible()
    expect(reply.locator("strong")).to_have_text("only")
    expect(reply.locator("ol > li")).to_have_text(["a coat", "a phrasebook"])
    expect(reply.locator("pre code")).to_have_text('print("ready")\n')
    expect(reply.locator("td")).to_have_text(["1", "Porto"])
    expect(reply.get_by_role("link", name=re.compile("the map"))).to_have_attribute(
        "rel", re.compile("noopener.*")
    )
    expect(mara.page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(mara.page).to_have_url(mara.session_url)
    expect(mara.sessions).to_have_count(1)
    expect(mara.sessions.first).to_contain_text("What do I pack for Porto?")
    assert mara.stored() == [
        ("user", "complete", "What do I pack for Porto?"),
        ("assistant", "complete", MARKDOWN),
    ]

    mara.page.reload()
    expect(mara.exchanges).to_have_count(1)
    expect(mara.reply.locator("ol > li")).to_have_count(2)


def test_the_sign_up_form_says_what_is_wrong_and_keeps_what_was_typed(
    meet: Meet, product: Product, watch: Watch
) -> None:
    watch.allow("400")
    mara = meet("Mara", signed_up=False)
    product.forgive()
    mara.page.goto("/signup/")
    mara.page.get_by_label("E-mail").fill(mara.email)
    mara.page.get_by_label("Name").fill("Mara")
    for box in mara.page.locator("input[type=password]").all():
        box.fill("short")
    mara.page.get_by_role("button", name="Sign up").click()
    expect(mara.page.locator(".problem").first).to_contain_text("at least 10")
    expect(mara.page.get_by_label("E-mail")).to_have_value(mara.email)


def test_everything_to_the_first_message_goes_by_keyboard_alone(
    meet: Meet, product: Product
) -> None:
    mara = meet("Mara", signed_up=False)
    page = mara.page
    product.forgive()
    page.goto("/signup/")
    focus(page, "E-mail")
    page.keyboard.type(mara.email)
    focus(page, "Name")
    page.keyboard.type(mara.name)
    for number in range(page.locator("input[type=password]").count()):
        box = page.locator("input[type=password]").nth(number)
        tab_until(page, box)
        page.keyboard.type(mara.password)
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/*/")

    expect(mara.composer).to_be_focused()
    page.keyboard.type("Hello there")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("on a second line")
    page.keyboard.press("Enter")
    expect(mara.exchanges).to_have_count(1)
    mara.ended()
    expect(mara.composer).to_be_focused()
    assert mara.stored()[0] == ("user", "complete", "Hello there\non a second line")


def focus(page: Page, label: str) -> None:
    tab_until(page, page.get_by_label(label))


def tab_until(page: Page, target: Locator, limit: int = 60) -> None:
    """Press Tab until the target has the focus, as somebody without a mouse does."""
    for _ in range(limit):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("Tab does not reach it")


def test_after_logging_out_the_back_button_shows_nothing_private(mara: Person) -> None:
    mara.ask("My bicycle is violet.")
    session = mara.page.url
    mara.page.locator("details.who > summary").click()
    mara.page.get_by_role("button", name="Log out").click()
    mara.page.wait_for_url("**/login/**")

    mara.page.go_back()
    expect(mara.page.get_by_role("button", name="Log in")).to_be_visible()
    expect(mara.page.get_by_text("violet")).to_have_count(0)
    mara.page.goto(session)
    mara.page.wait_for_url("**/login/**")

    mara.page.get_by_label("E-mail").fill(mara.email.upper())
    mara.page.get_by_label("Password").fill(PASSWORD)
    mara.page.get_by_role("button", name="Log in").click()
    expect(mara.page).to_have_url(session)
    expect(mara.exchanges).to_contain_text("My bicycle is violet.")


def test_logging_out_in_one_tab_reaches_the_other(mara: Person) -> None:
    mara.ask("A word in private.")
    other = mara.another_tab()
    other.composer.fill("Half a thought")
    mara.page.locator("details.who > summary").click()
    mara.page.get_by_role("button", name="Log out").click()
    mara.page.wait_for_url("**/login/**")
    expect(other.page.locator("#status")).to_contain_text("You are logged out", timeout=10_000)
    expect(other.composer).to_have_value("Half a thought")


def test_a_forgotten_password_is_set_anew_by_the_link_in_the_mail(
    mara: Person, meet: Meet, product: Product
) -> None:
    forgetful = meet("Mara", signed_up=False)
    page = forgetful.page
    page.goto("/login/")
    page.get_by_role("link", name="Forgotten your password?").click()
    page.get_by_label("E-mail").fill(mara.email)
    page.get_by_role("button", name="Send the link").click()
    page.wait_for_url("**/password/reset/sent/")
    link = product.web.said(rf"To: {re.escape(mara.email)}[\s\S]*?(/password/reset/\S+)")
    page.goto(link)
    for box in page.locator("input[type=password]").all():
        box.fill("another long walk")
    page.get_by_role("button", name="Set the password").click()
    page.get_by_role("link", name="Log in").click()
    forgetful.email, forgetful.password = mara.email, "another long walk"
    forgetful.log_in()
    expect(forgetful.composer).to_be_visible()
    # Whoever was logged in with the old password no longer is.
    mara.page.reload()
    mara.page.wait_for_url("**/login/**")


def test_without_javascript_one_can_sign_up_chat_and_take_notes(meet: Meet) -> None:
    mara = meet("Mara", signed_up=False, java_script_enabled=False)
    mara.sign_up_by_hand()
    page = mara.page
    mara.composer.fill("A message by an old browser.")
    page.get_by_role("button", name="Send").click()
    expect(page).to_have_url(mara.session_url)
    expect(mara.exchanges).to_have_count(1)
    for _ in range(20):
        page.reload()
        if mara.reply.get_attribute("data-status") == "complete":
            break
    expect(mara.words).to_have_text("Hello from the stub model.")
    page.goto(f"{mara.home}memory/")
    page.get_by_role("textbox", name="Something to remember").fill("I use an old browser.")
    page.get_by_role("button", name="Remember", exact=True).click()
    row = page.locator("#memory-rows .memory-row").filter(has_text="I use an old browser.")
    expect(row).to_have_count(1)
    row.get_by_role("link", name="Edit").click()
    page.get_by_role("textbox", name="The memory’s text").fill("I use an older browser.")
    page.get_by_role("button", name="Save", exact=True).first.click()
    page.goto(f"{mara.home}memory/")
    row = page.locator("#memory-rows .memory-row").filter(has_text="older")
    row.get_by_role("button", name="Forget").click()
    expect(page.locator("#memory-rows")).not_to_contain_text("older browser")


def test_the_one_time_link_makes_the_operator_who_finds_help_in_setting_up_a_model(
    meet: Meet, product: Product, no_model: None, stub: StubModel, watch: Watch
) -> None:
    with product.owner() as connection:
        connection.execute("update accounts_user set is_operator = false")
    link = re.search(r"https?://\S+/first/\S+/", product.manage("first_link"))
    assert link, "no link although there is no operator"
    olga = meet("Olga", signed_up=False)
    olga.page.goto("/first/" + link[0].split("/first/")[1])
    olga.fill_account()
    olga.page.get_by_role("button", name="Begin").click()
    expect(olga.page).to_have_url(re.compile(r"/(operator|t/[^/]+)/$"))

    # Without a model a reply is useful all the same.
    olga.page.goto("/")
    expect(olga.page.locator("#no-model")).to_contain_text("No language model is set up yet")
    olga.ask("Remember that my sister is called Ada.")
    expect(olga.words).to_contain_text(re.compile("no .*model", re.IGNORECASE))
    olga.learnt()
    olga.page.goto(olga.home)
    olga.ask("What is my sister called?")
    expect(olga.words).to_contain_text("Ada")
    assert not stub.asked("chat")

    # One click leads to the page where a model is set up.
    olga.page.locator("#no-model").get_by_role("link", name="Set up a model").click()
    expect(olga.page.locator("#discovered")).to_contain_text(
        re.compile("Looked at|No model server|Use"), timeout=20_000
    )
    olga.page.locator("#base-url").fill(stub.base_url)
    olga.page.get_by_role("button", name="Test the connection").click()
    expect(olga.page.locator("#operator-test")).to_contain_text("stub-model")
    olga.page.locator("#chat-model").fill("stub-model")
    save = olga.page.locator("form:has(#chat-model)").get_by_role("button", name="Save", exact=True)
    save.click()
    olga.page.goto(olga.home)
    expect(olga.page.locator("#no-model")).to_have_count(0)
    olga.ask("Hello, model.")
    expect(olga.words).to_have_text("Hello from the stub model.")

    # The link worked once.
    watch.allow("404")
    late = meet("Late", signed_up=False)
    late.page.goto("/first/" + link[0].split("/first/")[1])
    expect(late.page.get_by_role("heading", name="This link was used already")).to_be_visible()


def test_an_account_is_deleted_with_counts_first_and_nothing_of_it_is_left(
    mara: Person, product: Product, watch: Watch
) -> None:
    """Point 2: one deletes one's account: counts, the typed address and the password, and then
    there is neither the account nor anything of it."""
    watch.allow("400")
    mara.ask("My bicycle is violet.")
    mara.remembering_is_over()
    page = mara.page
    page.goto("/account/")
    page.get_by_role("link", name="Delete my account").click()
    expect(page.locator("main")).to_contain_text(re.compile(r"sessions?\s*1", re.IGNORECASE))
    page.get_by_label(re.compile("Type .* to confirm")).fill(mara.email)
    page.get_by_label("Password").fill(mara.password)
    page.locator("main form button.danger").click()
    page.wait_for_url("**/login/**")
    page.get_by_label("E-mail").fill(mara.email)
    page.get_by_label("Password").fill(mara.password)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("There is no account with this address")).to_be_visible()
    with product.owner() as connection:
        found = connection.execute(
            "select count(*) from accounts_user where email = %s", [mara.email]
        ).fetchone()
    assert found == (0,)
