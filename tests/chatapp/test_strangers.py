"""Every address and every action of a socket, tried by every kind of stranger.

The addresses are found by walking the resolver, the actions by the consumers' registry: a new one
without a row in a table below fails.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from accounts.ids import random_id
from accounts.scope import entered
from chatapp import consumers, frames
from chatapp.frames import Attach, Ping, Retry, SendMessage, Stop
from chatapp.models import ChatSession, Message, ReplyTicket
from memory.models import Memory
from memory.remember import add
from tests.chatapp.conftest import Browser, Person, conversation, new_chat, said
from tests.stub_model import StubModel

# Addresses inside a tenant, by what their ids are of. Each is tried with GET and POST.
OF_A_SESSION = {
    *("session", "session_messages", "session_rename", "session_delete", "session_remember"),
}
OF_A_REPLY = {"reply_sources", "reply_learnt", "reply_act"}
OF_A_MEMORY = {
    *("memory_row", "memory_edit", "memory_delete", "memory_undo", "memory_accept"),
    "memory_decline",
    *("memory_more", "memory_pin", "memory_tags", "memory_until", "memory_reach", "memory_restore"),
}
OF_SOMETHING = OF_A_SESSION | OF_A_REPLY | OF_A_MEMORY
OF_THE_TENANT = {
    *("new_session", "sessions", "memory_count"),
    *("memory", "memory_add", "memory_settings", "memory_forget", "memory_retry"),
    *("memory_learning", "memory_profile", "memory_accept_all", "memory_failures"),
    "memory_empty_trash",
}
# What members may do here who are no admins is tried in tests/accounts and test_people.py.
OF_ADMINS = {
    *("tenant_settings", "tenant_leave", "tenant_delete", "member_role", "member_remove"),
    *("invitation_create", "invitation_revoke", "people", "purge", "audit"),
    *("tenant_memory", "tenant_embedding"),
}


def addresses(patterns: list[Any] | None = None, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each address's path pattern and name."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        whole = path + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, whole)
        else:
            assert isinstance(pattern, URLPattern)
            yield whole, pattern.name or ""


IN_A_TENANT = {name: path for path, name in addresses() if path.startswith("t/<slug:tenant>/")}


def test_every_address_in_a_tenant_stands_in_a_table() -> None:
    assert set(IN_A_TENANT) >= OF_SOMETHING | OF_THE_TENANT
    assert set(IN_A_TENANT) <= OF_SOMETHING | OF_THE_TENANT | OF_ADMINS


def test_every_action_of_a_socket_stands_in_the_table() -> None:
    assert set(consumers.ACTIONS) == set(ACTIONS)


# What is open to somebody without a login; every other address outside a tenant wants one.
OPEN = {
    *("login", "logout", "signup", "theme", "first", "invite", "healthz"),
    *("password_reset", "password_reset_done", "password_reset_confirm", "password_reset_complete"),
}
OUTSIDE = sorted(
    {(name, path) for path, name in addresses() if not path.startswith("t/") and name not in OPEN}
)


def url(name: str, tenant: str, pk: UUID | None = None) -> str:
    path = IN_A_TENANT[name].replace("<slug:tenant>", tenant)
    return "/" + re.sub(r"<int:\w+>", "1", re.sub(r"<uuid:\w+>", str(pk), path))


def seen(response: HttpResponse, *asked: UUID | str) -> tuple[int, str, list[tuple[str, str]]]:
    """Return all of an answer that could tell somebody something they did not say themselves."""
    text = response.content.decode()
    for word in asked:
        text = text.replace(str(word), "ASKED")
    # CSRF tokens and nonces are new in every answer.
    text = re.sub(r'(csrf-token" content|csrfmiddlewaretoken" value|nonce)="[^"]*"', r"\1", text)
    headers = {
        name: re.sub(r"nonce-[\w+/=-]+", "nonce", value)
        for name, value in response.headers.items()
        if name.lower() not in {"date", "expires", "content-length"}
    }
    return response.status_code, text, sorted(headers.items())


METHODS: list[Callable[[Client, str, bool], HttpResponse]] = [
    lambda client, path, htmx: client.get(path, headers={"HX-Request": "true"} if htmx else {}),
    lambda client, path, htmx: client.post(
        path,
        {"text": "mine now", "title": "mine now", "client_id": str(uuid4())},
        headers={"HX-Request": "true"} if htmx else {},
    ),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("htmx", [False, True])
@pytest.mark.parametrize(
    "name", sorted((OF_A_SESSION | OF_A_REPLY | OF_A_MEMORY) & set(IN_A_TENANT))
)
def test_somebody_elses_id_is_an_unknown_id(
    mara: Person,
    bob: Person,
    eve: Person,
    model: StubModel,
    name: str,
    method: Callable[[Client, str, bool], HttpResponse],
    htmx: bool,
) -> None:
    """A16, A26: B opens M's session, reply or memory, posts to it, renames it, deletes it: the
    404 of an id that does not exist, without a name or a title, and nothing is asked or changed."""
    session = new_chat(mara, "Mara's secret title")
    (reply,) = said(mara, session, ("Mara's secret question", "secret answer"))
    memory = add(mara.scope, text="Mara's secret memory.")
    hers = session.pk if name in OF_A_SESSION else reply.pk if name in OF_A_REPLY else memory.pk
    unknown = random_id()
    for who, tenant in ((bob, bob.tenant), (eve, eve.tenant)):
        theirs = method(who.client, url(name, tenant.slug, hers), htmx)
        nobodys = method(who.client, url(name, tenant.slug, unknown), htmx)
        assert seen(theirs, hers, unknown) == seen(nobodys, hers, unknown)
        assert theirs.status_code in {404, 405}
        assert "secret" not in theirs.content.decode()
        assert "Mara" not in theirs.content.decode()
    # A tenant that one is no member of does not exist at all.
    foreign = method(eve.client, url(name, mara.tenant.slug, hers), htmx)
    nowhere = method(eve.client, url(name, "nowhere", hers), htmx)
    assert seen(foreign, mara.tenant.slug) == seen(nowhere, "nowhere")
    assert foreign.status_code == 404
    with entered(mara.scope):
        kept = ChatSession.objects.within(mara.scope).get()
        assert (kept.title, kept.message_count) == ("Mara's secret title", 2)
        assert Message.objects.within(mara.scope).count() == 2
        assert Memory.objects.within(mara.scope).get().status == "current"
        assert not ReplyTicket.objects.exists()
    assert not model.requests


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", sorted(OF_THE_TENANT | OF_ADMINS))
def test_a_tenant_that_is_not_ones_own_does_not_exist(
    mara: Person, eve: Person, name: str, method: Callable[[Client, str, bool], HttpResponse]
) -> None:
    foreign = method(eve.client, url(name, mara.tenant.slug), False)
    nowhere = method(eve.client, url(name, "nowhere"), False)
    assert foreign.status_code == 404
    assert seen(foreign, mara.tenant.slug) == seen(nowhere, "nowhere")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", sorted(OF_SOMETHING | OF_THE_TENANT | OF_ADMINS))
def test_without_a_login_there_is_only_the_login_page(
    mara: Person, name: str, method: Callable[[Client, str, bool], HttpResponse]
) -> None:
    """A18: who is not logged in is led to the login, and a script gets 401, at every address."""
    session = new_chat(mara)
    nobody = Client()
    answer = method(nobody, url(name, mara.tenant.slug, session.pk), False)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")
    assert method(nobody, url(name, mara.tenant.slug, session.pk), True).status_code == 401


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("htmx", [False, True])
@pytest.mark.parametrize("name", sorted(OF_SOMETHING))
def test_a_strangers_request_asks_the_database_the_same_for_an_unknown_id(
    mara: Person,
    bob: Person,
    name: str,
    method: Callable[[Client, str, bool], HttpResponse],
    htmx: bool,
) -> None:
    """A17: requests to M's id and to a random one run the same queries, in number and form."""
    session = new_chat(mara)
    (reply,) = said(mara, session, ("question", "answer"))
    memory = add(mara.scope, text="A memory.")
    hers = session.pk if name in OF_A_SESSION else reply.pk if name in OF_A_REPLY else memory.pk

    def asked(pk: UUID) -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            method(bob.client, url(name, bob.tenant.slug, pk), htmx)
        return [re.sub(r"'[^']*'|\b\d+\b|s\d+_x\d+", "?", query["sql"]) for query in queries]

    asked(hers)
    theirs, nobodys = asked(hers), asked(random_id())
    assert theirs == nobodys
    assert theirs  # the login alone asks something


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "path"), OUTSIDE)
def test_outside_a_tenant_too_there_is_only_the_login_page(
    db: None, name: str, path: str, method: Callable[[Client, str, bool], HttpResponse]
) -> None:
    """A18, the addresses that belong to no tenant: the account, the operator's pages, home."""
    answer = method(Client(), "/" + re.sub(r"<\w+:\w+>", "1", path), False)
    assert answer.status_code == 405 or answer["Location"].startswith("/login/")


# Sockets.

ACTIONS: dict[type[Any], Callable[[UUID], dict[str, Any]]] = {
    SendMessage: lambda reply: {"type": "message", "text": "mine", "client_id": str(uuid4())},
    Attach: lambda reply: {"type": "attach", "reply": str(reply), "after": 0},
    Stop: lambda reply: {"type": "stop", "reply": str(reply)},
    Retry: lambda reply: {"type": "retry", "reply": str(reply), "keep": True},
    Ping: lambda reply: {"type": "ping"},
}


@pytest.mark.parametrize("action", list(ACTIONS))
def test_a_strangers_action_finds_nothing(
    mara: Person, bob: Person, eve: Person, model: StubModel, action: type[Any]
) -> None:
    """A16, over a socket: attach, stop and retry of M's reply are those of one that is not there;
    the model is not called."""
    session = new_chat(mara)
    (failed,) = said(mara, session, ("secret", "secret so far"), status="interrupted")
    own = {who.user.pk: new_chat(who) for who in (bob, eve)}

    @conversation
    async def tried(browser: Browser, who: Person, reply: UUID) -> list[dict[str, Any]]:
        tab = await browser.open(who, own[who.user.pk])
        await tab.send(ACTIONS[action](reply))
        if action is SendMessage:
            await tab.until("finished")
            return []
        frame = await tab.next()
        assert await tab.quiet()
        return [frame]

    for who in (bob, eve):
        theirs, nobodys = tried(who, failed.pk), tried(who, random_id())
        assert theirs == nobodys
        assert action in {SendMessage, Ping} or theirs[0]["code"] == "not_found"
    assert action is SendMessage or not model.requests
    with entered(mara.scope):
        rows = list(Message.objects.within(mara.scope).in_order().values_list("text", "status"))
    assert rows == [("secret", "complete"), ("secret so far", "interrupted")]


@conversation
async def opened(browser: Browser, path: str, cookie: str | None) -> tuple[Any, ...]:
    tab = await browser.at(path, cookie, hello=False)
    frame = await tab.next()
    return (tab.code, frame)


def test_a_strangers_socket_is_an_unknown_socket(mara: Person, bob: Person, eve: Person) -> None:
    session = new_chat(mara)
    for who, tenant in ((bob, bob.tenant), (eve, eve.tenant), (eve, mara.tenant)):
        theirs = opened(f"/ws/t/{tenant.slug}/sessions/{session.pk}/", who.cookie)
        nobodys = opened(f"/ws/t/{tenant.slug}/sessions/{random_id()}/", who.cookie)
        assert theirs == nobodys == (frames.UNKNOWN, {"type": "close", "code": frames.UNKNOWN})


def test_two_people_at_one_fresh_session(mara: Person, bob: Person, model: StubModel) -> None:
    """A22: M's message is stored and answered, B gets what a stranger gets, nothing is mixed."""
    model.script(text="Only for Mara.")
    session = new_chat(mara)

    @conversation
    async def talk(browser: Browser) -> None:
        hers = await browser.open(mara, session)
        await hers.say("Hello")
        stranger = await browser.at(
            f"/ws{bob.url(f'sessions/{session.pk}/')}", bob.cookie, hello=False
        )
        assert (await stranger.next())["code"] == frames.UNKNOWN
        await hers.until("finished")

    talk()
    assert bob.client.post(bob.url(f"sessions/{session.pk}/"), {"text": "x"}).status_code == 404
    with entered(mara.scope):
        texts = list(Message.objects.within(mara.scope).in_order().values_list("text", flat=True))
    assert texts == ["Hello", "Only for Mara."]
