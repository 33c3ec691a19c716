"""The signal of a learned head: z-scores, independent of how the head was trained.

The level and spread of cosines differ between heads. With the mean m and the covariance C of the document vectors,
cosines to a unit query q have the mean q . m and the variance q C q.

    value(d) = max(0, (q . d - q . m) / sqrt(q C q)) / FAR

A head with a translation (ncs.learn.translation) also scores single query words; its z-scores are added.

Its weight is determined by calibration (ncs.build.calibration).
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
"""The ranker that has the head."""
WEIGHT = "weight.json"
FAR = 6.0
"""Z-score with the value 1: that of the best documents of a large corpus."""
SAMPLE = 2_048
"""Documents sampled for mean and covariance."""


@runtime_checkable
class HeadVectors(Protocol):
    """A ranker with learned vectors of queries and documents: `ncs.search.unif.UnifRanker`."""

    @property
    def vectors(self) -> Vectors:
        """Of the documents."""

    def query_vector(self, text: str) -> Matrix:
        """Unit vector [d]; zeros without known words."""

    def ablated_vectors(
        self, words: WordTable, rows: Sequence[int], documents: Sequence[Document], field: Field
    ) -> Matrix:
        """Unit vectors [n, d] of these documents, one field of each left out."""

    @property
    def translates(self) -> bool:
        """Whether it also scores query words one by one."""

    def translation_z_scores(self, text: str, rows: Rows) -> Scores | None:
        """Z-scores of these rows by single query words; None without a translation."""

    def ablated_translation_z_score(self, text: str, words: WordTable, row: int, field: Field) -> float:
        """The same for one document without one field; 0 without a translation."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean [d] and covariance [d, d] of the document vectors."""

    mean: Scores
    covariance: Scores

    @classmethod
    def of(cls, index: Vectors) -> Spread:
        """From SAMPLE evenly spaced vectors."""
        rows = index.nonzero_rows()
        at = np.unique(np.linspace(0, max(0, len(rows) - 1), min(SAMPLE, len(rows))).astype(np.int64))
        vectors = index.vectors(rows[at]).astype(np.float64)
        mean = vectors.sum(axis=0) / max(1, len(vectors))
        return cls(mean, (vectors - mean).T @ (vectors - mean) / max(1, len(vectors)))

    def z_scores(self, query: Matrix, cosines: Scores) -> Scores:
        """Z-scores of cosines to a query."""
        spread = math.sqrt(max(0.0, float(query @ self.covariance @ query)))
        if spread < 1e-9:
            return np.zeros(len(cosines))
        return (cosines - float(query @ self.mean)) / spread


@dataclass(frozen=True, slots=True)
class HeadSignal:
    """A head over the documents of an index."""

    ranker: HeadVectors
    spread: Spread

    @classmethod
    def of(cls, ranker: HeadVectors) -> HeadSignal:
        """From a sample of its vectors."""
        return cls(ranker, Spread.of(ranker.vectors))

    def query_vector(self, text: str) -> Matrix:
        """The query's unit vector [d], zeros without known words."""
        return self.ranker.query_vector(text)

    def near(self, query: Matrix, n: int, *, allowed: Mask | None = None) -> list[int]:
        """The n rows of the highest cosine; none for a query of zeros."""
        if not query.any():
            return []
        rows, _ = self.ranker.vectors.search(query[None], n, allowed=allowed)
        nearest: list[int] = rows[0][rows[0] >= 0].tolist()
        return nearest

    def values(self, query: Matrix, rows: Rows, text: str = "") -> Scores:
        """The head's values of these rows, [len(rows)]; text: of the query, for a translation."""
        return scaled(self.z_scores(query, rows, text))

    def z_scores(self, query: Matrix, rows: Rows, text: str = "") -> Scores:
        """Z-scores of these rows, [len(rows)]."""
        z_scores = self.spread.z_scores(query, self.ranker.vectors.similarities(query, rows).astype(np.float64))
        translation_z_scores = self.ranker.translation_z_scores(text, rows) if text else None
        return z_scores if translation_z_scores is None else z_scores + translation_z_scores


def scaled(z_scores: Scores) -> Scores:
    """Values of the signal; 0 for negative z-scores."""
    values: Scores = np.maximum(0.0, z_scores) / FAR
    return values


def weight_of(snapshot: Snapshot, *, tuned: bool = True) -> float:
    """The weight of the head of an index: tuned, if `tuned`, else as determined at the build.

    0 without a head or weight. Raises IndexDamaged for an invalid weight.
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
        raise IndexDamaged(f"{path} has no valid weight; build the index again")
    return weight


def save_weight(statistics: Path, weight: float) -> None:
    """Write the weight into the ranker's statistics."""
    (statistics / NAME / WEIGHT).write_text(json.dumps({"weight": weight}) + "\n", encoding="utf-8")
