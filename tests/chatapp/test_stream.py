"""What a page is sent of a reply, and what it lacks when it comes back."""

from uuid import uuid4

from asgiref.sync import async_to_sync

from chatapp.markdown import render
from chatapp.stream import Stream
from tests.chatapp.conftest import FakePage, Person, visitor


def test_a_stream_replays_what_a_page_lacks(mara: Person) -> None:
    who = visitor(mara)

    @async_to_sync
    async def talk() -> None:
        stream = Stream(mara.scope, uuid4(), uuid4())
        for number, text in enumerate(["one\n\n", "two\n\n", "three\n\n", "four"]):
            stream.push(text, number * 1.0)
        for after in range(5):
            page = FakePage(who, None)
            stream.attach(page, after)
            texts = [frame["text"] for frame in page.sent]
            assert "".join(texts) == "".join(stream.journal.texts[after:])
            if after < 4:
                assert page.sent[-1]["open"] == stream.blocks.now()
        late = FakePage(who, None)
        stream.attach(late, 0)
        (snapshot,) = late.sent
        assert (snapshot["type"], snapshot["n"]) == ("snapshot", 4)
        assert snapshot["closed"] + snapshot["open"] == render(stream.journal.text())

    talk()
