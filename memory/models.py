"""What is remembered, how it is found, and the work that is still to be done."""

from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from pgvector.django import HalfVectorField

from accounts.ids import random_id
from accounts.owned import Owned, OwnedModel

MEMORY_CHARS = 2_000
NAME_CHARS = 80


# What goes before the model whatever is asked, while it fits.
ALWAYS = models.Q(pinned=True) | models.Q(safety=True) | models.Q(kind="persona")


class MemoryQuerySet(models.QuerySet["Memory"]):
    def live(self) -> Self:
        """Return what a person sees: everything but the trash, and what has expired."""
        return self.exclude(status=Memory.Status.TRASH).unexpired()

    def current(self) -> Self:
        """Return what may be recalled: held true now, and of a kind that is not waiting."""
        return self.filter(status=Memory.Status.CURRENT).unexpired()

    def unexpired(self) -> Self:
        """Return what has no end, or one that is still to come."""
        return self.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now()))

    def holding(self) -> Self:
        """Return what is not over: it holds for good, or until a time that is still to come."""
        return self.filter(models.Q(valid_until=None) | models.Q(valid_until__gt=timezone.now()))

    def within_reach(self, session_key: UUID | None = None) -> Self:
        """Return what may be used in this session: what reaches everywhere, and what is its own."""
        everywhere = models.Q(reach=Memory.Reach.PERSONAL)
        if session_key is None:
            return self.filter(everywhere)
        its_own = models.Q(reach=Memory.Reach.SESSION, reach_key=session_key)
        return self.filter(everywhere | its_own)

    def facts(self) -> Self:
        """Return the claims, without the stored words of exchanges."""
        return self.exclude(kind=Memory.Kind.EXCHANGE)


class Memory(OwnedModel):
    """One thing remembered, as its owner may later read, correct or purge it."""

    class Kind(models.TextChoices):
        EXCHANGE = "exchange", "Exchange"
        FACT = "fact", "Fact"
        PERSONA = "persona", "Persona"
        INSIGHT = "insight", "Insight"
        NOTE = "note", "Note"

    class Status(models.TextChoices):
        CURRENT = "current", "Current"
        PAST = "past", "Past"
        WAITING = "waiting", "Waiting for review"
        DECLINED = "declined", "Declined"
        TRASH = "trash", "In the trash"

    class Origin(models.TextChoices):
        OWN_WORDS = "own_words", "Your own words"
        PROFILE = "profile", "Profile"
        IMPORTED = "imported", "Imported"
        DOCUMENT = "document", "Document"
        ASSISTANT = "assistant", "Assistant"

    class Reach(models.TextChoices):
        PERSONAL = "personal", "Everywhere"
        PROJECT = "project", "In one project"
        SESSION = "session", "In one session"

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind)
    text = models.TextField(help_text="As shown and injected; at most 2,000 characters of a fact.")
    answer = models.TextField(blank=True, help_text="The assistant's half of an exchange.")
    folded = models.TextField(
        blank=True, help_text="What the words are searched in: no case, accents, full width."
    )
    first_person = models.TextField(blank=True, help_text="What a fact is embedded as.")
    status = models.CharField(max_length=8, choices=Status, default=Status.CURRENT)
    because = models.CharField(
        max_length=200, blank=True, help_text="Why it waits, or why it is past."
    )
    origin = models.CharField(max_length=10, choices=Origin)
    trusted = models.BooleanField(default=True)
    quote = models.TextField(blank=True, help_text="The person's words that a fact rests on.")
    source = models.UUIDField(null=True, help_text="The message or exchange that it came from.")
    session_key = models.UUIDField(null=True, help_text="The session that it came from.")
    position = models.IntegerField(
        null=True, help_text="Of an exchange: its first message's place in the session."
    )
    said_by = models.CharField(
        max_length=NAME_CHARS, blank=True, help_text="Of who speaks, where several people do."
    )
    answered_by = models.CharField(
        max_length=NAME_CHARS, blank=True, help_text="The same for the answer."
    )
    key = models.CharField(
        max_length=64, help_text="Folded text's SHA-256: the same claim is kept once."
    )
    valid_from = models.DateTimeField(default=timezone.now)
    valid_until = models.DateTimeField(null=True, blank=True)
    superseded_by = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="superseded",
        db_constraint=False,
    )
    would_replace = models.UUIDField(
        null=True, blank=True, help_text="While it waits: the memory that it retires if accepted."
    )
    reach = models.CharField(max_length=8, choices=Reach, default=Reach.PERSONAL)
    reach_key = models.UUIDField(
        null=True, blank=True, help_text="The project or session that it stays in."
    )
    tags = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    evidence = ArrayField(
        models.UUIDField(),
        default=list,
        blank=True,
        help_text="The memories that a persona or an insight rests on.",
    )
    safety = models.BooleanField(
        default=False, help_text="Allergies, health, what must never be: always before the model."
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on it is in no list, no search and no prompt."
    )
    pinned = models.BooleanField(default=False)
    seen_count = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    trashed_at = models.DateTimeField(null=True, blank=True)

    # No column: set where it was just kept without a vector, since no embedder answered in time.
    by_words = False

    objects = Owned(MemoryQuerySet)

    class Meta(OwnedModel.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "user", "status", "-created_at", "-id"], name="memory_listed"
            ),
            models.Index(fields=["tenant", "user"], condition=ALWAYS, name="memory_always"),
            models.Index(
                fields=["tenant", "user"],
                condition=models.Q(status="current") & ~models.Q(kind="exchange"),
                name="memory_claims",
            ),
            models.Index(
                fields=["tenant", "user", "status", "kind"],
                include=["expires_at"],
                name="memory_counted",
            ),
            models.Index(fields=["tenant", "user", "source"], name="memory_by_source"),
            models.Index(fields=["tenant", "user", "session_key"], name="memory_by_session"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "user", "source"],
                condition=models.Q(kind="exchange"),
                name="memory_once_per_exchange",
            ),
            models.UniqueConstraint(
                fields=["tenant", "user", "key"],
                condition=models.Q(status="current") & ~models.Q(kind="exchange"),
                name="memory_once_per_claim",
            ),
            models.CheckConstraint(condition=~models.Q(text=""), name="memory_says_something"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_gone(self) -> bool:
        """Whether its words are shown to nobody: it is in the trash, or has expired."""
        over = self.expires_at is not None and self.expires_at <= timezone.now()
        return over or self.status == Memory.Status.TRASH


# The children of a memory have one constraint that carries their owner with it (same_owner), and
# not Django's beside it: each is looked up for every memory that is erased.


class MemoryVersion(OwnedModel):
    """A memory as it stood before a change, so that the change can be undone."""

    memory = models.ForeignKey(
        Memory,
        on_delete=models.CASCADE,
        related_name="versions",
        db_index=False,
        db_constraint=False,
    )
    text = models.TextField()
    first_person = models.TextField(blank=True)
    status = models.CharField(max_length=8)
    change = models.CharField(max_length=12, help_text="edited, forgotten, superseded, confirmed")
    at = models.DateTimeField(default=timezone.now)

    objects = Owned(models.QuerySet["MemoryVersion"])

    class Meta(OwnedModel.Meta):
        indexes = [models.Index(fields=["tenant", "user", "memory"], name="version_of_memory")]

    def __str__(self) -> str:
        return f"version {self.pk} of {self.memory_id}"


class SearchRow(OwnedModel):
    """A unit of search: one message of an exchange, or a whole fact, and what ranking must know.

    `place` says where it stands (memory.places). The terms are kept to find its postings again.
    """

    class Speaker(models.TextChoices):
        PERSON = "person", "The person"
        ASSISTANT = "assistant", "The assistant"

    pk = models.CompositePrimaryKey("tenant_id", "user_id", "memory_id", "place")
    memory = models.ForeignKey(
        Memory,
        on_delete=models.CASCADE,
        related_name="search_rows",
        db_index=False,
        db_constraint=False,
    )
    place = models.BigIntegerField()
    speaker = models.CharField(max_length=9, choices=Speaker, default=Speaker.PERSON)
    said_by = models.CharField(
        max_length=NAME_CHARS, blank=True, help_text="Of who speaks, where several people do."
    )
    day = models.DateField(help_text="When it was said, where the person is.")
    chars = models.IntegerField()
    flags = models.SmallIntegerField(default=0, help_text="memory.terms.flags_of")
    terms = ArrayField(models.IntegerField(), default=list)
    total = models.IntegerField(help_text="How many terms it has, each as often as it occurs.")

    objects = Owned(models.QuerySet["SearchRow"])

    class Meta(OwnedModel.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "user", "place"],
                include=["memory", "speaker", "said_by", "day", "chars", "flags"],
                name="search_row_covering",
            )
        ]

    def __str__(self) -> str:
        return f"search row {self.place} of {self.memory_id}"


class SearchKey(OwnedModel):
    """A vector that a unit is found by: of the whole of it, or of one of its passages.

    A covering index holds it, in the order of places, so that a search reads no table.
    """

    pk = models.CompositePrimaryKey("tenant_id", "user_id", "memory_id", "model", "place", "part")
    memory = models.ForeignKey(
        Memory,
        on_delete=models.CASCADE,
        related_name="search_keys",
        db_index=False,
        db_constraint=False,
    )
    place = models.BigIntegerField()
    part = models.SmallIntegerField(default=0, help_text="The passage's number, from 0.")
    model = models.CharField(max_length=120, help_text="The embedder's name.")
    dims = models.SmallIntegerField()
    embedding = HalfVectorField()

    objects = Owned(models.QuerySet["SearchKey"])

    class Meta(OwnedModel.Meta):
        pass

    def __str__(self) -> str:
        return f"search key {self.place}.{self.part} of {self.memory_id}"


class Posting(OwnedModel):
    """That a term occurs in a unit, how often, and how many terms that unit has.

    Many and narrow, and written in one statement with their search row, which holds the foreign
    keys; there are none here.
    """

    tenant = models.ForeignKey(
        "accounts.Tenant",
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    user = models.ForeignKey(
        "accounts.User",
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    pk = models.CompositePrimaryKey("tenant_id", "user_id", "term", "place")
    term = models.IntegerField(help_text="The term's hash (memory.terms).")
    place = models.BigIntegerField()
    tf = models.SmallIntegerField()
    dl = models.SmallIntegerField()

    objects = Owned(models.QuerySet["Posting"])

    class Meta(OwnedModel.Meta):
        pass

    def __str__(self) -> str:
        return f"term {self.term} at {self.place}"


class SearchTotals(OwnedModel):
    """How many units of search a person has, and how many terms in all: what BM25 must know."""

    n = models.BigIntegerField(default=0)
    terms = models.BigIntegerField(default=0)

    objects = Owned(models.QuerySet["SearchTotals"])

    class Meta(OwnedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="search_totals_once")
        ]

    def __str__(self) -> str:
        return f"search totals {self.pk}"


class Usage(OwnedModel):
    """How often and when a memory was recalled; apart, so that reading updates no memory."""

    memory = models.OneToOneField(
        Memory, on_delete=models.CASCADE, related_name="usage", db_constraint=False
    )
    recalled_count = models.PositiveIntegerField(default=0)
    last_recalled_at = models.DateTimeField(null=True)

    objects = Owned(models.QuerySet["Usage"])

    class Meta(OwnedModel.Meta):
        indexes = [models.Index(fields=["tenant", "user"], name="usage_of_person")]

    def __str__(self) -> str:
        return f"{self.memory_id} recalled {self.recalled_count} times"


class Recalled(OwnedModel):
    """That a memory was retrieved for a reply, at which rank and score, and whether it went in."""

    reply = models.UUIDField()
    memory = models.ForeignKey(
        Memory,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    rank = models.PositiveSmallIntegerField()
    score = models.FloatField()
    vector_part = models.FloatField(db_default=0.0, help_text="Its score's share by meaning.")
    text_part = models.FloatField(db_default=0.0, help_text="Its score's share by words.")
    injected = models.BooleanField()
    used = models.BooleanField(db_default=False, help_text="The reply names it.")
    always = models.BooleanField(
        db_default=False, help_text="It went before the model whatever was asked."
    )
    because = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(default=timezone.now)

    objects = Owned(models.QuerySet["Recalled"])

    class Meta(OwnedModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "user", "reply", "memory"], name="recalled_once_per_reply"
            )
        ]
        indexes = [models.Index(fields=["tenant", "user", "memory"], name="recalled_memory")]

    def __str__(self) -> str:
        return f"{self.memory_id} for {self.reply}"


# The least and the most of each, as people and tenants may set it.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "top_k": (1, 50),
    "min_score": (0, 1),
    "token_budget": (100, 20_000),
    "deadline_ms": (50, 10_000),
}


def bounds(table: str) -> list[models.CheckConstraint]:
    """Return the constraints that keep a table's settings of recall within BOUNDS, or empty."""
    return [
        models.CheckConstraint(
            condition=models.Q(**{f"{name}__isnull": True})
            | models.Q(**{f"{name}__gte": least, f"{name}__lte": most}),
            name=f"{table}_{name}",
        )
        for name, (least, most) in BOUNDS.items()
    ]


class MemorySettings(OwnedModel):
    """How one person's memory works in one tenant, and their purge generation there."""

    class Learn(models.TextChoices):
        OFF = "off", "Off"
        AUTO = "auto", "Automatic"
        PROPOSE = "propose", "Propose"

    recall_on = models.BooleanField(default=True)
    auto_store_on = models.BooleanField(default=True)
    extract_on = models.BooleanField(default=True, db_default=True)
    tools_on = models.BooleanField(
        default=True,
        db_default=True,
        help_text="The model may save, search, change and forget by itself.",
    )
    learn = models.CharField(max_length=8, choices=Learn, default=Learn.OFF)
    # Empty: as the tenant has it, else as Recollect does (memory.limits).
    top_k = models.PositiveSmallIntegerField(null=True, blank=True)
    min_score = models.FloatField(null=True, blank=True, help_text="0 to 1.")
    token_budget = models.PositiveIntegerField(null=True, blank=True)
    deadline_ms = models.PositiveIntegerField(null=True, blank=True)
    generation = models.PositiveBigIntegerField(
        default=0, help_text="Raised by each purge; a job of an older one writes nothing."
    )
    purged_at = models.DateTimeField(
        null=True, help_text="What was said before is never remembered again."
    )

    objects = Owned(models.QuerySet["MemorySettings"])

    class Meta(OwnedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="memory_settings_once"),
            *bounds("memory_settings"),
        ]

    def __str__(self) -> str:
        return f"memory settings {self.pk}"


class TenantMemorySettings(models.Model):
    """What holds for a tenant's people; set by its admin.

    A switch that is off binds everyone, whatever they chose. The numbers are for those who set none
    of their own; empty: as Recollect has it (memory.limits).
    """

    tenant = models.OneToOneField("accounts.Tenant", on_delete=models.CASCADE, related_name="+")
    auto_store_on = models.BooleanField(default=True)
    extract_on = models.BooleanField(default=True)
    top_k = models.PositiveSmallIntegerField(null=True, blank=True)
    min_score = models.FloatField(null=True, blank=True)
    token_budget = models.PositiveIntegerField(null=True, blank=True)
    deadline_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [*bounds("tenant_memory")]

    def __str__(self) -> str:
        return f"memory settings of tenant {self.tenant_id}"


class Profile(OwnedModel):
    """Who the person is, in a few sentences, each with the memories that it rests on."""

    sentences = models.JSONField(default=list, help_text="[{text, memories: [ids]}]")
    written_at = models.DateTimeField(null=True)
    stale = models.BooleanField(default=True, help_text="A memory has changed since.")

    objects = Owned(models.QuerySet["Profile"])

    class Meta(OwnedModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="profile_once")]

    def __str__(self) -> str:
        return f"profile {self.pk}"


class Tombstone(OwnedModel):
    """That a message's memories were purged: an HMAC of its id, never of its text."""

    mark = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    objects = Owned(models.QuerySet["Tombstone"])

    class Meta(OwnedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user", "mark"], name="tombstone_once")
        ]

    def __str__(self) -> str:
        return f"tombstone {self.pk}"


class Job(OwnedModel):
    """A piece of background work; this row is the truth, the broker only hints at it."""

    class Kind(models.TextChoices):
        REMEMBER = "remember", "Remember an exchange"
        EMBED = "embed", "Embed again"
        LEARN = "learn", "Learn persona and insights"
        PROFILE = "profile", "Write the profile"
        TRASH = "trash", "Empty the trash"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        PARKED = "parked", "Given up"

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    kind = models.CharField(max_length=12, choices=Kind)
    source = models.UUIDField(help_text="The reply that it is about; nil for a whole scope.")
    session_key = models.UUIDField(null=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    step = models.CharField(max_length=12, blank=True, help_text="The last step that is done.")
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200, blank=True, help_text="A code and why; no text.")
    result = models.JSONField(default=dict, help_text="Counts and memory ids.")
    generation = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    objects = Owned(models.QuerySet["Job"])

    class Meta(OwnedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user", "kind", "source"], name="job_once")
        ]
        indexes = [models.Index(fields=["tenant", "user", "state"], name="job_state")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}: {self.state}"


class JobTicket(models.Model):
    """When a job is due, and whose it is: all that the sweep may read without a scope."""

    job_id = models.UUIDField(primary_key=True)
    tenant_id = models.BigIntegerField()
    user_id = models.BigIntegerField()
    queue = models.CharField(max_length=12)
    due_at = models.DateTimeField(default=timezone.now)
    to_do = models.PositiveIntegerField(
        null=True, help_text="Of a job that embeds: how many memories it has still to do."
    )
    problem = models.CharField(
        max_length=200, db_default="", help_text="Of the same: why its last try failed; no text."
    )

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="ticket_due")]

    def __str__(self) -> str:
        return f"ticket of {self.job_id}"


class ModelSettings(models.Model):
    """The operator's choice of models; one row, and the environment where it is empty.

    Read through memory.model_choice.
    """

    class Embeddings(models.TextChoices):
        LOCAL = "local", "The model that comes with Recollect"
        OPENAI = "openai", "An OpenAI-compatible address"

    only = models.BooleanField(primary_key=True, default=True)
    base_url = models.CharField(max_length=300, blank=True)
    api_key_sealed = models.TextField(blank=True, help_text="Encrypted (accounts.seal).")
    chat_model = models.CharField(max_length=120, blank=True)
    without_model = models.BooleanField(
        default=False, help_text="The operator chose to go on without a model."
    )
    embeddings = models.CharField(
        max_length=8, choices=Embeddings, blank=True, help_text="Empty: as the environment says."
    )
    embeddings_model = models.CharField(max_length=120, blank=True)
    embeddings_base_url = models.CharField(max_length=300, blank=True)
    embeddings_key_sealed = models.TextField(blank=True, help_text="Encrypted (accounts.seal).")
    embedded_with = models.CharField(
        max_length=120,
        blank=True,
        help_text="The embedder that everybody's memories were last embedded for.",
    )
    embedded_dims = models.PositiveSmallIntegerField(
        null=True, help_text="The length of its vectors; empty while none was seen."
    )
    embedded_where = models.CharField(
        max_length=64, blank=True, help_text="A hash of the provider that they were put into."
    )
    embedded_before = models.CharField(
        max_length=120, blank=True, help_text="The embedder that it took the place of."
    )
    embed_began_at = models.DateTimeField(null=True, help_text="When all were last queued.")
    embed_total = models.PositiveIntegerField(
        default=0, help_text="How many memories there were to be found by meaning then."
    )
    embed_missing = models.PositiveIntegerField(
        default=0, help_text="How many of them had no vector of it then."
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(only=True), name="model_settings_one_row")
        ]

    def __str__(self) -> str:
        return "model settings"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.only = True
        super().save(*args, **kwargs)
