"""See, add, find and erase what is remembered of a person, from the command line."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from accounts.audit import record
from accounts.errors import AppError
from accounts.models import Membership, Tenant, User
from accounts.scope import Scope, entered_tenant
from accounts.text import one_line
from memory import face
from memory.models import Memory
from memory.reasons import Reasons
from memory.search import listed, search

SHOWN_CHARS = 120


class Command(BaseCommand):
    help = (
        "What is remembered of one person in one tenant: list it, search it, remember a note,"
        " forget a memory, purge all of it. Each use is written into the tenant's audit."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="act")
        common = CommandParser(add_help=False)
        common.add_argument("--person", required=True, metavar="EMAIL")
        common.add_argument("--tenant", required=True, metavar="SLUG")
        listed = acts.add_parser("list", parents=[common], help="newest first")
        listed.add_argument("--state", default="current", choices=Memory.Status.values)
        listed.add_argument("--kind", default="", choices=["", *Memory.Kind.values])
        listed.add_argument("--limit", type=int, default=50)
        sought = acts.add_parser("search", parents=[common], help="by words and by meaning")
        sought.add_argument("query")
        sought.add_argument("--limit", type=int, default=20)
        remember = acts.add_parser("remember", parents=[common], help="keep a note")
        remember.add_argument("text")
        forget = acts.add_parser("forget", parents=[common], help="into the trash, for 30 days")
        forget.add_argument("memory", type=UUID, metavar="ID")
        purge = acts.add_parser("purge", parents=[common], help="erase for good; asks first")
        purge.add_argument("--what", default="memories", choices=["memories", "everything"])
        purge.add_argument("--reason", default="", help="goes into the audit")
        purge.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, user = _place(options["tenant"], options["person"])
        act = getattr(self, f"_{options['act']}")
        try:
            act(tenant, user, Scope(tenant.pk, user.pk), options)
        except AppError as error:
            raise CommandError(str(error)) from error

    def _list(self, tenant: Tenant, user: User, scope: Scope, options: dict[str, Any]) -> None:
        record(tenant, actor=None, subject=user, action="memories.read")
        found = face.list(
            scope, kind=options["kind"], state=options["state"], limit=options["limit"]
        )
        self._show(found)

    def _search(self, tenant: Tenant, user: User, scope: Scope, options: dict[str, Any]) -> None:
        record(tenant, actor=None, subject=user, action="memories.read")
        found = search(scope, query=options["query"], limit=listed(options["limit"]))
        why = Reasons()
        for one in found.memories:
            said = why.found(found.ranked.get(one.pk))
            score = "    " if said["score"] is None else f"{said['score']:.2f}"
            self._line(one, f"{score}  ")
            self.stdout.write(f"{'':38}because: {said['because']}")
        of_all = f" of {found.total}" if found.total > len(found.memories) else ""
        self.stdout.write(f"{len(found.memories)}{of_all} shown.")
        if found.by_words:
            self.stdout.write("Searched by words alone: the embedder did not answer in time.")

    def _show(self, memories: list[Memory]) -> None:
        for one in memories:
            self._line(one)
        self.stdout.write(f"{len(memories)} shown.")

    def _line(self, one: Memory, score: str = "") -> None:
        text = one_line(one.text)[:SHOWN_CHARS]
        self.stdout.write(f"{one.pk}  {score}{one.created_at:%Y-%m-%d}  {one.kind:8}  {text}")

    def _remember(self, tenant: Tenant, user: User, scope: Scope, options: dict[str, Any]) -> None:
        kept = face.remember(scope, text=options["text"])
        record(tenant, actor=None, subject=user, action="memories.added", counts={"memories": 1})
        self.stdout.write(f"{kept.pk}  {kept.status}")
        if kept.by_words:
            self.stdout.write(
                "Found by its words for now: the embedder did not answer in time."
                " The background worker makes its vector."
            )

    def _forget(self, tenant: Tenant, user: User, scope: Scope, options: dict[str, Any]) -> None:
        gone = face.forget(scope, memory=options["memory"])
        counts = {"memories": 1}
        record(tenant, actor=None, subject=user, action="memories.forgotten", counts=counts)
        self.stdout.write(f"{gone.pk}  in the trash")

    def _purge(self, tenant: Tenant, user: User, scope: Scope, options: dict[str, Any]) -> None:
        for kind, count in face.preview(scope, what=options["what"]).items():
            self.stdout.write(f"{count:>9,}  {kind}")
        if not options["yes"] and not self._sure(user):
            raise CommandError("Nothing was erased.")
        with transaction.atomic():  # nothing is erased that the audit does not know of
            counts = face.purge(scope, what=options["what"])
            record(
                tenant,
                actor=None,
                subject=user,
                action=f"{options['what']}.purged",
                counts=counts,
                reason=options["reason"],
            )
        self.stdout.write("Erased for good:")
        for kind, count in counts.items():
            self.stdout.write(f"{count:>9,}  {kind}")

    def _sure(self, user: User) -> bool:
        self.stdout.write(f"This erases all of that for good. Type {user.email} to go on:")
        try:
            return input().strip().casefold() == user.email.casefold()
        except EOFError:
            return False


def _place(slug: str, email: str) -> tuple[Tenant, User]:
    """Return the tenant and the person; CommandError unless they belong together."""
    tenant = Tenant.objects.filter(slug=slug).first()
    user = User.objects.with_email(email)
    if tenant is not None and user is not None:
        with entered_tenant(tenant.pk):
            if Membership.objects.filter(tenant=tenant, user=user).exists():
                return tenant, user
    raise CommandError("There is no person with this address in this tenant.")
