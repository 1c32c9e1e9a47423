"""The admin's pages: counts without text, a purge that says exactly what it did, the audit."""

import re
from datetime import timedelta
from http import HTTPStatus

import pytest
from django.db import DatabaseError
from django.urls import reverse
from django.utils import timezone

from accounts.join import change_role, join, leave, new_tenant
from accounts.models import AuditEntry, Membership, Tenant
from accounts.scope import Scope, entered, entered_tenant
from chatapp import people
from chatapp.context import memory_counts
from chatapp.models import ChatSession, Message
from chatapp.shown import MemoryCounts
from memory import remember
from memory.models import Memory
from tests.chatapp.conftest import Person, new_chat, person, said

SECRETS = ("vegetarian", "aisle seat", "night shifts")


@pytest.fixture
def ada(bob: Person) -> Person:
    """Bob, as the tenant's admin."""
    change_role(bob.scope, role=Membership.Role.ADMIN, actor=bob.user)
    bob.client.force_login(bob.user)
    return bob


@pytest.fixture
def known(mara: Person) -> Person:
    """Mara, with three memories and a chat."""
    for secret in SECRETS:
        remember.add(mara.scope, text=f"I have {secret} in mind.")
    said(mara, new_chat(mara, "Trip to Lisbon"), ("Hello", "Hello Mara"))
    return mara


def purge_url(who: Person) -> str:
    return reverse("purge", args=[who.tenant.slug, who.user.pk])


def memories(scope: Scope) -> int:
    with entered(scope):
        return Memory.objects.within(scope).count()


def audit(tenant: Tenant) -> list[AuditEntry]:
    with entered_tenant(tenant.pk):
        return list(AuditEntry.objects.filter(tenant=tenant).order_by("pk"))


def test_what_has_expired_is_counted_nowhere_before_it_is_erased(
    ada: Person, known: Person
) -> None:
    with entered(known.scope):
        kept = list(Memory.objects.within(known.scope).order_by("pk"))
        Memory.objects.within(known.scope).filter(pk=kept[0].pk).update(status="waiting")
        Memory.objects.within(known.scope).filter(pk__in=[one.pk for one in kept[:2]]).update(
            expires_at=timezone.now() - timedelta(seconds=1)
        )
    page = ada.client.get(reverse("people", args=[ada.tenant.slug]))
    rows = {row["user"].name: row for row in page.context["people"]}
    assert (rows["Mara"]["memories"], rows["Mara"]["waiting"]) == (1, 0)
    assert memory_counts(known.scope) == MemoryCounts(remembered=1, waiting=0)


def test_an_admin_sees_who_is_there_and_how_much_and_not_a_word_of_it(
    ada: Person, known: Person
) -> None:
    """A24: the admin's list is a page of its own, of counts, and is written down."""
    page = ada.client.get(reverse("people", args=[ada.tenant.slug]))
    assert page.status_code == HTTPStatus.OK
    rows = {row["user"].name: row for row in page.context["people"]}
    assert (rows["Mara"]["memories"], rows["Mara"]["sessions"]) == (3, 1)
    assert (rows["Bob"]["memories"], rows["Bob"]["sessions"]) == (0, 0)
    shown = page.content.decode()
    assert not [secret for secret in (*SECRETS, "Trip to Lisbon") if secret in shown]
    assert audit(ada.tenant)[-1].action == "people.listed"


def test_looking_at_the_list_is_written_down_once_an_hour_for_each_admin_and_address(
    ada: Person, known: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = reverse("people", args=[ada.tenant.slug])

    def looks() -> int:
        return [entry.action for entry in audit(ada.tenant)].count("people.listed")

    for query in ("", "mar", "bob"):
        ada.client.get(url, {"q": query})
    assert looks() == 1
    ada.client.get(url, REMOTE_ADDR="192.0.2.7")
    assert looks() == 2
    change_role(known.scope, role=Membership.Role.ADMIN, actor=ada.user)
    known.client.force_login(known.user)
    known.client.get(url)
    assert looks() == 3
    monkeypatch.setattr("accounts.audit.LOOKING", timedelta(0))  # the hour is over
    ada.client.get(url)
    assert looks() == 4


def test_a_search_finds_people_by_name_or_address(ada: Person, known: Person) -> None:
    url = reverse("people", args=[ada.tenant.slug])
    for query, names in (("mar", ["Mara"]), ("BOB@", ["Bob"]), ("%", []), ("\0Bo\0b", ["Bob"])):
        found = ada.client.get(url, {"q": query}).context["people"]
        assert [row["user"].name for row in found] == names


@pytest.mark.parametrize("cursor", ["x", "-1", "9" * 30, "1;drop", "left-x", "left-left-"])
def test_a_cursor_that_is_none_is_refused_in_words(ada: Person, cursor: str) -> None:
    answer = ada.client.get(reverse("people", args=[ada.tenant.slug]), {"after": cursor})
    assert answer.status_code == HTTPStatus.BAD_REQUEST


def test_the_pages_do_not_exist_for_members_and_strangers(
    mara: Person, eve: Person, ada: Person
) -> None:
    for name, args in (("people", []), ("audit", []), ("purge", [mara.user.pk])):
        url = reverse(name, args=[mara.tenant.slug, *args])
        unknown = eve.client.get(reverse(name, args=["no-such-tenant", *args]))
        for stranger in (mara, eve):
            answer = stranger.client.get(url)
            assert answer.status_code == unknown.status_code == HTTPStatus.NOT_FOUND
        assert ada.client.get(url).status_code == HTTPStatus.OK


def test_an_admin_of_one_tenant_can_purge_nobody_of_another(ada: Person, eve: Person) -> None:
    remember.add(eve.scope, text="I am in Beta.")
    url = reverse("purge", args=[ada.tenant.slug, eve.user.pk])
    sent = {"what": "memories", "confirm": eve.user.email, "reason": "curious"}
    assert ada.client.get(url).status_code == HTTPStatus.NOT_FOUND
    assert ada.client.post(url, sent).status_code == HTTPStatus.NOT_FOUND
    assert memories(eve.scope) == 1


def test_a_purge_does_what_its_preview_said_once_and_is_written_down(
    ada: Person, known: Person
) -> None:
    twin = Scope(another_tenant(known).pk, known.user.pk)
    remember.add(twin, text="Kept in the other tenant.")
    remember.add(ada.scope, text="Kept by the admin.")
    url = purge_url(known)
    first = ada.client.get(url).context["choices"][0]
    assert (first["value"], first["total"]) == ("memories", 3)

    sent = {"what": "memories", "confirm": known.user.email, "reason": "She asked for it."}
    receipts = []
    for _once_and_again in range(2):
        done = ada.client.post(url, sent)
        assert done.status_code == HTTPStatus.OK
        counts = {row["label"]: row["count"] for row in done.context["receipt"]}
        receipts.append(counts["memories"])
    assert receipts == [3, 0]
    assert (memories(known.scope), memories(twin), memories(ada.scope)) == (0, 1, 1)

    entries = [entry for entry in audit(ada.tenant) if entry.action == "memories.purged"]
    assert [entry.counts["memories"] for entry in entries] == [3, 0]
    assert {(entry.actor_id, entry.subject_id) for entry in entries} == {
        (ada.user.pk, known.user.pk)
    }
    assert {entry.reason for entry in entries} == {"She asked for it."}
    written = str([vars(entry) for entry in entries])
    assert not [secret for secret in SECRETS if secret in written]


def another_tenant(who: Person) -> Tenant:
    """Return another tenant that the same person belongs to."""
    tenant = new_tenant(name="Twin")
    join(tenant, who.user)
    return tenant


def test_everything_is_sessions_and_messages_too(ada: Person, known: Person) -> None:
    sent = {"what": "everything", "confirm": known.user.email.upper(), "reason": "She left."}
    done = ada.client.post(purge_url(known), sent)
    counts = {row["label"]: row["count"] for row in done.context["receipt"]}
    assert (counts["memories"], counts["sessions"], counts["messages"]) == (3, 1, 2)
    with entered(known.scope):
        assert not ChatSession.objects.within(known.scope).exists()
        assert not Message.objects.within(known.scope).exists()


@pytest.mark.parametrize(
    "wrong",
    [{"confirm": "mara"}, {"confirm": ""}, {"reason": "   "}, {"what": "all"}],
    ids=["another word", "nothing typed", "no reason", "no such choice"],
)
def test_without_confirmation_and_reason_nothing_is_erased(
    ada: Person, known: Person, wrong: dict[str, str]
) -> None:
    sent = {"what": "memories", "confirm": known.user.email, "reason": "Because."} | wrong
    refused = ada.client.post(purge_url(known), sent)
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "Nothing was erased." in refused.content.decode()
    assert memories(known.scope) == 3
    assert "memories.purged" not in [entry.action for entry in audit(ada.tenant)]


def test_what_somebody_left_behind_can_still_be_purged(ada: Person, known: Person) -> None:
    leave(known.scope, actor=ada.user)
    page = ada.client.get(reverse("people", args=[ada.tenant.slug]))
    rows = {row["user"].name: row for row in page.context["people"]}
    assert (rows["Mara"]["membership"], rows["Mara"]["memories"]) == (None, 3)
    sent = {"what": "everything", "confirm": known.user.email, "reason": "She left."}
    assert ada.client.post(purge_url(known), sent).status_code == HTTPStatus.OK
    assert memories(known.scope) == 0


def test_the_audit_is_read_newest_first_and_only_of_ones_own_tenant(
    ada: Person, eve: Person
) -> None:
    ada.client.get(reverse("people", args=[ada.tenant.slug]))
    page = ada.client.get(reverse("audit", args=[ada.tenant.slug]))
    actions = [entry.action for entry in page.context["entries"]]
    assert actions[0] == "people.listed"
    assert {entry.tenant_id for entry in page.context["entries"]} == {ada.tenant.pk}


def test_the_audit_page_says_in_words_who_did_what_to_whom(ada: Person, known: Person) -> None:
    for what in people.WHAT:
        sent = {"what": what, "confirm": known.user.email, "reason": "Asked for."}
        ada.client.post(purge_url(known), sent)
    shown = ada.client.get(reverse("audit", args=[ada.tenant.slug])).content.decode()
    rows = [
        [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in re.split("</t[dh]>", row)[1:4]]
        for row in re.findall(r"<tr>\s*<td.*?</tr>", shown, re.S)
    ]
    assert rows[:2] == [["Bob", "Purged everything", "Mara"], ["Bob", "Purged memories", "Mara"]]


def test_nothing_is_erased_that_can_not_be_written_down(
    ada: Person, known: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise DatabaseError("the audit is away")

    monkeypatch.setattr(people, "record", away)
    given = {"what": "everything", "confirm": known.user.email, "reason": "Asked for."}
    with pytest.raises(DatabaseError):
        ada.client.post(purge_url(known), given)
    assert memories(known.scope) == 3
    with entered(known.scope):
        assert ChatSession.objects.within(known.scope).exists()


def test_the_list_goes_on_over_members_and_then_over_all_who_left(
    ada: Person, mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "PAGE", 2)
    gone = [person(f"Gone{number}", ada.tenant) for number in range(5)]
    for one in gone:
        leave(one.scope, actor=ada.user)
    person("Carla", ada.tenant)
    url = reverse("people", args=[ada.tenant.slug])
    seen, cursors = [], [""]
    while cursors[-1] or len(cursors) == 1:
        page = ada.client.get(url, {"after": cursors[-1]})
        rows = page.context["people"]
        assert 0 < len(rows) <= people.PAGE
        seen += [(row["user"].name, row["membership"] is not None) for row in rows]
        cursors.append(page.context["next"])
    members = [name for name, here in seen if here]
    left = [name for name, here in seen if not here]
    assert sorted(members) == ["Bob", "Carla", "Mara"]
    assert left == [f"Gone{number}" for number in (4, 3, 2, 1, 0)]
    assert len(cursors) == len(set(cursors[:-1])) + 1
    assert seen == [*((name, True) for name in members), *((name, False) for name in left)]


def test_a_page_that_is_full_of_members_is_followed_by_those_who_left(
    ada: Person, mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "PAGE", 2)
    gone = person("Gone", ada.tenant)
    leave(gone.scope, actor=ada.user)
    url = reverse("people", args=[ada.tenant.slug])
    first = ada.client.get(url)
    assert {row["user"].name for row in first.context["people"]} == {"Bob", "Mara"}
    second = ada.client.get(url, {"after": first.context["next"]})
    assert [row["user"].name for row in second.context["people"]] == ["Gone"]
    assert second.context["next"] == ""
