"""One contract for every provider: what is kept is found, in its scope and no other.

What a provider lacks is named here, and its tests of that are left out by name.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from accounts.scope import Scope, entered
from memory.exchange import Speaker
from memory.keys import spell
from memory.models import Memory
from memory.places import place_alone
from memory.providers import base
from memory.providers.base import (
    Ability,
    Entry,
    Found,
    MemoryProvider,
    Unit,
    Why,
    provider,
)
from memory.providers.chroma import ChromaProvider
from memory.providers.later import AfterCommit
from memory.providers.pgvector import PgvectorProvider
from memory.providers.plain import PlainProvider
from memory.terms import read_question
from tests.chroma_server import ChromaServer

pytestmark = pytest.mark.django_db

DIMS = 384
MODEL = "test-embedder"
TODAY = date(2026, 11, 30)
LACKS: dict[str, AbstractSet[Ability]] = {
    "pgvector": set(),
    "plain": {Ability.TRANSACTIONAL, Ability.DURABLE},
    "chroma": {
        Ability.TEXT,
        Ability.NEIGHBOURS,
        Ability.DATES,
        Ability.EXACT,
        Ability.TRANSACTIONAL,
    },
    # The one that docs/providers.md shows how to write.
    "example": frozenset(Ability) - {Ability.VECTOR, Ability.MODELS},
}
DOCS = Path(__file__).resolve().parents[2] / "docs" / "providers.md"


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with ChromaServer(tmp_path_factory.mktemp("chroma")) as server:
        yield server


@pytest.fixture(params=list(LACKS))
def held(request: pytest.FixtureRequest) -> Iterator[MemoryProvider]:
    """Each provider in its turn, empty."""
    if request.param == "chroma":
        with closing(empty(request.getfixturevalue("chroma"))) as made:
            yield made
    else:
        yield maker(request.param)()


def maker(name: str) -> Any:
    """Return a provider's class."""
    if name != "example":
        return {"pgvector": PgvectorProvider, "plain": PlainProvider, "chroma": ChromaProvider}[
            name
        ]
    code = DOCS.read_text().partition("```python\n")[2].partition("```")[0]
    names = vars(base) | {"np": np, "Scope": Scope, "UUID": UUID}
    exec(code, names)  # noqa: S102 - our own docs
    return names["Nearest"]


def need(held: MemoryProvider, ability: Ability) -> None:
    if ability not in held.abilities:
        pytest.skip(f"{type(held).__name__} lacks: {ability}")


def empty(server: ChromaServer) -> ChromaProvider:
    return ChromaProvider("127.0.0.1", server.port, namespace=f"t{uuid4().hex}")


def unit(seed: int, *, dims: int = DIMS, near: list[float] | None = None) -> list[float]:
    noise = np.random.default_rng(seed).standard_normal(dims)
    vector = noise if near is None else np.asarray(near) * 30 + noise
    return list((vector / np.linalg.norm(vector)).tolist())


def entry_of(
    *vectors: list[float],
    memory: UUID | None = None,
    model: str = MODEL,
    speakers: Sequence[Speaker] = (),
    text: str = "A memory.",
    together: bool = False,
) -> Entry:
    """Return an entry with a unit for each vector, or all of them in one."""
    memory = memory or uuid4()
    parts = [list(vectors)] if together else [[vector] for vector in vectors] or [[]]
    return Entry(
        memory=memory,
        kind="exchange",
        at=datetime(2026, 11, 30, tzinfo=UTC),
        source=uuid4(),
        session_key=None,
        model=model,
        units=[
            Unit(
                place_alone(memory, number),
                speakers[number] if speakers else Speaker.PERSON,
                "",
                TODAY,
                text,
                part,
            )
            for number, part in enumerate(parts)
        ],
    )


def keep(scope: Scope, held: MemoryProvider, *vectors: list[float], **given: Any) -> UUID:
    entry = entry_of(*vectors, **given)
    if "memory" not in given:
        exists(scope, entry)
    held.remember(scope, entry=entry)
    held.remember(scope, entry=entry)  # twice is once
    return entry.memory


def exists(scope: Scope, *entries: Entry) -> None:
    """Have the rows of these memories, which a provider in the database refers to."""
    rows = [
        spell(
            Memory(
                pk=entry.memory,
                tenant_id=scope.tenant_id,
                user_id=scope.user_id,
                kind=entry.kind,
                origin="own_words",
                text=entry.units[0].text,
                source=entry.source,
            )
        )
        for entry in entries
    ]
    with entered(scope):
        for row in rows:
            row.save(force_insert=True)


def ask(
    scope: Scope, held: MemoryProvider, vector: list[float] | None, **given: Any
) -> list[Found]:
    asked = {"model": MODEL, "limit": 10} | given
    text = asked.pop("text", "Which?")
    return held.recall(scope, question=read_question(text, today=TODAY), vector=vector, **asked)


def found(
    scope: Scope, held: MemoryProvider, vector: list[float] | None, **given: Any
) -> list[UUID]:
    return [one.memory for one in ask(scope, held, vector, **given)]


@pytest.mark.parametrize("name", LACKS)
def test_each_says_what_it_can(name: str) -> None:
    assert maker(name).abilities == frozenset(Ability) - LACKS[name]


def test_the_nearest_come_first(mara: Scope, held: MemoryProvider) -> None:
    near = unit(1_000)
    kept = [keep(mara, held, unit(seed)) for seed in range(30)]
    nearest = [keep(mara, held, unit(seed, near=near)) for seed in (50, 51)]
    assert set(found(mara, held, near, limit=2)) == set(nearest)
    assert set(found(mara, held, near, limit=50)) == {*kept, *nearest}


def test_of_each_it_is_told_how_near_its_vector_is(mara: Scope, held: MemoryProvider) -> None:
    near = unit(1_000)
    same, other = keep(mara, held, near), keep(mara, held, unit(2_000))
    cosines = {one.memory: one.cosine for one in ask(mara, held, near)}
    assert cosines[same] == pytest.approx(1, abs=1e-2)
    assert cosines[other] is not None
    assert cosines[other] < 0.5


def test_the_nearest_are_found_all_of_them(mara: Scope, held: MemoryProvider) -> None:
    need(held, Ability.EXACT)
    vectors = [unit(seed) for seed in range(60)]
    kept = [keep(mara, held, vector) for vector in vectors]
    question = unit(1_000)
    order = np.argsort(-(np.float16(vectors).astype(float) @ np.asarray(question)))
    assert found(mara, held, question, limit=3) == [kept[place] for place in order[:3]]


def test_min_of_limit_and_all_there_are_always_come_back(mara: Scope, held: MemoryProvider) -> None:
    assert found(mara, held, unit(0)) == []
    near = unit(1)
    many = [unit(seed, near=near) for seed in range(60)]
    keep(mara, held, *many)  # one memory with more units than are asked for at first
    others = [keep(mara, held, unit(100 + seed)) for seed in range(9)]
    assert len(found(mara, held, near, limit=10)) == 10
    assert set(found(mara, held, near, limit=10)) >= set(others)
    assert len(found(mara, held, near, limit=50)) == 10
    assert len(found(mara, held, near, limit=4)) == 4


def test_memories_that_nearly_say_the_same_are_all_found(mara: Scope, held: MemoryProvider) -> None:
    """A graph of neighbours does not reach them all: Chroma alone returned two in three."""
    near = np.asarray(unit(1))
    noise = np.random.default_rng(2).standard_normal((120, DIMS))
    rows = near + 1e-4 * noise
    entries = [entry_of(list((row / np.linalg.norm(row)).tolist())) for row in rows]
    exists(mara, *entries)
    for entry in entries:
        held.remember(mara, entry=entry)
    found_ones = found(mara, held, unit(3), limit=200)
    assert len(found_ones) == 120
    assert set(found_ones) == {entry.memory for entry in entries}


def test_a_memory_is_found_once_by_its_best_unit(mara: Scope, held: MemoryProvider) -> None:
    near, far = unit(1), unit(2)
    pk = keep(mara, held, far, near, speakers=(Speaker.PERSON, Speaker.ASSISTANT))
    [one] = ask(mara, held, near, limit=5)
    assert (one.memory, one.speaker, one.place) == (pk, Speaker.ASSISTANT, place_alone(pk, 1))
    assert Why.MEANING in {reason.code for reason in one.because}


def test_a_unit_is_found_by_any_of_its_passages(mara: Scope, held: MemoryProvider) -> None:
    near = unit(1)
    pk = keep(mara, held, unit(2), near, together=True)
    other = keep(mara, held, unit(3))
    assert found(mara, held, near) == [pk, other]


def test_scores_are_from_0_to_1_and_fall(mara: Scope, held: MemoryProvider) -> None:
    near = unit(1)
    same = keep(mara, held, near)
    keep(mara, held, unit(5))
    keep(mara, held, [-number for number in near])
    hits = ask(mara, held, near, limit=5)
    scores = [one.score for one in hits]
    assert hits[0].memory == same
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]
    assert all(0 <= one.score <= 1 for one in hits)
    assert all(one.vector_part + one.text_part <= one.score + 1e-6 for one in hits)


def test_scopes_share_nothing(mara: Scope, bob: Scope, held: MemoryProvider) -> None:
    near = unit(1)
    hers = keep(mara, held, near)
    twin = Scope(bob.tenant_id, mara.user_id)
    assert found(bob, held, near) == found(twin, held, near) == []
    his = keep(bob, held, near)
    assert held.list(mara, model=MODEL) == {hers}
    assert held.forget(bob, memories=[hers]) == 0
    assert held.purge(twin) == 0
    assert found(bob, held, near) == [his]
    assert held.purge(bob) == 1
    assert found(mara, held, near) == [hers]


def test_one_id_in_two_scopes_is_two_memories(
    mara: Scope, bob: Scope, held: MemoryProvider
) -> None:
    if isinstance(held, PgvectorProvider):
        pytest.skip("its tables let no id be of two memories")
    near, pk = unit(1), uuid4()
    keep(mara, held, near, memory=pk)
    keep(bob, held, unit(2), memory=pk)
    assert held.forget(bob, memories=[pk]) == 1
    assert found(mara, held, near) == [pk]


def test_only_vectors_of_the_model_are_compared(mara: Scope, held: MemoryProvider) -> None:
    need(held, Ability.MODELS)
    kept = keep(mara, held, unit(1))
    other = keep(mara, held, unit(1, dims=1_536), model="wide/é: any sign " * 6)
    small = keep(mara, held, unit(2, dims=8), model="small")
    wide = "wide/é: any sign " * 6
    assert found(mara, held, unit(1))[0] == kept
    assert found(mara, held, unit(1, dims=1_536), model=wide)[0] == other
    assert held.list(mara, model=wide) == {other}
    assert held.list(mara, model="small") == {small}
    assert held.purge(mara) == 3


def test_remembering_again_replaces_what_there_was(mara: Scope, held: MemoryProvider) -> None:
    before, after = unit(1), unit(2)
    pk = keep(mara, held, before, unit(7), unit(8))
    keep(mara, held, after, memory=pk)
    [one] = ask(mara, held, before)
    assert one.place == place_alone(pk, 0)
    assert one.score < 0.6
    assert held.forget(mara, memories=[pk]) == 1


def test_another_embedders_vectors_replace_the_first_ones(
    mara: Scope, held: MemoryProvider
) -> None:
    need(held, Ability.MODELS)
    pk = keep(mara, held, unit(1), unit(3))
    keep(mara, held, unit(2), memory=pk, model="another")
    assert held.list(mara, model=MODEL) == set()
    assert found(mara, held, unit(2), model="another") == [pk]
    assert held.forget(mara, memories=[pk]) == 1


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
    again = keep(mara, held, near)
    assert found(mara, held, near) == [again]


def test_what_has_no_vector_is_not_listed(mara: Scope, held: MemoryProvider) -> None:
    bare = keep(mara, held, text="Mara likes figs.")
    with_one = keep(mara, held, unit(1))
    assert held.list(mara, model=MODEL) == {with_one}
    keep(mara, held, unit(2), memory=bare)
    assert held.list(mara, model=MODEL) == {bare, with_one}
    keep(mara, held, memory=bare)  # its vectors are gone again
    assert held.list(mara, model=MODEL) == {with_one}


def test_words_are_enough_without_a_vector(mara: Scope, held: MemoryProvider) -> None:
    need(held, Ability.TEXT)
    figs = keep(mara, held, text="Mara likes figs.")
    keep(mara, held, unit(1), text="Bread is baked on Mondays.")
    [one] = ask(mara, held, None, text="Who likes figs?")
    assert one.memory == figs
    assert one.text_part > one.vector_part == 0


def test_without_text_there_is_nothing_to_find_without_a_vector(
    mara: Scope, held: MemoryProvider
) -> None:
    if Ability.TEXT in held.abilities:
        assert ask(mara, held, None, text="bread") == []
    keep(mara, held, unit(1), text="Bread is baked on Mondays.")
    assert found(mara, held, None, text="Who likes figs?") == []


@pytest.mark.parametrize("backend", ["plain.PlainProvider", "chroma.ChromaProvider"])
def test_the_setting_chooses_the_provider(settings: Any, backend: str) -> None:
    assert isinstance(provider(), PgvectorProvider)
    options = {"host": "127.0.0.1", "port": 1} if "Chroma" in backend else {}
    settings.MEMORY_PROVIDER = {"BACKEND": f"memory.providers.{backend}", "OPTIONS": options}
    chosen = provider()
    assert isinstance(chosen, AfterCommit)
    assert type(chosen.inner).__name__ in backend
    assert provider() is chosen


def test_what_is_kept_outlives_the_process(
    mara: Scope, held: MemoryProvider, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    need(held, Ability.DURABLE)
    if not isinstance(held, ChromaProvider):
        pytest.skip("that Postgres is durable is not ours to test")
    with ChromaServer(tmp_path) as server, closing(empty(server)) as held:
        near = unit(1)
        kept = keep(mara, held, near)
        gone = keep(mara, held, unit(2))
        held.forget(mara, memories=[gone])
        server.stop()  # as a crash does
        server.start()
        assert found(mara, held, near) == [kept]
