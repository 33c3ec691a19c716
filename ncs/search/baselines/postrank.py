"""NCS's post-ranking: the head of a ranking sorted by what its documents are and contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTH = 500
"""How many documents of a ranking are sorted, as published."""
LEAST_LINES, LEAST_TOKENS = 3, 10
HIGHEST = 63
"""The grade that meets all six keys."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the six keys ask of some documents, one number a document, in the order of the ranking."""

    lines: NDArray[np.int64]
    tokens: NDArray[np.int64]
    words: NDArray[np.int64]
    """How many of the question's words it contains."""
    spellings: NDArray[np.int64]
    """How many of the question's tokens it contains as they were typed, not split."""


def grades(facts: Facts, n: int, m: int) -> NDArray[np.int64]:
    """The six keys of each document as one number from 0 to 63; a more important key is a higher bit.

    From the least important one: at least 3 lines; at least 10 tokens; n-1 of the question's n words; all n; m-1 of
    its m tokens as typed; all m (Sachdev et al. 2018, post-ranking). A question without words or tokens tells no
    document from another by them.
    """
    keys = (
        facts.lines >= LEAST_LINES,
        facts.tokens >= LEAST_TOKENS,
        facts.words >= n - 1,
        facts.words >= n,
        facts.spellings >= m - 1,
        facts.spellings >= m,
    )
    weights = 1 << np.arange(len(keys))
    graded: NDArray[np.int64] = np.stack(keys, axis=1).astype(np.int64) @ weights
    return graded


def postrank(rows: NDArray[np.int64], grade: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by grade, highest first; rows of one grade keep the order of the ranking.

    >>> postrank(np.array([7, 2, 9, 4]), np.array([1, 63, 1, 63])).tolist()
    [2, 4, 7, 9]
    """
    return rows[np.argsort(-grade, kind="stable")]


def added(scores: NDArray[np.float64], grade: NDArray[np.int64], weight: float) -> NDArray[np.float64]:
    """The keys as features instead of a sort: scores over the best of them, and weight times the share of the grade.

    scores: of a ranking, best first, so a far better match stays above one that meets more keys.

    >>> added(np.array([4.0, 2.0]), np.array([0, 63]), 0.25).tolist()
    [1.0, 0.75]
    """
    best = max(float(scores[0]), 1e-9) if len(scores) else 1.0
    return scores / best + weight * grade / HIGHEST
