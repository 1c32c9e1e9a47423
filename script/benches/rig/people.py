"""People with memories and sessions, put into the benchmark's own database; run with Django.

    python -m benches.rig.people seed     < [{"people", "memories", "sessions", "messages"}]
    python -m benches.rig.people stored   < [{"tenant_id", "user_id", "reply", "tag", "tokens"}]

`seed` prints a list of people: who they are, and the ids of their sessions. `stored`
prints how many replies are not stored as they were sent. The memories have real embeddings, which
are kept in the state folder, so that the next run need not make them again.
"""

import hashlib
import json
import os
import random
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt

from .tally import answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.scope import Scope
    from memory.models import Memory

type Vectors = npt.NDArray[np.float16]

PASSWORD = "correct horse battery staple"  # noqa: S105 - of people who live for one benchmark
POOL = 2_000

SENTENCES = (
    "I grow {thing} in the {place} behind my house, and water them every {day}.",
    "My sister {name} moved to {town} in {month} and works at the {place} there.",
    "I am allergic to {food}, so {name} cooks {dish} when I come to dinner.",
    "On {day} evenings I practise the {instrument} with {name} in {town}.",
    "We plan to visit {town} in {month} and want to see the {place}.",
    "The {animal} that {name} gave me likes {food} more than anything else.",
    "My project about {topic} has to be handed in on a {day} in {month}.",
    "I would rather read about {topic} than about {second}, especially in {month}.",
    "{name} taught me how to cook {dish} with {food} when we lived in {town}.",
    "I lost my {thing} near the {place} in {town} last {month}.",
    "Please answer in short sentences when we speak about {topic} or {second}.",
    "My doctor {name} in {town} told me to eat less {food} and more {dish}.",
)
WORDS = {
    "thing": "tomatoes roses gloves keys umbrellas bicycles notebooks lanterns herbs tulips",
    "place": "library harbour garden museum market station bakery castle school forest",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "name": "Anna Bela Carla David Elif Farid Greta Hugo Irina Jonas Kenji Lucia Maria Nadia Omar",
    "town": "Lisbon Bergen Kyoto Ghent Porto Tartu Basel Cork Split Turin Lyon Graz Hobart Lima",
    "month": "January February March April May June July August September October November",
    "food": "peanuts shellfish cheese mushrooms garlic almonds strawberries lentils honey rye",
    "dish": "risotto dumplings paella lasagne borscht curry pancakes goulash ramen tagine",
    "instrument": "cello piano trumpet guitar violin flute clarinet drums harp accordion",
    "animal": "cat dog parrot tortoise rabbit horse canary goat hamster ferret",
    "topic": "glaciers compilers beekeeping sailing typography volcanoes chess statistics bridges",
    "second": "football taxes fashion poker gardening politics astronomy knitting cars",
}
QUESTIONS = (
    "What should I cook for dinner when my sister comes?",
    "Which instrument did I say that I practise, and with whom?",
    "Where did we want to go on holiday this year?",
    "Can you remind me what my doctor told me to eat?",
    "When is my project due, and what was it about?",
    "What does my pet like best?",
)


@dataclass(frozen=True, slots=True)
class Someone:
    """A person of the benchmark."""

    email: str
    slug: str
    tenant_id: int
    user_id: int
    sessions: list[str]
    cookie: str = ""


def sentences(count: int) -> list[str]:
    """Return so many different things that a person might say, always the same ones."""
    made = []
    chance = random.Random(7)
    for sentence in SENTENCES:
        names = [name for name in WORDS if "{" + name + "}" in sentence]
        choices = product(*(WORDS[name].split() for name in names))
        made += [sentence.format(**dict(zip(names, choice, strict=True))) for choice in choices]
    chance.shuffle(made)
    return made[:count]


def embedded(texts: list[str]) -> tuple[Vectors, str]:
    """Return the texts' unit vectors and the embedder's name; kept in the state folder."""
    from memory.embedder import current

    embedder = current()
    marked = hashlib.sha256("\n".join([embedder.name, *texts]).encode()).hexdigest()[:24]
    folder = Path(os.environ["RECOLLECT_STATE"]) / "cache"
    folder.mkdir(exist_ok=True)
    kept = folder / f"vectors-{marked}.npy"
    if kept.exists():
        vectors: Vectors = np.load(kept)
    else:
        vectors = np.asarray(embedder.embed(texts), dtype=np.float16)
        fresh = kept.with_suffix(".new.npy")
        np.save(fresh, vectors)
        fresh.replace(kept)
    return vectors, embedder.name


@dataclass(frozen=True, slots=True)
class Pool:
    """What people may say, and where the vectors lie: in a temporary table."""

    texts: list[str]
    model: str
    dims: int

    @classmethod
    def laid_out(cls, size: int) -> Self:
        """Copy so many texts' vectors into the temporary table."""
        from django.db import connection

        texts = sentences(size)
        vectors, model = embedded(texts)
        with connection.cursor() as cursor:
            cursor.execute("create temporary table pool (number int, embedding halfvec)")
            with cursor.copy("copy pool (number, embedding) from stdin") as copy:
                for number, vector in enumerate(vectors):
                    numbers = ",".join(f"{value:.6g}" for value in vector)
                    copy.write_row((number, f"[{numbers}]"))
            cursor.execute("analyze pool")
        return cls(texts, model, vectors.shape[1])

    def remember(self, scope: "Scope", count: int, chance: random.Random) -> None:
        """Give one person so many memories, half of them exchanges, which have two keys."""
        from accounts.scope import entered
        from memory.folding import claim_key, folded
        from memory.models import Memory

        numbers = chance.sample(range(len(self.texts)), count)
        rows, heard = [], []
        now = datetime.now(UTC)
        for place, number in enumerate(numbers):
            said, answered = self.texts[number], self.texts[numbers[place - 1]]
            exchange = place % 2 == 1
            at = now - timedelta(minutes=place)
            memory = Memory(
                tenant_id=scope.tenant_id,
                user_id=scope.user_id,
                kind=Memory.Kind.EXCHANGE if exchange else Memory.Kind.FACT,
                text=said,
                answer=answered if exchange else "",
                folded=folded(f"{said}\n{answered}" if exchange else said),
                first_person="" if exchange else said,
                quote="" if exchange else said,
                origin=Memory.Origin.OWN_WORDS,
                source=uuid4(),
                session_key=uuid4(),
                position=1 if exchange else None,
                key=claim_key(said),
                valid_from=at,
                created_at=at,
                updated_at=at,
            )
            rows.append(memory)
            heard.append([number, numbers[place - 1]])
        with entered(scope):
            Memory.unscoped.bulk_create(rows, batch_size=500)
            self._make_findable(scope, rows, heard)

    def _make_findable(
        self, scope: "Scope", memories: "Sequence[Memory]", heard: "Sequence[Sequence[int]]"
    ) -> None:
        """Write what these memories are found by; `heard` has the texts of each one's parts."""
        from django.db import connection

        from memory.keys import parts_of, place_of
        from memory.models import Posting, SearchRow, SearchTotals
        from memory.terms import flags_of, terms_of

        owner = {"tenant_id": scope.tenant_id, "user_id": scope.user_id}
        found_by: list[SearchRow] = []
        postings: list[Posting] = []
        keys: list[tuple[UUID, int, int]] = []
        for memory, numbers in zip(memories, heard, strict=True):
            for number, part in enumerate(parts_of(memory)):
                place, day = place_of(memory, number), memory.created_at.date()
                terms = terms_of(part.text, day=day)
                total = sum(terms.values())
                found_by.append(
                    SearchRow(
                        **owner,
                        memory_id=memory.pk,
                        place=place,
                        speaker=str(part.speaker),
                        day=day,
                        chars=len(part.text),
                        flags=flags_of(part.text),
                        terms=list(terms),
                        total=total,
                    )
                )
                keys.append((memory.pk, place, numbers[number]))
                postings += [
                    Posting(**owner, term=term, place=place, tf=count, dl=total)
                    for term, count in terms.items()
                ]
        SearchRow.unscoped.bulk_create(found_by, batch_size=1_000)
        Posting.unscoped.bulk_create(postings, batch_size=5_000)
        SearchTotals.unscoped.create(
            **owner, n=len(found_by), terms=sum(row.total for row in found_by)
        )
        ids, places, texts = map(list, zip(*keys, strict=True)) if keys else [[]] * 3
        with connection.cursor() as cursor:
            cursor.execute(
                "insert into memory_searchkey (tenant_id, user_id, memory_id, place, part, model,"
                " dims, embedding)"
                " select %s, %s, own.id, own.place, 0, %s, %s, pool.embedding"
                " from unnest(%s::uuid[], %s::bigint[], %s::int[]) as own (id, place, number)"
                " join pool on pool.number = own.number",
                [scope.tenant_id, scope.user_id, self.model, self.dims, ids, places, texts],
            )


def open_sessions(scope: "Scope", count: int, messages: int) -> list[str]:
    """Give one person so many sessions, each with so many messages; return their ids."""
    from django.utils import timezone

    from accounts.scope import entered
    from chatapp.models import ChatSession, Message

    now = timezone.now()
    owner = {"tenant_id": scope.tenant_id, "user_id": scope.user_id}
    sessions = [
        ChatSession(
            **owner,
            title=f"Session {number}",
            message_count=messages,
            created_at=now - timedelta(minutes=number),
            last_activity_at=now - timedelta(minutes=number),
        )
        for number in range(count)
    ]
    spoken = [
        Message(
            **owner,
            session=session,
            position=position,
            role=Message.Role.USER if position % 2 else Message.Role.ASSISTANT,
            text=f"Message {position}: " + QUESTIONS[position % len(QUESTIONS)],
            finished_at=now,
        )
        for session in sessions
        for position in range(1, messages + 1)
    ]
    for question, reply in zip(spoken[::2], spoken[1::2], strict=False):
        reply.question = question
    with entered(scope):
        ChatSession.unscoped.bulk_create(sessions, batch_size=500)
        Message.unscoped.bulk_create(spoken, batch_size=500)
    return [str(session.pk) for session in sessions]


def seed(groups: list[dict[str, int]]) -> list[Someone]:
    """Return new people: each group says how many, with how many memories, sessions, messages."""
    from accounts.join import new_person
    from accounts.models import User
    from accounts.scope import Scope, entered_person

    pool = Pool.laid_out(max(POOL, *(group["memories"] for group in groups)))
    chance = random.Random(11)
    made = []
    number = User.objects.count()
    for group in groups:
        for _ in range(group["people"]):
            number += 1
            email = f"person{number}@bench.example"
            user = new_person(email=email, password=PASSWORD)
            with entered_person(user.pk):
                tenant = user.memberships.get().tenant
            scope = Scope(tenant.pk, user.pk)
            pool.remember(scope, group["memories"], chance)
            opened = open_sessions(scope, group["sessions"], group.get("messages", 0))
            made.append(Someone(email, tenant.slug, tenant.pk, user.pk, opened))
    return made


def stored_otherwise(replies: list[dict[str, Any]]) -> list[str]:
    """Return, for each reply that is not stored as it was sent, what is wrong with it."""
    from accounts.scope import Scope, entered
    from chatapp.models import Message

    wrong = []
    for told in replies:
        scope = Scope(told["tenant_id"], told["user_id"])
        with entered(scope):
            reply = Message.objects.within(scope).filter(pk=UUID(told["reply"])).first()
        meant = answer(told["tag"], told["tokens"])
        if reply is None:
            wrong.append(f"{told['tag']}: no such reply")
        elif reply.status != Message.Status.COMPLETE:
            wrong.append(f"{told['tag']}: {reply.status} {reply.error_code}".rstrip())
        elif reply.text != meant:
            wrong.append(
                f"{told['tag']}: {len(reply.text)} characters are stored, {len(meant)} were sent"
            )
    return wrong


def main() -> None:
    """Do what the argument says with what comes on standard input."""
    import django

    django.setup()
    told = json.load(sys.stdin)
    match sys.argv[1:]:
        case ["seed"]:
            print(json.dumps([asdict(someone) for someone in seed(told)]))
        case ["stored"]:
            print(json.dumps(stored_otherwise(told)))
        case _:
            sys.exit("python -m benches.rig.people seed|stored")


if __name__ == "__main__":
    main()
