"""Vectors as they may be stored: finite, of one length, of norm 1."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

type Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]

TINY = 1e-6


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's vector, of norm 1, with the name of the embedder that made it."""

    model: str
    vector: Sequence[float]

    def packed(self) -> dict[str, str]:
        """Return it for a column of JSON: half precision, as search keys are stored; 1 KB."""
        half = np.asarray(self.vector, dtype="<f2").tobytes()
        return {"model": self.model, "vector": base64.b64encode(half).decode()}

    @classmethod
    def unpacked(cls, packed: Mapping[str, str]) -> Self:
        """Return what `packed` was made of."""
        half = np.frombuffer(base64.b64decode(packed["vector"]), dtype="<f2")
        return cls(packed["model"], half.astype(np.float32).tolist())


def units(rows: Any) -> Vectors:
    """Return the rows as float32 of norm 1; ValueError if one is no vector, not finite or zero."""
    vectors = np.asarray(rows, dtype=np.float32)
    if vectors.ndim != 2:
        raise ValueError("no vectors of one length")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms < TINY).any():
        raise ValueError("a vector that is zero or not finite")
    return cast("Vectors", vectors / norms)


def in_order(entries: Sequence[Any], count: int) -> Vectors:
    """Return the vectors of an embeddings answer in the order of the texts.

    ValueError unless there is exactly one for each of `count` texts, in numbers or in base64.
    """
    try:
        placed = {
            entry.get("index", number): _numbers(entry["embedding"])
            for number, entry in enumerate(entries)
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("no embeddings") from error
    if len(entries) != count or set(placed) != set(range(count)):
        raise ValueError("not one vector for each text")
    return units([placed[number] for number in range(count)])


def _numbers(vector: Any) -> Any:
    if isinstance(vector, str):  # some servers always answer in base64
        try:
            return np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")
        except ValueError as error:
            raise ValueError("neither numbers nor base64") from error
    if not isinstance(vector, list) or not all(type(number) in {float, int} for number in vector):
        raise ValueError("not numbers")
    return vector
