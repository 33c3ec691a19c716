"""What a learnt head says of candidates, on a scale that does not depend on how it was trained.

Softmax with a learnt temperature puts all cosines of one head near .9 and of another near .3, so neither a cosine nor a
difference of two means much. How far a document is above all others for a query does: with the mean m
and the covariance C of the document vectors, cosines to a unit query q have the mean q . m and the variance q C q.

    value(d) = max(0, (q . d - q . m) / sqrt(q C q)) / FAR

A head that translates (ncs.learn.translation) scores each word of the query by itself too; that is
on the same scale, and is added.

What it counts beside the words is a number that calibration leaves in the ranker's room (ncs.build.calibration).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ncs.errors import IndexDamaged
from ncs.learn.confidence import load_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.storage.vectors import Vectors
    from ncs.storage.words import WordTable
    from ncs.types import Document, Field, Mask, Matrix

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

NAME = "unif"
"""The ranker whose head the hybrid listens to."""
WEIGHT = "weight.json"
FAR = 6.0
"""Standard deviations that count 1; as far as the best documents of a large corpus."""
SAMPLE = 2_048
"""Documents whose mean and covariance are taken for those of all."""


@runtime_checkable
class LearntVectors(Protocol):
    """A ranker with vectors of its own for queries and documents: `ncs.search.unif.UnifRanker`."""

    @property
    def vectors(self) -> Vectors:
        """Of the documents."""

    def question(self, text: str) -> Matrix:
        """Unit vector [d]; zeros where it knows no word."""

    def without(self, words: WordTable, rows: Sequence[int], documents: Sequence[Document], field: Field) -> Matrix:
        """Unit vectors [n, d] of these documents, one field of each left out."""

    @property
    def translates(self) -> bool:
        """Whether it looks for the words of a query one by one too."""

    def closer(self, text: str, rows: Rows) -> Scores | None:
        """How far these rows are above all documents, in standard deviations, by each word of the query alone;
        None where the head has but vectors."""

    def closer_without(self, text: str, words: WordTable, row: int, field: Field) -> float:
        """The same of one document, one field of it left out; 0 where the head has but vectors."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the unit vectors of all documents lie: their mean [d] and covariance [d, d]."""

    mean: Scores
    covariance: Scores

    @classmethod
    def of(cls, index: Vectors) -> Spread:
        """Reads SAMPLE vectors, spread evenly."""
        rows = index.nonzero_rows()
        at = np.unique(np.linspace(0, max(0, len(rows) - 1), min(SAMPLE, len(rows))).astype(np.int64))
        vectors = index.vectors(rows[at]).astype(np.float64)
        mean = vectors.sum(axis=0) / max(1, len(vectors))
        return cls(mean, (vectors - mean).T @ (vectors - mean) / max(1, len(vectors)))

    def standing(self, query: Matrix, cosines: Scores) -> Scores:
        """How many standard deviations cosines to a query are above the mean of all documents."""
        spread = math.sqrt(max(0.0, float(query @ self.covariance @ query)))
        if spread < 1e-9:
            return np.zeros(len(cosines))
        return (cosines - float(query @ self.mean)) / spread


@dataclass(frozen=True, slots=True)
class HeadSignal:
    """A head over the documents of an index."""

    ranker: LearntVectors
    spread: Spread

    @classmethod
    def of(cls, ranker: LearntVectors) -> HeadSignal:
        """Reads some of its vectors."""
        return cls(ranker, Spread.of(ranker.vectors))

    def question(self, text: str) -> Matrix:
        """The query's unit vector [d], zeros where the head knows no word of it."""
        return self.ranker.question(text)

    def near(self, query: Matrix, n: int, *, allowed: Mask | None = None) -> list[int]:
        """The n rows of the highest cosine; none for a query of zeros."""
        if not query.any():
            return []
        rows, _ = self.ranker.vectors.search(query[None], n, allowed=allowed)
        nearest: list[int] = rows[0][rows[0] >= 0].tolist()
        return nearest

    def values(self, query: Matrix, rows: Rows, text: str = "") -> Scores:
        """The head's values of these rows, [len(rows)]; text: of the query, for a head that translates."""
        return scaled(self.standing(query, rows, text))

    def standing(self, query: Matrix, rows: Rows, text: str = "") -> Scores:
        """How far these rows are above all documents, in standard deviations, [len(rows)]."""
        standing = self.spread.standing(query, self.ranker.vectors.similarities(query, rows).astype(np.float64))
        closer = self.ranker.closer(text, rows) if text else None
        return standing if closer is None else standing + closer


def scaled(standing: Scores) -> Scores:
    """Values of the signal; 0 for what is no higher than the mean of all documents."""
    values: Scores = np.maximum(0.0, standing) / FAR
    return values


def weight_of(snapshot: Snapshot, *, tuned: bool = True) -> float:
    """What the head of an index counts: as `ncs tune` found, if that counts, else as it was weighed at the build.

    0 where there is no head, or none that was weighed. Raises IndexDamaged for what is no weight.
    """
    path = snapshot.statistics / NAME / WEIGHT
    if not path.is_file():
        return 0.0
    if tuned and (weight := load_weights(snapshot.folder).get("head")) is not None:
        return weight
    try:
        weight = float(json.loads(path.read_bytes())["weight"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error
    if not math.isfinite(weight) or weight < 0:
        raise IndexDamaged(f"{path} holds no weight; build the index again")
    return weight


def save_weight(statistics: Path, weight: float) -> None:
    """Into the statistics of the ranker."""
    (statistics / NAME / WEIGHT).write_text(json.dumps({"weight": weight}) + "\n", encoding="utf-8")
