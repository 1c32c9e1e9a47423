"""What a process loads before it is of use: the embedder that is in force, and the model's client.

While they load the process does not say that it is well, and a question waits for them; both for
some seconds at most. A late answer is better than one without memory.
"""

import asyncio
import logging
from contextlib import suppress

from django.db import Error as DatabaseError

from accounts.errors import ProviderError
from chatapp.steps import step
from memory import embedder, model_server

logger = logging.getLogger(__name__)

# Loading takes 1 to 3 seconds, several times that on a busy machine. A model that must be fetched
# first takes minutes: then the process is well without it, and questions go without memory.
PATIENCE = 15.0


class Warming:
    """The loading of one process, and whether it is over."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._until = 0.0

    def start(self) -> None:
        """Begin to load, once."""
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._until = loop.time() + PATIENCE
            self._task = loop.create_task(self._load())

    async def loaded(self) -> bool:
        """Tell whether loading is over (or was never begun); waits for it until PATIENCE is up."""
        if self._task is None:
            return True
        if not self._task.done():
            left = self._until - asyncio.get_running_loop().time()
            await asyncio.wait({self._task}, timeout=max(0.0, left))
        return self._task.done()

    async def close(self) -> None:
        """Give up what still loads."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await step(embedder.follow)
        except (DatabaseError, ProviderError) as error:
            logger.warning("the choice of embedder is not known yet: %s", type(error).__name__)
        for load in (embedder.warm, model_server.warm):
            try:
                await loop.run_in_executor(None, load)
            except ProviderError as error:  # replies go without memory, and say so
                logger.warning("the embedder can't be loaded: %s", error.code)
            except Exception:
                logger.exception("loading failed")
