"""What a step of a head that translates learns from: batches of pairs, words dropped, namesakes apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids
    from unif.fielded import Fielded


def epoch_batches(
    pairs: Fielded, rows: Ids, size: int, alike: float, share: float, draw: np.random.Generator
) -> Iterator[Ids]:
    """Of these rows the [size] of each batch, batches in drawn order; `alike` of them stand with those that share a
    word. share: of the pairs without a doc comment."""
    times = pairs.times[rows] * np.where(pairs.documented[rows], 1.0, share)
    rows = np.repeat(rows, np.floor(times + draw.random(len(rows))).astype(np.int64))
    lengths = np.diff(pairs.query.indptr)[rows]
    word = pairs.query.indices[pairs.query.indptr[rows] + (draw.random(len(rows)) * lengths).astype(np.int64)]
    together = draw.random(len(rows)) < alike
    ordered = rows[together][np.argsort(draw.permutation(len(pairs.stems))[word[together]], kind="stable")]
    mixed = np.concatenate([draw.permutation(rows[~together]), ordered])
    for at in draw.permutation(len(mixed) // size):
        yield mixed[at * size : (at + 1) * size]


def code_of(pairs: Fielded, rows: Ids, draw: np.random.Generator) -> Any:
    """Of half of the functions that have a doc comment, without the name."""
    from scipy.sparse import vstack

    bare = pairs.documented[rows] & (draw.random(len(rows)) < 0.5)
    back = np.argsort(np.concatenate([np.flatnonzero(~bare), np.flatnonzero(bare)]))
    return vstack([pairs.code[rows[~bare]], pairs.nameless[rows[bare]]], format="csr")[back]


def dropped(rows: Any, share: float, draw: np.random.Generator) -> Any:
    """CSR with a share of its entries left out at random."""
    from scipy.sparse import csr_matrix

    kept = draw.random(rows.nnz) >= share
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[kept]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows.shape[0]))])
    return csr_matrix((rows.data[kept].astype(np.float32), rows.indices[kept], ends), rows.shape)


def namesakes(names: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which functions of a batch bear one name, [n, n], a function and itself apart: they are no wrong answers."""
    same: NDArray[np.bool_] = (names[:, None] == names) & (names >= 0)[:, None]
    np.fill_diagonal(same, False)
    return same
