"""Become a person with a tenant; join and leave tenants, and change what one may do there."""

import secrets
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.emails import email_address
from accounts.errors import InvalidInput, NotFound
from accounts.models import Departure, Invitation, Membership, Tenant, User
from accounts.scope import Scope, entered_person, entered_tenant
from accounts.signals import end_login
from accounts.text import cut, one_line, required_text

NAME_CHARS = 80


class AddressTaken(InvalidInput):
    """Somebody already logs in with this address."""

    code = "address_taken"


def clean_name(name: object) -> str:
    """Return a person's or a tenant's name on one line; InvalidInput if blank or too long."""
    return required_text(
        one_line(name) if isinstance(name, str) else name,
        what=_("The name"),
        max_chars=NAME_CHARS,
    )


def new_tenant(*, name: str, personal: bool = False) -> Tenant:
    """Return a new tenant with an address that nobody can guess from its name."""
    name = clean_name(name)
    start = slugify(name)[:24].strip("-_") or "space"
    return Tenant.objects.create(
        slug=f"{start}-{secrets.token_hex(5)}", name=name, personal=personal
    )


def join(tenant: Tenant, user: User, *, role: str = Membership.Role.MEMBER) -> Membership:
    """Return the person's membership of the tenant, made if it is new."""
    with entered_tenant(tenant.pk):
        membership, _made = Membership.objects.get_or_create(
            tenant=tenant, user=user, defaults={"role": role}
        )
        Departure.objects.filter(tenant=tenant, user=user).delete()
    return membership


@transaction.atomic
def new_person(*, email: str, password: str | None, name: str = "", **fields: Any) -> User:
    """Return a new person, admin of a new personal tenant. The caller has validated the password.

    Raises InvalidInput for a blank or overlong name or an address that can't be one, AddressTaken
    for one that somebody has.
    """
    email = email_address(email)
    name = clean_name(name or cut(email.split("@")[0], NAME_CHARS))
    user = User(email=email, name=name, **fields)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        if "user_once_per_email" not in str(error):
            raise
        raise AddressTaken(
            _("There is already an account with this address. Log in, or reset its password.")
        ) from None
    tenant = new_tenant(name=name, personal=True)
    join(tenant, user, role=Membership.Role.ADMIN)
    return user


@transaction.atomic
def change_person(user: User, *, name: str, time_zone: str, theme: str) -> None:
    """Keep what a person is called, where they live, and how pages look.

    Their personal tenant goes by the new name too, if it went by the old one.
    """
    before = User.objects.select_for_update().get(pk=user.pk).name
    user.name, user.time_zone, user.theme = clean_name(name), time_zone, theme
    user.save(update_fields=["name", "time_zone", "theme"])
    with entered_person(user.pk):
        own = Membership.objects.filter(user=user, tenant__personal=True)
        ids = list(own.values_list("tenant_id", flat=True))
    Tenant.objects.filter(pk__in=ids, name=before).update(name=user.name)


@transaction.atomic
def new_organisation(user: User, *, name: str, ip: str | None = None) -> Membership:
    """Return the person's membership, as admin, of a new tenant that others can be invited to."""
    tenant = new_tenant(name=name)
    membership = join(tenant, user, role=Membership.Role.ADMIN)
    record(tenant, actor=user, action="tenant.made", ip=ip)
    return membership


@transaction.atomic
def rename_tenant(tenant: Tenant, *, name: str, actor: User, ip: str | None = None) -> None:
    """Give the tenant another name; its address stays."""
    tenant.name = clean_name(name)
    tenant.save(update_fields=["name"])
    record(tenant, actor=actor, action="tenant.renamed", ip=ip)


@transaction.atomic
def change_role(scope: Scope, *, role: str, actor: User, ip: str | None = None) -> None:
    """Make a member an admin, or an admin a member; InvalidInput for the last admin."""
    if role not in Membership.Role.values:
        raise InvalidInput(_("There is no such role."))
    tenant, membership = _locked(scope)
    if membership.role == role:
        return
    if membership.is_admin:
        _spare_last_admin(scope)
        revoke_invitations(scope)
    with entered_tenant(tenant.pk):
        Membership.objects.filter(pk=membership.pk).update(role=role)
    record(tenant, actor=actor, subject=membership.user, action=f"member.made_{role}", ip=ip)
    end_login(user_id=scope.user_id, tenant_id=tenant.pk)


@transaction.atomic
def leave(scope: Scope, *, actor: User, ip: str | None = None) -> None:
    """End a membership: the person's own wish, or an admin's. What they wrote there stays.

    NotFound for who is no member; InvalidInput for the last admin, and for one's personal tenant.
    """
    tenant, membership = _locked(scope)
    if tenant.personal:
        raise InvalidInput(_("This space is part of the account and can't be left."))
    if membership.is_admin:
        _spare_last_admin(scope)
    revoke_invitations(scope)
    with entered_tenant(tenant.pk):
        Membership.objects.filter(pk=membership.pk).delete()
        Departure.objects.get_or_create(tenant=tenant, user=membership.user)
    action = "member.left" if actor.pk == scope.user_id else "member.removed"
    record(tenant, actor=actor, subject=membership.user, action=action, ip=ip)
    end_login(user_id=scope.user_id, tenant_id=tenant.pk)


@transaction.atomic
def disable(user: User) -> None:
    """Let the person in no longer, also by a link that they made; what is theirs stays."""
    User.objects.filter(pk=user.pk).update(is_active=False)
    Invitation.objects.open().filter(created_by=user).update(revoked_at=timezone.now())
    end_login(user_id=user.pk)


def enable(user: User) -> None:
    """Let a disabled person in again."""
    User.objects.filter(pk=user.pk).update(is_active=True)


def lock_tenant(tenant_id: int) -> Tenant:
    """Return the tenant, whose members nobody else changes until the transaction ends."""
    tenant = Tenant.objects.select_for_update().filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound
    return tenant


def only_admin(scope: Scope) -> bool:
    """Tell whether nobody else who can log in is an admin of the tenant."""
    with entered_tenant(scope.tenant_id):
        return (
            not Membership.objects.filter(
                tenant_id=scope.tenant_id, role=Membership.Role.ADMIN, user__is_active=True
            )
            .exclude(user_id=scope.user_id)
            .exists()
        )


def revoke_invitations(scope: Scope) -> None:
    """Close the links that somebody made as an admin, lest they come back in by one of them."""
    Invitation.objects.open().filter(tenant_id=scope.tenant_id, created_by_id=scope.user_id).update(
        revoked_at=timezone.now()
    )


def _locked(scope: Scope) -> tuple[Tenant, Membership]:
    tenant = lock_tenant(scope.tenant_id)
    with entered_tenant(tenant.pk):
        membership = (
            Membership.objects.select_related("user")
            .filter(tenant=tenant, user_id=scope.user_id)
            .first()
        )
    if membership is None:
        raise NotFound
    return tenant, membership


def _spare_last_admin(scope: Scope) -> None:
    if only_admin(scope):
        raise InvalidInput(
            _("Somebody has to be the admin. Make another member an admin first."),
            code="last_admin",
        )
