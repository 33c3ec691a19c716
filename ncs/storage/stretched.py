"""Vectors drawn out along what all questions have in common, so that what they ask for lies in fewer lists.

Questions are not spread as documents are: they share a direction (their mean is .6 to .75 long). What a document has of
it counts in every question's score, so it says, whatever is asked, how likely the document is among the best. Lists
around centres see it as one direction of a hundred. Drawn out, it cuts the lists: those that no question wants are left
alone. Scores stay what they are: what documents are multiplied by along it, questions are divided by.

Measured on 5 million documents with how-to questions that nothing was learnt from (DESIGN.md, "The index at size"): 128
of 4,096 lists hold .983 of the ten best, without it .952. Drawing out every direction by how much questions use it
(powers of their second moment, which quantises the score and not the vector: Guo et al. 2020) gains no more than this
one does, and loses where questions are unlike those that were learnt from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ncs.types import Matrix

POWER, MOST = 0.125, 3.0
"""Of the ratio of what questions have along the direction to what they have along others, 1.65 for ours; and no more
than this. 1.5 to 1.75 are best at 266,192, 1.65 is better than 2 and 2.7 at 5 million."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """direction: of length 1, [dim]; factor: what documents are multiplied by along it, 1 or more."""

    direction: Matrix
    factor: float

    @classmethod
    def of(cls, questions: Matrix, dim: int) -> Stretch:
        """Learnt from questions [m, dim]; none at all leaves vectors as they are."""
        mean = questions.mean(axis=0, dtype=np.float64) if len(questions) else np.zeros(dim)
        length = float(np.linalg.norm(mean))
        if length < 1e-6 or dim < 2:
            return cls(np.zeros(dim, np.float32), 1.0)
        direction = (mean / length).astype(np.float32)
        along = float(np.mean((questions @ direction) ** 2))
        others = (float(np.mean(np.sum(questions**2, axis=1))) - along) / (dim - 1)
        ratio = along / max(others, 1e-9)
        return cls(direction, float(np.clip(ratio**POWER, 1.0, MOST)))

    def documents(self, vectors: Matrix) -> Matrix:
        """[n, dim], multiplied along the direction."""
        return self._moved(vectors, self.factor)

    def questions(self, vectors: Matrix) -> Matrix:
        """[m, dim], divided along the direction: with `documents` of others they score as before."""
        return self._moved(vectors, 1 / self.factor)

    def _moved(self, vectors: Matrix, factor: float) -> Matrix:
        along = np.einsum("ij,j->i", vectors, self.direction)  # equal rows alike, wherever they stand
        moved: Matrix = vectors + np.float32(factor - 1) * along[:, None] * self.direction
        return moved
