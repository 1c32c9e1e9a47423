"""Which of a session's messages go to the model again. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

# What a chat template puts around each message.
TOKENS_A_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said; `ids` are the messages that it came from.

    `calls` are the tools that a reply used before it was said, with what came of them: they go
    with it, or not at all.
    """

    role: Literal["user", "assistant"]
    text: str
    ids: tuple[UUID, ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()

    @property
    def cost(self) -> int:
        """How many tokens it is at most, its calls and their results included."""
        called = sum(2 * tokens(json.dumps(call, ensure_ascii=False)) for call in self.calls)
        return tokens(self.text) + called


def tokens(text: str) -> int:
    """Return how many tokens the text is at most, for the tokenizers in use.

    A token is three bytes of UTF-8 or more: four letters of English, one character of Chinese.
    """
    return len(text.encode()) // 3 + TOKENS_A_MESSAGE


def window(messages: Sequence[Said], limit: int, token_budget: int) -> list[Said]:
    """Return the last whole exchanges, at most `limit` messages within the budget, in order.

    It begins with a question. A reply without text is left out (it failed, or was stopped before
    its first word) and its question joined to the next one, since some models refuse two
    messages of a person in a row.
    """
    kept: list[Said] = []
    for exchange in reversed(_exchanges(messages)):
        cost = sum(said.cost for said in exchange)
        if len(kept) + len(exchange) > limit or cost > token_budget:
            break
        token_budget -= cost
        kept[:0] = exchange
    return joined(kept)


def _exchanges(messages: Sequence[Said]) -> list[list[Said]]:
    exchanges: list[list[Said]] = []
    for said in messages:
        if not said.text.strip():
            continue
        if said.role == "user":
            exchanges.append([said])
        elif exchanges:
            exchanges[-1].append(said)
    return exchanges


def joined(messages: Sequence[Said]) -> list[Said]:
    """Return the messages with neighbours of one role made into one."""
    result: list[Said] = []
    for said in messages:
        if result and result[-1].role == said.role:
            before = result[-1]
            text, ids = f"{before.text}\n\n{said.text}", before.ids + said.ids
            said = Said(said.role, text, ids, before.calls + said.calls)
            result.pop()
        result.append(said)
    return result
