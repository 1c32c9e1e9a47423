"""Logins that end unheard are found by a look in between."""

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from chatapp import bells, frames, logins, replies
from tests.chatapp.conftest import Browser, Person, conversation, new_chat


def test_an_idle_page_of_an_ended_login_is_closed(
    mara: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(logins, "LOOK_SECONDS", 0.1)

    @conversation
    async def talk(browser: Browser) -> None:
        hers = await browser.open(mara, hers_session)
        his = await browser.open(bob, None)
        await database_sync_to_async(Session.objects.filter(pk=mara.cookie).delete)()
        assert (await hers.next())["code"] == frames.LOGIN_ENDED
        assert await his.quiet()

    hers_session = new_chat(mara)
    talk()


def test_a_page_that_closes_while_it_is_checked_is_not_watched_on(mara: Person) -> None:
    @conversation
    async def talk(browser: Browser) -> None:
        await browser.open(mara, None)
        here = replies.here()
        (page,) = here.logins.checked
        check = here.logins.check(page)
        here.detach(page)
        await check
        assert here.logins.checked == {}

    talk()


def test_a_login_that_goes_on_under_a_new_key_has_its_pages_come_back(
    mara: Person, bob: Person
) -> None:
    elsewhere = Client()
    elsewhere.force_login(mara.user)

    @conversation
    async def talk(browser: Browser) -> None:
        here = await browser.open(mara, None)
        there = await browser.at(
            f"/ws{mara.url()}", elsewhere.cookies[settings.SESSION_COOKIE_NAME].value
        )
        his = await browser.open(bob, None)
        await database_sync_to_async(bells.end_sockets)(
            user_id=mara.user.pk, tenant_id=None, session_key=None, renewed=mara.cookie
        )
        assert (await here.next())["code"] == frames.LOGIN_RENEWED
        assert (await there.next())["code"] == frames.LOGIN_ENDED
        assert await his.quiet()

    talk()
