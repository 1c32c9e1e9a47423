"""How memory works for a tenant's people: read it, change it by its admin, write that down."""

from accounts.audit import record
from accounts.models import Tenant, User
from accounts.scope import entered_tenant
from memory.models import TenantMemorySettings
from memory.preferences import read_numbers

# As the page calls them, for people who read the audit.
NAMES = {
    "auto_store_on": "remember after each reply",
    "extract_on": "look for facts",
    "top_k": "most memories for one reply",
    "min_score": "lowest score",
    "token_budget": "room for memories",
    "deadline_ms": "longest search",
}


def tenant_settings_of(tenant_id: int) -> TenantMemorySettings:
    """Return the tenant's settings; the defaults, not stored, while its admin set none."""
    with entered_tenant(tenant_id):
        kept = TenantMemorySettings.objects.filter(tenant_id=tenant_id).first()
    return kept or TenantMemorySettings(tenant_id=tenant_id)


def change_tenant_settings(
    tenant: Tenant,
    *,
    actor: User,
    auto_store_on: bool,
    extract_on: bool,
    top_k: object = None,
    min_score: object = None,
    token_budget: object = None,
    deadline_ms: object = None,
    ip: str | None = None,
) -> TenantMemorySettings:
    """Return the tenant's settings after the change, which the audit has by the same transaction.

    The numbers are as in memory.preferences; InvalidPreferences changes nothing. What is as it was
    is no change, and is not written down.
    """
    wanted = {
        "auto_store_on": auto_store_on,
        "extract_on": extract_on,
        **read_numbers(
            {
                "top_k": top_k,
                "min_score": min_score,
                "token_budget": token_budget,
                "deadline_ms": deadline_ms,
            }
        ),
    }
    with entered_tenant(tenant.pk):
        kept, _made = TenantMemorySettings.objects.select_for_update().get_or_create(
            tenant_id=tenant.pk
        )
        changed = [name for name, value in wanted.items() if getattr(kept, name) != value]
        if changed:
            TenantMemorySettings.objects.filter(pk=kept.pk).update(**wanted)
            for name in changed:
                setattr(kept, name, wanted[name])
            record(
                tenant,
                actor=actor,
                action="memory_settings.changed",
                reason=", ".join(f"{NAMES[name]}: {_said(wanted[name])}" for name in changed),
                ip=ip,
            )
    return kept


def _said(value: bool | float | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "as usual" if value is None else str(value)
