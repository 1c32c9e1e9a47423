"""A reply belongs to the server: nothing that a browser does loses, repeats or mixes it."""

import json
import re
import time

from playwright.sync_api import WebSocketRoute, expect

from tests.browser.conftest import Meet
from tests.browser.people import Person, Watch
from tests.browser.product import Product
from tests.stub_model import StubModel

ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", *(f"{start}teen" for start in ("thir", "four", "fif", "six"))]
TEENS += ["seventeen", "eighteen", "nineteen"]
TENS = {"twenty": ONES, "thirty": ONES, "forty": ONES, "fifty": ONES, "sixty": []}
SIXTY = [
    *(*ONES, *TEENS),
    *(word for ten, ones in TENS.items() for word in (ten, *(f"{ten}-{one}" for one in ones))),
]
COUNTED = " ".join(SIXTY)
DRAWN = """articles => articles.map(article => [
  article.id, article.querySelector('.bubble').innerText,
  article.querySelector('.reply-body').innerText,
])"""
# While the server is away: what the browser says, and htmx, whose promise rejects with nothing.
AWAY = (
    "WebSocket",
    "net::ERR_",
    "htmx:sendError",
    "htmx:afterRequest",
    "^page error: undefined$",
)


def test_a_refresh_in_the_middle_of_a_reply_loses_and_repeats_nothing(
    mara: Person, stub: StubModel
) -> None:
    """B14: a refresh at about twenty shows one to twenty, goes on to sixty; the text is stored
    once, as it was shown."""
    assert len(SIXTY) == 60
    stub.script(text=COUNTED, per_token=0.08)
    mara.say("Count to sixty.")
    expect(mara.words).to_contain_text("twenty")
    mara.page.reload()
    expect(mara.words).to_contain_text(" ".join(SIXTY[:20]))
    expect(mara.reply).to_have_attribute("data-status", "streaming")
    mara.ended()
    expect(mara.words).to_have_text(COUNTED)
    expect(mara.exchanges).to_have_count(1)
    assert mara.stored() == [
        ("user", "complete", "Count to sixty."),
        ("assistant", "complete", COUNTED),
    ]

    mara.page.reload()
    expect(mara.words).to_have_text(COUNTED)
    assert len(stub.asked("chat")) == 1


def test_a_reply_goes_on_while_the_browser_is_closed(
    mara: Person, meet: Meet, stub: StubModel
) -> None:
    """A33: the browser is closed in the middle: the reply is written to its end and stored whole;
    whoever opens the session again sees it."""
    stub.script(text=COUNTED, per_token=0.04)
    mara.say("Count to sixty.")
    expect(mara.words).to_contain_text("five")
    address = mara.page.url
    mara.context.close()
    assert stub.asked("chat")[0].wait(20)
    assert not stub.asked("chat")[0].disconnected
    later = meet("Mara", signed_up=False)
    later.log_in_as(mara)
    later.page.goto(address)
    later.ended()
    expect(later.words).to_have_text(COUNTED)
    assert mara.stored()[-1] == ("assistant", "complete", COUNTED)


def test_stop_ends_the_reply_and_the_providers_work_and_keeps_what_had_come(
    mara: Person, stub: StubModel
) -> None:
    stub.script(text=COUNTED, per_token=0.2)
    mara.say("Count slowly.")
    expect(mara.words).to_contain_text("five")
    mara.page.get_by_role("button", name="Stop").click()
    asked = stub.asked("chat")[0]
    assert asked.wait(2), "the provider still generates 2 s after Stop"
    assert asked.disconnected
    reply = mara.ended("stopped")
    expect(reply).to_contain_text("You stopped this reply.")
    expect(mara.page.get_by_role("button", name="Stop")).to_be_hidden()
    shown = mara.words.inner_text().strip()
    assert shown.startswith("one two three four five")
    assert "sixty" not in shown
    assert [text for role, _, text in mara.stored() if role == "assistant"] == [shown]

    # Continue goes on from there; the question stands once.
    stub.reset()
    stub.script(text="and so on.")
    reply.get_by_role("button", name="Continue").click()
    mara.ended()
    expect(mara.words).to_contain_text(shown)
    expect(mara.words).to_contain_text("and so on.")
    expect(mara.exchanges).to_have_count(1)


def test_a_failed_reply_says_so_and_retry_answers_the_question_that_stands_once(
    mara: Person, stub: StubModel
) -> None:
    stub.script(status=500)
    mara.say("Are you there?")
    reply = mara.ended("failed", timeout=40_000)
    expect(reply.get_by_role("alert")).to_contain_text(re.compile(r"\w+ .*\."))
    mara.page.reload()
    expect(mara.reply.get_by_role("button", name="Retry")).to_be_visible()

    stub.reset()
    stub.script(text="Here I am.")
    mara.reply.get_by_role("button", name="Retry").click()
    mara.ended()
    expect(mara.words).to_have_text("Here I am.")
    expect(mara.exchanges).to_have_count(1)
    assert mara.stored() == [
        ("user", "complete", "Are you there?"),
        ("assistant", "complete", "Here I am."),
    ]
    mara.page.reload()
    expect(mara.exchanges).to_have_count(1)
    expect(mara.words).to_have_text("Here I am.")


def test_what_comes_behind_the_end_of_a_reply_does_not_wake_it(mara: Person) -> None:
    def with_a_late_snapshot(socket: WebSocketRoute) -> None:
        def pass_on(message: str | bytes) -> None:
            socket.send(message)
            frame = json.loads(message)
            if frame["type"] == "finished":
                late = {"type": "snapshot", "n": 0, "text": "", "closed": "", "open": ""}
                socket.send(json.dumps({**late, "reply": frame["reply"], "recalled": None}))

        socket.connect_to_server().on_message(pass_on)

    mara.page.route_web_socket(re.compile("/ws/"), with_a_late_snapshot)
    mara.page.reload()
    mara.ask("First.")
    mara.ask("Second.")
    mara.ask("Third.")
    for reply in mara.replies.all():
        expect(reply).to_have_attribute("data-status", "complete")
        expect(reply.locator(".reply-body")).to_have_text("Hello from the stub model.")


def test_two_sessions_at_once_do_not_mix(mara: Person, stub: StubModel) -> None:
    """B15: a reply runs in A, B is opened and answered, and back: each holds only its own text."""
    stub.script(text=COUNTED, per_token=0.06, contains="Count to sixty.")
    stub.script(text="Blue is calm.", contains="Tell me about blue.")
    mara.say("Count to sixty.")
    expect(mara.words).to_contain_text("three")
    first = mara.page.url

    mara.page.get_by_role("link", name="New session").first.click()
    expect(mara.exchanges).to_have_count(0)
    mara.ask("Tell me about blue.")
    expect(mara.words).to_have_text("Blue is calm.")
    expect(mara.page.locator("#thread")).not_to_contain_text("one two")
    second = mara.page.url
    assert second != first
    expect(mara.sessions).to_have_count(2)

    mara.sessions.filter(has_text="Count to sixty.").get_by_role("link").click()
    expect(mara.page).to_have_url(first)
    expect(mara.words).to_contain_text("one two three")
    mara.ended()
    expect(mara.words).to_have_text(COUNTED)
    expect(mara.exchanges).to_have_count(1)
    expect(mara.page.locator("#thread")).not_to_contain_text("Blue")


def test_two_tabs_on_one_session_end_equal_and_hear_of_new_sessions(
    mara: Person, stub: StubModel
) -> None:
    """B15: two tabs on one session end equal, in order; a new session shows in both sidebars."""
    mara.ask("First words.")
    stub.script(text=COUNTED, per_token=0.03, contains="Count", times=1)
    other = mara.another_tab()
    expect(other.exchanges).to_have_count(1)

    mara.say("Count from here.")
    expect(other.words).to_contain_text("two")
    # A message while a reply runs is kept at once and answered in its turn.
    other.say("And from there.")
    expect(mara.exchanges).to_have_count(3)
    expect(other.exchanges).to_have_count(3)
    for tab in (mara, other):
        tab.ended()
        expect(tab.words).to_have_text("Hello from the stub model.")
        expect(tab.replies.nth(1).locator(".reply-body")).to_have_text(COUNTED)
        expect(tab.page.locator(".bubble")).to_have_text(
            ["First words.", "Count from here.", "And from there."]
        )
    ids = "articles => articles.map(article => article.id)"
    assert mara.exchanges.evaluate_all(ids) == other.exchanges.evaluate_all(ids)

    other.page.goto(mara.home)
    other.ask("Another session altogether.")
    for tab in (mara, other):
        expect(tab.sessions).to_have_count(2)
        expect(tab.sessions.first).to_contain_text("Another session altogether.")
    expect(mara.exchanges).to_have_count(3)


def test_a_server_that_is_killed_in_a_reply_keeps_the_words_and_offers_to_go_on(
    mara: Person, bob: Person, stub: StubModel, product: Product, watch: Watch
) -> None:
    """A33, A23: the server is killed in the first reply of a new session: within 30 s the text so
    far is kept and marked interrupted, with Retry and Continue; the session is still M's alone."""
    watch.allow(*AWAY)
    stub.script(text=COUNTED, per_token=0.25)
    mara.say("Count to sixty.")
    expect(mara.words).to_contain_text("twelve")
    shown = mara.words.inner_text().strip()
    killed = time.monotonic()
    product.restart(kill=True)
    mara.reconnect()

    left = 30 - (time.monotonic() - killed)
    reply = mara.ended("interrupted", timeout=left * 1_000)
    expect(reply.get_by_role("button", name="Retry")).to_be_visible()
    expect(reply.get_by_role("button", name="Continue")).to_be_visible()
    # What is written is carried out of the process each half second: four words at most are lost.
    kept = shown.split()[:-4]
    expect(mara.words).to_contain_text(" ".join(kept))
    expect(mara.exchanges).to_have_count(1)
    mara.page.reload()
    expect(mara.words).to_contain_text(" ".join(kept))
    [question, answer] = mara.stored()
    assert (question[1], answer[1]) == ("complete", "interrupted")
    assert COUNTED.startswith(answer[2])
    address = mara.page.url.replace(mara.home, bob.home)
    assert bob.page.request.get(address).status == 404
    assert bob.stored() == []

    stub.reset()
    stub.script(text=COUNTED)
    mara.reply.get_by_role("button", name="Retry").click()
    mara.ended()
    expect(mara.words).to_have_text(COUNTED)
    expect(mara.exchanges).to_have_count(1)


def test_a_session_is_the_same_after_a_restart_and_in_another_browser(
    mara: Person, meet: Meet, stub: StubModel, product: Product, watch: Watch
) -> None:
    """A28: the server is restarted, the session opened again: the same messages, their number and
    their order."""
    watch.allow(*AWAY)
    stub.script(echo="question")
    said = ["One.", "Two, **bold**.", "One.", "四つ"]
    for text in said:
        mara.ask(text)
    before, address = mara.stored(), mara.page.url
    drawn = mara.exchanges.evaluate_all(DRAWN)
    product.restart_all()
    mara.page.reload()
    other = meet("Mara", signed_up=False)
    other.log_in_as(mara)
    other.page.goto(address)
    for tab in (mara, other):
        expect(tab.page.locator(".bubble")).to_have_text(said)
        assert tab.exchanges.evaluate_all(DRAWN) == drawn
    assert mara.stored() == before
    assert len(before) == 8


def test_a_server_that_is_restarted_loses_no_message(
    mara: Person, stub: StubModel, product: Product, watch: Watch
) -> None:
    watch.allow(*AWAY)
    mara.ask("Before the restart.")
    product.web.stop()
    mara.say("Meanwhile.")
    product.web.start()
    product.wait_until_healthy()
    mara.reconnect()
    expect(mara.replies).to_have_count(2, timeout=40_000)
    mara.ended()
    expect(mara.page.locator(".bubble")).to_have_text(["Before the restart.", "Meanwhile."])
    assert [text for role, _, text in mara.stored() if role == "user"] == [
        "Before the restart.",
        "Meanwhile.",
    ]


def test_a_session_is_deleted_after_a_question_and_leaves_the_other_tab_too(
    mara: Person, watch: Watch
) -> None:
    mara.ask("Words that go.")
    other = mara.another_tab()
    mara.new_session()
    mara.ask("Words that stay.")
    kept = mara.page.url
    row = mara.sessions.filter(has_text="Words that go.")
    row.hover()
    row.get_by_role("button", name="Menu of").click()
    mara.page.get_by_role("button", name="Delete …").filter(visible=True).click()
    question = mara.page.get_by_role("dialog", name="Delete this session?")
    expect(question).to_contain_text("Words that go.")
    question.get_by_role("button", name="Delete", exact=True).click()
    expect(row).to_have_count(0)
    expect(other.sessions.filter(has_text="Words that go.")).to_have_count(0)
    expect(mara.page).to_have_url(kept)
    assert [text for role, _, text in mara.stored() if role == "user"] == ["Words that stay."]
    watch.allow("404")
    other.page.reload()
    expect(other.page.get_by_role("heading", level=1)).to_have_text("Nothing is here")


def test_a_reply_that_runs_while_everything_is_erased_elsewhere_does_not_seem_to_run_on(
    mara: Person, stub: StubModel, watch: Watch
) -> None:
    watch.allow("404")
    stub.script(tokens=["word "] * 200, per_token=0.2)
    mara.say("Tell me a long story.")
    stop = mara.page.get_by_role("button", name="Stop")
    expect(mara.words).to_contain_text("word")
    expect(stop).to_be_visible()
    other = mara.another_tab()
    other.page.goto(f"{mara.home}memory/forget-everything/")
    other.page.locator("[name=what][value=everything]").check()
    other.page.locator("[name=confirm]").fill("forget everything")
    other.page.locator("main form button[type=submit]").click()
    expect(other.page.get_by_text("It is done.")).to_be_visible()
    expect(mara.page.get_by_text("This session does not exist any more.")).to_be_visible()
    expect(stop).to_be_hidden()
    expect(mara.reply).to_have_attribute("data-status", "interrupted")
    expect(mara.sessions).to_have_count(0)


def test_a_strangers_session_is_not_there(mara: Person, meet: Meet, watch: Watch) -> None:
    """A16, in the browser: M's session is to B a page that does not exist."""
    watch.allow("404")
    mara.ask("My secret word is kumquat.")
    bob = meet("Bob")
    for address in (mara.page.url, mara.page.url.replace(mara.home, bob.home)):
        answer = bob.page.goto(address)
        assert answer
        assert answer.status == 404
        expect(bob.page.get_by_role("heading", level=1)).to_have_text("Nothing is here")
        expect(bob.page.get_by_text("kumquat")).to_have_count(0)


def test_a_lost_connection_in_the_middle_of_a_reply_loses_and_repeats_nothing(
    mara: Person, stub: StubModel, watch: Watch
) -> None:
    """Point 4, a closed laptop: the socket breaks twice in a reply; the page comes back by itself
    and shows every word once."""
    watch.allow("WebSocket")
    sockets: list[WebSocketRoute] = []

    def breakable(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    mara.page.route_web_socket(re.compile("/ws/"), breakable)
    mara.page.reload()
    stub.script(text=COUNTED, per_token=0.12)
    mara.say("Count to sixty.")
    for word in ("seven", "thirty"):
        expect(mara.words).to_contain_text(word)
        sockets[-1].close(code=4013)
    mara.ended(timeout=40_000)
    expect(mara.words).to_have_text(COUNTED)
    expect(mara.exchanges).to_have_count(1)
    assert len(sockets) >= 3
    assert len(stub.asked("chat")) == 1
    assert mara.stored()[-1] == ("assistant", "complete", COUNTED)
