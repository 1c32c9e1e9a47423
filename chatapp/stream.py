"""What the pages of one running reply have been sent: numbered, and the same for each."""

from dataclasses import dataclass, field
from uuid import UUID

from accounts.scope import Scope
from chatapp import frames
from chatapp.hub import Page
from chatapp.journal import Journal
from chatapp.markdown import Blocks

REPLAYED = 100  # frames; a page that lacks more is sent everything as one


@dataclass(eq=False)
class Stream:
    """One reply's frames, and the pages that follow them."""

    scope: Scope
    session_id: UUID
    reply_id: UUID
    journal: Journal = field(default_factory=Journal)
    blocks: Blocks = field(default_factory=Blocks)
    pages: set[Page] = field(default_factory=set)
    # HTML that a frame finished, by the frame's number: for pages that come back.
    finished: dict[int, str] = field(default_factory=dict)
    recalled: tuple[int, str, str] | None = None  # number, frame, html
    acted: tuple[str, str] | None = None  # frame, html: all that the model did for this reply

    def push(self, text: str, now: float) -> None:
        """Number the text and send it."""
        n = self.journal.push(text)
        closed, drawn = self.blocks.feed(text, now)
        if closed:
            self.finished[n] = closed
        self.send(frames.delta(self.reply_id, n, text, closed, drawn))

    def tell_recalled(self, count: int, html: str) -> str:
        """Number and send what was recalled; return the frame."""
        n = self.journal.push("")
        frame = frames.build("recalled", reply=self.reply_id, n=n, count=count, html=html)
        self.recalled = n, frame, html
        self.send(frame)
        return frame

    def tell_acts(self, html: str) -> str:
        """Send what the model has done so far, in the place of what was sent of it; no number."""
        frame = frames.build("acted", reply=self.reply_id, html=html)
        self.acted = frame, html
        self.send(frame)
        return frame

    def send(self, frame: str) -> None:
        """Send a frame to every page that follows."""
        for page in list(self.pages):  # one that reads too slowly leaves them while it is sent this
            page.put(frame)

    def attach(self, page: Page, after: int) -> None:
        """Send a page what it lacks behind frame `after`, and from now on everything."""
        self.pages.add(page)
        if self.acted:
            page.put(self.acted[0])
        n = self.journal.n
        if after == n and n:
            return
        if not 0 < after < n or n - after > REPLAYED:
            page.put(self.snapshot())
            return
        for number in range(after + 1, n + 1):
            if self.recalled and self.recalled[0] == number:
                page.put(self.recalled[1])
                continue
            closed = self.finished.get(number, "")
            drawn = self.blocks.now() if number == n else ("" if closed else None)
            text = self.journal.texts[number - 1]
            page.put(frames.delta(self.reply_id, number, text, closed, drawn))

    def snapshot(self) -> str:
        """Return everything so far as one frame."""
        return frames.snapshot(
            self.reply_id,
            self.journal.n,
            self.journal.text(),
            closed=self.blocks.closed,
            drawn=self.blocks.now(),
            recalled=self.recalled[2] if self.recalled else None,
        )
