"""How often a reply's frames come."""

import pytest
from asgiref.sync import async_to_sync

from chatapp.hub import Hub
from chatapp.journal import Shelf
from chatapp.journal import client as redis_client
from chatapp.news import News
from chatapp.writing import FRAME_SECONDS, SLOWEST_FRAMES, Writer


def test_the_more_replies_the_fewer_frames_of_each() -> None:
    @async_to_sync
    async def paces() -> list[float]:
        hub, shelf = Hub(), Shelf(redis_client())
        writer = Writer(hub, shelf, News(hub))
        found = []
        for writing, arriving in ((1, 0), (5, 0), (5, 5), (15, 0), (50, 50)):
            writer.writing, writer.arriving = writing, arriving
            found.append(writer.pace())
        await shelf.close()
        return found

    assert paces() == pytest.approx(
        [
            FRAME_SECONDS,
            FRAME_SECONDS,
            2 * FRAME_SECONDS,
            3 * FRAME_SECONDS,
            SLOWEST_FRAMES,
        ]
    )
