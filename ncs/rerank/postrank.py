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
