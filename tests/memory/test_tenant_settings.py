"""What a tenant's admin sets holds for its people, and is written down."""

import pytest

from accounts.erase import erase_account
from accounts.models import AuditEntry, Tenant, User
from accounts.scope import Scope, entered_tenant
from memory.limits import limits_of
from memory.models import Job, TenantMemorySettings
from memory.preferences import InvalidPreferences, change_preferences
from memory.tenant_settings import change_tenant_settings, tenant_settings_of
from tests.memory.conftest import Conversation

pytestmark = pytest.mark.django_db


def change(scope: Scope, **given: object) -> None:
    usual = {"auto_store_on": True, "extract_on": True}
    tenant = Tenant.objects.get(pk=scope.tenant_id)
    actor = User.objects.get(pk=scope.user_id)
    change_tenant_settings(tenant, actor=actor, **(usual | given))  # type: ignore[arg-type]


def written(scope: Scope) -> list[str]:
    with entered_tenant(scope.tenant_id):
        entries = AuditEntry.objects.filter(
            tenant_id=scope.tenant_id, action="memory_settings.changed"
        )
        return list(entries.order_by("pk").values_list("reason", flat=True))


def test_before_anything_is_set_all_is_on_and_nothing_is_stored(mara: Scope) -> None:
    kept = tenant_settings_of(mara.tenant_id)
    assert (kept.auto_store_on, kept.extract_on, kept.top_k, kept.pk) == (True, True, None, None)


def test_the_tenants_numbers_hold_where_a_person_has_set_none(mara: Scope, bob: Scope) -> None:
    change(mara, top_k="5", min_score="0,2", token_budget="900", deadline_ms="700")
    limits = limits_of(mara)
    assert (limits.top_k, limits.min_score, limits.token_budget) == (5, 0.2, 900)
    assert (limits.deadline_ms, limits.chosen) == (700, False)
    change_preferences(mara, recall_on=True, auto_store_on=True, top_k="3")
    assert (limits_of(mara).top_k, limits_of(mara).token_budget) == (3, 900)
    assert limits_of(bob).top_k == 8  # of another tenant


def test_off_binds_also_those_who_have_it_on(talk: Conversation) -> None:
    change_preferences(talk.scope, recall_on=True, auto_store_on=True)
    change(talk.scope, auto_store_on=False)
    job = talk.remember("My house is yellow.")
    assert (job.state, job.result["auto_store"]) == (Job.State.DONE, False)
    assert "exchange" not in job.result


def test_a_change_is_written_down_with_what_it_was_and_no_change_is_not(mara: Scope) -> None:
    change(mara)
    assert written(mara) == []
    for _once_and_again in range(2):
        change(mara, extract_on=False, top_k=5)
    change(mara, extract_on=True)
    assert written(mara) == [
        "look for facts: off, most memories for one reply: 5",
        "look for facts: on, most memories for one reply: as usual",
    ]


def test_nonsense_is_refused_and_neither_kept_nor_written_down(mara: Scope) -> None:
    with pytest.raises(InvalidPreferences) as refused:
        change(mara, auto_store_on=False, top_k="51", deadline_ms="x")
    assert list(refused.value.errors) == ["top_k", "deadline_ms"]
    assert tenant_settings_of(mara.tenant_id).auto_store_on
    assert written(mara) == []


def test_with_the_last_person_the_tenants_settings_go_too(mara: Scope) -> None:
    change(mara, top_k=5)
    erase_account(User.objects.get(pk=mara.user_id))
    with entered_tenant(mara.tenant_id):
        assert not TenantMemorySettings.objects.exists()
