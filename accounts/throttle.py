"""How often something may be tried, counted in Postgres, so that it stands without Redis.

A try is counted before it is made, under a lock of its key: however many come at once, no more
than the limit get through within any window.
"""

import math
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import ngettext

from accounts.errors import TooMuch
from accounts.models import Attempt


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many tries of this name within any such number of seconds."""

    name: str
    most: int
    seconds: int


LOGIN_ACCOUNT = Limit("login, account and network", 10, 15 * 60)
LOGIN_NETWORK = Limit("login, network", 100, 15 * 60)
SIGN_UP_NETWORK = Limit("sign-up, network", 100, 60 * 60)
RESET_ACCOUNT = Limit("reset, account", 5, 60 * 60)
RESET_NETWORK = Limit("reset, network", 30, 60 * 60)
NEW_ADDRESS = Limit("new address, account", 5, 60 * 60)
CONFIRM = Limit("password asked again", 10, 15 * 60)

LONGEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Try:
    """One thing that is tried: under which limit, and by or for whom."""

    limit: Limit
    who: str

    @property
    def key(self) -> str:
        """What is stored: nobody reads an address or a network out of it."""
        return salted_hmac(
            "accounts.throttle", f"{self.limit.name}\0{self.who}", algorithm="sha256"
        ).hexdigest()


class Taken:
    """Tries that were counted; given back when they turn out to be no harm."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def give_back(self) -> None:
        """Count these tries no longer."""
        Attempt.objects.filter(pk__in=self.ids).delete()


def take(*tries: Try) -> Taken:
    """Count a try under each of its limits; TooMuch, and nothing counted, where one is reached."""
    now = timezone.now()
    with transaction.atomic():
        _lock([each.key for each in tries])
        for each in tries:
            wait = _wait(each, now.timestamp())
            if wait > 0:
                raise too_much(wait)
        made = Attempt.objects.bulk_create([Attempt(key=each.key, at=now) for each in tries])
    return Taken([attempt.pk for attempt in made])


def forget(*tries: Try) -> None:
    """Forget what was counted for these: the right person has come."""
    Attempt.objects.filter(key__in=[each.key for each in tries]).delete()


def sweep() -> int:
    """Delete what no limit looks at any more; return how many."""
    return Attempt.objects.filter(at__lt=timezone.now() - LONGEST).delete()[0]


def too_much(wait: float) -> TooMuch:
    """Return the error that says how long to wait."""
    seconds = max(1, math.ceil(wait))
    number = math.ceil(seconds / 60) if seconds >= 60 else seconds
    if seconds >= 60:
        sentence = ngettext(
            "Too many tries. Try again in %(number)d minute.",
            "Too many tries. Try again in %(number)d minutes.",
            number,
        )
    else:
        sentence = ngettext(
            "Too many tries. Try again in %(number)d second.",
            "Too many tries. Try again in %(number)d seconds.",
            number,
        )
    return TooMuch(sentence % {"number": number}, retry_after=seconds)


def _lock(keys: list[str]) -> None:
    numbers = sorted(int.from_bytes(bytes.fromhex(key[:16]), signed=True) for key in keys)
    with connection.cursor() as cursor:
        for number in numbers:  # in one order everywhere, so that two can't wait for each other
            cursor.execute("select pg_advisory_xact_lock(%s)", [number])


def _wait(each: Try, now: float) -> float:
    """Return for how many seconds the limit stays reached; 0 or less when it is not."""
    limit = each.limit
    times = (Attempt.objects.filter(key=each.key).order_by("-at").values_list("at", flat=True))[
        limit.most - 1 : limit.most
    ]
    return max((at.timestamp() + limit.seconds - now for at in times), default=0)
