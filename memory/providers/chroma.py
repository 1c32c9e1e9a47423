"""Chroma in a process of its own, over HTTP: finds by meaning, approximately.

Chroma is told numbers and ids, and no word that anybody said.

    a database for each scope           no filter stands between two people, an address does
    a collection for each embedder      and length of its vectors
    a record for each vector            its id is MEMORY/NUMBER; it knows its place and speaker

Its graph of neighbours loses what it can't reach: of memories that nearly say the same, a third
and more were missing from an answer that should have held them all. So recall counts, and compares
what was left out itself.
"""

import hashlib
import logging
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import numpy as np
import orjson
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from accounts.errors import Unavailable
from accounts.scope import Scope
from memory.exchange import Speaker
from memory.providers.base import Ability, Entry, Found, Reason, Why
from memory.terms import Question

logger = logging.getLogger(__name__)

RECALL_MS = 5_000  # where the caller names no deadline
WRITE_MS = 10_000
CONNECT_SECONDS = 2.0
RECORDS = 40  # asked for at first, or four for each memory wanted: several are of one memory
PAGE = 5_000  # ids of an answer
BATCH = 500  # ids or memories of a request
NEAR = 0.3  # from here on "near in meaning" is said, as in memory.ranking

# Chroma writes the graph into files that it leaves behind when a collection is deleted
# (chroma-core/chroma#5259). Below this many changes it writes none, keeps the vectors in its
# database, which forgets them, and builds the graph anew after a start: 1,000 in half a second.
_NO_FILES = 2**31 - 1
_SPACE = {
    "hnsw": {
        "space": "cosine",
        "ef_search": 400,
        "sync_threshold": _NO_FILES,
    }
}


class _Missing(Exception):
    """There is no such database or collection, or no longer."""


class _Exists(Exception):
    """Somebody has made it already."""


@dataclass(frozen=True, slots=True)
class _Hit:
    """A record that was found; `cosine` is that of its vector and the question's."""

    id: str
    cosine: float
    place: int
    speaker: Speaker

    @property
    def memory(self) -> UUID:
        return _memory_of(self.id)


class ChromaProvider:
    """Keeps unit vectors in a Chroma server and asks it for the nearest.

    A score is a cosine, from 0 to 1, and not calibrated. Raises Unavailable when the server is
    away, refuses, or is not done by the deadline. `namespace` keeps installations apart that
    share a server.
    """

    abilities = frozenset({Ability.VECTOR, Ability.MODELS, Ability.DURABLE})

    def __init__(
        self, host: str, port: int = 8000, *, ssl: bool = False, namespace: str = "recollect"
    ) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,60}", namespace):
            raise ImproperlyConfigured("A namespace in Chroma has letters a to z, digits and -.")
        self._namespace = namespace
        host = f"[{host}]" if ":" in host else host
        self._root = f"{'https' if ssl else 'http'}://{host}:{port}/api/v2/tenants/default_tenant"
        self._clients: dict[int, httpx2.Client] = {}

    def remember(self, scope: Scope, *, entry: Entry, fresh: bool = False) -> None:
        ends = _ends(WRITE_MS)
        records = _records(entry)
        try:
            self._replace(scope, entry, records, ends)
        except _Missing:  # a purge took the collection away between two requests
            self._replace(scope, entry, records, ends)

    def close(self) -> None:
        """End the connections of this process; the next request makes one anew."""
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def _replace(
        self, scope: Scope, entry: Entry, records: Sequence[Mapping[str, Any]], ends: float
    ) -> None:
        """Put the records, then take away what the memory had besides: it is findable all along."""
        collections = self._collections(scope, ends)
        home = None
        if records:
            name = _name(entry.model, len(records[0]["embedding"]))
            known = (one["id"] for one in collections if one["name"] == name)
            home = next(known, None) or self._made(
                scope, entry.model, len(records[0]["embedding"]), ends
            )
            body = {
                "ids": [record["id"] for record in records],
                "embeddings": [record["embedding"] for record in records],
                "metadatas": [record["metadata"] for record in records],
            }
            self._ask("POST", f"{self._at(scope)}/collections/{home}/upsert", ends, body)
        for collection in collections:
            where: dict[str, Any] = {"memory": str(entry.memory)}
            if collection["id"] == home:
                where = {"$and": [where, {"number": {"$gte": len(records)}}]}
            self._ask("POST", f"{_path(collection)}/delete", ends, {"where": where})

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
        if vector is None or limit < 1:
            return []
        ends = _ends(RECALL_MS if deadline_ms is None else deadline_ms)
        try:
            name = _name(model, len(vector))
            collection = self._ask("GET", f"{self._at(scope)}/collections/{name}", ends)
            hits = self._nearest(_path(collection), vector, limit, ends)
        except _Missing:
            return []
        return [_found(hit) for hit in _each_memory_once(hits)][:limit]

    def _nearest(
        self, path: str, vector: Sequence[float], limit: int, ends: float
    ) -> Sequence[_Hit]:
        """Return the nearest records, the best first: of `limit` memories, or all there are."""
        wanted = max(RECORDS, 4 * limit)
        while True:
            body = {
                "query_embeddings": [list(vector)],
                "n_results": wanted,
                "include": ["distances", "metadatas"],
            }
            answer = self._ask("POST", f"{path}/query", ends, body)
            hits = [
                _hit(*row)
                for row in zip(
                    answer["ids"][0],
                    (1 - distance for distance in answer["distances"][0]),
                    answer["metadatas"][0],
                    strict=True,
                )
            ]
            if len(_each_memory_once(hits)) >= limit:
                return hits
            held = int(self._ask("GET", f"{path}/count", ends))
            if len(hits) < min(wanted, held):
                hits += self._left_out(path, vector, {hit.id for hit in hits}, ends)
                return sorted(hits, key=lambda hit: -hit.cosine)
            if wanted >= held:
                return hits
            wanted = min(held, 8 * wanted)

    def _left_out(
        self, path: str, vector: Sequence[float], reached: set[str], ends: float
    ) -> Iterator[_Hit]:
        """Yield the records that Chroma's graph does not reach."""
        asked = np.asarray(vector, np.float64)
        asked /= np.linalg.norm(asked) or 1.0
        ids = [one for one in self._ids(path, ends) if one not in reached]
        for batch in _batches(ids):
            body = {"ids": batch, "include": ["embeddings", "metadatas"]}
            answer = self._ask("POST", f"{path}/get", ends, body)
            if answer["ids"]:
                vectors = np.asarray(answer["embeddings"], np.float64)
                lengths = np.linalg.norm(vectors, axis=1)
                cosines = (vectors @ asked / np.where(lengths > 0, lengths, 1.0)).tolist()
                yield from map(_hit, answer["ids"], cosines, answer["metadatas"])

    def list(self, scope: Scope, *, model: str, dims: int | None = None) -> set[UUID]:
        ends = _ends(WRITE_MS)
        held: set[UUID] = set()
        for collection in self._collections(scope, ends):
            made_by = collection["metadata"]
            if made_by["model"] == model and dims in {None, made_by["dims"]}:
                try:
                    held |= {_memory_of(one) for one in self._ids(_path(collection), ends)}
                except _Missing:
                    continue
        return held

    def forget(self, scope: Scope, *, memories: Collection[UUID]) -> int:
        ends = _ends(WRITE_MS)
        gone = 0
        for collection in self._collections(scope, ends):
            for batch in _batches([str(memory) for memory in memories]):
                try:
                    gone += self._forget(_path(collection), batch, ends)
                except _Missing:
                    break
        return gone

    def _forget(self, path: str, memories: Sequence[str], ends: float) -> int:
        where = {"memory": {"$in": memories}}
        ids = list(self._ids(path, ends, where=where))
        for batch in _batches(ids):
            self._ask("POST", f"{path}/delete", ends, {"ids": batch})
        return len(ids)

    def purge(self, scope: Scope) -> int:
        ends = _ends(WRITE_MS)
        gone = 0
        # One by one: with its database alone a collection would go, and its records stay.
        for collection in self._collections(scope, ends):
            try:
                held = int(self._ask("GET", f"{_path(collection)}/count", ends))
                named = f"{self._at(scope)}/collections/{collection['name']}"
                self._ask("DELETE", named, ends)
            except _Missing:
                continue
            gone += held
        try:
            self._ask("DELETE", self._at(scope), ends)
        except _Missing:
            return gone
        return gone

    def _database(self, scope: Scope) -> str:
        return f"{self._namespace}-{scope.tenant_id}-{scope.user_id}"

    def _at(self, scope: Scope) -> str:
        return f"/databases/{self._database(scope)}"

    def _collections(self, scope: Scope, ends: float) -> Sequence[Mapping[str, Any]]:
        """Return what the scope has, for all embedders; nothing where it has no database."""
        try:
            found: Sequence[Mapping[str, Any]] = self._ask(
                "GET", f"{self._at(scope)}/collections", ends
            )
        except _Missing:
            return []
        return found

    def _made(self, scope: Scope, model: str, dims: int, ends: float) -> str:
        """Return the id of the collection for this embedder; made, if there is none."""
        body = {
            "name": _name(model, dims),
            "get_or_create": True,
            "metadata": {"model": model, "dims": dims},
            "configuration": _SPACE,
        }
        try:
            made = self._ask("POST", f"{self._at(scope)}/collections", ends, body)
        except _Missing:
            try:
                self._ask("POST", "/databases", ends, {"name": self._database(scope)})
            except _Exists:
                logger.debug("another process has made the database meanwhile")
            made = self._ask("POST", f"{self._at(scope)}/collections", ends, body)
        return str(made["id"])

    def _ids(
        self, path: str, ends: float, *, where: Mapping[str, Any] | None = None
    ) -> Iterator[str]:
        """Yield the ids of a collection's records, some at a time."""
        at = 0
        while True:
            body: dict[str, Any] = {"where": where, "include": [], "limit": PAGE, "offset": at}
            page = self._ask("POST", f"{path}/get", ends, body)["ids"]
            yield from page
            if len(page) < PAGE:
                return
            at += PAGE

    def _ask(self, method: str, path: str, ends: float, body: object = None) -> Any:
        """Return the server's answer to one request, whole before the deadline."""
        try:
            left = _left(ends)
            with self._client().stream(
                method,
                self._root + path,
                content=None if body is None else orjson.dumps(body),
                timeout=httpx2.Timeout(left, connect=min(left, CONNECT_SECONDS)),
            ) as answer:
                said = b"".join(_until(ends, answer.iter_bytes()))
        except httpx2.TimeoutException as error:
            raise _too_slow() from error
        except httpx2.HTTPError as error:
            raise _away("memory_away") from error
        return _read(answer.status_code, said)

    def _client(self) -> httpx2.Client:
        """Return this process's connections: a forked one must not share its parent's."""
        pid = os.getpid()
        if pid not in self._clients:
            self._clients = {
                pid: httpx2.Client(
                    headers={"Content-Type": "application/json"},
                    trust_env=False,  # no proxy stands between a server and its store
                )
            }
        return self._clients[pid]


def _read(status: int, said: bytes) -> Any:
    """Return what an answer holds; its error as what it means here."""
    try:
        read = orjson.loads(said)
    except orjson.JSONDecodeError as error:
        raise _away("memory_garbled") from error
    if status < 400:
        return read
    told = read if isinstance(read, dict) else {}
    # A database that is not there is no 404 where a collection is made.
    if status == 404 or (status == 400 and "does not exist" in str(told.get("message"))):
        raise _Missing
    if status == 409:
        raise _Exists
    logger.error("Chroma refused: %d %s", status, str(told.get("error"))[:60])
    raise _away("memory_refused")


def _until(ends: float, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        _left(ends)
        yield chunk


def _ends(milliseconds: int) -> float:
    return time.monotonic() + milliseconds / 1_000


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise _too_slow()
    return left


def _too_slow() -> Unavailable:
    return Unavailable(_("The search took too long."), code="too_slow")


def _away(code: str) -> Unavailable:
    return Unavailable(_("The memory search can't be reached right now. Try again."), code=code)


def _path(collection: Mapping[str, Any]) -> str:
    return f"/databases/{collection['database']}/collections/{collection['id']}"


def _name(model: str, dims: int) -> str:
    """Return the name of an embedder's collection: any name of a model fits in."""
    return f"{hashlib.blake2b(model.encode(), digest_size=16).hexdigest()}-{dims}"


def _memory_of(record: str) -> UUID:
    return UUID(record.partition("/")[0])


def _records(entry: Entry) -> list[dict[str, Any]]:
    vectors = [(unit, vector) for unit in entry.units for vector in unit.vectors]
    return [
        {
            "id": f"{entry.memory}/{number}",
            "embedding": list(vector),
            "metadata": {
                "memory": str(entry.memory),
                "number": number,
                "place": unit.place,
                "speaker": str(unit.speaker),
            },
        }
        for number, (unit, vector) in enumerate(vectors)
    ]


def _hit(record: str, cosine: float, known: Mapping[str, Any]) -> _Hit:
    return _Hit(record, cosine, int(known["place"]), Speaker(known["speaker"]))


def _each_memory_once(hits: Iterable[_Hit]) -> list[_Hit]:
    """Return the best record of each memory, of hits that begin with the best."""
    best: dict[UUID, _Hit] = {}
    for hit in hits:
        best.setdefault(hit.memory, hit)
    return list(best.values())


def _found(hit: _Hit) -> Found:
    score = min(1.0, max(0.0, hit.cosine))
    return Found(
        memory=hit.memory,
        speaker=hit.speaker,
        place=hit.place,
        score=score,
        vector_part=score,
        text_part=0.0,
        because=(Reason(Why.MEANING),) if score >= NEAR else (),
        cosine=hit.cosine,
    )


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]
