"""Three standing people, the stub model, and a way to talk over a socket as a browser does."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from accounts.join import join, new_person, new_tenant
from accounts.models import Tenant, User
from accounts.scope import Scope, entered
from chatapp import replies, steps
from chatapp.models import ChatSession, Message
from chatapp.replies import Replies
from chatapp.routing import sockets
from chatapp.visitor import Visitor, visitor_of
from memory import embedder, model_choice
from memory.models import Job
from memory.tasks import run_job
from tests.stub_model import MODEL, StubModel


@dataclass(frozen=True)
class Person:
    """Somebody who is logged in, and the tenant that a test is about."""

    user: User
    tenant: Tenant
    client: Client

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant.pk, self.user.pk)

    @property
    def cookie(self) -> str:
        return self.client.cookies[settings.SESSION_COOKIE_NAME].value

    def url(self, rest: str = "") -> str:
        return f"/t/{self.tenant.slug}/{rest}"


def person(name: str, tenant: Tenant) -> Person:
    user = new_person(email=f"{name.lower()}@example.org", password=None, name=name)
    join(tenant, user)
    client = Client()
    client.force_login(user)
    return Person(user, tenant, client)


@pytest.fixture
def acme(db: None) -> Tenant:
    return new_tenant(name="Acme")


@pytest.fixture
def mara(acme: Tenant) -> Person:
    return person("Mara", acme)


@pytest.fixture
def bob(acme: Tenant) -> Person:
    """A member of the same tenant."""
    return person("Bob", acme)


@pytest.fixture
def eve(db: None) -> Person:
    """A member of another tenant."""
    return person("Eve", new_tenant(name="Beta"))


@pytest.fixture
def stub() -> Iterator[StubModel]:
    with StubModel() as model:
        yield model


@pytest.fixture
def model(stub: StubModel, db: None) -> StubModel:
    """The stub, as the model that replies come from."""
    model_choice.choose_model(base_url=stub.base_url, chat_model=MODEL)
    return stub


@pytest.fixture(scope="session", autouse=True)
def _the_embedder_is_loaded() -> None:
    """As a web process does when it starts; loading takes longer than a question may wait."""
    embedder.warm()


@pytest.fixture(autouse=True)
def _sockets_share_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("channels.db.close_old_connections", lambda **kwargs: None)
    monkeypatch.setattr(steps, "on_callers_thread", True)


def new_chat(who: Person, title: str = "A chat") -> ChatSession:
    with entered(who.scope):
        session = ChatSession(tenant_id=who.scope.tenant_id, user_id=who.scope.user_id, title=title)
        session.save()
    return session


def fresh(who: Person, session: ChatSession) -> ChatSession:
    """Return the session as it is stored now."""
    with entered(who.scope):
        return ChatSession.objects.within(who.scope).get(pk=session.pk)


def said(
    who: Person, session: ChatSession, *exchanges: tuple[str, str], status: str = "complete"
) -> list[Message]:
    """Store exchanges that are over; return their replies."""
    made = []
    with entered(who.scope):
        session.refresh_from_db()
        owner: dict[str, Any] = {"tenant": who.tenant, "user": who.user, "session": session}
        for question, answer in exchanges:
            at = session.message_count
            asked = Message.unscoped.create(
                **owner, role="user", text=question, position=at + 1, client_id=uuid4()
            )
            made.append(
                Message.unscoped.create(
                    **owner,
                    role="assistant",
                    text=answer,
                    position=at + 2,
                    question=asked,
                    status=status,
                )
            )
            session.message_count += 2
        session.save()
    return made


def stored(who: Person, session: ChatSession | UUID | str) -> list[tuple[str, str, str]]:
    """Return the session's messages as (role, status, text), in order."""
    pk = session.pk if isinstance(session, ChatSession) else session
    with entered(who.scope):
        rows = Message.objects.within(who.scope).filter(session_id=pk).in_order()
        return list(rows.values_list("role", "status", "text"))


HEADERS = [(b"host", b"testserver"), (b"origin", b"http://testserver")]


@dataclass
class Tab:
    """One open page: a socket, and everything that came over it."""

    socket: WebsocketCommunicator
    frames: list[dict[str, Any]] = field(default_factory=list)
    code: int | None = None

    async def say(self, text: str, client_id: str = "") -> str:
        client_id = client_id or str(uuid4())
        await self.send({"type": "message", "text": text, "client_id": client_id})
        return client_id

    async def send(self, frame: Any) -> None:
        await self.socket.send_to(text_data=frame if isinstance(frame, str) else json.dumps(frame))

    async def next(self, seconds: float = 10) -> dict[str, Any]:
        """Return the next frame; a close is {"type": "close"}."""
        output = await self.socket.receive_output(seconds)
        if output["type"] == "websocket.close":
            self.code = output.get("code")
            return {"type": "close", "code": self.code}
        frame: dict[str, Any] = json.loads(output["text"])
        self.frames.append(frame)
        return frame

    async def until(self, kind: str, seconds: float = 10, **wanted: Any) -> dict[str, Any]:
        """Return the first frame from here on of this type and with these fields."""
        while True:
            frame = await self.next(seconds)
            if frame["type"] == kind and all(frame.get(key) == wanted[key] for key in wanted):
                return frame
            assert frame["type"] != "close", f"closed with {self.code} before {kind}"

    async def quiet(self) -> bool:
        """Tell whether nothing more comes just now."""
        return await self.socket.receive_nothing(0.1)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == kind]

    def text_of(self, reply: str) -> str:
        """Return a reply's text as this page has put it together from its frames."""
        text, n = "", 0
        for frame in self.frames:
            if frame.get("reply") != reply:
                continue
            if frame["type"] == "snapshot" and frame["n"] >= n:
                text, n = frame["text"], frame["n"]
            elif frame["type"] == "recalled":
                assert frame["n"] == n + 1
                n += 1
            elif frame["type"] == "delta" and frame["n"] > n:
                assert frame["n"] == n + 1, "a gap"
                text, n = text + frame["text"], n + 1
        return text

    async def close(self) -> None:
        with suppress(asyncio.CancelledError):
            await self.socket.disconnect()


class Browser:
    """Opens pages inside one event loop."""

    def __init__(self) -> None:
        self.tabs: list[Tab] = []

    async def open(
        self, who: Person, session: ChatSession | UUID | str | None, *, hello: bool = True
    ) -> Tab:
        pk = session.pk if isinstance(session, ChatSession) else session
        path = f"/ws{who.url(f'sessions/{pk}/' if pk else '')}"
        return await self.at(path, who.cookie, hello=hello)

    async def at(self, path: str, cookie: str | None, *, hello: bool = True) -> Tab:
        headers = list(HEADERS)
        if cookie is not None:
            headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
        tab = Tab(WebsocketCommunicator(sockets, path, headers))
        connected, _ = await tab.socket.connect(10)
        assert connected
        self.tabs.append(tab)
        if hello:
            await tab.until("hello")
        return tab

    async def close(self) -> None:
        for tab in self.tabs:
            await tab.close()
        await replies.here().close()


def conversation(talk: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Run a coroutine function with a Browser before its arguments, and close what it opened."""

    async def whole(*args: Any, **kwargs: Any) -> Any:
        browser = Browser()
        try:
            return await talk(browser, *args, **kwargs)
        finally:
            await browser.close()

    def run(*args: Any, **kwargs: Any) -> Any:
        return async_to_sync(whole)(*args, **kwargs)

    return run


@conversation
async def chat(browser: Browser, who: Person, session: ChatSession, *texts: str) -> Tab:
    """Say things one after the other, each when the reply before it has ended; return the page."""
    tab = await browser.open(who, session)
    for text in texts:
        await tab.say(text)
        await tab.until("finished")
    return tab


def work(who: Person) -> list[Job]:
    """Do what waits for a worker in this scope; return the jobs as they then stand."""
    with entered(who.scope):
        waiting = Job.objects.within(who.scope).filter(state=Job.State.WAITING)
        ids = list(waiting.order_by("created_at").values_list("pk", flat=True))
    for pk in ids:
        run_job(str(pk))
    with entered(who.scope):
        return list(Job.objects.within(who.scope).filter(pk__in=ids).order_by("created_at"))


def prompt_to(model: StubModel, question: str) -> str:
    """Return all that reached the model with this question as the newest, of the last try."""
    return next(
        request.prompt for request in reversed(model.asked("chat")) if question in request.question
    )


class FakePage:
    """A page that only keeps what it was sent."""

    def __init__(self, visitor: Visitor, session_id: UUID | None) -> None:
        self.visitor, self.session_id = visitor, session_id
        self.sent: list[dict[str, Any]] = []
        self.code: int | None = None
        self.news = asyncio.Event()

    def put(self, frame: str) -> None:
        self.sent.append(json.loads(frame))
        self.news.set()

    def end(self, code: int) -> None:
        self.code = code
        self.news.set()

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(10):
            while True:
                for frame in self.sent:
                    if frame["type"] == kind:
                        return frame
                self.news.clear()
                await self.news.wait()

    def text(self) -> str:
        text, n = "", 0
        for frame in self.sent:
            if frame["type"] == "snapshot" and frame["n"] >= n:
                text, n = frame["text"], frame["n"]
            elif frame["type"] == "delta" and frame["n"] > n:
                assert frame["n"] == n + 1
                text, n = text + frame["text"], n + 1
        return text


def two_processes(talk: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run with two registries that know of each other."""

    async def whole(*args: Any) -> None:
        one, two = Replies(), Replies()
        one.start()
        two.start()
        try:
            async with asyncio.timeout(10):
                while not (one.hub.has_peers and two.hub.has_peers):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await talk(one, two, *args)
        finally:
            await one.close()
            await two.close()

    return async_to_sync(whole)


def visitor(who: Person) -> Visitor:
    found = visitor_of(who.cookie, who.tenant.slug)
    assert found is not None
    return found
