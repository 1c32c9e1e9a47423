"""People, tenants, and who belongs where."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.emails import email_address
from accounts.errors import InvalidInput
from accounts.scope import Scope


class UserManager(BaseUserManager["User"]):
    """Finds and makes people; each with the personal tenant that everyone has (accounts.join)."""

    def with_email(self, email: str) -> "User | None":
        """Return who logs in with this address, in any case of its letters, or None."""
        try:
            address = email_address(email)
        except InvalidInput:
            return None
        return self.annotate(folded=Lower("email")).filter(folded=address.lower()).first()

    def named(self, query: str) -> "models.QuerySet[User]":
        """Return the people whose name or address has these characters; everybody for none."""
        found = self.get_queryset()
        if not query:
            return found
        return found.filter(Q(name__icontains=query) | Q(email__icontains=query))

    def get_by_natural_key(self, username: str | None) -> "User":
        user = self.with_email(username or "")
        if user is None:
            raise self.model.DoesNotExist
        return user

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Return a new person who logs in with this address, with a personal tenant.

        Raises ValidationError, which Django's commands know, where accounts.join.new_person
        raises InvalidInput.
        """
        from accounts.join import new_person

        try:
            return new_person(email=email, password=password, **fields)
        except InvalidInput as error:
            raise ValidationError(str(error)) from error

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Return a new operator, with a personal tenant of their own."""
        return self.create_user(email, password, is_operator=True, **fields)


class User(AbstractBaseUser):
    """A person who logs in by e-mail."""

    class Theme(models.TextChoices):
        SYSTEM = "system", "As the system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=80)
    time_zone = models.CharField(max_length=64, default="UTC")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    is_active = models.BooleanField(default=True)
    is_operator = models.BooleanField(default=False, help_text="Runs the installation.")
    created_at = models.DateTimeField(default=timezone.now)

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_once_per_email")]

    def __str__(self) -> str:
        return self.name

    def get_full_name(self) -> str:
        return self.name


class Tenant(models.Model):
    """An organisation; each person also has a personal one."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    personal = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person in a tenant."""

    class Role(models.TextChoices):
        MEMBER = "member", "Member"
        ADMIN = "admin", "Admin"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role, default=Role.MEMBER)
    created_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.tenant_id} as {self.role}"

    @property
    def scope(self) -> Scope:
        """Whose rows this membership opens."""
        return Scope(self.tenant_id, self.user_id)

    @property
    def is_admin(self) -> bool:
        return self.role == self.Role.ADMIN


class Departure(models.Model):
    """That somebody left a tenant: what they wrote there stays until they or an admin erase it."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="departures")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="departures")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="departure_once")]

    def __str__(self) -> str:
        return f"{self.user_id} left {self.tenant_id}"

    @property
    def scope(self) -> Scope:
        """Whose rows may still be there."""
        return Scope(self.tenant_id, self.user_id)


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> "InvitationQuerySet":
        """Return those that can still be accepted."""
        return self.filter(accepted_at=None, revoked_at=None, expires_at__gt=timezone.now())


class Invitation(models.Model):
    """A link that lets one person into a tenant, once and until it expires."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    token_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256, hex.")
    role = models.CharField(max_length=8, choices=Membership.Role, default=Membership.Role.MEMBER)
    email = models.EmailField(max_length=254, blank=True, help_text="For whom; a note only.")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    def __str__(self) -> str:
        return f"invitation {self.pk}"


class OperatorLink(models.Model):
    """The one-time link by which a fresh installation gets its first operator."""

    token_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256, hex.")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"operator link {self.pk}"


class Attempt(models.Model):
    """A failed or counted try (login, sign-up, reset), for throttling; swept when old."""

    key = models.CharField(max_length=64, help_text="HMAC of what was tried and from where.")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["key", "at"], name="attempt_recent")]

    def __str__(self) -> str:
        return f"attempt {self.pk}"


class AuditEntry(models.Model):
    """Who did what to whom, when, why and from where; never any text. Only added to."""

    tenant = models.ForeignKey(
        Tenant, on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    actor_id = models.BigIntegerField(null=True)
    subject_id = models.BigIntegerField(null=True, help_text="Whose data it was about.")
    actor_label = models.CharField(max_length=80, blank=True)
    subject_label = models.CharField(max_length=80, blank=True)
    action = models.CharField(max_length=40)
    counts = models.JSONField(default=dict)
    reason = models.CharField(max_length=300, blank=True)
    ip = models.GenericIPAddressField(null=True, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-at", "-id"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.action} {self.at:%Y-%m-%d %H:%M}"
