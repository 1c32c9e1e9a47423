"""One contract for every provider: what is kept is found, exactly, in its scope and no other."""

from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.scope import Scope, entered
from memory.exchange import Speaker
from memory.keys import spell
from memory.models import Memory
from memory.providers.base import Entry, Key, MemoryProvider, provider
from memory.providers.pgvector import PgvectorProvider
from memory.providers.plain import PlainProvider

pytestmark = pytest.mark.django_db

DIMS = 384
MODEL = "test-embedder"


@pytest.fixture(params=[PgvectorProvider, PlainProvider], ids=["pgvector", "plain"])
def held(request: pytest.FixtureRequest) -> MemoryProvider:
    made: MemoryProvider = request.param()
    return made


def unit(seed: int, *, dims: int = DIMS, near: list[float] | None = None) -> list[float]:
    noise = np.random.default_rng(seed).standard_normal(dims)
    vector = noise if near is None else np.asarray(near) * 30 + noise
    return list((vector / np.linalg.norm(vector)).tolist())


def keep(
    scope: Scope,
    held: MemoryProvider,
    *vectors: list[float],
    text: str = "A memory.",
    model: str = MODEL,
    speakers: tuple[Speaker, ...] = (),
    **fields: Any,
) -> UUID:
    memory = spell(
        Memory(
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            kind=fields.pop("kind", "exchange"),
            origin="own_words",
            text=text,
            **{"source": uuid4()} | fields,
        )
    )
    with entered(scope):
        memory.save(force_insert=True)
    entry = Entry(
        memory.pk,
        memory.kind,
        memory.text,
        memory.answer,
        memory.source,
        memory.session_key,
        memory.created_at,
        memory.pinned,
        model,
        [
            Key(place, speakers[place] if speakers else Speaker.PERSON, vector)
            for place, vector in enumerate(vectors)
        ],
    )
    held.remember(scope, entry=entry)
    held.remember(scope, entry=entry)  # twice is once
    return memory.pk


def found(scope: Scope, held: MemoryProvider, vector: list[float], **given: Any) -> list[UUID]:
    asked = {"model": MODEL, "limit": 10} | given
    return [one.memory for one in held.recall(scope, vector=vector, **asked)]


def test_the_nearest_come_first_and_exactly(mara: Scope, held: MemoryProvider) -> None:
    vectors = [unit(seed) for seed in range(60)]
    kept = [keep(mara, held, vector) for vector in vectors]
    question = unit(1_000)
    order = np.argsort(-(np.float16(vectors).astype(float) @ np.asarray(question)))
    assert found(mara, held, question) == [kept[place] for place in order[:10]]
    assert found(mara, held, question, limit=3) == [kept[place] for place in order[:3]]


def test_min_of_limit_and_all_there_are_always_come_back(mara: Scope, held: MemoryProvider) -> None:
    assert found(mara, held, unit(0)) == []
    near = unit(1)
    many = [unit(seed, near=near) for seed in range(40)]
    keep(mara, held, *many)  # one memory with more keys than are asked for at first
    others = [keep(mara, held, unit(100 + seed)) for seed in range(9)]
    assert len(found(mara, held, near, limit=10)) == 10
    assert set(found(mara, held, near, limit=10)) >= set(others)
    assert len(found(mara, held, near, limit=50)) == 10


def test_a_memory_is_found_once_by_its_best_key(mara: Scope, held: MemoryProvider) -> None:
    near, far = unit(1), unit(2)
    pk = keep(mara, held, far, near, speakers=(Speaker.PERSON, Speaker.ASSISTANT), answer="Yes.")
    [one] = held.recall(mara, vector=near, model=MODEL, limit=5)
    assert (one.memory, one.position, one.speaker) == (pk, 1, Speaker.ASSISTANT)
    assert (one.text, one.answer, one.kind) == ("A memory.", "Yes.", "exchange")
    assert one.score == pytest.approx(1, abs=2e-3)


def test_scores_are_cosines_from_0_to_1(mara: Scope, held: MemoryProvider) -> None:
    near = unit(1)
    keep(mara, held, near)
    keep(mara, held, [-number for number in near])
    scores = [one.score for one in held.recall(mara, vector=near, model=MODEL, limit=5)]
    assert scores == [pytest.approx(1, abs=2e-3), 0]
    assert all(0 <= score <= 1 for score in scores)


def test_scopes_share_nothing(mara: Scope, bob: Scope, held: MemoryProvider) -> None:
    near = unit(1)
    hers = keep(mara, held, near)
    twin = Scope(bob.tenant_id, mara.user_id)
    assert found(bob, held, near) == found(twin, held, near) == []
    his = keep(bob, held, near)
    assert held.list(mara, model=MODEL) == {hers}
    assert held.forget(bob, memories=[hers]) == 0
    assert held.purge(twin) == 0
    assert held.purge(bob) == 1
    assert found(mara, held, near) == [hers]
    assert his not in found(mara, held, near)


def test_sources_in_the_window_leave_their_places_to_others(
    mara: Scope, held: MemoryProvider
) -> None:
    near = unit(1)
    shown = [uuid4() for _ in range(30)]
    for source in shown:
        keep(mara, held, unit(3, near=near), source=source)
    others = [keep(mara, held, unit(seed)) for seed in range(20, 25)]
    without_source = keep(mara, held, unit(99), source=None)
    assert set(found(mara, held, near, exclude_sources=shown, limit=10)) == {
        *others,
        without_source,
    }


def test_pinned_memories_come_before_nearer_ones(mara: Scope, held: MemoryProvider) -> None:
    near = unit(1)
    nearest = keep(mara, held, near)
    pinned = keep(mara, held, unit(2), pinned=True)
    shown = uuid4()
    keep(mara, held, unit(2), pinned=True, source=shown)
    assert found(mara, held, near, limit=1, exclude_sources=[shown]) == [pinned]
    assert found(mara, held, near, exclude_sources=[shown]) == [pinned, nearest]


def test_only_keys_of_the_model_are_compared(mara: Scope, held: MemoryProvider) -> None:
    kept = keep(mara, held, unit(1))
    other = keep(mara, held, unit(1, dims=1_536), model="wide")
    same_name = keep(mara, held, unit(2, dims=8), model="small")
    assert found(mara, held, unit(1)) == [kept]
    assert found(mara, held, unit(1, dims=1_536), model="wide") == [other]
    assert found(mara, held, unit(2, dims=8), model="small") == [same_name]
    assert held.list(mara, model="wide") == {other}


def test_remembering_again_replaces_the_keys(mara: Scope, held: MemoryProvider) -> None:
    before, after = unit(1), unit(2)
    pk = keep(mara, held, before, before)
    [one] = held.recall(mara, vector=before, model=MODEL, limit=1)
    held.remember(
        mara,
        entry=Entry(
            pk,
            "exchange",
            one.text,
            one.answer,
            one.source,
            one.session_key,
            one.at,
            one.pinned,
            "another",
            [Key(0, Speaker.PERSON, after)],
        ),
    )
    assert found(mara, held, before) == []
    assert found(mara, held, after, model="another") == [pk]


def test_what_is_forgotten_is_not_found_and_forgetting_again_is_nothing(
    mara: Scope, held: MemoryProvider
) -> None:
    near = unit(1)
    gone = keep(mara, held, near, near)
    stays = keep(mara, held, unit(2))
    assert held.forget(mara, memories=[gone, uuid4()]) == 2
    assert held.forget(mara, memories=[gone]) == 0
    assert found(mara, held, near) == [stays]
    assert held.purge(mara) == 1
    assert held.purge(mara) == 0
    assert found(mara, held, near) == []


def test_long_texts_are_found_by_their_beginning(mara: Scope, held: MemoryProvider) -> None:
    keep(mara, held, unit(1), text="x" * 9_000, answer="y" * 9_000)
    [one] = held.recall(mara, vector=unit(1), model=MODEL, limit=1)
    assert (len(one.text), len(one.answer)) == (4_000, 4_000)


def test_the_setting_chooses_the_provider(settings: Any) -> None:
    assert isinstance(provider(), PgvectorProvider)
    settings.MEMORY_PROVIDER = {"BACKEND": "memory.providers.plain.PlainProvider", "OPTIONS": {}}
    plain = provider()
    assert isinstance(plain, PlainProvider)
    assert provider() is plain


def test_the_search_reads_the_covering_index_and_no_table_row_of_a_key(mara: Scope) -> None:
    held = PgvectorProvider()
    for seed in range(300):
        keep(mara, held, unit(seed))
    with CaptureQueriesContext(connection) as captured:
        found(mara, held, unit(1_000))
    [query] = [one["sql"] for one in captured if "nearest" in one["sql"]]
    with entered(mara), connection.cursor() as cursor:
        cursor.execute("set local enable_seqscan = off")
        cursor.execute("set local enable_bitmapscan = off")
        cursor.execute("explain " + query)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Only Scan using search_key_covering" in plan
