"""Sessions and their messages."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.ids import random_id
from accounts.owned import Owned, OwnedModel

TITLE_CHARS = 100
NEW_SESSION = "New session"


class ChatSession(OwnedModel):
    """One conversation."""

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    title = models.CharField(max_length=TITLE_CHARS, default=NEW_SESSION)
    created_at = models.DateTimeField(default=timezone.now)
    last_activity_at = models.DateTimeField(default=timezone.now)
    message_count = models.PositiveIntegerField(default=0)
    auto_store = models.BooleanField(
        null=True, blank=True, help_text="Remember this session; empty: as the person has set it."
    )

    objects = Owned(models.QuerySet["ChatSession"])

    class Meta(OwnedModel.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "user", "-last_activity_at", "-id"], name="session_newest"
            )
        ]

    def __str__(self) -> str:
        return f"session {self.pk}"


class MessageQuerySet(models.QuerySet["Message"]):
    def replies(self) -> Self:
        return self.filter(role=Message.Role.ASSISTANT)

    def in_order(self) -> Self:
        return self.order_by("position")


class Message(OwnedModel):
    """One utterance. A reply's row is made with its question's, and filled while it streams."""

    class Role(models.TextChoices):
        USER = "user", "User"
        ASSISTANT = "assistant", "Assistant"
        SYSTEM = "system", "System"
        TOOL = "tool", "Tool"

    class Status(models.TextChoices):
        WAITING = "waiting", "Waiting its turn"
        STREAMING = "streaming", "Being written"
        COMPLETE = "complete", "Complete"
        STOPPED = "stopped", "Stopped by you"
        LENGTH = "length", "Cut at the model's limit"
        FILTERED = "filtered", "Withheld by the provider"
        INTERRUPTED = "interrupted", "Interrupted"
        FAILED = "failed", "Failed"

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    session = models.ForeignKey(ChatSession, on_delete=models.CASCADE, related_name="messages")
    question = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        related_name="replies",
        help_text="The user message that a reply answers.",
    )
    position = models.PositiveIntegerField(help_text="From 1, in the order of the session.")
    role = models.CharField(max_length=9, choices=Role)
    text = models.TextField(blank=True)
    status = models.CharField(max_length=11, choices=Status, default=Status.COMPLETE)
    client_id = models.UUIDField(null=True, help_text="Made by the browser: a resend is a no-op.")
    error_code = models.CharField(max_length=40, blank=True)
    error = models.CharField(max_length=300, blank=True, help_text="The sentence for the person.")
    memory_note = models.CharField(
        max_length=200, blank=True, help_text="Why a reply went without memory."
    )
    tool_calls = models.JSONField(
        null=True, help_text="[{id, name, arguments, result, memory}] in the order made."
    )
    model = models.CharField(max_length=120, blank=True)
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    attempt = models.PositiveSmallIntegerField(default=0, help_text="Which try of the reply.")
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    objects = Owned(MessageQuerySet)

    class Meta(OwnedModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "user", "session", "position"], name="message_in_order"
            ),
            models.UniqueConstraint(
                fields=["tenant", "user", "session", "client_id"],
                condition=Q(client_id__isnull=False),
                name="message_once_per_client_id",
            ),
            models.UniqueConstraint(
                fields=["tenant", "user", "session"],
                condition=Q(status="streaming"),
                name="one_reply_runs",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.pk}"


class ReplyTicket(models.Model):
    """A reply that waits or runs, and whose it is: all that recovery may read without a scope."""

    reply_id = models.UUIDField(primary_key=True)
    session_id = models.UUIDField()
    tenant_id = models.BigIntegerField()
    user_id = models.BigIntegerField()
    due_at = models.DateTimeField(default=timezone.now, help_text="When it is overdue.")

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="reply_ticket_due")]

    def __str__(self) -> str:
        return f"ticket of {self.reply_id}"
