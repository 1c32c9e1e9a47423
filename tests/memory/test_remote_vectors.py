"""Vectors from an embeddings address."""

from typing import Any

import numpy as np
import pytest

from accounts.errors import Rejected
from memory.remote_vectors import embed_remote
from tests.memory.asking import endpoint
from tests.stub_model import StubModel


def test_remote_vectors_are_units_in_the_order_of_the_texts(stub: StubModel) -> None:
    texts = [f"text {number}" for number in range(150)]
    plain = embed_remote(endpoint(stub), texts)
    assert plain.shape == (150, 384)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, atol=1e-5)
    assert [len(request.body["input"]) for request in stub.requests] == [64, 64, 22]
    stub.script(shape="shuffled")
    np.testing.assert_array_equal(embed_remote(endpoint(stub), texts), plain)
    stub.script(shape="long")
    long = embed_remote(endpoint(stub), texts)
    np.testing.assert_allclose(long, plain, atol=1e-5)


@pytest.mark.parametrize(
    "scripted",
    [
        {"shape": "missing"},
        {"shape": "doubled"},
        {"shape": "nan"},
        {"shape": "zero"},
        {"shape": "ragged"},
        {"shape": "strings"},
        {"body": "{}"},
        {"body": '{"data": [7, 8]}'},
        {"body": '{"data": [{"embedding": []}, {"embedding": []}]}'},
    ],
)
def test_vectors_that_are_none_are_rejected(stub: StubModel, scripted: dict[str, Any]) -> None:
    stub.script(**scripted)
    with pytest.raises(Rejected):
        embed_remote(endpoint(stub), ["one", "two"])


def test_vectors_too_long_to_be_stored_are_rejected_before_that_is_tried(stub: StubModel) -> None:
    stub.script(kind="embeddings", dims=16_000, times=1)
    assert embed_remote(endpoint(stub), ["one"]).shape == (1, 16_000)
    stub.script(kind="embeddings", dims=16_001)
    with pytest.raises(Rejected, match="too long to be stored"):
        embed_remote(endpoint(stub), ["one"])


def test_text_too_long_for_the_embedder_is_cut_further(stub: StubModel) -> None:
    stub.script(status=500, error={"message": "input is too large to process"}, times=1)
    embed_remote(endpoint(stub), ["word " * 5_000])
    assert [len(request.body["input"][0]) for request in stub.requests] == [6_000, 1_000]
