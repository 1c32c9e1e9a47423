"""`python -m local.keeper -n -c FILE`: supervisord, which starts its programs at once.

As it comes it first looks at them a second after it has started.
"""

import sys
from contextlib import suppress

from supervisor import supervisord
from supervisor.medusa.asyncore_25 import ExitNow
from supervisor.options import ServerOptions


class Keeper(supervisord.Supervisor):  # type: ignore[misc]
    """supervisord without the idle second."""

    def runforever(self) -> None:
        """Start what is to be started, then look after it until a signal says stop."""
        for group in self.process_groups.values():
            group.transition()
        super().runforever()


def main() -> None:
    """What supervisord.main does, once: script/server starts it again if it ends."""
    options = ServerOptions()
    options.realize(sys.argv[1:], doc=supervisord.__doc__)
    options.first = True
    options.test = False
    with suppress(ExitNow):
        Keeper(options).main()
    options.close_httpservers()
    options.close_logger()


if __name__ == "__main__":
    main()
