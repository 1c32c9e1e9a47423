"""One run of the chat benchmark: who takes part, and what has been measured so far."""

import time
from dataclasses import dataclass, field
from typing import Any

from .client import Sample
from .floors import Relay, Stub
from .installation import Installation
from .load import Load
from .measured import Measured
from .people import QUESTIONS, Someone
from .tally import percentile

DIRECT, RELAY = "model itself", "bare relay"
IDLE_SECONDS = 15.0
ROUND_SECONDS = 60.0
SETTLE_SECONDS = 0.3


@dataclass(slots=True)
class Bench:
    """The two floors, the people, and the product by the name of its web server.

    `installation` is the one that runs now, None for the floors alone. Results are kept by
    contestant, people at once and tokens; what is used at rest and held in memory by server.
    """

    load: Load
    stub: Stub
    relay: Relay
    people: list[Someone]
    installation: Installation | None = None
    results: dict[tuple[str, int, int], Measured] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    idle: dict[str, dict[str, float]] = field(default_factory=dict)
    memory: dict[str, dict[str, dict[str, dict[str, float]]]] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    drained: bool = True
    tags: int = 0

    @property
    def servers(self) -> list[str]:
        """The web servers that the product was measured with."""
        return list(self.memory)

    def of_product(self) -> list[Measured]:
        """Return the results of the product, without those of the floors."""
        return [result for key, result in self.results.items() if key[0] not in {DIRECT, RELAY}]

    def measure(self, people: int, tokens: int, rounds: int, *, keep: bool = True) -> None:
        """Let everybody run so many rounds, taking turns in who comes first behind the model."""
        self.stub.answers(tokens)
        for number in range(rounds):
            behind = [RELAY]
            if self.installation is not None:
                behind.insert(number % 2, self.installation.server)
            floor: float | None = None
            for name in (DIRECT, *behind):
                key = (name, people, tokens)
                result = self.results.get(key) or Measured(*key)
                samples = self._one_round(name, people, result)
                result.add(samples, floor)
                times = [1000 * sample.first for sample in samples if sample.first is not None]
                if name == DIRECT and times:
                    floor = percentile(times, 50)
                if keep:
                    self.results[key] = result
                if times:
                    self.first.setdefault(name, times[0])

    def _one_round(self, name: str, people: int, result: Measured) -> list[Sample]:
        asked = []
        for number in range(people):
            # No two of them have a tag, and so a token, in common, nor with the round before.
            tag = f"t{self.tags + number}"
            asked.append({"tag": tag, "text": f"{tag} {QUESTIONS[number % len(QUESTIONS)]}"})
        self.tags += people
        if name == DIRECT:
            self.load.open("direct", asked, self.stub.url)
        elif self.installation is None or name == RELAY:
            self.load.open("socket", [one | {"url": self.relay.url} for one in asked])
        else:
            return self._of_product(self.installation, asked, result)
        return self._asked()

    def _asked(self) -> list[Sample]:
        time.sleep(SETTLE_SECONDS)
        samples = self.load.go(ROUND_SECONDS).samples
        self.load.close()
        return samples

    def _of_product(
        self, installation: Installation, asked: list[dict[str, str]], result: Measured
    ) -> list[Sample]:
        web = installation.web
        people = self.people[: len(asked)]
        # A session of its own for each round: an earlier reply is no part of the next prompt.
        sockets = [
            one
            | {
                "url": web.socket_url(someone, someone.sessions.pop()),
                "cookie": someone.cookie,
                "origin": web.origin,
            }
            for someone, one in zip(people, asked, strict=True)
        ]
        self.load.open("socket", sockets)
        time.sleep(SETTLE_SECONDS)
        before, started = installation.cpu(), time.monotonic()
        samples = self.load.go(ROUND_SECONDS).samples
        self.drained &= installation.drained()
        time.sleep(SETTLE_SECONDS)
        after, seconds = installation.cpu(), time.monotonic() - started
        self.load.close()
        idle = self.idle.get(installation.server) or dict.fromkeys(after, 0.0)
        result.spend(before, after, idle, seconds)
        self.sent += [
            {
                "tenant_id": someone.tenant_id,
                "user_id": someone.user_id,
                "reply": sample.reply,
                "tag": sample.tag,
                "tokens": result.tokens,
            }
            for someone, sample in zip(people, samples, strict=True)
            if sample.reply
        ]
        return samples

    def rest(self) -> None:
        """Measure what the web server and the workers use while nobody asks."""
        if self.installation is None:
            return
        self.drained &= self.installation.drained()
        before, started = self.installation.cpu(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        after, seconds = self.installation.cpu(), time.monotonic() - started
        self.idle[self.installation.server] = {
            part: (used - before[part]) / seconds for part, used in after.items()
        }

    def weigh(self, when: str) -> None:
        """Note the memory that the product's processes hold, `before` or `after`."""
        if self.installation is not None:
            held = self.memory.setdefault(self.installation.server, {})
            held[when] = self.installation.memory()
