"""Make everybody's memories findable by the embedder, or in the provider, that is in force now."""

import sys
import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.management.base import OutputWrapper as Output
from django.utils import timezone

from accounts.errors import AppError, ProviderError
from accounts.models import Tenant
from accounts.scope import Scope
from memory import embedder, jobs, reembed
from memory.models import JobTicket
from memory.reembed import embedding_progress

LOOKS_AGAIN = 0.5  # seconds, at what another process works on
LINE_SECONDS = 10.0  # between two lines where no terminal is
BAR = 30
STOPPED = 128 + 2  # the exit code of who is stopped by Ctrl-C


class Command(BaseCommand):
    help = (
        "Make every memory findable by the embedder in force: after a change of it, of the length"
        " of its vectors, or of MEMORY_PROVIDER. Everything works meanwhile. It may be stopped by"
        " Ctrl-C and started again at any time: what is done stays done, and who lacks nothing"
        " costs nothing. Exit code 0: all is done; 1: it failed, and says why; 130: stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="only this tenant's people")
        parser.add_argument(
            "--dry-run", action="store_true", help="only say how much there is to do"
        )
        parser.add_argument(
            "--in-background", action="store_true", help="leave it to the background worker"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = _tenant(options["tenant"])
        try:
            chosen = embedder.follow()
            if not options["dry_run"]:
                chosen.embed([reembed.PLAIN])
            lacking, total = _survey(tenant)
        except KeyboardInterrupt:
            self.stderr.write("Stopped: nothing was changed.")
            sys.exit(STOPPED)
        except AppError as error:
            raise CommandError(f"{error} Nothing was changed.") from error
        left = sum(lacking.values())
        self._say_what_there_is(chosen.name, total, left, len(lacking))
        if options["dry_run"] or not left:
            return
        if options["in_background"]:
            made = reembed.everyone(tenant)
            self.stdout.write(
                f"Queued for {made:,} people. The operator's page shows how far it is."
            )
            return
        bar = Bar(self.stdout, left)
        try:
            if tenant is None:
                reembed.note_run(began_at=timezone.now(), total=total, missing=left)
            self._embed(lacking, bar)
        except KeyboardInterrupt:
            bar.end()
            self.stderr.write(
                f"Stopped: {bar.done:,} of {left:,} are done, and stay so. The background worker"
                " goes on with the rest, or run this again."
            )
            sys.exit(STOPPED)
        except AppError as error:
            bar.end()
            raise CommandError(
                f"{error} {bar.done:,} of {left:,} are done, and stay so. Run this again to go on."
            ) from error
        bar.end()
        lacking, total = _survey(tenant)
        self._say_what_came_of_it(total, sum(lacking.values()), bar.seconds)

    def _say_what_there_is(self, model: str, total: int, left: int, people: int) -> None:
        dims = embedder.known_dims()
        by = f"{model} ({dims:,} dimensions)" if dims else model
        if not left:
            self.stdout.write(f"All {total:,} memories are embedded by {by}.")
            return
        self.stdout.write(
            f"{total - left:,} of {total:,} memories are embedded by {by};"
            f" {left:,} are not, of {people:,} {'person' if people == 1 else 'people'}."
        )

    def _say_what_came_of_it(self, total: int, left: int, seconds: float) -> None:
        self.stdout.write(f"{total - left:,} of {total:,} are embedded, after {seconds:.0f} s.")
        if left:
            self.stdout.write(
                f"{left:,} have no words that could be embedded, were refused by the embedder, or"
                " were added meanwhile."
            )

    def _embed(self, lacking: Mapping[Scope, int], bar: "Bar") -> None:
        # Without a hint: the workers come to help at the next sweep, to whom nobody has come yet.
        queued = {
            scope: reembed.queue(scope, left=left, hint=False) for scope, left in lacking.items()
        }
        for scope, job in queued.items():
            self._embed_one(job, lacking[scope], bar)

    def _embed_one(self, job: UUID, left: int, bar: "Bar") -> None:
        """Embed one person's; where a worker has them in hand, watch it until it is done."""
        before = bar.done

        def told(still: int) -> None:
            bar.reach(before + max(0, left - still))

        while (ticket := JobTicket.objects.filter(job_id=job).first()) is not None:
            claimed = jobs.claim(job)
            if claimed is None:
                told(ticket.to_do or 0)
                time.sleep(LOOKS_AGAIN)
                continue
            try:
                reembed.embed_missing(claimed, told=told)
            except jobs.Overtaken:
                continue  # a purge, or a worker that was faster
            except ProviderError as error:
                jobs.release(claimed, error)
                raise
            except BaseException:
                jobs.give_back(claimed)
                raise
        told(0)


class Bar:
    """How far it is: one line that is drawn anew on a terminal, a line now and then elsewhere."""

    def __init__(self, out: Output, total: int) -> None:
        self.total = total
        self.done = 0
        self._out = out
        self._live = out.isatty()
        self._began = self._told = time.monotonic()
        self._show()

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def reach(self, done: int) -> None:
        """Show that so many are done."""
        if done == self.done:
            return
        self.done = min(done, self.total)
        now = time.monotonic()
        if self._live or now - self._told >= LINE_SECONDS:
            self._told = now
            self._show()

    def end(self) -> None:
        """Leave the line as it stands."""
        if self._live:
            self._out.write("")
        else:
            self._show()

    def _show(self) -> None:
        told = f"{self.done:,} of {self.total:,} ({100 * self.done // self.total} %){self._ahead()}"
        if not self._live:
            self._out.write(f"  {told}")
            return
        full = BAR * self.done // self.total
        self._out.write(f"\r\x1b[K  [{'#' * full}{'.' * (BAR - full)}] {told}", ending="")
        self._out.flush()

    def _ahead(self) -> str:
        """Say how long it will take, once the pace is known."""
        left = self.total - self.done
        if not left or self.seconds < 2 or not self.done:
            return ""
        return f", about {_span(max(1, self.seconds * left / self.done))} left"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes}:{rest:02} min"


def _tenant(slug: str | None) -> Tenant | None:
    if slug is None:
        return None
    found = Tenant.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(f"There is no tenant {slug}.")
    return found


def _survey(tenant: Tenant | None) -> tuple[dict[Scope, int], int]:
    """Return how many memories each person lacks who lacks any, and how many there are in all."""
    lacking: dict[Scope, int] = {}
    total = 0
    for scope in reembed.people(tenant):
        progress = embedding_progress(scope)
        total += progress.total
        if progress.left:
            lacking[scope] = progress.left
    return lacking, total
