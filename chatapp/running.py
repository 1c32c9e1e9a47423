"""A reply that this process writes, and how it ended."""

import asyncio
import logging
from dataclasses import dataclass, field

from django.db import Error as DatabaseError

from accounts.errors import AppError
from accounts.models import Tenant
from chatapp.models import Message
from chatapp.steps import Away
from chatapp.stream import Stream
from chatapp.turn import Turn
from memory.recall import Recall
from memory.vectors import Embedded

logger = logging.getLogger(__name__)

LOST = "lost"  # the row is somebody else's or gone: there is nothing to store and nobody to tell

Status = Message.Status


@dataclass(slots=True)
class Ending:
    """How a reply ended: its status, what went wrong, and what the model said of itself."""

    status: str
    problem: AppError | None = None
    model: str = ""
    tokens: tuple[int | None, int | None] = (None, None)


@dataclass(eq=False)
class Running(Stream):
    """A reply in the hands of this process: its turn, its tasks, what of it is stored."""

    turn: Turn = field(kw_only=True)
    tenant: Tenant = field(kw_only=True)
    life: "asyncio.Task[None] | None" = None
    work: "asyncio.Task[Ending] | None" = None  # the part of the life that can be stopped
    reason: str = ""  # why the work was stopped: a status, or LOST
    question: Embedded | None = None  # the question's vector, for whoever remembers it
    note: str = ""
    count: int = 0
    unrecorded: Recall | None = None  # what was recalled, until that is written down
    kept: int = 0
    kept_at: float = 0.0

    @property
    def over(self) -> bool:
        """Whether the work has ended, so that only its end remains to be stored."""
        return self.work is not None and self.work.done()

    def stop(self, reason: str) -> None:
        """Stop the work; the provider's connection is closed on its way out."""
        self.reason = self.reason or reason
        if self.work is not None:
            self.work.cancel()

    def ending(self) -> Ending | None:
        """Return how the work ended; None when there is nobody to tell and nothing to store."""
        work = self.work
        if work is None or self.reason == LOST:
            return None
        if work.cancelled():
            return Ending(self.reason or Status.INTERRUPTED)
        error = work.exception()
        if error is None:
            return work.result()
        if not isinstance(error, AppError):
            logger.error("a reply failed", exc_info=error, extra={"reply": str(self.reply_id)})
            error = Away() if isinstance(error, DatabaseError) else AppError()
        if self.reason:
            return Ending(self.reason)
        status = Status.INTERRUPTED if self.journal.text().strip() else Status.FAILED
        return Ending(status, error)
