"""script/bench pages: the server's time for a person's main pages, with 1,000 sessions.

The pages are asked for one after another over one connection, logged in, by the web server that we
ship. The floor is the least that the same server does for any answer: a bare ASGI application.
"""

import argparse
import http.client
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local.front import command
from local.progress import say, step
from local.refusal import Refusal

from .rig.floors import StartFailed, floors, log_folder
from .rig.installation import Installation, seed, vacuum
from .rig.processes import cpu_of
from .rig.tally import Target, percentile, table

SESSIONS = 1_000
MEMORIES = 1_000
MESSAGES = 100
LIST_MS = 50.0
LISTS = {"new session, with the list", "list of sessions, first 50"}


@dataclass(slots=True)
class Page:
    """One address, and the ms and CPU ms that it took each time."""

    name: str
    port: int
    path: str
    cookie: str
    pid: int
    wall: list[float] = field(default_factory=list)
    cpu: float = 0.0
    size: int = 0
    partial: bool = False

    def get(self, connection: http.client.HTTPConnection, times: int) -> None:
        """Ask so many times, after one time that does not count."""
        headers = {"cookie": self.cookie} | ({"HX-Request": "true"} if self.partial else {})
        for number in range(times + 1):
            used = cpu_of([self.pid])
            start = time.perf_counter()
            connection.request("GET", self.path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            took = 1000 * (time.perf_counter() - start)
            self.size = len(body)
            if answer.status != 200:
                raise StartFailed(f"{self.path} answered with status {answer.status}.")
            if number:
                self.wall.append(took)
                self.cpu += 1000 * (cpu_of([self.pid]) - used)

    def row(self) -> list[object]:
        """Return a line of the table."""
        return [
            self.name,
            percentile(self.wall, 50),
            percentile(self.wall, 95),
            self.cpu / len(self.wall),
            self.size / 1024,
        ]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; write JSON where asked for; exit 1 with --check if a target is missed."""
    parser = argparse.ArgumentParser(prog="script/bench pages", description="Measure the pages.")
    parser.add_argument("--times", type=int, default=50, help="how often each is asked for")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="of the person")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    wanted = parser.parse_args(arguments)
    if not 1 <= wanted.times <= 10_000 or not 1 <= wanted.sessions <= 100_000:
        parser.error("--times takes a number from 1 to 10,000, --sessions from 1 to 100,000")
    try:
        pages = measured(wanted)
    except StartFailed as failure:
        raise Refusal(str(failure)) from failure
    head = ["page, ms", "p50", "p95", "CPU of web", "KiB"]
    print("\n" + table(head, [page.row() for page in pages]))
    targets = [
        Target(f"{page.name}, p50", percentile(page.wall, 50), LIST_MS)
        for page in pages
        if page.name in LISTS
    ]
    print("\n" + "\n".join(target.shown() for target in targets))
    if wanted.json:
        shown = [
            {name: value for name, value in asdict(page).items() if name not in {"cookie", "pid"}}
            for page in pages
        ]
        Path(wanted.json).write_text(json.dumps(shown, indent=1) + "\n")
        say(f"Written to {wanted.json}.")
    return 1 if wanted.check and not all(target.met for target in targets) else 0


def measured(wanted: argparse.Namespace) -> list[Page]:
    """Return the pages with their times, the floor first."""
    with ExitStack() as stack:
        with step(f"A person with {wanted.sessions:,} sessions and {MEMORIES:,} memories"):
            someone, long = seed(
                {"people": 1, "memories": MEMORIES, "sessions": wanted.sessions, "messages": 2},
                {"people": 1, "memories": 0, "sessions": 1, "messages": MESSAGES},
            )
            vacuum()
        with step("Web server and workers"):
            stub, relay = stack.enter_context(floors(log_folder()))
            installation = stack.enter_context(Installation(stub.url))
            someone, long = installation.log_in(someone), installation.log_in(long)
        web = installation.web
        own = f"/t/{someone.slug}/"
        addresses = [
            ("new session, with the list", own),
            ("list of sessions, first 50", f"{own}sessions/"),
            ("session of 2 messages", f"{own}sessions/{someone.sessions[0]}/"),
            ("memory", f"{own}memory/"),
            ("memory, searched", f"{own}memory/?q=dinner"),
        ]
        pages = [Page("floor: bare ASGI", relay.port, "/", "", relay.running.pid)]
        pages += [
            Page(name, web.port, path, someone.cookie, web.running.pid) for name, path in addresses
        ]
        pages[2].partial = True  # asked for by htmx alone
        path = f"/t/{long.slug}/sessions/{long.sessions[0]}/"
        pages.append(
            Page(f"session of {MESSAGES} messages", web.port, path, long.cookie, web.running.pid)
        )
        with step(f"{len(pages)} pages, {wanted.times} times each"):
            for page in pages:
                connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
                page.get(connection, wanted.times)
                connection.close()
    return pages


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    command(main)
