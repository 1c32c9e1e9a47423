"""Let a person in no longer, or again."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.join import disable, enable
from accounts.models import User


class Command(BaseCommand):
    help = "Disable a person's account (their logins end at once), or enable it again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["disable", "enable"])
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.with_email(options["email"])
        if user is None:
            raise CommandError("There is no account with this address.")
        (disable if options["action"] == "disable" else enable)(user)
        self.stdout.write(f"{user.email}: {options['action']}d.")
