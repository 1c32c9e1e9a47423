"""Erase an account or a tenant for good: nobody's rows stay behind."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.apps import apps
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import OperationalError, transaction
from django.db.models import Model
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from psycopg.errors import DeadlockDetected

from accounts.audit import record
from accounts.errors import InvalidInput, NotFound
from accounts.join import lock_tenant, only_admin, revoke_invitations
from accounts.models import Departure, Membership, Tenant, User
from accounts.operators import one_at_a_time, only_operator
from accounts.scope import Scope, entered, entered_person, entered_tenant
from accounts.signals import end_login


@dataclass(frozen=True, slots=True)
class Counted:
    """How many there are of one thing that a person would miss."""

    label: str
    count: int


class _Moved(Exception):
    """Somebody joined, left, or erased a space while the locks were taken."""


def scopes_of(user_id: int) -> list[Scope]:
    """Return every scope in which the person may have rows: where they are, and where they were."""
    with entered_person(user_id):
        tenants = {
            *Membership.objects.filter(user_id=user_id).values_list("tenant_id", flat=True),
            *Departure.objects.filter(user_id=user_id).values_list("tenant_id", flat=True),
        }
    return [Scope(tenant_id, user_id) for tenant_id in sorted(tenants)]


def counts_of(scopes: Iterable[Scope]) -> list[Counted]:
    """Return what would be erased: the things that settings.COUNTED names, of all the scopes."""
    counts: Counter[str] = Counter()
    for scope in scopes:
        with entered(scope):
            for model, label in settings.COUNTED.items():
                rows = apps.get_model(model).objects
                counts[label] += rows.within(scope).count()
    return [Counted(label, counts[label]) for label in settings.COUNTED.values()]


def refusal(user_id: int) -> str:
    """Return why the account can't be erased yet, in a sentence; empty when it can."""
    if only_operator(user_id):
        return _(
            "Nobody else runs this installation. "
            "Make another operator first: manage.py createsuperuser."
        )
    with entered_person(user_id):
        mine = list(
            Membership.objects.select_related("tenant").filter(
                user_id=user_id, role=Membership.Role.ADMIN, tenant__personal=False
            )
        )
    stuck = [
        membership.tenant.name
        for membership in mine
        if only_admin(membership.scope) and _others(membership.scope)
    ]
    if not stuck:
        return ""
    return _(
        "You are the only admin of %(names)s, and others are members. "
        "Make somebody else an admin first."
    ) % {"names": ", ".join(stuck)}


def erase_account(user: User, *, ip: str | None = None) -> None:
    """Erase the person with every row of theirs in every tenant, all at once or not at all.

    Tenants that only they belong to go with them, the personal one among these. Raises
    InvalidInput for the only admin of a tenant that has other members, and the only operator.
    """
    for last in (False, False, True):
        try:
            with transaction.atomic():
                _erase_account(user.pk, ip=ip)
            return
        except _Moved:
            problem = None
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
            problem = error
        if last:
            raise InvalidInput(
                _("Something else changed your account at the same moment. Try again.")
            ) from problem


@transaction.atomic
def erase_organisation(tenant: Tenant, *, actor: User) -> None:
    """Erase a tenant that nobody but `actor` belongs to, with what former members left there."""
    tenant = lock_tenant(tenant.pk)
    if tenant.personal:
        raise InvalidInput(_("This space is part of the account; it goes when the account goes."))
    if _others(Scope(tenant.pk, actor.pk)):
        raise InvalidInput(_("Others are still members. Remove them first."))
    _erase_tenant(tenant)
    end_login(user_id=actor.pk, tenant_id=tenant.pk)


def _erase_account(user_id: int, *, ip: str | None) -> None:
    # First the tenants, then the person: the order in which joining and leaving lock. Behind the
    # lock of the person's row nobody can add a row that points at it.
    expected = scopes_of(user_id)
    try:
        tenants = [lock_tenant(scope.tenant_id) for scope in expected]
    except NotFound:
        raise _Moved from None
    user = User.objects.select_for_update().filter(pk=user_id).first()
    if user is None:
        return
    if scopes_of(user_id) != expected:
        raise _Moved
    if user.is_operator:
        one_at_a_time()
    problem = refusal(user_id)
    if problem:
        raise InvalidInput(problem, code="still_needed")
    for tenant, scope in zip(tenants, expected, strict=True):
        if _belongs(scope) and not _others(scope):
            _erase_tenant(tenant)
        else:
            _erase_scope(scope)
            revoke_invitations(scope)
            if not tenant.personal:
                record(tenant, actor=user, subject=user, action="account.erased", ip=ip)
    _end_login_sessions(user_id)
    with entered_person(user_id):
        user.delete()
    end_login(user_id=user_id)


def _erase_tenant(tenant: Tenant) -> None:
    with entered_tenant(tenant.pk):
        people = {
            *Membership.objects.filter(tenant=tenant).values_list("user_id", flat=True),
            *Departure.objects.filter(tenant=tenant).values_list("user_id", flat=True),
        }
    for user_id in sorted(people):
        _erase_scope(Scope(tenant.pk, user_id))
    with entered_tenant(tenant.pk):
        tenant.delete()


def _erase_scope(scope: Scope) -> None:
    """Erase every row of this scope: what the erasers know, then each table, whichever there be.

    The tables are found, not named, so that a new one is not forgotten. Their keys are checked
    when the transaction ends, so the order does not matter.
    """
    for path in settings.ACCOUNT_ERASERS:
        import_string(path)(scope)
    with entered(scope):
        for model in _tables_of_people():
            rows = model._default_manager.filter(tenant_id=scope.tenant_id, user_id=scope.user_id)
            rows._raw_delete(rows.db)


def _tables_of_people() -> list[type[Model]]:
    return [
        model
        for model in apps.get_models()
        if model not in {Membership, Departure}
        and {"tenant_id", "user_id"} <= {field.attname for field in model._meta.concrete_fields}
    ]


def _belongs(scope: Scope) -> bool:
    with entered_tenant(scope.tenant_id):
        return Membership.objects.filter(tenant_id=scope.tenant_id, user_id=scope.user_id).exists()


def _others(scope: Scope) -> bool:
    """Tell whether anybody else is a member of the tenant."""
    with entered_tenant(scope.tenant_id):
        return (
            Membership.objects.filter(tenant_id=scope.tenant_id)
            .exclude(user_id=scope.user_id)
            .exists()
        )


def _end_login_sessions(user_id: int) -> None:
    """Delete the person's login sessions in every browser; each is opened to see whose it is."""
    theirs = [
        session.pk
        for session in Session.objects.iterator()
        if session.get_decoded().get(SESSION_KEY) == str(user_id)
    ]
    Session.objects.filter(pk__in=theirs).delete()
