"""Write down who did what in a tenant."""

from datetime import timedelta

from django.utils import timezone

from accounts.models import AuditEntry, Tenant, User
from accounts.scope import entered_tenant
from accounts.text import cut, one_line


def record(
    tenant: Tenant,
    *,
    actor: User | None,
    action: str,
    subject: User | None = None,
    counts: dict[str, int] | None = None,
    reason: str = "",
    ip: str | None = None,
) -> AuditEntry:
    """Return the entry just added. It holds ids, labels and counts, never anybody's text."""
    with entered_tenant(tenant.pk):
        return AuditEntry.objects.create(
            tenant=tenant,
            actor_id=actor.pk if actor else None,
            actor_label=cut(actor.name, 80) if actor else "",
            subject_id=subject.pk if subject else None,
            subject_label=cut(subject.name, 80) if subject else "",
            action=action,
            counts=counts or {},
            reason=cut(one_line(reason), 300),
            ip=ip,
        )


LOOKING = timedelta(hours=1)


def record_look(tenant: Tenant, *, actor: User, action: str, ip: str | None) -> None:
    """Write down that somebody looks at a page, once an hour for each address that they come from.

    For pages of counts, which are opened again and again: what was done must not drown in them.
    """
    with entered_tenant(tenant.pk):
        seen = AuditEntry.objects.filter(
            tenant=tenant,
            actor_id=actor.pk,
            action=action,
            ip=ip,
            at__gt=timezone.now() - LOOKING,
        )
        if not seen.exists():
            record(tenant, actor=actor, action=action, ip=ip)
