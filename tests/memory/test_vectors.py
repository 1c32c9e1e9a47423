"""Vectors as they may be stored."""

import base64
from typing import Any

import numpy as np
import pytest

from memory.vectors import Embedded, in_order, units


def test_rows_become_units() -> None:
    vectors = units([[3, 4], [0, -2]])
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0, -1]], atol=1e-6)
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(
    "rows",
    [
        [[0, 0]],
        [[1e-9, 0]],
        [[float("nan"), 1]],
        [[float("inf"), 1]],
        [[1e39, 1]],
        [[1, 2], [1]],
        [1, 2],
        [],
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_rows_that_are_no_vectors_are_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"vector|inhomogeneous"):
        units(rows)


def test_base64_and_missing_indexes_are_understood() -> None:
    packed = base64.b64encode(np.asarray([0, 2], "<f4").tobytes()).decode()
    vectors = in_order([{"embedding": [1.0, 0.0]}, {"index": 1, "embedding": packed}], 2)
    np.testing.assert_array_equal(vectors, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"embedding": [1.0]}, {"embedding": [1.0]}],
        [{"index": 1, "embedding": [1.0]}],
        [{"index": [], "embedding": [1.0]}],
        [{"embedding": [True]}],
        [{"embedding": None}],
        [{"embedding": "%%%"}],
        [None],
    ],
)
def test_anything_but_one_vector_for_each_text_is_refused(entries: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"embeddings|vector|numbers|base64"):
        in_order(entries, 1)


def test_a_vector_travels_in_a_jobs_row() -> None:
    vector = units([list(range(1, 385))])[0].tolist()
    packed = Embedded("some-model", vector).packed()
    assert len(str(packed)) < 1_200
    back = Embedded.unpacked(packed)
    assert back.model == "some-model"
    assert np.allclose(back.vector, vector, atol=1e-3)
