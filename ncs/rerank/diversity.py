"""Further hits of one file count less and less, so that ten hits are not ten methods of one class."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SATURATION = 0.5


def saturated(
    scores: NDArray[np.float64], files: NDArray[np.int64], k: int, *, factor: float = SATURATION
) -> list[tuple[int, float]]:
    """The best k positions and their scores, where the n-th further one of a file counts factor**n of its score.

    scores: in any order, not negative. files: a number for each; a negative one is of no file. Greedy, best first,
    ties by position.

    >>> saturated(np.array([1.0, 0.9, 0.6]), np.array([7, 7, 8]), 3)
    [(0, 1.0), (2, 0.6), (1, 0.45)]
    """
    queue = [(-float(score), at) for at, score in enumerate(scores)]
    heapq.heapify(queue)
    taken: dict[int, int] = {}
    found: list[tuple[int, float]] = []
    while queue and len(found) < k:
        key, at = heapq.heappop(queue)
        file = int(files[at])
        now = float(scores[at]) * factor ** taken.get(file, 0)
        if -key > now:
            heapq.heappush(queue, (-now, at))
            continue
        found.append((at, now))
        if file >= 0:
            taken[file] = taken.get(file, 0) + 1
    return found
