"""API consensus: the idiom that answers a how-to question is the one that many good candidates share.

Ours; no label is read. Take the first documents of a ranking, weighted by their score. For each name a that they
use (called functions, types, constants):

    lift(a)      = sum of weights of documents using a / sum of weights * log((N + 1) / (df(a) + 1)) * log(1 + R(a))
    consensus(d) = sum of lift(a) over the names of d among the strongest / sum of lift over the strongest

R(a) is the number of repositories among those documents that use a. A name that one project alone uses is that
project's own: what many projects came to independently is an idiom. So the weight of the whole signal also depends
on how many repositories stand behind the leading names, and inside one repository it closes by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.uses import References

POOL = 200
"""Documents that are asked; 100 and 400 are no better on three development sets (evaluation/README.md)."""
STRONGEST = 25
LEADING = 5
HALF, STEEPNESS = 6.0, 2.0
"""The gate is a half where the leading names are used by HALF repositories each, on average."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """The names that the head of a ranking shares: ids int64 and lifts float64, strongest first; and how many
    repositories use each of the leading ones, on average."""

    names: NDArray[np.int64]
    lifts: NDArray[np.float64]
    support: float

    @property
    def gate(self) -> float:
        """How far to believe it, 0 to 1, by the support in repositories; 0 where one repository is all there is."""
        if self.support <= 1:
            return 0.0
        return float(1 / (1 + np.exp(-(self.support - HALF) / STEEPNESS)))

    def scores(self, references: References, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the lifts that each row's names hold, 0 to 1, [len(rows)]."""
        ids, lengths = references.of(rows)
        order = np.argsort(self.names)
        names, lifts = self.names[order], self.lifts[order]
        at = np.minimum(np.searchsorted(names, ids), max(0, len(names) - 1))
        held = np.where(names[at] == ids, lifts[at], 0.0) if len(names) else np.zeros(len(ids))
        owners = np.repeat(np.arange(len(rows)), lengths)
        total = float(self.lifts.sum())  # strongest first, whatever numbers the names have
        return np.bincount(owners, held, minlength=len(rows)) / total if total > 0 else np.zeros(len(rows))


def agree(
    references: References, repositories: NDArray[np.int32], rows: NDArray[np.int64], weights: NDArray[np.float64]
) -> Consensus:
    """What the head of a ranking agrees on.

    rows: best first. weights: of each row, none negative; where all are 0 they agree on nothing. repositories: of
    each row.
    """
    rows, weights, repositories = rows[:POOL], weights[:POOL], repositories[:POOL]
    ids, lengths = references.of(rows)
    names, numbers = np.unique(ids, return_inverse=True)
    if not len(names) or not weights.any():
        return Consensus(np.zeros(0, np.int64), np.zeros(0), 0.0)
    shares = np.bincount(numbers, np.repeat(weights, lengths)) / weights.sum()
    owners = np.repeat(repositories.astype(np.int64), lengths)
    pairs = distinct(numbers.astype(np.int64) * (int(owners.max()) + 1) + owners)
    support = np.bincount(pairs // (int(owners.max()) + 1), minlength=len(names))
    rarity = np.log((len(references) + 1) / (references.documents[names] + 1))
    lifts = shares * rarity * np.log1p(support)
    order = np.lexsort((references.names.ranks(names), -lifts))[:STRONGEST]
    return Consensus(names[order].astype(np.int64), lifts[order], float(support[order][:LEADING].mean()))
