"""Print the link by which a fresh installation gets its first operator."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.urls import reverse

from accounts.first import new_link


class Command(BaseCommand):
    help = (
        "Print a one-time link, good for 24 hours, that makes the first operator. "
        "Prints nothing once there is one. Each new link replaces the one before."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        token = new_link()
        if token is not None:
            address = f"http://127.0.0.1:{settings.PORT}{reverse('first', args=[token])}"
            self.stdout.write(address)
