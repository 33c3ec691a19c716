"""The ranker `rrf`: reciprocal-rank fusion of several rankers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import fsum  # the order of rankings cannot change it
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, check_k
from ncs.search.rankers import Ranker
from ncs.search.ranking import Ranking

if TYPE_CHECKING:
    from ncs.types import Mask

CONSTANT = 60.0  # Cormack, Clarke and Buettcher 2009


def fuse(
    rankings: Sequence[Sequence[tuple[int, float]]], k: int, *, constant: float = CONSTANT
) -> list[tuple[int, float]]:
    """Reciprocal-rank fusion: score(d) = sum over rankings with d of 1 / (constant + rank), by (-score, row).

    >>> fuse([[(4, 9.1), (7, 2.0)], [(7, 0.8)]], k=2)
    [(7, 0.03252247488101534), (4, 0.01639344262295082)]
    """
    parts: dict[int, list[float]] = defaultdict(list)
    for ranking in rankings:
        for rank, (row, _) in enumerate(ranking, 1):
            parts[row].append(1 / (constant + rank))
    scores = [(row, fsum(shares)) for row, shares in parts.items()]
    return sorted(scores, key=lambda hit: (-hit[1], hit[0]))[:k]


class RrfRanker(Ranker):
    """Fuses the ranks of the first `depth` rows of its parts. Its parts are fitted and saved under their own names."""

    def __init__(
        self,
        name: str = "rrf",
        *,
        parts: Sequence[str] = ("bm25", "ncs_centred"),
        constant: float = CONSTANT,
        depth: int = 1000,
    ) -> None:
        if name in parts:
            raise BadInput(f"ranker {name!r} cannot be a part of itself; name other parts")
        self.name = name
        self.parts, self.constant, self.depth = tuple(parts), constant, depth
        self.config = {"parts": self.parts, "constant": constant, "depth": depth}

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        return self.rank(text, k, allowed=allowed).hits

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`; each part is a signal: 1 / (constant + its rank of the row)."""
        check_k(k)
        depth = max(k, self.depth)
        rankings = [ranker.search(text, depth, allowed=allowed) for ranker in self.composed]
        hits = fuse(rankings, k, constant=self.constant)
        signals = {}
        for part, ranking in zip(self.parts, rankings, strict=True):
            shares = {row: 1 / (self.constant + rank) for rank, (row, _) in enumerate(ranking, 1)}
            signals[part] = np.array([shares.get(row, 0.0) for row, _ in hits])
        words = self.query_words(text)
        return Ranking([row for row, _ in hits], [score for _, score in hits], signals=signals, words=words)
