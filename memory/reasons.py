"""Why a memory was found, in the words that the pages and the replies' sources show."""

from typing import Any

from django.utils.translation import gettext as _

from memory.exchange import Speaker
from memory.find import Hit
from memory.models import Memory
from memory.providers.base import Reason, Why

SHOWN_WORDS = 5


class Reasons:
    """Says why a memory was found, in the language of the moment."""

    def __init__(self) -> None:
        self.pinned, self.safety = _("pinned"), _("about safety")
        self.persona, self.few = _("about you"), _("there are few memories")
        self.words, self.assistants = _("same words: %s"), _("in the assistant's words")
        self.codes = {
            Why.MEANING: _("near in meaning"),
            Why.DAY: _("of a day that was asked for"),
            Why.NEIGHBOUR: _("beside a match"),
            Why.SESSION: _("in a session about it"),
            Why.SPEAKER: _("said by whom was named"),
        }
        self.nearest = _("the nearest there is")
        self.literally = _("it holds what you typed")

    def of(self, hit: Hit) -> str:
        """Return what speaks for a memory, parted by semicolons; never empty.

        Of what goes before the model whatever is asked it begins with why that is so.
        """
        reasons = [self.pinned] if hit.row.pinned else []
        reasons += [self.safety] if hit.row.safety else []
        if hit.always and hit.row.kind == Memory.Kind.PERSONA:
            reasons.append(self.persona)
        if hit.always and not reasons:
            reasons.append(self.few)
        reasons += [self._said(reason) for reason in hit.because]
        if not reasons:
            reasons.append(self.nearest)
        if hit.speaker is Speaker.ASSISTANT:
            reasons.append(self.assistants)
        return "; ".join(reasons)

    def found(self, hit: Hit | None) -> dict[str, Any]:
        """Return what is shown beside what a search found: {score, because}.

        Without a hit it holds the words, and has no score.
        """
        if hit is None:
            return {"score": None, "because": self.literally}
        return {"score": hit.score, "because": self.of(hit)}

    def _said(self, reason: Reason) -> str:
        if reason.code is Why.WORDS:
            return self.words % ", ".join(reason.words[:SHOWN_WORDS])
        return self.codes[reason.code]
