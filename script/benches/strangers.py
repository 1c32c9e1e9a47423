"""script/bench strangers: whether the server's time tells somebody else's id from an unknown one.

A stranger asks for another person's session, and for sessions that do not exist, in turn, over one
connection. The floor is what chance does: the unknown ids against other unknown ids. That both
run the same queries is a test (tests/chatapp/test_strangers.py); this is about the clock.
"""

import argparse
import http.client
import json
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from local.front import command
from local.progress import say, step
from local.refusal import Refusal

from .rig.floors import StartFailed, floors, log_folder
from .rig.installation import Installation, seed, vacuum
from .rig.tally import Target, percentile, table

DIFFERENCE_MS = 0.5
ACTS = (("GET", ""), ("POST", "rename/"), ("POST", "delete/"))


@dataclass(slots=True)
class Kind:
    """The ms that answers to one kind of id took."""

    name: str
    wall: list[float] = field(default_factory=list)

    def row(self) -> list[object]:
        """Return a line of the table."""
        return [self.name, percentile(self.wall, 50), percentile(self.wall, 95), len(self.wall)]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; write JSON where asked for; exit 1 with --check if time tells."""
    parser = argparse.ArgumentParser(prog="script/bench strangers", description="Compare 404s.")
    parser.add_argument("--times", type=int, default=300, help="rounds")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--check", action="store_true", help="exit 1 when the target is missed")
    wanted = parser.parse_args(arguments)
    if not 10 <= wanted.times <= 10_000:
        parser.error("--times takes a number from 10 to 10,000")
    try:
        foreign, unknown, other = measured(wanted.times)
    except StartFailed as failure:
        raise Refusal(str(failure)) from failure
    head = ["answer to, ms", "p50", "p95", "times"]
    print("\n" + table(head, [kind.row() for kind in (foreign, unknown, other)]))
    middle = percentile(unknown.wall, 50)
    by_chance = abs(percentile(other.wall, 50) - middle)
    target = Target(
        "somebody else's against an unknown one, p50",
        abs(percentile(foreign.wall, 50) - middle),
        DIFFERENCE_MS,
    )
    print(f"\nUnknown ids among themselves differ by {by_chance:.2f} ms.\n{target.shown()}")
    if wanted.json:
        shown = {kind.name: kind.wall for kind in (foreign, unknown, other)}
        Path(wanted.json).write_text(json.dumps(shown, indent=1) + "\n")
        say(f"Written to {wanted.json}.")
    return 1 if wanted.check and not target.met else 0


def measured(times: int) -> tuple[Kind, Kind, Kind]:
    """Return how long 404s took for somebody else's id, unknown ids, and unknown ids again."""
    kinds = Kind("somebody else's id"), Kind("an unknown id"), Kind("an unknown id, again")
    with ExitStack() as stack:
        with step("Two people"):
            someone, stranger = seed(
                {"people": 1, "memories": 0, "sessions": 1, "messages": 2},
                {"people": 1, "memories": 0, "sessions": 1, "messages": 2},
            )
            vacuum()
        with step("Web server and workers"):
            stub, _relay = stack.enter_context(floors(log_folder()))
            installation = stack.enter_context(Installation(stub.url))
            stranger = installation.log_in(stranger)
        connection = http.client.HTTPConnection("127.0.0.1", installation.web.port, timeout=30)
        with step(f"{times} rounds of {len(ACTS)} acts"):
            for number in range(times + 1):
                for method, act in ACTS:
                    for kind in kinds[number % 3 :] + kinds[: number % 3]:
                        theirs = kind is kinds[0]
                        id = someone.sessions[0] if theirs else UUID(bytes=secrets.token_bytes(16))
                        path = f"/t/{stranger.slug}/sessions/{id}/{act}"
                        took = asked(connection, method, path, stranger.cookie)
                        if number:
                            kind.wall.append(took)
        connection.close()
    return kinds


def asked(connection: http.client.HTTPConnection, method: str, path: str, cookie: str) -> float:
    """Return the ms until the answer, which must be that there is nothing here."""
    token = secrets.token_hex(16)
    headers = {"cookie": f"{cookie}; csrftoken={token}", "X-CSRFToken": token}
    start = time.perf_counter()
    connection.request(method, path, body="" if method == "POST" else None, headers=headers)
    answer = connection.getresponse()
    answer.read()
    took = 1000 * (time.perf_counter() - start)
    if answer.status != 404:
        raise StartFailed(f"{method} {path} answered with status {answer.status}, not 404.")
    return took


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    command(main)
