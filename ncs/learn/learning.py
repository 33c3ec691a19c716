"""Weights that answer given questions best: a convex fit towards the defaults, and what it is worth on others.

A question's scores s = sum of factor_i * signal_i over its candidates, signals in their default weights; the loss is
that of choosing the right one by chance in proportion to exp(b * s), which is convex in b * factor:

    loss = mean over questions of -log sum over right rows of softmax(b * s)
           + PENALTY / n * sum over signals of (factor_i - factor of the words)^2

b is the sharpness that suits the defaults best. The factor of the words divides all others in the end: a signal that
the questions tell nothing of keeps its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.minimising import minimise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.ranking import Ranking

    Scores = NDArray[np.float64]

PENALTY = 10.0
"""In nats, of a weight at twice or none of its default, whatever the number of questions."""
SHARPNESS = np.exp(np.linspace(0, 4, 17))
DEPTH = 10
RESAMPLES = 5_000
MOST = 10.0
"""Times its default that a weight may become."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its candidates: signals [n, names], the words' first, and which candidates are right, [m]."""

    signals: Scores
    right: NDArray[np.int64]

    def reciprocal_rank(self, factors: Scores) -> float:
        """1 / the rank of the first right one; 0 where it is not among the first DEPTH. Ties count against it."""
        if not len(self.right):
            return 0.0
        scores = self.signals @ factors
        rank = int((scores >= scores[self.right].max()).sum())
        return 1 / rank if rank <= DEPTH else 0.0


@dataclass(frozen=True, slots=True)
class Gain:
    """Mean reciprocal ranks before and after, and the 95 % bootstrap interval of their difference, paired."""

    questions: int
    before: float
    after: float
    low: float
    high: float

    @property
    def wins(self) -> bool:
        """Whether the difference is above chance."""
        return self.low > 0


def asked(ranking: Ranking, rows: Sequence[int], names: Sequence[str], *, without: Sequence[str] = ()) -> Asked:
    """A ranking as something to learn from; rows: the right ones; signals `without` count nothing in it."""
    if not ranking.rows:
        return Asked(np.zeros((0, len(names))), np.zeros(0, np.int64))
    factor = np.prod(list(ranking.factors.values()), axis=0)
    columns = [ranking.signals[name] * factor * (name not in without) for name in names]
    return Asked(np.column_stack(columns), np.flatnonzero(np.isin(ranking.rows, rows)))


def learn(questions: Sequence[Asked], names: int) -> Scores:
    """The factor of each signal, the words' is 1; all 1 where no question has a right candidate."""
    known = [question for question in questions if len(question.right)]
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

    found: Scores = minimise(loss, ones, [1 / MOST, *[0.0] * (names - 1)])
    factors: Scores = np.minimum(np.round(found / found[0], 4), MOST)
    return factors


def _loss(at: Scores, questions: Sequence[Asked]) -> tuple[float, Scores]:
    """The mean loss without the penalty, and its slope."""
    total, slope = 0.0, np.zeros(len(at))
    for question in questions:
        scores = question.signals @ at
        chances = np.exp(scores - scores.max())
        right = chances[question.right]
        total += float(np.log(chances.sum()) - np.log(max(right.sum(), 1e-300)))
        slope += chances / chances.sum() @ question.signals
        slope -= right / max(right.sum(), 1e-300) @ question.signals[question.right]
    return total / len(questions), slope / len(questions)


def gain(before: Scores, after: Scores, *, seed: int = 0) -> Gain:
    """Of reciprocal ranks of the same questions, [n] each, n > 0."""
    differences = after - before
    means = np.random.default_rng(seed).choice(differences, (RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Gain(len(before), *(round(float(value), 4) for value in (before.mean(), after.mean(), low, high)))


def held_out(
    questions: Sequence[Asked], names: int, *, folds: int, before: Scores, beside: Sequence[Asked] = (), seed: int = 0
) -> Gain:
    """Cross-validation: every question answered with the weights learnt from the other folds, and with `before`.

    beside: other questions, learnt from in every fold and not measured.
    """
    order = np.random.default_rng(seed).permutation(len(questions))
    old, new = np.zeros(len(questions)), np.zeros(len(questions))
    for fold in range(folds):
        mine = order[fold::folds]
        factors = learn([*(questions[i] for i in np.setdiff1d(order, mine)), *beside], names)
        for i in mine:
            old[i] = questions[i].reciprocal_rank(before)
            new[i] = questions[i].reciprocal_rank(factors)
    return gain(old, new, seed=seed)
