"""The default provider: exact search by pgvector over the owner's rows, read from one index.

A person has thousands of memories, not millions. A covering B-tree on the owner gives every
neighbour in milliseconds; an approximate index filtered by owner loses most of them.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection
from pgvector import HalfVector
from psycopg.errors import QueryCanceled

from accounts.errors import Unavailable
from accounts.scope import Scope, entered, read_once, write_once
from memory.exchange import Speaker
from memory.models import SearchKey
from memory.providers.base import TEXT_CHARS, Entry, Found

COVERED_DIMS = 1_024  # An index row holds 2,704 bytes; wider vectors are read from the table.
KEYS_PER_MEMORY = 4

# Keys are read from the index alone and memories only for the few that are nearest. The rows of
# excluded sources are set aside before the limit, so that it is always filled.
_NEAREST = """
with {excluded} nearest as materialized (
  select memory_id, "position", speaker, embedding <#> %(vector)s::halfvec as distance
  from memory_searchkey
  where tenant_id = %(tenant)s and user_id = %(user)s and model = %(model)s and dims = %(dims)s
    {covered} {not_excluded}
  order by distance limit %(keys)s
), pinned as materialized (
  select memory_id, "position", speaker, embedding <#> %(vector)s::halfvec as distance
  from memory_searchkey
  where tenant_id = %(tenant)s and user_id = %(user)s and model = %(model)s and dims = %(dims)s
    {not_excluded} and memory_id in (
      select id from memory_memory
      where tenant_id = %(tenant)s and user_id = %(user)s and pinned)
), best as (
  select distinct on (memory_id) memory_id, "position", speaker, distance
  from nearest order by memory_id, distance, "position"
), first as materialized (
  select * from (select * from best order by distance, memory_id limit %(limit)s) b
  union
  (select distinct on (memory_id) * from pinned order by memory_id, distance, "position")
)
select m.id, m.kind, left(m.text, %(chars)s), left(m.answer, %(chars)s), m.source, m.session_key,
  m.created_at, m.pinned, least(1, greatest(0, -f.distance)), f."position", f.speaker,
  (select count(*) from nearest)
from first f join memory_memory m on m.id = f.memory_id
where m.tenant_id = %(tenant)s and m.user_id = %(user)s and m.status = 'current' and m.trusted
  and m.id = any(array(select memory_id from first))
order by m.pinned desc, f.distance, m.id limit %(limit)s
"""
_EXCLUDED = """excluded as materialized (
  select id from memory_memory
  where tenant_id = %(tenant)s and user_id = %(user)s and source = any(%(sources)s)
),"""
_NOT_EXCLUDED = "and memory_id not in (select id from excluded)"


# Of a memory's keys those stay that are written anew; on conflict means: the same again.
_REMEMBER = """
with gone as (
  delete from memory_searchkey
  where tenant_id = %(tenant)s and user_id = %(user)s and memory_id = %(memory)s
    and not (model = %(model)s and "position" = any(%(positions)s::smallint[]))
)
insert into memory_searchkey
  (tenant_id, user_id, memory_id, model, at, "position", speaker, dims, embedding)
select %(tenant)s, %(user)s, %(memory)s, %(model)s, %(at)s, k."position", k.speaker, k.dims,
  k.vector::halfvec
from unnest(%(positions)s::smallint[], %(speakers)s::text[], %(dims)s::smallint[],
  %(vectors)s::text[]) as k ("position", speaker, dims, vector)
on conflict (tenant_id, user_id, memory_id, "position", model) do update
  set at = excluded.at, speaker = excluded.speaker, dims = excluded.dims,
    embedding = excluded.embedding
returning id
"""


class PgvectorProvider:
    """Keeps search keys as unit vectors in half precision, beside the memories."""

    def remember(self, scope: Scope, *, entry: Entry) -> None:
        write_once(
            scope,
            _REMEMBER,
            {
                "tenant": scope.tenant_id,
                "user": scope.user_id,
                "memory": entry.memory,
                "model": entry.model,
                "at": entry.at,
                "positions": [key.position for key in entry.keys],
                "speakers": [str(key.speaker) for key in entry.keys],
                "dims": [len(key.vector) for key in entry.keys],
                "vectors": [HalfVector(list(key.vector)).to_text() for key in entry.keys],
            },
        )

    def recall(
        self,
        scope: Scope,
        *,
        vector: Sequence[float],
        model: str,
        limit: int,
        exclude_sources: Collection[UUID] = (),
        deadline_ms: int | None = None,
    ) -> list[Found]:
        given = {
            "tenant": scope.tenant_id,
            "user": scope.user_id,
            "model": model,
            "dims": len(vector),
            "vector": HalfVector(list(vector)).to_text(),
            "sources": list(exclude_sources),
            "chars": TEXT_CHARS,
            "limit": limit,
        }
        query = _NEAREST.format(
            covered=f"and dims <= {COVERED_DIMS}" if len(vector) <= COVERED_DIMS else "",
            excluded=_EXCLUDED if exclude_sources else "",
            not_excluded=_NOT_EXCLUDED if exclude_sources else "",
        )
        keys = limit * KEYS_PER_MEMORY
        while True:
            rows = _read(scope, query, given | {"keys": keys}, deadline_ms)
            if len(rows) >= limit or not rows or rows[0][11] < keys:
                return [_found(row) for row in rows]
            # Memories with many keys filled the list. Rare, and the second read ends it.
            keys *= 8

    def list(self, scope: Scope, *, model: str) -> set[UUID]:
        with entered(scope):
            keys = SearchKey.objects.within(scope).filter(model=model)
            return set(keys.values_list("memory_id", flat=True))

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        rows = write_once(
            scope,
            "delete from memory_searchkey where tenant_id = %(tenant)s and user_id = %(user)s"
            " and memory_id = any(%(memories)s) returning 1",
            {"tenant": scope.tenant_id, "user": scope.user_id, "memories": list(memories)},
        )
        return len(rows)

    def purge(self, scope: Scope) -> int:
        with entered(scope), connection.cursor() as cursor:
            cursor.execute(
                "delete from memory_searchkey where tenant_id = %s and user_id = %s",
                [scope.tenant_id, scope.user_id],
            )
            return int(cursor.rowcount)


def _found(row: tuple[Any, ...]) -> Found:
    return Found(
        memory=row[0],
        kind=row[1],
        text=row[2],
        answer=row[3],
        source=row[4],
        session_key=row[5],
        at=row[6],
        pinned=row[7],
        score=row[8],
        position=row[9],
        speaker=Speaker(row[10]),
    )


def _read(
    scope: Scope, query: str, given: dict[str, object], deadline_ms: int | None
) -> list[tuple[Any, ...]]:
    try:
        return read_once(scope, query, given, within_ms=deadline_ms)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise Unavailable("The search took too long.", code="too_slow") from error
        raise
