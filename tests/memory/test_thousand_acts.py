"""A thousand random acts by twenty people in four tenants, and five counters that stay at zero."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest

import memory
from accounts.errors import InvalidInput
from accounts.join import join, new_person, new_tenant
from accounts.scope import Scope, entered
from memory.models import Memory
from memory.tools import Allowed, Toolbox
from memory.wire import ToolCall
from tests.memory.conftest import Conversation

pytestmark = pytest.mark.django_db

ACTS = 1_000
SEED = 20_261_201
COUNTERS = (
    *("leaks", "deleted but found", "superseded but injected"),
    *("unrelated fact retired", "duplicates"),
)
THINGS = (
    *("lamp", "kettle", "ladder", "guitar", "tent", "drum", "globe"),
    *("mirror", "anvil", "canoe", "sledge", "loom", "easel"),
)


class NoReply:
    """A ledger that any act may be written into."""

    def hold(self) -> bool:
        return True

    def write(self, acts: Sequence[Mapping[str, Any]]) -> None:
        pass


@dataclass
class Person:
    """One person in one tenant: what they may find, and the words that nothing may hold any more.

    Each claim has a word of its own, which is nowhere else: it tells whose a text is, and of when.
    """

    scope: Scope
    talk: Conversation
    live: dict[UUID, str] = field(default_factory=dict)  # current claims by id: their word
    trash: dict[UUID, str] = field(default_factory=dict)
    superseded: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    generation: int = 0


@dataclass
class World:
    """Everybody, and what went wrong so far."""

    chance: random.Random
    people: list[Person]
    owners: dict[str, Scope] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)

    def word(self, who: Person) -> str:
        word = f"zibo{len(self.owners)}qa"
        self.owners[word] = who.scope
        return word

    def words_in(self, text: str) -> list[str]:
        return [word for word in self.owners if f" {word}." in f" {text} ".replace("/", " ")]

    # What is found is looked at from outside: whose words it holds, and whether they still hold.

    def look(self, who: Person, texts: Iterable[str], *, injected: bool) -> None:
        seen: Counter[str] = Counter()
        for text in texts:
            seen[text] += 1
            for word in self.words_in(text):
                if self.owners[word] != who.scope:
                    self.counters["leaks"] += 1
                elif word in who.deleted:
                    self.counters["deleted but found"] += 1
                elif injected and word in who.superseded:
                    self.counters["superseded but injected"] += 1
        self.counters["duplicates"] += sum(count - 1 for count in seen.values())

    def settle(self, who: Person, allowed: Iterable[UUID] = ()) -> None:
        """Compare the claims that hold with those before the act: none may be gone but these."""
        with entered(who.scope):
            rows = Memory.objects.within(who.scope).current().facts()
            now = {row.pk: row for row in rows}
        gone = set(who.live) - set(now) - set(allowed)
        self.counters["unrelated fact retired"] += len(gone)
        self.counters["duplicates"] += len(now) - len({row.key for row in now.values()})
        who.live = {}
        for pk, row in now.items():
            (word,) = self.words_in(row.text)
            who.live[pk] = word
            who.deleted.discard(word)
            who.superseded.discard(word)

    def a_claim(self, who: Person) -> tuple[str, str]:
        word = self.word(who)
        return f"keep a {self.chance.choice(THINGS)} in {word}.", word

    # The acts

    def add(self, who: Person) -> None:
        claim, _word = self.a_claim(who)
        memory.remember(who.scope, text=f"I {claim}")
        self.settle(who)

    def add_again(self, who: Person) -> None:
        notes = memory.list(who.scope, kind="note")
        if notes:
            again = memory.remember(who.scope, text=self.chance.choice(notes).text)
            assert again.pk in who.live
            self.settle(who)

    def edit(self, who: Person) -> None:
        if who.live:
            pk = self.chance.choice(list(who.live))
            before = who.live[pk]
            claim, _word = self.a_claim(who)
            memory.edit(who.scope, memory=pk, text=f"I {claim}")
            who.superseded.add(before)
            self.settle(who)

    def forget(self, who: Person) -> None:
        if who.live:
            pk = self.chance.choice(list(who.live))
            memory.forget(who.scope, memory=pk)
            who.trash[pk] = who.live[pk]
            who.deleted.add(who.live[pk])
            self.settle(who, [pk])

    def restore(self, who: Person) -> None:
        if who.trash:
            pk = self.chance.choice(list(who.trash))
            try:
                memory.restore(who.scope, memory=pk)
            except InvalidInput:
                return
            who.trash.pop(pk)
            self.settle(who)

    def purge(self, who: Person) -> None:
        with entered(who.scope):
            there = Memory.objects.within(who.scope).count()
        assert memory.purge(who.scope)["memories"] == there
        assert memory.purge(who.scope)["memories"] == 0
        who.deleted |= {word for word, scope in self.owners.items() if scope == who.scope}
        who.trash.clear()
        who.generation += 2
        self.settle(who, list(who.live))
        assert who.live == {}

    def exchange(self, who: Person) -> None:
        claim, _word = self.a_claim(who)
        asked = self.chance.choice(["Remember that I {}", "By the way, I {}", "Yesterday I {}"])
        who.talk.remember(asked.format(claim), reply="I see.")
        self.settle(who)

    def supersede(self, who: Person) -> None:
        facts = list(who.live)
        if not facts:
            return
        pk = self.chance.choice(facts)
        before = who.live[pk]
        claim, word = self.a_claim(who)
        said = f"I {claim.replace('.', ' now.')}".replace(f"{word} now.", f"{word}.")
        toolbox = Toolbox(
            who.scope,
            Allowed(True, True, who.generation),
            NoReply(),
            reply=uuid4(),
            question=uuid4(),
            said=said,
        )
        toolbox._ids[pk.hex[:8]] = pk  # as a search in this turn would have
        text = f"The user {claim.replace('keep ', 'keeps ', 1)}"
        arguments = f'{{"id": "{pk.hex[:8]}", "text": "{text}"}}'
        act, _told = toolbox.use(ToolCall("call", "update_memory", arguments))
        assert act.result == {"outcome": "changed"}, (act.result, text, said)
        who.superseded.add(before)
        self.settle(who, [pk])
        assert word in who.live.values()

    def recall(self, who: Person) -> None:
        found = memory.recall(who.scope, self.something_said())
        self.look(who, [f"{one.text} {one.answer}" for one in found.memories], injected=True)

    def search(self, who: Person) -> None:
        found = memory.search(who.scope, self.something_said())
        self.look(who, [one.text for one in found], injected=False)

    def list(self, who: Person) -> None:
        self.look(who, [one.text for one in memory.list(who.scope)], injected=True)

    def something_said(self) -> str:
        """Return the words of some claim of anybody's, whatever became of it, or a question."""
        words = self.chance.sample(list(self.owners), min(2, len(self.owners)))
        thing = self.chance.choice(THINGS)
        return self.chance.choice(
            [f"I keep a {thing} in {' '.join(words)}.", f"Where is my {thing}?", *words[:1]]
        )


WEIGHTS: dict[str, int] = {
    "add": 22,
    "add_again": 6,
    "edit": 9,
    "forget": 10,
    "restore": 6,
    "purge": 1,
    "exchange": 14,
    "supersede": 8,
    "recall": 14,
    "search": 7,
    "list": 3,
}


def everybody() -> list[Person]:
    """Return twenty people in four tenants: sixteen, and four of them in a second tenant too."""
    tenants = [new_tenant(name=f"Tenant {number}") for number in range(4)]
    users = [
        new_person(email=f"p{number}@example.org", password=None, name="Kim")
        for number in range(16)
    ]
    places = [(tenants[number % 4], user) for number, user in enumerate(users)]
    places += [(tenants[(number + 1) % 4], user) for number, user in enumerate(users[:4])]
    people = []
    for tenant, user in places:
        join(tenant, user)
        scope = Scope(tenant.pk, user.pk)
        people.append(Person(scope, Conversation(scope)))
    return people


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_acts_leak_lose_and_double_nothing() -> None:
    world = World(random.Random(SEED), everybody())
    acts: dict[str, Callable[[Person], None]] = {name: getattr(world, name) for name in WEIGHTS}
    for _number in range(ACTS):
        who = world.chance.choice(world.people)
        name = world.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        acts[name](who)
        world.done[name] += 1
    for who in world.people:
        for query in (
            *list(who.live.values())[:3],
            *sorted(who.deleted | who.superseded)[:3],
            "my",
        ):
            found = memory.recall(who.scope, f"I keep what in {query}.")
            texts = [f"{one.text} {one.answer}" for one in found.memories]
            world.look(who, texts, injected=True)
    assert set(world.done) == set(WEIGHTS)
    assert sum(world.done.values()) == ACTS
    names = ("leaks", "deleted but found", "superseded but injected")
    counted = {
        name: world.counters[name] for name in (*names, "unrelated fact retired", "duplicates")
    }
    assert counted == dict.fromkeys(counted, 0)
    assert sum(len(who.live) for who in world.people) > 50


def test_the_counters_count() -> None:
    """What the test above would see, were it there."""
    people = everybody()[:2]
    world = World(random.Random(1), people)
    ann, ben = people
    (mine, word), (_his, other) = world.a_claim(ann), world.a_claim(ben)
    world.look(ann, [f"I {mine}", f"I {mine}", f"in {other}."], injected=True)
    ann.deleted.add(word)
    world.look(ann, [f"I {mine}"], injected=False)
    ann.deleted.clear()
    ann.superseded.add(word)
    world.look(ann, [f"I {mine}"], injected=True)
    kept = memory.remember(ann.scope, text=f"I {mine}")
    ann.live = {kept.pk: word, uuid4(): other}
    world.settle(ann)
    assert world.counters == dict.fromkeys(COUNTERS, 1)
