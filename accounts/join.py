"""Become a person with a tenant; join and leave tenants."""

import secrets
from typing import Any

from django.db import transaction
from django.utils.text import slugify

from accounts.models import Membership, Tenant, User
from accounts.scope import entered_tenant
from accounts.text import cut, one_line, required_text


def new_tenant(*, name: str, personal: bool = False) -> Tenant:
    """Return a new tenant with an address that nobody can guess from its name."""
    name = cut(one_line(required_text(name, what="The name", max_chars=200)), 80)
    start = slugify(name)[:24].strip("-") or "space"
    return Tenant.objects.create(
        slug=f"{start}-{secrets.token_hex(5)}", name=name, personal=personal
    )


def join(tenant: Tenant, user: User, *, role: str = Membership.Role.MEMBER) -> Membership:
    """Return the person's membership of the tenant, made if it is new."""
    with entered_tenant(tenant.pk):
        membership, _ = Membership.objects.get_or_create(
            tenant=tenant, user=user, defaults={"role": role}
        )
    return membership


@transaction.atomic
def new_person(*, email: str, password: str | None, name: str = "", **fields: Any) -> User:
    """Return a new person, admin of a new personal tenant. The caller has validated the password.

    Raises InvalidInput for a blank name, IntegrityError when the address is taken.
    """
    email = User.objects.normalize_email(one_line(email))
    name = one_line(required_text(name or email.split("@")[0], what="The name", max_chars=80))
    user = User(email=email, name=name, **fields)
    user.set_password(password)
    user.save()
    tenant = new_tenant(name=name, personal=True)
    join(tenant, user, role=Membership.Role.ADMIN)
    return user
