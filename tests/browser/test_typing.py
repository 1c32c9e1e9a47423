"""What is typed: input methods, and text that looks like code."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from playwright.sync_api import CDPSession, Locator, expect

from tests.browser.people import Person
from tests.browser.wire import Wire
from tests.stub_model import StubModel

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@dataclass
class InputMethod:
    """Writes as an input method does: text is marked first, and Enter confirms it."""

    devtools: CDPSession

    def compose(self, text: str) -> None:
        """Mark text, which is not committed yet."""
        end = len(text)
        marked = {"text": text, "selectionStart": end, "selectionEnd": end}
        self.devtools.send("Input.imeSetComposition", marked)

    def press_enter(self) -> None:
        """Press Enter, of which the input method lets the page see the key but no character."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        for kind in ("rawKeyDown", "keyUp"):
            self.devtools.send("Input.dispatchKeyEvent", {"type": kind, **key})

    def commit(self, text: str) -> None:
        """End the composition with this text."""
        self.devtools.send("Input.insertText", {"text": text})


def input_method(person: Person) -> InputMethod:
    return InputMethod(person.context.new_cdp_session(person.page))


def enter_as_safari_does(box: Locator) -> None:
    """Safari ends the composition first, and then reports Enter with the key code 229."""
    box.evaluate(
        "box => box.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'Enter', keyCode: 229, which: 229, bubbles: true, cancelable: true}))"
    )


def test_enter_during_composition_sends_nothing(mara: Person) -> None:
    """B17: Enter while an input method composes sends nothing; the next Enter sends once."""
    mara.composer.focus()
    method = input_method(mara)
    method.compose("にほん")
    method.press_enter()
    enter_as_safari_does(mara.composer)
    expect(mara.exchanges).to_have_count(0)
    expect(mara.composer).to_have_value("にほん")
    method.commit("日本")
    expect(mara.exchanges).to_have_count(0)
    expect(mara.composer).to_have_value("日本")
    mara.page.keyboard.press("Enter")
    expect(mara.exchanges).to_have_count(1)
    mara.ended()
    assert [text for role, _, text in mara.stored() if role == "user"] == ["日本"]


def test_enter_during_composition_renames_nothing(mara: Person) -> None:
    """B17, the rename: Enter while composing renames nothing; the next one renames."""
    mara.ask("A plain title")
    box = mara.begin_rename()
    box.select_text()
    method = input_method(mara)
    method.compose("にほん")
    method.press_enter()
    enter_as_safari_does(box)
    expect(box).to_be_visible()
    expect(mara.page.locator("#session-title")).not_to_have_text("日本")
    method.commit("日本")
    mara.page.keyboard.press("Enter")
    expect(mara.page.locator("#session-title")).to_have_text("日本")
    expect(mara.sessions.first).to_contain_text("日本")
    mara.page.reload()
    expect(mara.page.locator("#session-title")).to_have_text("日本")


def test_a_change_from_elsewhere_leaves_a_rename_under_way_as_it_is(mara: Person) -> None:
    mara.ask("A plain title")
    box = mara.begin_rename()
    box.fill("Half a titl")
    path = urlsplit(mara.page.url).path
    status, _ = Wire(mara).post(f"{path}rename/", {"title": "From another tab"})
    assert status == 200
    expect(mara.sessions.first).to_contain_text("From another tab")
    expect(box).to_have_value("Half a titl")
    mara.page.keyboard.type("e")
    mara.page.keyboard.press("Enter")
    expect(mara.page.locator("#session-title")).to_have_text("Half a title")
    expect(mara.sessions.first).to_contain_text("Half a title")


def test_text_that_looks_like_code_stays_text_everywhere(mara: Person, stub: StubModel) -> None:
    """A54, in the browser: memory, title and message with <script> are shown as text and run
    nowhere."""
    page = mara.page
    stub.script(echo="question")
    mara.add_note(f"My motto is {SCRIPT}")
    expect(page.locator("#memory-rows")).to_contain_text(SCRIPT)

    page.goto(mara.home)
    mara.ask(f"What is my motto? {SCRIPT}")
    expect(page.locator(".bubble")).to_contain_text(SCRIPT)
    expect(mara.words).to_contain_text("<script>document.title='owned'</script>")
    mara.rename(f"Motto {SCRIPT}"[:100])
    expect(page.locator("#session-title")).to_contain_text("<script>")
    expect(mara.sessions.first).to_contain_text("<script>")

    mara.reply.locator(".recalled a").click()
    expect(page.locator("#sheet-body")).to_contain_text(SCRIPT)
    page.keyboard.press("Escape")

    for address in (page.url, f"{mara.home}memory/"):
        page.goto(address)
        expect(page.locator("#main")).to_contain_text("<script>document.title='owned'</script>")
        assert "owned" not in page.title().replace(SCRIPT[:80], "").replace("'owned'", "")
        expect(page.locator("script", has_text="owned")).to_have_count(0)
        expect(page.locator("img")).to_have_count(0)
