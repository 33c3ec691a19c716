"""Is the difference between two rankings more than luck? Paired over the queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import bootstrap, permutation_test

from ncs.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 9999
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean difference between two runs over the same queries, with its interval and p-value."""

    difference: float
    low: float
    high: float
    p: float
    queries: int


def compare(
    values: Mapping[str, float],
    baseline: Mapping[str, float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """`values` minus `baseline`: paired percentile bootstrap interval, two-sided randomisation test.

    Queries are resampled with replacement for the interval; for the p-value each query's two values
    change places at random (all 2^n ways where these are fewer than `resamples`).
    Raises BadInput where the two are not over the same queries, or over none.
    """
    ours, theirs = _paired(values, baseline)
    low, high = _interval(ours - theirs, confidence, resamples, seed)
    return Comparison(float((ours - theirs).mean()), low, high, _p_value(ours, theirs, resamples, seed), len(values))


def paired_interval(
    values: Mapping[str, float],
    baseline: Mapping[str, float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Difference, low and high of `compare`, without the test, which takes most of its time."""
    ours, theirs = _paired(values, baseline)
    return float((ours - theirs).mean()), *_interval(ours - theirs, confidence, resamples, seed)


def _paired(
    values: Mapping[str, float], baseline: Mapping[str, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if values.keys() != baseline.keys():
        odd = sorted(values.keys() ^ baseline.keys())
        raise BadInput(f"the two runs are not over the same queries ({odd[0]!r} is in one only); judge both alike")
    ours = np.fromiter(values.values(), float, len(values))
    return ours, np.fromiter((baseline[query] for query in values), float, len(values))


def interval(
    values: Mapping[str, float], *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of one run's mean over its queries; BadInput for none."""
    return _interval(np.fromiter(values.values(), float, len(values)), confidence, resamples, seed)


def _interval(values: NDArray[np.float64], confidence: float, resamples: int, seed: int) -> tuple[float, float]:
    if not len(values):
        raise BadInput("no queries to compare; judge at least one")
    if (values == values[0]).all():  # nothing varies (also: one query), so no resample differs
        return float(values[0]), float(values[0])
    found = bootstrap(
        (values,),
        np.mean,
        n_resamples=resamples,
        batch=1000,
        confidence_level=confidence,
        method="percentile",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def _p_value(ours: NDArray[np.float64], theirs: NDArray[np.float64], resamples: int, seed: int) -> float:
    if len(ours) < 2 or (ours == theirs).all():  # every exchange gives a difference of the same size
        return 1.0
    found = permutation_test(
        (ours, theirs),
        _mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=1000,
        random_state=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _mean_difference(x: NDArray[np.float64], y: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.mean(x - y, axis=axis)
    return result
