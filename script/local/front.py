"""How each script begins and ends."""

import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from local.progress import say
from local.refusal import Refusal


def command(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a script's main function with its arguments, and exit with its code.

    SIGTERM and SIGHUP unwind as Ctrl-C does, so that whatever was started is stopped.
    """
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    try:
        sys.exit(main(sys.argv[1:]))
    except Refusal as refusal:
        say(str(refusal))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)
