"""How many messages to the database a turn takes: all but the last are before the first word.

Counted on the wire, by libpq's own trace, so that BEGIN and COMMIT count as well.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

from chatapp import turn
from chatapp.retrieval import _recalled
from memory import embedder
from memory.recall import record
from memory.remember import add
from memory.vectors import Embedded
from tests.chatapp.conftest import Person, new_chat

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="libpq traces on Linux alone"),
]


def traced[R](folder: Path, act: Callable[[], R]) -> tuple[int, R]:
    """Return how many messages an act sends, and what it returns."""
    connection.ensure_connection()
    wire = connection.connection.pgconn
    trace = folder / "trace"
    with trace.open("w") as file:
        wire.trace(file.fileno())
        try:
            done = act()
        finally:
            wire.untrace()
    return trace.read_text(errors="replace").count("ReadyForQuery"), done


def test_a_turn(mara: Person, tmp_path: Path) -> None:
    for text in ("I own a boat.", "I play the cello.", "I live in Lisbon."):
        add(mara.scope, text=text)
    session = new_chat(mara)
    asked = "Where is my boat?"
    vector = Embedded(embedder.current().name, embedder.embed([asked])[0].tolist())

    # Begin, with the session's lock and what is known; question, reply and window; commit.
    begin = lambda: turn.begin(mara.scope, session.pk, text=asked, client_id=uuid4())  # noqa: E731
    messages, begun = traced(tmp_path, begin)
    assert messages == 4
    claimed = begun.turn
    assert claimed is not None
    # The core with the limits, both arms, what is known of the best, which of them may be used;
    # the operator's choice of a model.
    messages, (found, _endpoint) = traced(tmp_path, lambda: _recalled(claimed, vector))
    assert messages == 5
    assert found.memories
    messages, _nothing = traced(
        tmp_path, lambda: record(mara.scope, reply=claimed.reply_id, recall=found)
    )
    assert messages == 1
    messages, kept = traced(tmp_path, lambda: turn.keep(claimed, text="In the"))
    assert (messages, kept) == (1, True)
    # Begin, with the session's lock and the reply; the job; what else waits; commit.
    finish = lambda: turn.finish(  # noqa: E731
        claimed, status="complete", text="In the harbour.", question=vector
    )
    messages, ended = traced(tmp_path, finish)
    assert messages == 5
    assert ended is not None
    assert ended.learning
