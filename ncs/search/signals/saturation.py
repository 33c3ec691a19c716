"""Diversity of hits: further hits of a file count less, and near duplicates are folded."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SATURATION = 0.5


def saturated(
    scores: NDArray[np.float64],
    files: NDArray[np.int64],
    k: int,
    *,
    factor: float = SATURATION,
    clusters: NDArray[np.integer[Any]] | None = None,
) -> list[tuple[int, float]]:
    """The best k positions and their scores; the n-th further one of a file has factor**n of its score.

    scores: in any order, not negative. files: a number for each; a negative one is of no file. Greedy, best first,
    ties by position. clusters: of near duplicates, negative for none; only the first of each is taken.

    >>> saturated(np.array([1.0, 0.9, 0.6]), np.array([7, 7, 8]), 3)
    [(0, 1.0), (2, 0.6), (1, 0.45)]
    >>> saturated(np.array([1.0, 0.9, 0.6]), np.array([7, 7, 8]), 3, clusters=np.array([-1, 5, 5]))
    [(0, 1.0), (2, 0.6)]
    """
    order, depth = np.lexsort((np.arange(len(scores)), -scores)), 4 * k
    while True:  # positions after the first `depth` cannot have better scores
        best = _greedy(scores, files, k, order[:depth], factor, clusters)
        if depth >= len(order) or (len(best) == k and best[-1][1] >= scores[order[depth]]):
            return best
        depth *= 4


def _greedy(
    scores: NDArray[np.float64],
    files: NDArray[np.int64],
    k: int,
    order: NDArray[np.int64],
    factor: float,
    clusters: NDArray[np.integer[Any]] | None,
) -> list[tuple[int, float]]:
    """`saturated` among some positions, best first."""
    queues: dict[int, list[int]] = {}  # positions of each file, the best last
    for at in order[::-1].tolist():
        queues.setdefault(int(files[at]) if files[at] >= 0 else -1 - at, []).append(at)
    count = dict.fromkeys(queues, 0)
    queue = [(-float(scores[positions[-1]]), positions[-1], file) for file, positions in queues.items()]
    heapq.heapify(queue)
    best: list[tuple[int, float]] = []
    clusters_taken: set[int] = set()
    while queue and len(best) < k:
        key, at, file = heapq.heappop(queue)
        queues[file].pop()
        cluster = -1 if clusters is None else int(clusters[at])
        if cluster not in clusters_taken:
            best.append((at, -key))
            count[file] += 1
        if cluster >= 0:
            clusters_taken.add(cluster)
        if queues[file]:
            following = queues[file][-1]
            heapq.heappush(queue, (-float(scores[following]) * factor ** count[file], following, file))
    return best
