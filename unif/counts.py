"""Bags of tokens as sparse rows: how often each token stands in a text, and what it weighs there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def counts_of(rows: Sequence[Sequence[int]], tokens: int) -> Any:
    """CSR [rows, tokens] of float32 of ids 1 .. tokens; an id that stands twice has two entries or one with 2."""
    from scipy.sparse import csr_matrix

    bounds = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=bounds[1:])
    ids = np.fromiter((id for row in rows for id in row), np.int64, int(bounds[-1])) - 1
    counts = csr_matrix((np.ones(len(ids), np.float32), ids, bounds), shape=(len(rows), tokens))
    counts.sum_duplicates()
    return counts


def relative_weights(
    scores: NDArray[np.float32], times: NDArray[np.float32], bounds: NDArray[np.int64]
) -> NDArray[np.float32]:
    """What one of each entry weighs: of one head exp(score - the highest of its row), of several their mean softmax.

    scores [entries, h] and times [entries] of the rows of a CSR matrix; a factor common to a row is of no matter.
    """
    lengths = np.diff(bounds)
    starts = bounds[:-1][lengths > 0]
    if not len(starts):
        return np.zeros(len(times), np.float32)
    row = np.repeat(np.arange(len(starts)), lengths[lengths > 0])
    weights = np.exp(scores - np.maximum.reduceat(scores, starts, axis=0)[row])  # [entries, h]
    if weights.shape[1] == 1:
        return np.asarray(weights[:, 0], np.float32)
    total = np.add.reduceat(weights * times[:, None], starts, axis=0)  # [rows, h]
    return np.asarray((weights / total[row]).mean(axis=1), np.float32)
