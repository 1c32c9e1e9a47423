"""The default provider: exact vectors and true BM25 over the owner's rows, read from indexes.

A person has thousands of memories, not millions. Covering B-trees on the owner give every cosine
and every posting in milliseconds; an approximate index filtered by owner loses most neighbours,
and a text index that Postgres offers is not reached under row level security.

    one message to the database   the cosines of all vectors, the postings of the question's
                                  terms, the totals: all read from indexes alone
    numpy                         memory.ranking.first_stage
    one message                   what is known of the few hundred best (their search rows)
    numpy                         memory.ranking.second_stage
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from django.db import OperationalError, connection
from psycopg.errors import QueryCanceled

from accounts.errors import Unavailable
from accounts.scope import Scope, entered, read_once, write_once
from memory.exchange import Speaker
from memory.models import NAME_CHARS, SearchKey
from memory.providers.base import Ability, Entry, Found, Unit
from memory.providers.hits import ID, Known, hits
from memory.ranking import KEEP, Array, Candidates, Posting, Traits, first_stage
from memory.terms import Question, flags_of, terms_of

COVERED_DIMS = 1_024  # An index row holds 2,704 bytes; wider vectors are read from the table.
MOST_COUNTED = 32_767  # of one term in one unit, and of all its terms: a smallint

_COSINE = np.dtype([("place", ">i8"), ("cosine", ">f8")])
_POSTING = np.dtype([("place", ">i8"), ("tf", ">i2"), ("dl", ">i2")])
_TRAITS = np.dtype(
    [("memory", ID), ("place", ">i8"), ("chars", ">i4"), ("flags", ">i2"), ("assistant", "?")]
)

# One statement, so that a deadline is one deadline. A row's numbers are bytes, one behind the
# other: 10,000 rows are one value to fetch.
_TOTALS = """
select 0, null::int, int8send(n) || int8send(terms) from memory_searchtotals
where tenant_id = %(tenant)s and user_id = %(user)s
"""
_POSTINGS = """
union all
select 1, term, string_agg(int8send(place) || int2send(tf) || int2send(dl), '')
from memory_posting
where tenant_id = %(tenant)s and user_id = %(user)s and term = any(%(terms)s::int[])
group by term
"""
_VECTORS = """
union all
select 2, null, string_agg(int8send(place) || float8send(-(embedding <#> %(vector)s::halfvec)), '')
from memory_searchkey
where tenant_id = %(tenant)s and user_id = %(user)s and model = %(model)s and dims = %(dims)s
"""
_COVERED = f" and dims <= {COVERED_DIMS}"
_KNOWN = f"""
select said_by, string_agg(uuid_send(memory_id) || int8send(place) || int4send(chars)
  || int2send(flags) || boolsend(speaker = '{Speaker.ASSISTANT}'), '')
from memory_searchrow
where tenant_id = %(tenant)s and user_id = %(user)s and place = any(%(places)s::bigint[])
group by said_by
"""  # noqa: S608 - a constant

_MINE = "tenant_id = %(tenant)s and user_id = %(user)s"
_FORGET = f"""
with gone as (
  delete from memory_searchrow where {_MINE} and memory_id = any(%(memories)s::uuid[])
  returning place, terms, total
), keys as (
  delete from memory_searchkey where {_MINE} and memory_id = any(%(memories)s::uuid[])
), postings as (
  delete from memory_posting where {_MINE} and (term, place) in (
    select unnest(terms), place from gone)
), totals as (
  update memory_searchtotals set n = n - gone.units, terms = terms - gone.total
  from (select count(*) as units, sum(total) as total from gone) gone
  where {_MINE} and gone.units > 0
)
select count(*) from gone
"""  # noqa: S608 - constants
# What another writer has put there meanwhile stays, and is counted once.
_REMEMBER = """
with rows as (
  insert into memory_searchrow (tenant_id, user_id, memory_id, place, speaker, said_by, day, chars,
    flags, terms, total)
  select %(tenant)s, %(user)s, %(memory)s, r.place, r.speaker, r.said_by, r.day, r.chars, r.flags,
    r.terms::int[], r.total
  from unnest(%(places)s::bigint[], %(speakers)s::text[], %(names)s::text[], %(days)s::date[],
    %(chars)s::int[], %(flags)s::smallint[], %(terms_of)s::text[], %(totals)s::int[])
    as r (place, speaker, said_by, day, chars, flags, terms, total)
  on conflict (tenant_id, user_id, memory_id, place) do nothing
  returning place, total
), keys as (
  insert into memory_searchkey (tenant_id, user_id, memory_id, place, part, model, dims, embedding)
  select %(tenant)s, %(user)s, %(memory)s, k.place, k.part, %(model)s, k.dims, k.vector::halfvec
  from unnest(%(key_places)s::bigint[], %(parts)s::smallint[], %(dims)s::smallint[],
    %(vectors)s::text[]) as k (place, part, dims, vector)
  on conflict do nothing
), postings as (
  insert into memory_posting (tenant_id, user_id, term, place, tf, dl)
  select %(tenant)s, %(user)s, p.term, p.place, p.tf, p.dl
  from unnest(%(terms)s::int[], %(term_places)s::bigint[], %(tfs)s::smallint[],
    %(dls)s::smallint[]) as p (term, place, tf, dl)
  where p.place in (select place from rows)
  on conflict do nothing
)
insert into memory_searchtotals (tenant_id, user_id, n, terms)
select %(tenant)s, %(user)s, count(*), coalesce(sum(total), 0) from rows
on conflict (tenant_id, user_id) do update
  set n = memory_searchtotals.n + excluded.n, terms = memory_searchtotals.terms + excluded.terms
returning 1
"""


class PgvectorProvider:
    """Keeps unit vectors in half precision and postings of hashed terms, beside the memories."""

    abilities = frozenset(Ability)

    def remember(self, scope: Scope, *, entry: Entry, fresh: bool = False) -> None:
        query = _REMEMBER if fresh else f"{_FORGET};{_REMEMBER}"
        write_once(scope, query, _owner(scope) | _told(entry))

    def recall(
        self,
        scope: Scope,
        *,
        question: Question,
        vector: Sequence[float] | None,
        model: str,
        limit: int,
        deadline_ms: int | None = None,
    ) -> list[Found]:
        ends = None if deadline_ms is None else time.monotonic() + deadline_ms / 1_000
        ranked = self.arms(scope, question=question, vector=vector, model=model, ends=ends)
        keep = max(KEEP, 4 * limit)
        while True:
            candidates = ranked(keep)
            of_them = _owner(scope) | {"places": _array(candidates.places.tolist())}
            known = _known(_read(scope, _KNOWN, of_them, ends))
            found = hits(question, candidates, known, limit=limit)
            if len(found) >= limit or len(candidates.places) < keep:
                return found[:limit]
            keep *= 8  # memories with many units filled the list

    def arms(
        self,
        scope: Scope,
        *,
        question: Question,
        vector: Sequence[float] | None,
        model: str,
        ends: float | None = None,
    ) -> Callable[[int], Candidates]:
        """Return what ranks all units of this scope by both arms, as many as it is asked for."""
        query = _TOTALS
        given = _owner(scope)
        if question.terms:
            query += _POSTINGS
            given |= {"terms": _array(question.terms)}
        if vector is not None:
            query += _VECTORS + _COVERED if len(vector) <= COVERED_DIMS else _VECTORS
            given |= {
                "model": model,
                "dims": len(vector),
                "vector": _text(vector),
            }
        rows = _read(scope, query, given, ends)
        totals = np.frombuffer(b"".join(row[2] for row in rows if row[0] == 0), ">i8")
        postings = {row[1]: _posting(row[2]) for row in rows if row[0] == 1}
        places, cosines = _cosines(b"".join(row[2] or b"" for row in rows if row[0] == 2))
        return lambda keep: first_stage(
            question,
            places=places,
            cosines=cosines,
            postings=postings,
            n=int(totals[0]) if len(totals) else 0,
            total_dl=int(totals[1]) if len(totals) else 0,
            keep=keep,
        )

    def list(self, scope: Scope, *, model: str, dims: int | None = None) -> set[UUID]:
        with entered(scope):
            keys = SearchKey.objects.within(scope).filter(model=model)
            if dims is not None:
                keys = keys.filter(dims=dims)
            return set(keys.values_list("memory_id", flat=True).distinct())

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        rows = write_once(scope, _FORGET, _owner(scope) | {"memories": list(memories)})
        return int(rows[0][0])

    def purge(self, scope: Scope) -> int:
        with entered(scope), connection.cursor() as cursor:
            for table in ("posting", "searchkey", "searchtotals", "searchrow"):
                cursor.execute(f"delete from memory_{table} where {_MINE}", _owner(scope))  # noqa: S608
            return int(cursor.rowcount)


def _owner(scope: Scope) -> dict[str, Any]:
    return {"tenant": scope.tenant_id, "user": scope.user_id}


def _told(entry: Entry) -> dict[str, Any]:
    """Return an entry as the columns of its rows."""
    counted = [_counted(unit) for unit in entry.units]
    totals = [sum(terms.values()) for terms in counted]
    keys = [
        (unit.place, part, vector)
        for unit in entry.units
        for part, vector in enumerate(unit.vectors)
    ]
    postings = [
        (term, unit.place, count, min(total, MOST_COUNTED))
        for unit, terms, total in zip(entry.units, counted, totals, strict=True)
        for term, count in terms.items()
    ]
    return {
        "memory": entry.memory,
        "memories": [entry.memory],
        "model": entry.model,
        "places": _numbers(unit.place for unit in entry.units),
        "speakers": [str(unit.speaker) for unit in entry.units],
        "names": [unit.name[:NAME_CHARS] for unit in entry.units],
        "days": [unit.day for unit in entry.units],
        "chars": _numbers(len(unit.text) for unit in entry.units),
        "flags": _numbers(flags_of(unit.text) for unit in entry.units),
        "terms_of": [_numbers(terms) for terms in counted],
        "totals": _numbers(totals),
        "key_places": _numbers(place for place, _part, _vector in keys),
        "parts": _numbers(part for _place, part, _vector in keys),
        "dims": _numbers(len(vector) for _place, _part, vector in keys),
        "vectors": [_halves(vector) for _place, _part, vector in keys],
        "terms": _numbers(term for term, _place, _tf, _dl in postings),
        "term_places": _numbers(place for _term, place, _tf, _dl in postings),
        "tfs": _numbers(tf for _term, _place, tf, _dl in postings),
        "dls": _numbers(dl for _term, _place, _tf, dl in postings),
    }


def _numbers(numbers: Iterable[int]) -> str:
    """Return an array as Postgres reads it: psycopg would look at each number by itself."""
    return f"{{{','.join(map(str, numbers))}}}"


def _halves(vector: Sequence[float]) -> str:
    """Return a vector as Postgres reads it, in no more digits than half precision has."""
    return f"[{('%.5g,' * len(vector))[:-1] % tuple(vector)}]"


def _counted(unit: Unit) -> Mapping[int, int]:
    terms = terms_of(unit.text, speaker=unit.name, day=unit.day)
    return {term: min(count, MOST_COUNTED) for term, count in terms.items()}


def _text(vector: Sequence[float]) -> str:
    """Return a vector as Postgres reads it, with more digits than half precision holds."""
    return f"[{('%.6g,' * len(vector))[:-1] % tuple(vector)}]"


def _array(numbers: Sequence[int]) -> str:
    """Return whole numbers as Postgres reads an array: in one go, where the driver asks of each."""
    return f"{{{','.join(map(str, numbers))}}}"


def _known(rows: Sequence[tuple[str, bytes]]) -> Known:
    """Return what _KNOWN found."""
    parts = [np.frombuffer(packed, _TRAITS) for _name, packed in rows]
    units = np.concatenate(parts) if parts else np.empty(0, _TRAITS)
    return Known(
        units["memory"],
        Traits(
            places=units["place"].astype(np.int64),
            speakers=[name for name, _packed in rows],
            speaker=np.repeat(np.arange(len(parts)), np.array([*map(len, parts)], np.intp)),
            assistant=units["assistant"],
            chars=units["chars"].astype(np.int64),
            flags=units["flags"].astype(np.int64),
        ),
    )


def _posting(packed: bytes) -> Posting:
    rows = np.frombuffer(packed, _POSTING)
    return rows["place"].astype(np.int64), rows["tf"], rows["dl"]


def _cosines(packed: bytes) -> tuple[Array, Array]:
    """Return places, ascending, and cosines of all the owner's vectors."""
    rows = np.frombuffer(packed, _COSINE)
    places, cosines = rows["place"].astype(np.int64), rows["cosine"].astype(np.float32)
    if (places[1:] < places[:-1]).any():  # not read in the order of the index
        order = np.argsort(places, kind="stable")
        places, cosines = places[order], cosines[order]
    return places, cosines


def _read(
    scope: Scope, query: str, given: Mapping[str, object], ends: float | None
) -> list[tuple[Any, ...]]:
    left = None if ends is None else int(1_000 * (ends - time.monotonic()))
    try:
        if left is not None and left <= 0:
            raise Unavailable("The search took too long.", code="too_slow")
        return read_once(scope, query, given, within_ms=left)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise Unavailable("The search took too long.", code="too_slow") from error
        raise
