"""What is remembered that bears on a question: its vector, the search, where the reply comes from.

The vector is made while the question is being stored; the search waits for both.
"""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from accounts.models import User
from accounts.zones import zone_of
from chatapp import without_model
from chatapp.steps import insist
from chatapp.turn import Turn
from chatapp.warming import Warming
from memory import embedder
from memory.commands import told_to_remember
from memory.model_choice import current_endpoint
from memory.model_server import Endpoint
from memory.recall import Recall, recall
from memory.suspicion import reason_to_wait
from memory.vectors import Embedded

logger = logging.getLogger(__name__)

# With fifty questions at once on a busy machine the last vector takes a second.
VECTOR_SECONDS = 2.0

type Vector = "asyncio.Task[Embedded]"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a reply starts from; `endpoint` is None where no model is set up."""

    found: Recall
    endpoint: Endpoint | None
    question: Embedded | None


def vector_of(text: str, warming: Warming) -> Vector:
    """Return the task that embeds a question, as soon as the embedder is loaded."""
    return asyncio.ensure_future(_embedded(text, warming))


async def _embedded(text: str, warming: Warming) -> Embedded:
    await warming.loaded()
    name = embedder.current().name
    vector = await embedder.embed_one(text, within=VECTOR_SECONDS)
    return Embedded(name, vector.tolist())


def drop(vector: Vector) -> None:
    """Give up a vector that nobody will use; what went wrong with it is of no interest."""
    vector.add_done_callback(lambda task: task.cancelled() or task.exception())
    vector.cancel()


async def retrieve(claimed: Turn, vector: Vector) -> Retrieved:
    """Return what is remembered that bears on the question; without a vector, a note instead."""
    question: Embedded | None = None
    try:
        question = await vector
    except Exception as error:
        # InvalidInput (nothing to look for), a ProviderError, or a fault of the embedder: the
        # reply goes without memory, and says so.
        logger.warning("no vector for a question: %s", type(error).__name__)
    found, endpoint = await insist(partial(_recalled, claimed, question))
    return Retrieved(found, endpoint, question)


def _recalled(claimed: Turn, question: Embedded | None) -> tuple[Recall, Endpoint | None]:
    same = question is not None and question.model == embedder.current().name
    found = recall(
        claimed.scope,
        question=claimed.question.text,
        vector=question.vector if question and same else None,
        exclude_sources=claimed.sources,
        session_key=claimed.session_id,
    )
    return found, current_endpoint()


def reply_without_model(claimed: Turn, found: Recall) -> str:
    """Return the reply of an installation without a model, as Markdown. Run it in a step."""
    user = User.objects.get(pk=claimed.scope.user_id)
    said = claimed.question.text
    told = told_to_remember(said)
    # As memory/extract.py judges it: the order by itself, and the message that it stands in.
    waiting = [order for order in told if reason_to_wait(order) or reason_to_wait(said)]
    return without_model.text(
        found.memories,
        told=[order for order in told if order not in waiting],
        waiting=waiting,
        note=found.note or "",
        zone=zone_of(user.time_zone),
        is_operator=user.is_operator,
    )
