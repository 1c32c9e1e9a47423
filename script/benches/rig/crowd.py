"""A database with a million memories of many people, among whom a few are measured.

It is made by COPY, as the superuser of the benchmark's own servers: without triggers, and with
indexes built at the end. What people say are the sentences of rig.people; the vectors of the first
EMBEDDED are the embedder's, those of the others lie around these, as near as sentences of one
kind do. Half of the memories are exchanges, which have two vectors each. The rows of all people
are mixed, as they are where people talk at the same time.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from local.progress import step
from local.state import DATABASE, State, keys_of
from psycopg.types.json import Jsonb

from .people import embedded, sentences

VERSION = "3"  # of what is built; another one is built anew
EMBEDDED = 5_000
OF_EACH = 2_000
DAYS = 400
IN_SESSION = 20  # exchanges
NOISE = 0.5  # of a vector's length; the cosine with the sentence that it lies around is then 0.9
AT_ONCE = 50_000
SEARCHED = ("memory_memory", "memory_searchrow", "memory_searchkey", "memory_posting")
COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + b"\0" * 8

type Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """A person who is measured, and how many memories they have."""

    tenant_id: int
    user_id: int
    email: str
    slug: str
    memories: int


@dataclass(frozen=True, slots=True)
class Texts:
    """What people say: sentences, their vectors, and their terms, one text behind the other."""

    texts: list[str]
    vectors: Array
    model: str
    ends: Array
    terms: Array
    counts: Array

    @classmethod
    def read(cls, size: int) -> Self:
        """Return so many texts."""
        from memory.terms import terms_of

        texts = sentences(size)
        near, model = embedded(texts[:EMBEDDED])
        chance = np.random.default_rng(3)
        around = near[chance.integers(0, len(near), size - len(near))].astype(np.float32)
        noise = chance.standard_normal(around.shape, dtype=np.float32)
        around += NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        told = [terms_of(text) for text in texts]
        return cls(
            texts,
            np.concatenate([near, around.astype(np.float16)]),
            model,
            np.cumsum([len(terms) for terms in told]),
            np.array([term for terms in told for term in terms], np.int64),
            np.array([count for terms in told for count in terms.values()], np.int64),
        )

    def of(self, number: int) -> tuple[Array, Array]:
        """Return the terms of one text, and how often each occurs."""
        start = self.ends[number - 1] if number else 0
        return self.terms[start : self.ends[number]], self.counts[start : self.ends[number]]


def superuser() -> "psycopg.Connection[Any]":
    """Return a connection of the superuser of the benchmark's servers."""
    keys = keys_of(State(Path(os.environ["RECOLLECT_STATE"])))
    return psycopg.connect(
        host="127.0.0.1",
        port=keys.postgres_port,
        user="postgres",
        password=keys.superuser,
        dbname=DATABASE,
        autocommit=True,
    )


def crowd(sizes: Sequence[int], *, others: int) -> list[Measured]:
    """Return the people with so many memories each, among others; built unless they are there."""
    wanted = {"version": VERSION, "sizes": list(sizes), "others": others}
    with superuser() as connection:
        connection.execute("create schema if not exists bench")
        connection.execute("create table if not exists bench.built (what jsonb, people jsonb)")
        row = connection.execute("select what, people from bench.built").fetchone()
        if row and row[0] == wanted:
            return [Measured(**one) for one in row[1]]
        with step("Sentences and vectors"):
            texts = Texts.read(max(*sizes, EMBEDDED))
        with step(f"{others * OF_EACH:,} memories of {others} people, and those who are measured"):
            people = _build(connection, texts, sizes, others)
        with step("Statistics, visibility map"):
            connection.execute("vacuum (analyze)")
        connection.execute("delete from bench.built")
        connection.execute(
            "insert into bench.built values (%s, %s)",
            [
                Jsonb(wanted),
                Jsonb([asdict(one) for one in people]),
            ],
        )
    return people


def one_more(size: int, *, name: str) -> Measured:
    """Return a new person with so many memories, beside all that is there."""
    texts = Texts.read(max(size, EMBEDDED))
    person = _person(name, size)
    with superuser() as connection:
        connection.execute("set session_replication_role = replica")
        _fill(connection, texts, [person])
        connection.execute("analyze memory_memory, memory_searchrow, memory_searchkey")
    return person


def _person(name: str, size: int) -> Measured:
    from accounts.join import new_person
    from accounts.models import Membership
    from accounts.scope import entered_person

    user = new_person(email=f"{name}@bench.example", password=None)
    with entered_person(user.pk):
        tenant = Membership.objects.select_related("tenant").get(user=user).tenant
    return Measured(tenant.pk, user.pk, user.email, tenant.slug, size)


def _build(
    connection: "psycopg.Connection[Any]", texts: Texts, sizes: Sequence[int], others: int
) -> list[Measured]:
    connection.execute("set session_replication_role = replica")
    connection.execute("set maintenance_work_mem = '1GB'")
    for table in (*SEARCHED, "memory_searchtotals"):
        connection.execute(f"truncate {table} cascade")
    mark = datetime.now(UTC).strftime("%H%M%S")
    people = [_person(f"person{size}-{mark}", size) for size in sizes]
    beside = [_person(f"other{number}-{mark}", OF_EACH) for number in range(others)]
    dropped = connection.execute(
        "select indexname, indexdef from pg_indexes where tablename = any(%s)"
        " and indexname not in (select conname from pg_constraint)",
        [list(SEARCHED)],
    ).fetchall()
    for name, _definition in dropped:
        connection.execute(f"drop index {name}")
    _fill(connection, texts, [*people, *beside])
    for _name, definition in dropped:
        connection.execute(definition)
    connection.execute("drop table if exists bench.floor")
    connection.execute(
        "create table bench.floor as select row_number() over () as id, k.* from memory_searchkey k"
    )
    connection.execute("alter table bench.floor add primary key (id)")
    connection.execute("create index floor_owner on bench.floor (tenant_id, user_id)")
    connection.execute("grant usage on schema bench to recollect_app")
    connection.execute("grant select on bench.floor to recollect_app")
    return people


def _fill(connection: "psycopg.Connection[Any]", texts: Texts, people: Sequence[Measured]) -> None:
    """Give these people their memories, and what these are found by."""
    chance = np.random.default_rng(people[0].user_id)
    planned = [_planned(person, chance, len(texts.texts)) for person in people]
    units = {name: np.concatenate([one[name] for one in planned]) for name in planned[0]}
    order = chance.permutation(len(units["place"]))
    mixed = {name: column[order] for name, column in units.items()}
    _lay_out(connection, texts, mixed)
    connection.execute(_MEMORIES)
    connection.execute(_ROWS)
    connection.execute(_TOTALS)
    with connection.cursor().copy(_COPY_KEYS) as copy:
        copy.write(COPY_HEAD)
        for start in range(0, len(order), AT_ONCE):
            some = {name: column[start : start + AT_ONCE] for name, column in mixed.items()}
            copy.write(_keys(some, texts))
        copy.write(b"\xff\xff")
    with connection.cursor().copy(_COPY_POSTINGS) as copy:
        copy.write(COPY_HEAD)
        for one in planned:  # in the order of the primary key, which is in place
            copy.write(_postings(one, texts))
        copy.write(b"\xff\xff")
    connection.execute("drop table unit, said")


def _planned(person: Measured, chance: np.random.Generator, texts: int) -> dict[str, Array]:
    """Return the units of one person's memories, in arrays of one length.

    `memory` and `session` are ids, 16 bytes each; `number` says which text it is; `half` is 0 for
    what the person said and 1 for the answer.
    """
    from memory.places import place_alone, place_in_session

    count = person.memories
    numbers = chance.permutation(texts)[:count] if count > 1 else np.zeros(1, np.int64)
    ids = np.frombuffer(chance.bytes(16 * count), "S16")
    sessions = np.frombuffer(chance.bytes(16 * (count // (2 * IN_SESSION) + 1)), "S16")
    exchange = np.arange(count) % 2 == 1
    days = (np.arange(count)[::-1] * DAYS) // max(count, 1)
    inside = (np.arange(count) // 2) // IN_SESSION
    position = 2 * ((np.arange(count) // 2) % IN_SESSION) + 1
    keys = [UUID(bytes=key.ljust(16, b"\0")) for key in sessions.tolist()]
    places = [
        place_in_session(keys[session], at)
        if both
        else place_alone(UUID(bytes=memory.ljust(16, b"\0")))
        for both, session, at, memory in zip(
            exchange.tolist(), inside.tolist(), position.tolist(), ids.tolist(), strict=True
        )
    ]
    answers = np.flatnonzero(exchange)
    rows = np.concatenate([np.arange(count), answers])
    half = np.concatenate([np.zeros(count, np.int64), np.ones(len(answers), np.int64)])
    return {
        "tenant": np.full(len(rows), person.tenant_id),
        "user": np.full(len(rows), person.user_id),
        "memory": ids[rows],
        "session": sessions[inside][rows],
        "position": position[rows],
        "place": np.array(places, np.int64)[rows] + half,
        "half": half,
        "exchange": exchange[rows].astype(np.int64),
        "number": np.where(half == 1, np.roll(numbers, 1)[rows], numbers[rows]),
        "day": days[rows],
    }


def _binary(fields: Sequence[tuple[str, str, Array]]) -> bytes:
    """Return rows for a binary COPY: of each field its name, its type's bytes, its values."""
    layout: list[tuple[str, str]] = [("fields", ">i2")]
    for name, kind, _values in fields:
        layout += [(f"{name} size", ">i4"), (name, kind)]
    rows = np.empty(len(fields[0][2]), np.dtype(layout))
    rows["fields"] = len(fields)
    for name, _kind, values in fields:
        rows[f"{name} size"] = rows.dtype[name].itemsize
        rows[name] = values
    return rows.tobytes()


def _lay_out(connection: "psycopg.Connection[Any]", texts: Texts, units: dict[str, Array]) -> None:
    """Put what is said, and by which units, into temporary tables."""
    from memory.folding import claim_key, folded
    from memory.terms import flags_of

    connection.execute(
        "create temporary table said (number int primary key, text text, folded text, key text,"
        " terms int[], total int, flags smallint)"
    )
    with connection.cursor().copy("copy said from stdin") as copy:
        for number, text in enumerate(texts.texts):
            terms, counts = texts.of(number)
            listed = "{" + ",".join(map(str, terms.tolist())) + "}"
            total = int(counts.sum())
            copy.write_row(
                (number, text, folded(text), claim_key(text), listed, total, flags_of(text))
            )
    connection.execute(
        "create temporary table unit (tenant_id bigint, user_id bigint, memory uuid, session uuid,"
        " position int, place bigint, half int, exchange int, number int, day int)"
    )
    kinds = {
        "tenant": ">i8",
        "user": ">i8",
        "memory": "S16",
        "session": "S16",
        "position": ">i4",
        "place": ">i8",
        "half": ">i4",
        "exchange": ">i4",
        "number": ">i4",
        "day": ">i4",
    }
    with connection.cursor().copy("copy unit from stdin (format binary)") as copy:
        copy.write(COPY_HEAD)
        for start in range(0, len(units["place"]), AT_ONCE):
            copy.write(
                _binary(
                    [
                        (name, kind, units[name][start : start + AT_ONCE])
                        for name, kind in kinds.items()
                    ]
                )
            )
        copy.write(b"\xff\xff")
    connection.execute("create index on unit (memory)")
    connection.execute("analyze said, unit")


_MEMORIES = """
insert into memory_memory (id, tenant_id, user_id, kind, text, answer, folded, first_person, status,
  because, origin, trusted, quote, source, session_key, position, said_by, answered_by, key,
  valid_from, reach, tags, evidence, safety, pinned, seen_count, created_at, updated_at)
select u.memory, u.tenant_id, u.user_id, case when u.exchange = 1 then 'exchange' else 'fact' end,
  s.text, coalesce(a.text, ''), s.folded || coalesce(E'\n' || a.folded, ''),
  case when u.exchange = 1 then '' else s.text end, 'current', '', 'own_words', true,
  case when u.exchange = 1 then '' else s.text end, gen_random_uuid(), u.session,
  case when u.exchange = 1 then u.position end, '', '', s.key, moment, 'personal', '{}', '{}',
  false, false, 1, moment, moment
from unit u
join said s on s.number = u.number
left join unit v on v.memory = u.memory and v.half = 1
left join said a on a.number = v.number
cross join lateral (select now() - u.day * interval '1 day'
  - random() * interval '12 hours' as moment) m
where u.half = 0
"""
_ROWS = """
insert into memory_searchrow (tenant_id, user_id, memory_id, place, speaker, said_by, day, chars,
  flags, terms, total)
select u.tenant_id, u.user_id, u.memory, u.place,
  case when u.half = 1 then 'assistant' else 'person' end, '', current_date - u.day,
  length(s.text), s.flags, s.terms, s.total
from unit u join said s on s.number = u.number
"""
_TOTALS = """
insert into memory_searchtotals (tenant_id, user_id, n, terms)
select u.tenant_id, u.user_id, count(*), sum(s.total)
from unit u join said s on s.number = u.number group by 1, 2
"""
_COPY_KEYS = (
    "copy memory_searchkey (tenant_id, user_id, memory_id, place, part, model, dims, embedding)"
    " from stdin (format binary)"
)
_COPY_POSTINGS = (
    "copy memory_posting (tenant_id, user_id, term, place, tf, dl) from stdin (format binary)"
)


def _keys(units: dict[str, Array], texts: Texts) -> bytes:
    dims = texts.vectors.shape[1]
    count = len(units["place"])
    vectors = np.empty(count, np.dtype([("dims", ">i2"), ("unused", ">i2"), ("v", ">f2", (dims,))]))
    vectors["dims"], vectors["unused"] = dims, 0
    vectors["v"] = texts.vectors[units["number"]]
    model = texts.model.encode()
    return _binary(
        [
            ("tenant", ">i8", units["tenant"]),
            ("user", ">i8", units["user"]),
            ("memory", "S16", units["memory"]),
            ("place", ">i8", units["place"]),
            ("part", ">i2", np.zeros(count)),
            ("model", f"S{len(model)}", np.full(count, model)),
            ("dims", ">i2", np.full(count, dims)),
            ("vector", f"V{vectors.dtype.itemsize}", vectors.view(f"V{vectors.dtype.itemsize}")),
        ]
    )


def _postings(units: dict[str, Array], texts: Texts) -> bytes:
    """Return one person's postings, in the order of the primary key."""
    numbers = units["number"]
    starts = np.where(numbers > 0, texts.ends[numbers - 1], 0)
    lengths = texts.ends[numbers] - starts
    unit = np.repeat(np.arange(len(numbers)), lengths)
    inside = np.arange(len(unit)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = starts[unit] + inside
    sums = np.add.reduceat(texts.counts[at], np.cumsum(lengths) - lengths)
    term, place = texts.terms[at], units["place"][unit]
    order = np.lexsort((place, term))
    order = order[np.r_[True, (np.diff(term[order]) != 0) | (np.diff(place[order]) != 0)]]
    return _binary(
        [
            ("tenant", ">i8", units["tenant"][unit][order]),
            ("user", ">i8", units["user"][unit][order]),
            ("term", ">i4", term[order]),
            ("place", ">i8", place[order]),
            ("tf", ">i2", texts.counts[at][order]),
            ("dl", ">i2", sums[unit][order]),
        ]
    )
