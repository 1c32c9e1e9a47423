"""Invite somebody into a tenant by a link that works once, and accept such a link."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.emails import email_address
from accounts.errors import InvalidInput, NotFound
from accounts.join import change_role, join, lock_tenant
from accounts.models import Invitation, Membership, Tenant, User
from accounts.scope import entered_tenant
from accounts.tokens import new_token, token_hash

DAYS = (1, 7, 30)
MOST_OPEN = 200

type State = Literal["ok", "expired", "used", "unknown"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a link leads to; no invitation where the state is unknown."""

    state: State
    invitation: Invitation | None = None


@transaction.atomic
def invite(
    tenant: Tenant,
    *,
    actor: User,
    role: str,
    days: int,
    email: str = "",
    ip: str | None = None,
) -> str:
    """Return the token of a new link into the tenant. It can't be read again afterwards."""
    if role not in Membership.Role.values or days not in DAYS:
        raise InvalidInput(_("Choose a role, and how long the link shall work."))
    tenant = lock_tenant(tenant.pk)
    if tenant.personal:
        raise InvalidInput(
            _("A personal space has one member. Make a shared one to invite others.")
        )
    with entered_tenant(tenant.pk):
        here = Membership.objects.filter(tenant=tenant, user=actor, role=Membership.Role.ADMIN)
        if not here.exists():  # removed or made a member a moment ago
            raise NotFound
    if Invitation.objects.open().filter(tenant=tenant).count() >= MOST_OPEN:
        raise InvalidInput(_("There are too many open invitations. Revoke some first."))
    token = new_token()
    Invitation.objects.create(
        tenant=tenant,
        token_hash=token_hash(token),
        role=role,
        email=email_address(email) if email.strip() else "",
        created_by=actor,
        expires_at=timezone.now() + timedelta(days=days),
    )
    record(tenant, actor=actor, action=f"invitation.made_{role}", counts={"days": days}, ip=ip)
    return token


@transaction.atomic
def revoke(tenant: Tenant, *, invitation_id: int, actor: User, ip: str | None = None) -> None:
    """Close a link before it is used; NotFound if it is none of this tenant's open ones."""
    revoked = (
        Invitation.objects.open()
        .filter(pk=invitation_id, tenant=tenant)
        .update(revoked_at=timezone.now())
    )
    if not revoked:
        raise NotFound
    record(tenant, actor=actor, action="invitation.revoked", ip=ip)


def look(token: str) -> Found:
    """Return what the link leads to, for whoever holds it."""
    invitation = (
        Invitation.objects.select_related("tenant").filter(token_hash=token_hash(token)).first()
    )
    if invitation is None:
        return Found("unknown")
    if invitation.accepted_at is not None:
        return Found("used", invitation)
    if invitation.revoked_at is not None or invitation.expires_at <= timezone.now():
        return Found("expired", invitation)
    return Found("ok", invitation)


@transaction.atomic
def accept(token: str, *, user: User, ip: str | None = None) -> Membership:
    """Return the person's membership of the tenant that the link leads to; the link is used up.

    Somebody who is already in, and would gain nothing, keeps the link open for another. NotFound
    when it can't be used, or somebody else was faster.
    """
    invitation = Invitation.objects.open().filter(token_hash=token_hash(token)).first()
    if invitation is None:
        raise NotFound(_("This invitation can't be used any more. Ask for a new one."))
    tenant = lock_tenant(invitation.tenant_id)
    with entered_tenant(tenant.pk):
        before = Membership.objects.filter(tenant=tenant, user=user).first()
    if before is not None and (before.is_admin or invitation.role == before.role):
        return before
    used = (
        Invitation.objects.open()
        .filter(pk=invitation.pk)
        .update(accepted_at=timezone.now(), accepted_by=user)
    )
    if not used:
        raise NotFound(_("This invitation can't be used any more. Ask for a new one."))
    if before is not None:
        inviter = invitation.created_by or user
        change_role(before.scope, role=invitation.role, actor=inviter, ip=ip)
        before.role = invitation.role
        return before
    membership = join(tenant, user, role=invitation.role)
    record(tenant, actor=user, subject=user, action="invitation.accepted", ip=ip)
    return membership
