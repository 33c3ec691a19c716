"""Weights of signals that rank judged queries best: a convex fit towards the defaults, and its gain on other queries.

The score of a candidate is s = sum of factor_i * signal_i, signals in their default weights; the loss is that of
choosing the right one by chance in proportion to exp(b * s), which is convex in b * factor:

    loss = mean over queries of -log sum over right rows of softmax(b * s)
           + PENALTY / n * sum over signals of (factor_i - factor of the words)^2

b is the sharpness that suits the defaults best. All factors are divided by that of the words in the end: a signal that
the queries tell nothing of keeps its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

PENALTY = 10.0
"""In nats, of a weight at twice or none of its default, whatever the number of queries."""
SHARPNESS = np.exp(np.linspace(0, 4, 17))
DEPTH = 10
RESAMPLES = 5_000
MOST = 10.0
"""Times its default that a weight may become."""


class RankedSignals(Protocol):
    """The rows of a ranking, and for each signal and factor the values of these rows."""

    @property
    def rows(self) -> Sequence[int]: ...

    @property
    def signals(self) -> Mapping[str, Scores]: ...

    @property
    def factors(self) -> Mapping[str, Scores]: ...


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of a query: signals [n, names], the words' first, and which candidates are right, [m]."""

    signals: Scores
    right: NDArray[np.int64]

    @classmethod
    def of(cls, ranking: RankedSignals, rows: Sequence[int], names: Sequence[str]) -> Example:
        """Of a ranking and the right rows."""
        if not ranking.rows:
            return cls(np.zeros((0, len(names))), np.zeros(0, np.int64))
        factor = np.prod(list(ranking.factors.values()), axis=0)
        columns = [ranking.signals[name] * factor for name in names]
        return cls(np.column_stack(columns), np.flatnonzero(np.isin(ranking.rows, rows)))

    def reciprocal_rank(self, factors: Scores) -> float:
        """1 / the rank of the first right one; 0 where it is not among the first DEPTH. Ties count against it."""
        if not len(self.right):
            return 0.0
        scores = self.signals @ factors
        rank = int((scores >= scores[self.right].max()).sum())
        return 1 / rank if rank <= DEPTH else 0.0


@dataclass(frozen=True, slots=True)
class Gain:
    """Means before and after, and the 95 % bootstrap interval of their difference, paired."""

    questions: int
    before: float
    after: float
    low: float
    high: float

    @property
    def wins(self) -> bool:
        """Whether the difference is above chance."""
        return self.low > 0


def fit_factors(examples: Sequence[Example], names: int) -> Scores:
    """The factor of each signal, the words' is 1; all 1 where no query has a right candidate."""
    from scipy.optimize import minimize  # half a second, which only `ncs tune` spends

    known = [example for example in examples if len(example.right)]
    ones = np.ones(names)
    if not known:
        return ones
    sharpness = min(SHARPNESS, key=lambda sharp: _loss(sharp * ones, known)[0])

    def loss(at: Scores) -> tuple[float, Scores]:
        value, slope = _loss(sharpness * at, known)
        away, scale = at - at[0], PENALTY / len(known)
        pull = 2 * scale * away
        pull[0] = -pull.sum()
        return value + scale * float(away @ away), sharpness * slope + pull

    bounds = [(1 / MOST, None), *[(0.0, None)] * (names - 1)]
    options = {"ftol": 1e-12, "gtol": 1e-8, "maxiter": 1000}
    best = minimize(loss, ones, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    factors: Scores = np.minimum(np.round(best / best[0], 4), MOST)
    return factors


def _loss(at: Scores, examples: Sequence[Example]) -> tuple[float, Scores]:
    """The mean loss without the penalty, and its slope."""
    total, slope = 0.0, np.zeros(len(at))
    for example in examples:
        scores = example.signals @ at
        chances = np.exp(scores - scores.max())
        right = chances[example.right]
        total += float(np.log(chances.sum()) - np.log(max(right.sum(), 1e-300)))
        slope += chances / chances.sum() @ example.signals
        slope -= right / max(right.sum(), 1e-300) @ example.signals[example.right]
    return total / len(examples), slope / len(examples)


def gain(before: Scores, after: Scores, *, seed: int = 0) -> Gain:
    """Of values of the same queries, [n] each, n > 0."""
    differences = after - before
    means = np.random.default_rng(seed).choice(differences, (RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Gain(len(before), *(round(float(value), 4) for value in (before.mean(), after.mean(), low, high)))


def cross_validate(
    examples: Sequence[Example],
    names: int,
    *,
    folds: int,
    before: Scores,
    beside: Sequence[Example] = (),
    seed: int = 0,
) -> Gain:
    """The gain in reciprocal rank when every query is ranked with the factors fitted to the other folds.

    before: the factors compared with. beside: other examples, fitted to in every fold and not measured.
    """
    order = np.random.default_rng(seed).permutation(len(examples))
    old, new = np.zeros(len(examples)), np.zeros(len(examples))
    for fold in range(folds):
        mine = order[fold::folds]
        factors = fit_factors([*(examples[i] for i in np.setdiff1d(order, mine)), *beside], names)
        for i in mine:
            old[i] = examples[i].reciprocal_rank(before)
            new[i] = examples[i].reciprocal_rank(factors)
    return gain(old, new, seed=seed)
