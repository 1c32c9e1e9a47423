"""What keeps a reply from being lost with its process: kept while it runs, ended by another.

Every two seconds the running texts go to their rows, with a longer lease. Every three, each web
process looks at the table of tickets for what nobody writes any more.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError

from chatapp import turn
from chatapp.running import LOST, Running
from chatapp.steps import step
from chatapp.turn import Overdue

if TYPE_CHECKING:
    from chatapp.replies import Replies

logger = logging.getLogger(__name__)

KEEP_SECONDS = 2.0
RENEW_SECONDS = 5.0
RECOVER_SECONDS = 3.0


class Recovery:
    """Keeps the replies of one process, and recovers those of processes that are gone."""

    def __init__(self, replies: "Replies") -> None:
        self.replies = replies

    async def keep(self) -> None:
        """Store the running texts every two seconds, and lengthen their leases."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            now = self.replies.hub.loop.time()
            for running in list(self.replies.running.values()):
                fresh = running.journal.n > running.kept
                due = fresh or now - running.kept_at > RENEW_SECONDS
                if not due or running.reason or running.over:
                    continue
                try:
                    await self._keep_one(running)
                except DatabaseError:
                    logger.warning("a running reply can't be kept: the database is away")
                except Exception:  # the others are to be kept all the same
                    logger.exception("keeping failed", extra={"reply": str(running.reply_id)})

    async def _keep_one(self, running: Running) -> None:
        n = running.journal.n
        text = running.journal.text()
        held = await step(turn.keep, running.turn, text=text, memory_note=running.note)
        running.kept, running.kept_at = n, self.replies.hub.loop.time()
        if not held and not running.reason and not running.over:
            logger.warning("a reply is no longer ours", extra={"reply": str(running.reply_id)})
            running.stop(LOST)

    async def recover(self) -> None:
        """Claim what waits for nobody, and end what nobody writes any more."""
        while True:
            try:
                await self._recover_once()
            except DatabaseError as error:
                logger.warning("recovery waits: %s", type(error).__name__)
            except Exception:
                logger.exception("recovery failed")
            await asyncio.sleep(RECOVER_SECONDS)

    async def _recover_once(self) -> None:
        if self.replies.stopping:
            return
        for due in await step(turn.overdue):
            if due.reply_id in self.replies.running:
                continue
            try:
                await self._recover_one(due)
            except DatabaseError:
                raise
            except Exception:  # the others are to be recovered all the same
                logger.exception("recovery failed", extra={"reply": str(due.reply_id)})

    async def _recover_one(self, due: Overdue) -> None:
        shelf = self.replies.shelf
        texts = await shelf.read(due.reply_id)
        ended = await step(turn.interrupt, due.scope, due.reply_id, text="".join(texts))
        if ended is None:
            await self.replies.claim(due.scope, due.session_id)
            return
        logger.warning("a reply was interrupted", extra={"reply": str(due.reply_id)})
        shelf.drop(due.reply_id)
        shelf.erase(due.reply_id)
        await self.replies.show_ended(due.scope, ended)
