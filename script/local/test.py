"""script/test: the tests, with servers of their own.

    script/test [PYTEST ARGUMENTS]   start servers, run the tests, stop the servers; without
                                     arguments all of them, the browser's behind the others
    script/test --keep [ARGUMENTS]   the same, and leave the servers running for the next time
    script/test --env [NAME]         have servers running under a name and print their variables,
                                     for `eval "$(script/test --env)"` and then .venv/bin/pytest;
                                     two people, or two jobs at once, take two names
    script/test --stop [NAME]        stop the servers that were left running: one, or all

Each set of servers lies in a folder of its own under test/ in the state folder, never in that of
script/server, and keeps nothing safe from a crash of the machine: it is fast instead.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from local import account, chromium, servers, state
from local.front import command
from local.progress import say, step
from local.refusal import Refusal
from local.servers import Servers
from local.state import ADDRESSES, CLONE, State

NAMED = "shared"
MOST_AT_ONCE = 16
# A journey shares the processors with a whole product, so these go one by one.
JOURNEYS = "tests/browser"
# pytest's exit codes for a run that came to its end, well or not; one broken off ends all.
FINISHED = (0, 1)
HARMFUL = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "CHAT_MODEL", "MEMORY_PROVIDER", "RECOLLECT_AS"),
    *ADDRESSES,
)


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; the exit code is pytest's."""
    match list(arguments):
        case ["--env", *name] if len(name) < 2:
            folder = _folder() / _valid(name[0] if name else NAMED)
            print(exports(_kept(folder)))
            return 0
        case ["--stop", *name] if len(name) < 2:
            return _stop(_valid(name[0]) if name else None)
        case ["--keep", *rest]:
            return _run(rest, keep=True)
        case rest:
            return _run(rest, keep=False)


def variables(own: State) -> dict[str, str]:
    """What a test process needs to find these servers and no others."""
    return {"RECOLLECT_STATE": str(own.folder), **state.read_env(own.env)}


def exports(own: State) -> str:
    """The same as lines for a shell."""
    return "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in variables(own).items()
    )


@contextmanager
def borrowed(
    kind: str, *, keep: bool = False, durable: bool = False, fresh: bool = False
) -> Iterator[State]:
    """Servers that nobody else uses meanwhile, stopped at the end unless they are to be kept.

    `fresh` begins without the data of a former run, and leaves none.
    """
    with ExitStack() as stack:
        folder = _free(kind, stack)
        own = State(folder)
        if fresh:
            _empty(own)
        running = _of(own, durable=durable)
        try:
            running.start()
            yield own
        finally:
            if keep:
                say("The servers are left running; script/test --stop stops them.")
            else:
                with step("Servers stopped"):
                    running.stop()
                    if fresh:
                        _empty(own)


def _empty(own: State) -> None:
    if own.keys.exists():
        servers.of(own).stop()
    for path in (own.folder / "postgres", own.folder / "valkey"):
        shutil.rmtree(path, ignore_errors=True)
    for file in (own.keys, own.env):
        file.unlink(missing_ok=True)


def _run(arguments: Sequence[str], *, keep: bool) -> int:
    browser = chromium.found(needed=not arguments)
    with borrowed("test", keep=keep) as own:
        environment = {name: value for name, value in os.environ.items() if name not in HARMFUL}
        environment |= variables(own)
        if browser:
            environment["RECOLLECT_CHROMIUM"] = browser
        worst = 0
        for given in passes(arguments, processors=os.cpu_count() or 1):
            code = wait(
                subprocess.Popen(
                    [sys.executable, "-m", "pytest", *given], cwd=CLONE, env=environment
                )
            )
            if code not in FINISHED:
                return code
            worst = worst or code
        return worst


def passes(arguments: Sequence[str], *, processors: int) -> list[list[str]]:
    """The arguments of each run of pytest: one as it is asked for, or two that make up all."""
    if arguments:
        return [list(arguments)]
    # A file stays in one process: its tests share what they start. More than four processes only
    # wait for the one Postgres.
    together = ["-n", str(min(processors, 4)), "--dist", "loadfile"] if processors > 1 else []
    return [[*together, f"--ignore={JOURNEYS}"], [JOURNEYS]]


def wait(child: "subprocess.Popen[bytes]") -> int:
    """The child's exit code. A signal to this process reaches the child, which ends first."""

    def pass_on(number: int, _frame: object) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    # Ctrl-C reaches the child by itself: the terminal sends it to both.
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _kept(folder: Path) -> State:
    own = _prepared(folder)
    with state.locked(own.run / "lock"):
        _of(own, durable=False).start()
    return own


def _stop(name: str | None) -> int:
    folder = _folder()
    busy = 0
    for found in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not (found / "servers.json").exists() or (name and found.name != name):
            continue
        own = State(found)
        with state.locked(own.run / "lock", wait=False) as free:
            if free:
                _of(own, durable=False).stop()
                say(f"Stopped {found}.")
            else:
                busy += 1
                say(f"{found} is in use; it was left running.")
    return 1 if busy else 0


def _free(kind: str, stack: ExitStack) -> Path:
    """A folder that no other run uses; it stays ours until the stack is closed."""
    for number in range(1, MOST_AT_ONCE + 1):
        folder = _folder(kind) / f"run-{number}"
        own = _prepared(folder)
        if stack.enter_context(state.locked(own.run / "lock", wait=False)):
            return folder
    raise Refusal(f"{MOST_AT_ONCE} runs of script/{kind} are under way; wait for one to end.")


def _folder(kind: str = "test") -> Path:
    """Where the servers of tests (or benchmarks) lie."""
    chosen, _ = state.chosen(os.environ, account.current())
    # In a shell that has the variables of --env, that is a folder of test servers.
    found = State(chosen)
    base = Path(found.borrowed.read_text()) if found.for_tests() else chosen
    return state.prepared(base).folder / kind


def _prepared(folder: Path) -> State:
    own = state.prepared(folder)
    own.borrowed.write_text(str(folder.parents[1]))
    return own


def _of(own: State, *, durable: bool) -> Servers:
    return servers.of(own, durable=durable)


def _valid(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        raise Refusal("A name of servers consists of at most 40 letters, digits, - and _.")
    return name


if __name__ == "__main__":
    command(main)
