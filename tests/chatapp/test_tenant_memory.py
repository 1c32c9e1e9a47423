"""The admin's page of how memory works for everybody, and what the others see of it."""

import re
from http import HTTPStatus

import pytest
from django.urls import reverse

from accounts.join import change_role
from accounts.models import AuditEntry, Membership
from accounts.scope import entered, entered_tenant
from memory import embedder, reembed
from memory.models import Job
from memory.remember import add
from memory.tasks import run_job
from memory.tenant_settings import tenant_settings_of
from tests.chatapp.conftest import Person, new_chat
from tests.memory.test_reembed import Wide

ON = {"auto_store_on": "on", "extract_on": "on"}


@pytest.fixture
def ada(bob: Person) -> Person:
    """Bob, as the tenant's admin."""
    change_role(bob.scope, role=Membership.Role.ADMIN, actor=bob.user)
    bob.client.force_login(bob.user)
    return bob


def address(who: Person) -> str:
    return reverse("tenant_memory", args=[who.tenant.slug])


def test_an_admin_sets_how_memory_works_and_it_is_in_the_audit(ada: Person) -> None:
    done = ada.client.post(address(ada), {"extract_on": "on", "top_k": "5"})
    assert done.status_code == HTTPStatus.SEE_OTHER
    kept = tenant_settings_of(ada.tenant.pk)
    assert (kept.auto_store_on, kept.extract_on, kept.top_k) == (False, True, 5)
    page = ada.client.get(address(ada)).content.decode()
    assert "checked" not in "".join(re.findall(r'<input[^>]*name="auto_store_on"[^>]*>', page))
    assert 'value="5"' in page
    with entered_tenant(ada.tenant.pk):
        entry = AuditEntry.objects.get(tenant=ada.tenant, action="memory_settings.changed")
    assert (entry.actor_id, entry.reason) == (
        ada.user.pk,
        "remember after each reply: off, most memories for one reply: 5",
    )
    audit = ada.client.get(reverse("audit", args=[ada.tenant.slug])).content.decode()
    assert "Changed how memory works" in audit


def test_nonsense_comes_back_as_it_was_typed_with_a_sentence(ada: Person) -> None:
    refused = ada.client.post(address(ada), ON | {"token_budget": "99", "top_k": "7"})
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    page = refused.content.decode()
    assert 'value="99"' in page
    assert 'value="7"' in page
    assert "Give a whole number of tokens from 100 to 20,000" in page
    assert tenant_settings_of(ada.tenant.pk).top_k is None


def test_for_members_and_strangers_the_page_does_not_exist(
    mara: Person, eve: Person, ada: Person
) -> None:
    for stranger in (mara, eve):
        for answer in (
            stranger.client.get(address(ada)),
            stranger.client.post(address(ada), {"top_k": "3"}),
        ):
            assert answer.status_code == HTTPStatus.NOT_FOUND
    assert tenant_settings_of(ada.tenant.pk).pk is None


def test_where_nothing_is_stored_a_session_says_so_and_offers_no_other_choice(
    mara: Person, ada: Person
) -> None:
    session = mara.url(f"sessions/{new_chat(mara).pk}/")
    assert "session-remember" in mara.client.get(session).content.decode()
    ada.client.post(address(ada), {"extract_on": "on"})
    page = mara.client.get(session).content.decode()
    assert "Recalls, stores nothing" in page
    assert "session-remember" not in page


def test_an_admin_sees_how_far_the_tenants_memories_are_found_by_meaning(
    ada: Person, mara: Person, eve: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13's progress, by embedder, without a word of anybody; of this tenant alone."""
    for number in range(10):
        add(mara.scope, text=f"I know a tale of number {number}.")
    add(eve.scope, text="I own a bike.")
    reembed.notice_another_embedder()
    wide = Wide()
    monkeypatch.setattr(embedder, "current", lambda: wide)
    monkeypatch.setattr(reembed, "BATCH", 4)
    monkeypatch.setattr(reembed, "BATCHES", 1)
    reembed.notice_another_embedder()
    with entered(mara.scope):
        [job] = Job.objects.within(mara.scope).filter(kind="embed")
    run_job(str(job.pk))
    again = reverse("tenant_embedding", args=[ada.tenant.slug])
    for shown in (
        ada.client.get(address(ada)).content.decode(),
        ada.client.get(again, headers={"HX-Request": "true"}).content.decode(),
    ):
        assert '<progress id="embedding-bar" max="10" value="4">' in shown
        words = " ".join(re.sub("<[^>]+>", "", shown).split())
        assert "4 of 10 memories are found by meaning (40&nbsp;%)." in words
        assert "6 are left, of 1 person." in words
        assert "6 memories by all-MiniLM-L6-v2-int8, 384 dimensions" in words
        assert "4 memories by wide, 1024 dimensions" in words
        assert "tale" not in words
    assert ada.client.get(again)["Location"] == address(ada)


def test_how_far_it_is_is_for_admins_alone(ada: Person, mara: Person, eve: Person) -> None:
    again = reverse("tenant_embedding", args=[mara.tenant.slug])
    for who in (mara, eve):
        assert who.client.get(again).status_code == HTTPStatus.NOT_FOUND
