"""One question to the stub model, and what came of it."""

from contextlib import aclosing
from typing import Any

from asgiref.sync import async_to_sync

from memory import llm
from memory.llm import Delta, Finish
from memory.model_server import Endpoint
from tests.stub_model import StubModel

ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello, model"}]
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}


def endpoint(stub: StubModel, key: str = "sk-secret") -> Endpoint:
    return Endpoint(stub.base_url, key, "stub-model")


def ask(stub: StubModel, messages: Any = ASKED, **options: Any) -> list[Delta]:
    """Return every piece of one reply."""

    async def all_of_it() -> list[Delta]:
        async with aclosing(llm.stream(endpoint(stub), messages, **options)) as deltas:
            return [delta async for delta in deltas]

    return async_to_sync(all_of_it)()


def outcome(deltas: list[Delta]) -> tuple[str, Finish | None]:
    assert [delta.finish for delta in deltas[:-1]] == [None] * (len(deltas) - 1)
    return "".join(delta.text for delta in deltas), deltas[-1].finish
