"""A reply without a language model: what is remembered that bears on the message, and what to do.

Nothing is made up: the words are ours and the person's own.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import tzinfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.text import cut, one_line
from memory.llm import Delta, Finish
from memory.recall import RecalledMemory

PIECE_SECONDS = 0.05
PIECE_WORDS = 4
ENTRY_CHARS = 300
SHOWN = 8

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+.!|~&:-])")


def literal(text: str) -> str:
    """Return the text on one line, so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", cut(one_line(text), ENTRY_CHARS))


def text(
    memories: Sequence[RecalledMemory],
    *,
    told: Sequence[str] = (),
    waiting: Sequence[str] = (),
    note: str = "",
    zone: tzinfo,
    is_operator: bool,
) -> str:
    """Return the whole reply as Markdown.

    `told` is what the person ordered to be remembered, `waiting` what of it waits for their review.
    """
    parts = [_("No language model is set up here yet, so I can't answer in words of my own.")]
    if told:
        parts += [_("What you told me to remember will be remembered:"), _listed(told)]
    if waiting:
        parts += [
            _(
                "This reads like an order to the assistant. It waits on the memory page, and is"
                " used only once you have looked at it and accepted it:"
            ),
            _listed(waiting),
        ]
    if memories:
        lines = [_line(memory, zone) for memory in memories[:SHOWN]]
        parts += [_("This is what I remember that may bear on your message:"), "\n".join(lines)]
    elif note:
        parts.append(note)
    elif not (told or waiting):
        parts.append(_("Beyond this session, I remember nothing that bears on your message."))
    if not (told or waiting):
        parts.append(
            _(
                "What you write is kept all the same. Write “remember that …” and it becomes a"
                " fact; or add a note on the memory page."
            )
        )
    parts.append(
        _(
            "To get answers, choose a language model on the operator’s page: "
            "a local one, or a provider’s with your key."
        )
        if is_operator
        else _("To get answers, ask whoever runs this installation to set up a language model.")
    )
    return "\n\n".join(parts)


def _listed(orders: Sequence[str]) -> str:
    return "\n".join(f"- {literal(order)}" for order in orders)


def _line(memory: RecalledMemory, zone: tzinfo) -> str:
    day = date_format(memory.at.astimezone(zone).date(), "j F Y")
    if memory.kind != "exchange":
        return f"- {literal(memory.text)} *({day})*"
    said = _("You said on %(day)s: “%(text)s”") % {"day": day, "text": literal(memory.text)}
    return f"- {said}"


async def pieces(whole: str) -> AsyncGenerator[Delta]:
    """Yield the reply a few words at a time, as a model's would come."""
    words = re.findall(r"\S+\s*", whole)
    for start in range(0, len(words), PIECE_WORDS):
        yield Delta("".join(words[start : start + PIECE_WORDS]))
        await asyncio.sleep(PIECE_SECONDS)
    yield Delta(finish=Finish.COMPLETE)
