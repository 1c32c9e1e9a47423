"""script/bench: runs a benchmark, with servers of its own.

script/bench                     lists the benchmarks
script/bench NAME [ARGUMENTS]    starts fresh servers, migrates, runs script/benches/NAME.py
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from local.front import command
from local.progress import say, step
from local.refusal import Refusal
from local.state import CLONE
from local.test import HARMFUL, borrowed, variables, wait

BENCHES = CLONE / "script" / "benches"
# Of these the database takes minutes to make, and is kept for the next run.
KEPT = {"memory"}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument names; the exit code is its own."""
    names = sorted(file.stem for file in BENCHES.glob("[a-z]*.py"))
    if not arguments:
        say(f"script/bench NAME [ARGUMENTS], where NAME is one of: {', '.join(names) or 'none'}")
        return 2
    name, *rest = arguments
    if name not in names:
        raise Refusal(f"There is no benchmark '{name}'; there is: {', '.join(names) or 'none'}.")
    # As an installation has it: durable writes are part of what is measured.
    kind = f"bench-{name}" if name in KEPT else "bench"
    with borrowed(kind, durable=True, fresh=name not in KEPT) as own:
        environment = {key: value for key, value in os.environ.items() if key not in HARMFUL}
        environment |= variables(own)
        environment |= {
            "DJANGO_SETTINGS_MODULE": "chatapp.settings",
            "PYTHONPATH": os.pathsep.join([str(CLONE / "script"), str(CLONE)]),
        }
        with step("Migrations"):
            migrated = subprocess.run(
                [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"],
                cwd=CLONE,
                env=environment,
                check=False,
            )
        if migrated.returncode:
            raise Refusal("The migrations failed, so nothing was measured.")
        child = subprocess.Popen(
            [sys.executable, "-m", f"benches.{name}", *rest], cwd=CLONE, env=environment
        )
        return wait(child)


if __name__ == "__main__":
    command(main)
