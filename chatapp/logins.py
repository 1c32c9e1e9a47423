"""Whether the logins behind the open pages still hold: checked with every action, and in between.

A login that ends closes its pages by a bell (chatapp.bells.end_sockets). Bells can be lost; this
finds what they missed.
"""

import asyncio
import logging

from django.db import Error as DatabaseError

from chatapp import frames
from chatapp.hub import Hub, Page
from chatapp.steps import step
from chatapp.visitor import LoginEnded

logger = logging.getLogger(__name__)

CHECK_SECONDS = 60.0
LOOK_SECONDS = 3.0
AT_ONCE = 20


class Logins:
    """When the login behind each page was last seen to hold."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.checked: dict[Page, float] = {}

    def add(self, page: Page) -> None:
        """Watch over a page whose login was just checked."""
        self.checked[page] = self.hub.loop.time()

    def discard(self, page: Page) -> None:
        """Forget a page."""
        self.checked.pop(page, None)

    async def check(self, page: Page) -> None:
        """Raise LoginEnded unless the login behind the page still holds."""
        await step(page.visitor.check)
        if page in self.checked:  # it may have been closed meanwhile
            self.checked[page] = self.hub.loop.time()

    async def run(self) -> None:
        """Check the logins of pages that have not asked for anything for a while."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            oldest = self.hub.loop.time() - CHECK_SECONDS
            for page in [page for page, at in self.checked.items() if at < oldest][:AT_ONCE]:
                try:
                    await self.check(page)
                except LoginEnded:
                    page.end(frames.LOGIN_ENDED)
                except DatabaseError:
                    break  # a later look finds them
                except Exception:
                    logger.exception("a login could not be checked")
