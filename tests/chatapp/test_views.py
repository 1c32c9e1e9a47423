"""The chat's pages and their parts, by HTTP."""

import json
import re
from http import HTTPStatus
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.urls import reverse

from accounts.ids import random_id
from accounts.scope import entered
from chatapp.models import ChatSession, ReplyTicket
from memory import remember
from memory.recall import Recall, record
from tests.chatapp.conftest import Person, fresh, new_chat, said, stored

HTMX = {"HX-Request": "true"}


def body(response: HttpResponse) -> str:
    return response.content.decode()


def test_an_empty_chat_says_what_to_do(mara: Person) -> None:
    page = body(mara.client.get(mara.url()))
    assert "Nothing is remembered yet." in page
    assert "No language model is set up yet." in page
    assert f'data-socket="/ws{mara.url()}"' in page


def test_the_first_message_makes_a_session(mara: Person) -> None:
    client_id = str(uuid4())
    sent = {"text": "Plan my weekend", "client_id": client_id}
    answer = mara.client.post(mara.url("sessions/"), sent, headers=HTMX)
    url = json.loads(body(answer))["url"]
    again = mara.client.post(mara.url("sessions/"), sent, headers={"Accept": "application/json"})
    assert json.loads(body(again))["url"] == url
    page = body(mara.client.get(url))
    assert "Plan my weekend" in page
    assert 'data-status="waiting"' in page
    assert ReplyTicket.objects.count() == 1


def test_it_works_without_javascript(mara: Person) -> None:
    answer = mara.client.post(mara.url("sessions/"), {"text": "Hello"})
    assert answer.status_code == HTTPStatus.SEE_OTHER
    url = answer["Location"]
    answer = mara.client.post(url, {"text": "And again"})
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, url)
    assert [text for _, _, text in stored(mara, url.split("/")[-2])] == [
        *("Hello", "", "And again", "")
    ]


@pytest.mark.parametrize("text", ["", " ", "\x00", "x" * 65_537])
def test_a_message_that_can_not_be_used_comes_back_with_a_sentence(mara: Person, text: str) -> None:
    session = new_chat(mara)
    for url in (mara.url("sessions/"), mara.url(f"sessions/{session.pk}/")):
        plain = mara.client.post(url, {"text": text})
        assert plain.status_code == HTTPStatus.BAD_REQUEST
        assert "The message is" in body(plain)
        scripted = mara.client.post(url, {"text": text}, headers=HTMX)
        assert scripted.status_code == HTTPStatus.BAD_REQUEST
        assert json.loads(body(scripted))["code"] == "invalid_input"
    assert stored(mara, session) == []


def test_a_client_id_that_is_none_is_refused(mara: Person) -> None:
    sent = {"text": "x", "client_id": "7"}
    assert mara.client.post(mara.url("sessions/"), sent, headers=HTMX).status_code == 400


def test_the_id_of_a_session_is_not_the_browsers_to_choose(mara: Person) -> None:
    """A21: an id that the browser names is ignored or unknown; the server makes 128 random bits."""
    wanted = str(random_id())
    names = ("id", "pk", "session", "session_id", "client_id")
    answer = mara.client.post(
        mara.url("sessions/"), {"text": "x"} | dict.fromkeys(names, wanted), headers=HTMX
    )
    assert wanted not in json.loads(body(answer))["url"]
    posted = mara.client.post(mara.url(f"sessions/{wanted}/"), {"text": "x"}, headers=HTMX)
    assert posted.status_code == HTTPStatus.NOT_FOUND
    with entered(mara.scope):
        made = [session.pk for session in ChatSession.objects.within(mara.scope)]
    assert len(made) == 1
    made += [new_chat(mara).pk for _ in range(63)]
    # Every one of the 128 bits is now 0, now 1; a version 4 UUID would keep six of them.
    ones = zeros = 0
    for pk in made:
        ones, zeros = ones | pk.int, zeros | ~pk.int
    assert ones == zeros & (2**128 - 1) == 2**128 - 1


def test_a_session_shows_its_messages_in_order_rendered(mara: Person) -> None:
    session = new_chat(mara, "<b>Title</b>")
    said(mara, session, ("<i>one</i>", "**two**"), ("three", "four"))
    page = body(mara.client.get(mara.url(f"sessions/{session.pk}/")))
    assert "&lt;i&gt;one&lt;/i&gt;" in page
    assert "<strong>two</strong>" in page
    assert "<b>Title" not in page
    assert page.index("three") < page.index("four")


def test_a_failed_reply_offers_to_try_again(mara: Person) -> None:
    session = new_chat(mara)
    (reply,) = said(mara, session, ("q", ""), status="failed")
    page = body(mara.client.get(mara.url(f"sessions/{session.pk}/")))
    assert f'data-retry="{reply.pk}"' in page


def test_earlier_messages_come_as_a_part(mara: Person) -> None:
    session = new_chat(mara)
    said(mara, session, *((f"question {n}.", "a") for n in range(55)))
    url = mara.url(f"sessions/{session.pk}/messages/")
    page = body(mara.client.get(mara.url(f"sessions/{session.pk}/")))
    assert "question 4." not in page
    assert "question 5." in page
    assert "messages/?before=11" in page
    part = body(mara.client.get(url, {"before": 11}, headers=HTMX))
    assert part.count("<article") == 5
    assert "Earlier messages" not in part
    assert mara.client.get(url).status_code == HTTPStatus.FOUND
    assert mara.client.get(url, {"before": "x"}, headers=HTMX).status_code == 400
    assert mara.client.get(url, {"before": "9" * 30}, headers=HTMX).status_code == 400


def test_the_list_goes_on_by_a_cursor(mara: Person) -> None:
    for number in range(52):
        new_chat(mara, f"Chat {number}.")
    page = body(mara.client.get(mara.url()))
    assert "Chat 2." in page
    assert "Chat 1." not in page
    cursor = page.split("?before=")[1].split("&")[0]
    part = body(mara.client.get(mara.url("sessions/"), {"before": cursor}, headers=HTMX))
    assert part.count('class="session"') == 2
    assert mara.client.get(mara.url("sessions/")).status_code == HTTPStatus.FOUND
    assert mara.client.get(mara.url("sessions/"), {"before": "x"}, headers=HTMX).status_code == 400


def test_the_list_is_ones_own_whatever_is_asked_for(mara: Person, bob: Person) -> None:
    """A24: M's list holds M's sessions only; ?user= has no effect, nor has it on the next rows."""
    for number in range(52):
        new_chat(bob, f"Bob's plans {number}")
        new_chat(mara, f"Her plans {number}.")
    whole = body(mara.client.get(mara.url()))
    cursor = whole.split("?before=")[1].split("&")[0]
    for asked in ({}, {"user": bob.user.pk}, {"user": "bob"}, {"user_id": bob.user.pk, "owner": 1}):
        page = body(mara.client.get(mara.url(), asked))
        assert page.count('class="session"') == 50
        part = body(
            mara.client.get(mara.url("sessions/"), asked | {"before": cursor}, headers=HTMX)
        )
        assert part.count('class="session"') == 2
        for shown in (page, part):
            assert "Her plans" in shown
            assert "Bob" not in shown


def test_rename_answers_with_the_row(mara: Person) -> None:
    session = new_chat(mara, "Old")
    url = mara.url(f"sessions/{session.pk}/rename/")
    answer = mara.client.post(url, {"title": "New & <b>bold</b>"}, headers=HTMX)
    assert f'id="session-{session.pk}"' in body(answer)
    assert "New &amp; &lt;b&gt;bold" in body(answer)
    assert fresh(mara, session).last_activity_at == session.last_activity_at
    assert mara.client.post(url, {"title": "Plain"}).status_code == HTTPStatus.SEE_OTHER
    for title in ("", "x" * 101):
        refused = mara.client.post(url, {"title": title}, headers=HTMX)
        assert refused.status_code == HTTPStatus.BAD_REQUEST
        assert json.loads(body(refused))["message"]
    assert fresh(mara, session).title == "Plain"


def test_delete_erases_and_then_there_is_nothing(mara: Person) -> None:
    one, two = new_chat(mara), new_chat(mara)
    url = mara.url(f"sessions/{one.pk}/")
    assert mara.client.post(f"{url}delete/", headers=HTMX).status_code == HTTPStatus.NO_CONTENT
    assert mara.client.get(url).status_code == HTTPStatus.NOT_FOUND
    assert mara.client.post(f"{url}delete/").status_code == HTTPStatus.NOT_FOUND
    plain = mara.client.post(mara.url(f"sessions/{two.pk}/delete/"))
    assert (plain.status_code, plain["Location"]) == (HTTPStatus.SEE_OTHER, mara.url())
    with entered(mara.scope):
        assert not ChatSession.objects.within(mara.scope).exists()


def test_what_was_used_and_learnt_for_a_reply(mara: Person) -> None:
    session = new_chat(mara)
    (reply,) = said(mara, session, ("q", "a"))
    record(mara.scope, reply=reply.pk, recall=Recall())
    sources = mara.url(f"replies/{reply.pk}/memories/")
    assert "Nothing that is remembered bore on this message." in body(mara.client.get(sources))
    assert "<html" not in body(mara.client.get(sources, headers=HTMX))
    learnt = mara.url(f"replies/{reply.pk}/learnt/")
    assert f'id="learnt-{reply.pk}"' in body(mara.client.get(learnt, headers=HTMX))
    assert mara.client.get(learnt)["Location"] == mara.url(f"sessions/{session.pk}/")


def test_pages_stay_out_of_caches(mara: Person) -> None:
    session = new_chat(mara)
    for url in (mara.url(), mara.url(f"sessions/{session.pk}/")):
        assert mara.client.get(url)["Cache-Control"] == "no-store"


def test_methods_that_are_none_are_refused(mara: Person) -> None:
    session = new_chat(mara)
    url = mara.url(f"sessions/{session.pk}/")
    assert mara.client.get(f"{url}delete/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert mara.client.get(f"{url}rename/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert mara.client.put(url).status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_health_needs_the_database_and_reports_redis(mara: Person) -> None:
    answer = mara.client.get("/healthz")
    assert (answer.status_code, json.loads(body(answer))) == (
        HTTPStatus.OK,
        {"database": "ok", "redis": "ok"},
    )


def test_head_answers_as_get_does_without_the_body(mara: Person) -> None:
    session = new_chat(mara)
    for address in (
        reverse("login"),
        reverse("account"),
        mara.url(),
        mara.url(f"sessions/{session.pk}/"),
        mara.url("memory/"),
        mara.url("sessions/00000000-0000-0000-0000-000000000000/"),
        reverse("logout"),
    ):
        got, headed = mara.client.get(address), mara.client.head(address)
        assert (headed.status_code, headed.content) == (got.status_code, b"")
        assert headed.headers.keys() == got.headers.keys()
        assert (headed["Content-Type"], headed.get("Allow")) == (
            got["Content-Type"],
            got.get("Allow"),
        )
        if address == reverse("logout"):
            assert headed.status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_how_much_is_remembered_is_read_by_itself(mara: Person, bob: Person) -> None:
    remember.add(mara.scope, text="I have a dog.")
    part = mara.client.get(mara.url("memory-count/"), headers={"HX-Request": "true"})
    assert " ".join(re.sub("<[^>]*>", "", part.content.decode()).split()) == "1 remembered"
    his = bob.client.get(bob.url("memory-count/"), headers={"HX-Request": "true"})
    assert re.sub("<[^>]*>", "", his.content.decode()).strip() == "Memory"
    assert mara.client.get(mara.url("memory-count/"))["Location"] == mara.url("memory/")
