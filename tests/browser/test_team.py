"""A tenant of several people: invitation, counts without words, and a purge that can be proved."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Meet
from tests.browser.people import Person


def test_an_admin_invites_someone_and_purges_them_with_preview_and_typed_confirmation(
    mara: Person, meet: Meet
) -> None:
    page = mara.page
    mara.found_tenant("Acme Travel")
    page.goto(f"{mara.home}settings/")
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_role("textbox", name="Invitation link").input_value()

    bob = meet("Bob")
    own_home = bob.home
    bob.add_note("Bob's own note at home.")
    bob.page.goto(link)
    bob.page.get_by_role("button", name=re.compile("Join as")).click()
    bob.page.wait_for_url(f"**{mara.home}")
    bob.__dict__["home"] = mara.home
    for text in ("I like trains.", "I live in Graz.", "My dentist is Dr Amsel."):
        bob.add_note(text)
    mara.add_note("Mara's note stays.")

    page.goto(f"{mara.home}admin/")
    row = page.get_by_role("row", name=re.compile("Bob"))
    expect(row.locator("td.number").first).to_have_text("3")
    expect(page.locator("#main")).not_to_contain_text("Graz")
    row.get_by_role("link", name=re.compile("Purge")).click()
    expect(page.locator("#main")).not_to_contain_text("Graz")
    expect(page.locator(".erase-choice").first).to_contain_text(re.compile(r"[Mm]emories\s*3"))

    erase = page.get_by_role("button", name="Erase for good")
    page.get_by_label("Reason, for the audit log").fill("Asked by Bob himself.")
    page.get_by_label(re.compile("Type .* to confirm")).fill(bob.email)
    erase.click()
    expect(page.locator(".receipt")).to_contain_text(re.compile(r"[Mm]emories\s*3"))
    bob.page.goto(f"{mara.home}memory/")
    expect(bob.page.get_by_role("heading", name="Nothing is remembered yet.")).to_be_visible()
    bob.page.goto(f"{own_home}memory/")
    expect(bob.page.locator("#memory-rows")).to_contain_text("Bob's own note at home.")

    # The same again removes nothing and is no error.
    page.get_by_role("link", name="Back to people").click()
    expect(row.locator("td.number").first).to_have_text("0")
    row.get_by_role("link", name=re.compile("Purge")).click()
    page.get_by_label("Reason, for the audit log").fill("Once more.")
    page.get_by_label(re.compile("Type .* to confirm")).fill(bob.email)
    erase.click()
    expect(page.locator(".receipt")).to_contain_text(re.compile(r"[Mm]emories\s*0"))
    page.get_by_role("link", name="See the audit log").click()
    entries = page.locator("#main")
    expect(entries).to_contain_text("Asked by Bob himself.")
    expect(entries).not_to_contain_text("Graz")
    page.goto(f"{mara.home}memory/")
    expect(page.locator("#memory-rows")).to_contain_text("Mara's note stays.")

    # To a member these pages do not exist, nor does the tenant to anybody else.
    for address in ("admin/", "settings/"):
        answer = bob.page.request.get(f"{mara.home}{address}")
        assert answer.status == 404
    carl = meet("Carl")
    assert carl.page.request.get(mara.home).status == 404


def test_the_switcher_leads_from_one_space_to_another_and_nothing_comes_along(
    mara: Person,
) -> None:
    """Point 2 and A19: somebody in two tenants switches between them; each has its own sessions
    and memories."""
    own = mara.home
    mara.add_note("At home I keep bees.")
    mara.new_session()
    mara.ask("A session at home.")
    mara.found_tenant("Acme Travel")
    page = mara.page
    page.goto(mara.home)
    expect(mara.sessions).to_have_count(0)
    mara.ask("A session at work.")
    page.locator("details.who > summary").click()
    switcher = page.locator("details.who")
    expect(switcher.locator("a[aria-current]")).to_have_text("Acme Travel")
    switcher.get_by_role("link", name="Personal space").click()
    page.wait_for_url(f"**{own}")
    expect(mara.sessions).to_have_count(1)
    expect(mara.sessions.first).to_contain_text("A session at home.")
    page.goto(f"{mara.home}memory/")
    expect(page.locator("#memory-list")).not_to_contain_text("bees")
    page.goto(f"{own}memory/")
    expect(page.locator("#memory-list")).to_contain_text("bees")
