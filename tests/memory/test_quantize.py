"""The default model in whole numbers: what it says stays what its file says."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memory import embedder
from memory.embedder import LocalEmbedder, default_files
from memory.quantize import in_whole_numbers

TEXTS = [
    "The user is vegetarian.",
    "Which instrument did I say that I practise, and with whom?",
    "I grow tomatoes in the garden behind my house, and water them every Sunday. " * 6,
]


def made(texts: Sequence[str], **given: Any) -> Any:
    return LocalEmbedder("x", lambda: replace(default_files(), **given)).embed(texts)


def test_every_multiplication_by_a_weight_is_one_of_whole_numbers() -> None:
    whole = in_whole_numbers(default_files().weights.read_bytes())
    assert whole.count(b"DynamicQuantizeMatMul") == 6 * (4 + 2)  # layers: attention, the rest


def test_the_vectors_are_nearly_those_of_the_same_weights_as_floats() -> None:
    whole, floats = made(TEXTS), made(TEXTS, whole_numbers=False)
    assert (whole * floats).sum(axis=1).min() > 0.985
    np.testing.assert_allclose(whole @ whole.T, floats @ floats.T, atol=0.06)


def test_a_processor_whose_sums_overflow_makes_the_same_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = made(TEXTS)
    monkeypatch.setattr(embedder, "_adds_up", lambda: False)
    np.testing.assert_allclose(made(TEXTS), usual, atol=1e-4)


def test_a_text_has_the_same_vector_in_any_company() -> None:
    alone = np.concatenate([made([text]) for text in TEXTS])
    np.testing.assert_array_equal(made(TEXTS), alone)


def test_a_model_of_another_form_stays_as_it_is() -> None:
    graph = b"\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu"
    model = b"\x08\x0a\x3a" + bytes([len(graph)]) + graph
    assert in_whole_numbers(model) == model
