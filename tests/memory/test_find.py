"""What Postgres says of a memory decides whether it is found, and there are always enough."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from django.utils import timezone

from accounts.scope import Scope, entered
from memory import embedder
from memory.find import Here, find, read_core
from memory.models import Memory, MemorySettings, TenantMemorySettings
from tests.memory.conftest import keep

pytestmark = pytest.mark.django_db

SHOWN = uuid4()
HERE = Here(exclude_sources=[SHOWN], session_key=uuid4())
# What is made of a memory that its provider has been told of: whether it may still be found.
FATES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"reach": "session", "reach_key": HERE.session_key}, True),
    ({"expires_at": timezone.now() + timedelta(days=1)}, True),
    ({"source": uuid4()}, True),
    ({"status": "past"}, False),
    ({"status": "waiting"}, False),
    ({"status": "declined"}, False),
    ({"status": "trash"}, False),
    ({"trusted": False}, False),
    ({"reach": "session", "reach_key": uuid4()}, False),
    ({"reach": "project", "reach_key": uuid4()}, False),
    ({"expires_at": timezone.now() - timedelta(days=1)}, False),
    ({"source": SHOWN}, False),
]


def found(scope: Scope, *, limit: int, here: Here = HERE) -> list[UUID]:
    hits = find(
        scope,
        question="Which tea do I like?",
        vector=embedder.embed(["Which tea do I like?"])[0].tolist(),
        model=embedder.current().name,
        limit=limit,
        today=timezone.localdate(),
        here=here,
    )
    return [hit.row.memory for hit in hits]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_became_of_memories_min_of_limit_and_those_that_may_are_found(
    mara: Scope, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    may: set[UUID] = set()
    for number in range(int(chance.integers(30, 60))):
        memory = keep(mara, f"The user likes tea of sort {number}.")
        fate, seen = FATES[chance.integers(len(FATES))]
        with entered(mara):
            Memory.objects.within(mara).filter(pk=memory.pk).update(**fate)
        if seen:
            may.add(memory.pk)
    for limit in (1, 3, 8, 20, 100):
        hits = found(mara, limit=limit)
        assert len(hits) == len(set(hits)) == min(limit, len(may))
        assert set(hits) <= may


def test_all_claims_are_read_while_they_are_few_and_nobody_has_set_anything(mara: Scope) -> None:
    for number in range(9):
        keep(mara, f"The user likes tea of sort {number}.")
    keep(mara, "Tea, please.", kind="exchange", source=uuid4(), answer="Here.")
    pinned = keep(mara, "The user is called Ines.", pinned=True)
    limits, always, claims = read_core(mara, here=Here())
    assert (limits.on, limits.chosen, limits.token_budget) == (True, False, 1_500)
    assert [row.memory for row in always] == [pinned.pk]
    assert len(claims) == 10
    with entered(mara):
        TenantMemorySettings.objects.create(tenant_id=mara.tenant_id, token_budget=108)
    limits, always, claims = read_core(mara, here=Here())
    assert (limits.token_budget, len(always), claims) == (108, 1, [])
    with entered(mara):
        MemorySettings.objects.within(mara).create(
            tenant_id=mara.tenant_id, user_id=mara.user_id, token_budget=20_000, top_k=5
        )
    limits, always, claims = read_core(mara, here=Here())
    assert (limits.token_budget, limits.top_k, limits.chosen) == (20_000, 5, True)
    assert (len(always), claims) == (1, [])


def test_the_core_of_another_persons_is_not_read(mara: Scope, bob: Scope) -> None:
    keep(mara, "The user is called Ines.", pinned=True)
    assert read_core(bob, here=Here())[1:] == ([], [])
    assert read_core(Scope(bob.tenant_id, mara.user_id), here=Here())[1:] == ([], [])
