"""script/console: Django's shell on the running installation, as the application's role.

script/console [ARGUMENTS OF `manage.py shell`]
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from local import account, servers, state
from local.front import command
from local.refusal import Refusal
from local.state import CLONE, State


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the shell."""
    folder, _ = state.chosen(os.environ, account.current())
    own = State(folder)
    given = state.own_addresses(
        os.environ,
        state.read_env(own.env),
        state.keys_of(own) if own.keys.exists() else None,
    )
    if not own.env.exists() or servers.of(own, without=given).dead():
        raise Refusal(f"Nothing runs in {folder}: start script/server first, in another terminal.")
    os.chdir(CLONE)
    environment = {**os.environ, "RECOLLECT_STATE": str(folder), "PYTHONPATH": str(CLONE)}
    os.execve(  # noqa: S606 - no shell wanted
        sys.executable, [sys.executable, "manage.py", "shell", *arguments], environment
    )


if __name__ == "__main__":
    command(main)
