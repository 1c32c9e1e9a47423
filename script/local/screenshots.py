"""script/screenshots: pictures for the README, made from the running product.

    script/screenshots FOLDER   start the product with servers of its own and a scripted model,
                                sign up, chat, and write FOLDER/NAME-DEVICE-THEME.png

The devices are a desktop and a phone, the themes light and dark.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect, sync_playwright

from local import chromium
from local.front import command
from local.progress import say, step
from local.refusal import Refusal, explained
from local.test import HARMFUL, borrowed, variables
from tests.browser.extractor import finds
from tests.browser.people import Person, Watch
from tests.browser.product import Product
from tests.stub_model import StubModel

DEVICES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}, "device_scale_factor": 2},
    "phone": {
        "viewport": {"width": 390, "height": 780},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}
THEMES = ("light", "dark")

TALKS = (
    (
        "I moved from Lisbon to Porto in May, for the job at the tile museum.",
        "Congratulations! Porto suits somebody who works with tiles: São Bento station alone has "
        "some twenty thousand of them. How do you like the new city?",
    ),
    (
        "I'm vegetarian, and I never fly before nine in the morning.",
        "Noted: no meat, and no flights before nine. I will keep both in mind when you plan.",
    ),
    (
        "How do I count the lines of all Python files in a folder?",
        "With `pathlib`, in one expression:\n\n```python\nfrom pathlib import Path\n\n"
        'total = sum(len(path.read_text().splitlines())\n            for path in Path(".").rglob('
        '"*.py"))\n```\n\nFor a rough count: `find . -name "*.py" | xargs wc -l`.',
    ),
)
FACTS = {
    "I moved from Lisbon to Porto in May": "The user moved from Lisbon to Porto in May.",
    "I'm vegetarian, and I never fly before nine": "The user is vegetarian.",
}
NOTES = ("I always want an aisle seat.", "My cat is called Miso.")
QUESTION = "Plan a flight in the morning, and a vegetarian dinner in Copenhagen on Friday."
PLAN = """Here is a plan that leaves the mornings to you.

| | Friday | Sunday |
| --- | --- | --- |
| **Flight** | Porto 11:40, aisle seat | Copenhagen 13:05, aisle seat |
| **Dinner** | *Ark*, vegetarian, 19:30 | at home, with Miso |

**On Saturday** the Designmuseum opens at ten. It has a room of Portuguese tiles, so you can tell
your colleagues that it was work.

1. Book the flight first: the 11:40 has few aisle seats left.
2. Ask *Ark* for a table by the window.
"""


def main(arguments: Sequence[str]) -> int:
    """Take all pictures; the exit code is 0, or 1 when a page had an error."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise Refusal("script/screenshots takes the folder that the pictures go to.")
    folder = Path(arguments[0])
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    path = chromium.found(needed=True)
    watch = Watch()
    with borrowed("screenshots") as own:
        environment = {key: value for key, value in os.environ.items() if key not in HARMFUL}
        with (
            step("Product started") as line,
            Product("screenshots", environ=environment | variables(own)) as product,
        ):
            line.name = f"Pictures of the product at {product.address}"
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=path)
                take_all(product, browser, watch, folder)
                browser.close()
    for problem in watch.problems:
        say(problem)
    print("\n".join(str(picture) for picture in sorted(folder.glob("*.png"))))
    return 1 if watch.problems else 0


def take_all(product: Product, browser: Browser, watch: Watch, folder: Path) -> None:
    """Let somebody live with the product for a while, then look at it on each device."""
    script(product.stub)
    ines = Person(product, browser, watch, "Ines")
    ines.sign_up()
    sights = live(ines)
    for device, options in DEVICES.items():
        for theme in THEMES:
            eye = Person(product, browser, watch, "Ines", color_scheme=theme, **options)
            eye.email = ines.email

            def shot(name: str, eye: Person = eye, mark: str = f"{device}-{theme}") -> None:
                eye.page.screenshot(path=folder / f"{name}-{mark}.png", animations="disabled")

            eye.page.goto("/signup/")
            shot("sign-up")
            eye.log_in()
            look(eye, sights, shot)
            eye.context.close()
    ines.context.close()


def script(stub: StubModel) -> None:
    """What the model says, and which facts it finds."""
    for question, answer in (*TALKS, (QUESTION, PLAN)):
        stub.script(text=answer, contains=question, kind="chat")
    stub.extract = finds(FACTS)


def live(ines: Person) -> dict[str, str]:
    """Talk and take notes; return the addresses that are worth a picture."""
    sights = {"memory": f"{ines.home}memory/"}
    for name, (question, _) in zip(("moved", "learnt", "code"), TALKS, strict=True):
        ines.new_session()
        ines.ask(question)
        ines.learnt()
        sights[name] = ines.page.url
    for note in NOTES:
        ines.add_note(note)
    prefer(ines)
    ines.new_session()
    ines.ask(QUESTION)
    ines.learnt()
    return sights | {"chat": ines.page.url}


def prefer(ines: Person) -> None:
    """Have the aisle seat always known, and of the rest only what a message finds."""
    page = ines.page
    seat = page.locator("#memory-rows .memory-row").filter(has_text=NOTES[0])
    seat.hover()
    seat.get_by_role("button", name="Pin").click()
    expect(seat.locator(".meta").first).to_contain_text("Pinned")
    page.locator("#top-k").fill("5")
    page.locator("#top-k").press("Enter")
    expect(page.locator("#memory-settings")).to_contain_text("Saved.")


def look(eye: Person, sights: dict[str, str], shot: Callable[[str], None]) -> None:
    """Go through the pages."""
    page = eye.page
    page.goto(eye.home)
    expect(eye.composer).to_be_visible()
    shot("new-session")
    page.goto(sights["chat"])
    expect(eye.words).to_contain_text("Ark")
    shot("chat")
    pill = eye.reply.locator(".recalled a")
    expect(pill).to_contain_text(re.compile("memor"))
    pill.click()
    expect(page.get_by_role("dialog", name="What was used")).to_contain_text("vegetarian")
    shot("sources")
    page.goto(sights["learnt"])
    eye.learnt().locator("details").evaluate("details => { details.open = true; }")
    expect(eye.learnt()).to_contain_text("The user is vegetarian.")
    shot("learnt")
    page.goto(sights["code"])
    expect(eye.words).to_contain_text("pathlib")
    shot("code")
    page.goto(sights["memory"])
    expect(page.locator("#memory-rows")).to_contain_text("aisle")
    shot("memory")


if __name__ == "__main__":
    command(main)
