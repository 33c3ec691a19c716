"""The part of the general head that reads words in context: one transformer layer (Vaswani et al. 2017, normalized
before it) over the distinct words u of a function, field by field, with learned vectors e_u, weights b_u, positions p,
and vectors f and weights f' of their fields:

    h_u     = norm(layer(e_u + p_u + f_u))
    vector  = unit(sum over u of exp(b_u + f'_u + w . h_u) * (e_u + out(h_u)))

A query has the same form without fields. The cosine of both is computed for the leading candidates of a query only.
Trained by `unif.context`.

On disk: `context_words.npy` (int8 [2, V, d]: e of queries and of functions), `context_scales.npy` (float16 [2, V]: what
a row of these is multiplied by), `context_weights.npy` (float16 [2, V]: b) and `context.npy` (float16: all other
parameters, one after the other, in the order of `parameters`). Shapes are at line ends: n texts, l words a text, V
stems, d dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.files import map_array, save_array
from ncs.learn.heads import attention, dense, layer_norm
from ncs.learn.tfidf import unit_rows
from ncs.learn.translation import READ
from ncs.storage.arrays import are_finite, offsets_of, starts_of_runs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.types import Field, Matrix

    Ids = NDArray[np.integer[Any]]
    Array = NDArray[np.float32]

READ_IN_CONTEXT: tuple[Field, ...] = tuple(field for field in READ if field != "doc")
"""The fields, in this order; without `doc`, of which most training queries are made."""
LONGEST_QUERY, LONGEST_FUNCTION, LONGEST_FIELD = 12, 64, 60
"""Distinct words of a query and of a function, and words of a field, that are read."""
MIN_QUERY = 2
"""Fewest words of a query, in training and at search."""
SIDES = ("query", "code")
DIM, HEADS, WIDE = 64, 4, 128
"""Dimensions of a word, attention heads, and units between the two dense layers."""
MAX_LOG_WEIGHT = 8.0
BATCH = 8
"""Functions encoded at a time; more leave the cache."""


def parameters() -> dict[str, tuple[int, ...]]:
    """The name and shape of every parameter but the words'."""
    shapes: dict[str, tuple[int, ...]] = {}
    for side, longest in zip(SIDES, (LONGEST_QUERY, LONGEST_FUNCTION), strict=True):
        layers = {"inputs": (3 * DIM, DIM), "output": (DIM, DIM), "wide": (WIDE, DIM), "narrow": (DIM, WIDE)}
        layers |= {"out": (DIM, DIM), "weight": (1, DIM)}
        shapes[f"{side}.positions"] = (longest, DIM)
        for name, shape in layers.items():
            shapes |= {f"{side}.{name}.weight": shape, f"{side}.{name}.bias": shape[:1]}
        for name in ("norm1", "norm2", "norm"):
            shapes |= {f"{side}.{name}.weight": (DIM,), f"{side}.{name}.bias": (DIM,)}
    n = len(READ_IN_CONTEXT)
    return {**shapes, "code.fields": (n, DIM), "code.field_weights": (n, 1)}


@dataclass(frozen=True, slots=True)
class ContextEncoder:
    """The arrays of the encoder; parameters: float32, by the names of `parameters`."""

    words: NDArray[np.int8]
    scales: NDArray[np.float16]
    weights: NDArray[np.float16]
    parameters: Mapping[str, Array]

    def encode_query(self, stems: Ids) -> Array:
        """The unit vector [d] of the distinct stems of a query, at least one."""
        ids = stems[None, :LONGEST_QUERY]
        vector: Array = self._encode("query", ids, np.ones(ids.shape, np.bool_))[0]
        return vector

    def encode_functions(self, stems: Ids, fields: Ids, offsets: Ids) -> Matrix:
        """Unit vectors [n, d] of functions, zeros for those without words; stems, fields, offsets: of `read_fields`."""
        lengths = np.minimum(np.diff(offsets), LONGEST_FUNCTION)
        vectors: Matrix = np.zeros((len(lengths), DIM), np.float32)
        order = np.argsort(lengths, kind="stable")  # functions of like length together need little padding
        order = order[lengths[order] > 0]
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            places = np.arange(lengths[rows].max())
            present = places < lengths[rows, None]  # [n, l]
            at = np.where(present, offsets[rows, None] + places, 0)
            vectors[rows] = self._encode("code", stems[at], present, fields[at])
        return vectors

    def shares(self, query: Array, stems: Ids, fields: Ids) -> Array:
        """Each word's part of the cosine of one function to the vector of a query, [words read]."""
        ids, fields = stems[None, :LONGEST_FUNCTION], fields[None, :LONGEST_FUNCTION]
        weights, vectors = self._in_context("code", ids, np.ones(ids.shape, np.bool_), fields)
        parts = weights[0, :, None] * vectors[0]
        shares: Array = parts @ query / max(float(np.linalg.norm(parts.sum(axis=0))), 1e-9)
        return shares

    def _encode(self, side: str, ids: Ids, present: NDArray[np.bool_], fields: Ids | None = None) -> Matrix:
        """Unit vectors [n, d] of words [n, l]."""
        weights, vectors = self._in_context(side, ids, present, fields)
        return unit_rows((weights[:, None] @ vectors)[:, 0])

    def _in_context(self, side: str, ids: Ids, present: NDArray[np.bool_], fields: Ids | None) -> tuple[Matrix, Array]:
        """Weights [n, l] and vectors [n, l, d] of words [n, l]."""
        own, number = self.parameters, SIDES.index(side)
        vectors = self.words[number, ids] * self.scales[number, ids, None].astype(np.float32)  # [n, l, d]
        weights = self.weights[number, ids].astype(np.float32)  # [n, l]
        x = vectors + own[f"{side}.positions"][: ids.shape[1]]
        if fields is not None:
            x = x + own["code.fields"][fields]
            weights = weights + own["code.field_weights"][fields, 0]
        inputs = dense(own, f"{side}.inputs", layer_norm(own, f"{side}.norm1", x))
        x = x + dense(own, f"{side}.output", attention(inputs, present, HEADS))
        x = x + dense(own, f"{side}.narrow", gelu(dense(own, f"{side}.wide", layer_norm(own, f"{side}.norm2", x))))
        x = layer_norm(own, f"{side}.norm", x)
        weights = weights + dense(own, f"{side}.weight", x)[..., 0]
        weights = np.exp(weights.clip(-MAX_LOG_WEIGHT, MAX_LOG_WEIGHT)) * present
        return weights, vectors + dense(own, f"{side}.out", x)

    def save(self, folder: Path) -> None:
        """Write all files."""
        save_array(folder / "context_words.npy", self.words)
        save_array(folder / "context_scales.npy", self.scales)
        save_array(folder / "context_weights.npy", self.weights)
        flat = [self.parameters[name].ravel() for name in parameters()]
        save_array(folder / "context.npy", np.concatenate(flat).astype(np.float16))

    @classmethod
    def load(cls, folder: Path, stems: int) -> ContextEncoder:
        """Memory-mapped; stems: their number. Raises ValueError or OSError for files that do not fit."""
        words = map_array(folder / "context_words.npy", np.int8, 3)
        scales, weights = (map_array(folder / f"context_{name}.npy", np.float16, 2) for name in ("scales", "weights"))
        flat, shapes = map_array(folder / "context.npy", np.float16, 1), parameters()
        ends = np.cumsum([np.prod(shape, dtype=np.int64) for shape in shapes.values()])
        if words.shape != (2, stems, DIM) or not scales.shape == weights.shape == (2, stems) or ends[-1] != len(flat):
            raise ValueError("the files of its context do not fit each other")
        if not all(map(are_finite, (scales, weights, flat))):
            raise ValueError("numbers of its context are missing")
        parts = np.split(flat.astype(np.float32), ends[:-1])
        own = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return cls(words, scales, weights, own)


def distinct_words(stems: Ids, lengths: Ids, known: int) -> tuple[Ids, Ids, Ids]:
    """The encoder's input: distinct stems of each field [m], their fields [m], and offsets of functions [n + 1].

    stems: of all functions, field by field, below `known`, or negative if unknown; lengths: of fields, [n, fields].
    """
    n, width = lengths.shape
    cells = np.repeat(np.arange(n * width), lengths.ravel())  # the field of a function that a word is in
    kept = (stems >= 0) & (np.arange(len(stems)) - offsets_of(lengths.ravel())[cells] < LONGEST_FIELD)
    stems, cells = stems[kept].astype(np.int64), cells[kept]
    keys = cells * known + stems
    order = np.argsort(keys, kind="stable")
    first = np.sort(order[starts_of_runs(keys[order])])
    functions, fields = np.divmod(cells[first], width)
    return stems[first], fields, np.searchsorted(functions, np.arange(n + 1))


def gelu(x: Array) -> Array:
    """x times the normal distribution function, by its approximation with tanh (Hendrycks and Gimpel 2016)."""
    half, slope = np.float32(0.5), np.float32((2 / np.pi) ** 0.5)
    return np.asarray(half * x * (1 + np.tanh(slope * (x + np.float32(0.044715) * x * x * x))), np.float32)
