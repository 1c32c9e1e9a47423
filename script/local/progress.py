"""One line for each step, with the seconds that it took, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

WIDTH = 52


class Step:
    """The line that is being written; `name` may be changed until the step ends."""

    def __init__(self, name: str) -> None:
        self.name = name


def say(text: str = "") -> None:
    """Print a line for the person at the terminal."""
    _write(text + "\n")


@contextmanager
def step(name: str) -> Iterator[Step]:
    """Show that a step has begun, and its duration in seconds when it ends."""
    started = time.monotonic()
    live = sys.stderr.isatty()
    line = Step(name)
    if live:
        _write(f"  {name} ...")
    end = "failed after"
    try:
        yield line
        end = ""
    finally:
        seconds = f"{end} {time.monotonic() - started:.1f} s".strip()
        clear = "\r\x1b[K" if live else ""
        say(f"{clear}  {line.name} {'.' * max(2, WIDTH - len(line.name))} {seconds}")


def _write(text: str) -> None:
    # The terminal may be gone (SIGHUP): that must not keep the servers from being stopped.
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
