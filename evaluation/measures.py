"""Measures of a run against qrels, and whether the difference between two runs is more than chance.

Order: higher score first; equal scores keep the order of the run, which for our rankers is the row (trec_eval breaks
ties by document id, backwards, and compares scores as float32). Mean: over every judged query; one without hits counts
0 (pytrec_eval and BEIR leave it out, which flatters). Relevant: grade above 0. CodeSearchNet's script leaves queries
without a relevant function out of its mean; so do `ndcg_within` and `ndcg_all`, and only these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap, permutation_test

from ncs.errors import BadInput
from ncs.types import Qrels, Run

Vector: TypeAlias = NDArray[np.float64]
RESAMPLES = 9999
CONFIDENCE = 0.95
Formula = Callable[[Sequence[int], Sequence[int]], float]
"""(grades of the ranked documents, all positive grades, best first) -> value."""


def answered(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """1 where any ranked document is relevant (Answered@k of the NCS papers, TREC's Success@k)."""
    return float(any(grade > 0 for grade in grades))


def first_rank(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """FRank: the 1-based rank of the first relevant document; 0 where there is none.

    >>> first_rank([0, 2, 1], [2, 1]), first_rank([0], [1])
    (2.0, 0.0)
    """
    return float(next((rank for rank, grade in enumerate(grades, 1) if grade > 0), 0))


def reciprocal_rank(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """1 / FRank."""
    rank = first_rank(grades, ideal)
    return 1 / rank if rank else 0.0


def ndcg(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """Discounted gain over the best possible one of the same depth; gain = grade, as in trec_eval and BEIR.

    >>> round(ndcg([0, 1], [1]), 4)  # 1 / log2(3)
    0.6309
    """
    best = _gain(ideal)
    return _gain(grades) / best if best else 0.0


def _gain(grades: Sequence[float]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1) if grade > 0)


def average_precision(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """Mean over all relevant documents of the precision at their rank.

    >>> average_precision([1, 0, 1], [1, 1])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    ranks = [rank for rank, grade in enumerate(grades, 1) if grade > 0]
    return sum(hits / rank for hits, rank in enumerate(ranks, 1)) / len(ideal) if ideal else 0.0


def recall(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """Share of the relevant documents that are ranked."""
    return sum(grade > 0 for grade in grades) / len(ideal) if ideal else 0.0


def accuracy(grades: Sequence[int], ideal: Sequence[int]) -> float:
    """1 where every relevant document is ranked: the strict accuracy of issue localisation.

    >>> accuracy([0, 1, 1], [1, 1]), accuracy([0, 1], [1, 1])
    (1.0, 0.0)
    """
    return float(bool(ideal) and sum(grade > 0 for grade in grades) == len(ideal))


_FORMULAS: Mapping[str, Formula] = {
    "acc": accuracy,
    "answered": answered,
    "first_rank": first_rank,
    "mrr": reciprocal_rank,
    "ndcg": ndcg,
    "map": average_precision,
    "recall": recall,
}
CHALLENGE = ("ndcg_within", "ndcg_all")
MEASURES = (
    "answered@k", "acc@k", "first_rank", "mrr", "mrr@k", "ndcg", "ndcg@k", "map", "map@k", "recall@k", "precision@k",
    *CHALLENGE,
)  # fmt: skip
"""The measures of `evaluate`; k is any number from 1."""
CHALLENGE_DEPTH = 300
"""Documents per query that CodeSearchNet's script looks at."""


def evaluate(qrels: Qrels, run: Run, measure: str) -> dict[str, float]:
    """The measure for every judged query, in the order of the qrels; 0 where the run has nothing.

    `ndcg_within` and `ndcg_all` alone leave out queries without a relevant document (`challenge_ndcg`).

    Raises BadInput for an unknown measure, empty qrels, an empty run, an unjudged query, and a score that is NaN.

    >>> qrels = {"a": {"d1": 1}, "b": {"d2": 1}}
    >>> run = {"a": {"d3": 2.0, "d1": 1.5}}
    >>> evaluate(qrels, run, "mrr@10"), evaluate(qrels, run, "first_rank")
    ({'a': 0.5, 'b': 0.0}, {'a': 2.0, 'b': 0.0})
    """
    name, k = parse_measure(measure)
    check(qrels, run)
    if name in CHALLENGE:
        return challenge_ndcg(qrels, run, within=name == CHALLENGE[0])
    values = {}
    for query, grades in qrels.items():
        order = ranking(run.get(query, {}))[:k]
        ranked_grades = [grades.get(document, 0) for document in order]
        ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
        if name == "precision":  # of k places, also where the run fills fewer
            values[query] = sum(grade > 0 for grade in ranked_grades) / k if k else 0.0
        else:
            values[query] = _FORMULAS[name](ranked_grades, ideal[:k] if name == "ndcg" else ideal)
    return values


def challenge_ndcg(qrels: Mapping[str, Mapping[str, float]], run: Run, *, within: bool) -> dict[str, float]:
    """CodeSearchNet's NDCG (Husain et al. 2019, section 4.3, table 4), as the Challenge's own script counts it.

    Gain 2^grade - 1, discount log2(rank + 1), of the first 300 documents. within: only annotated functions take a
    rank; otherwise every function of the corpus does. A grade is the mean over annotators, so it may be a fraction.
    Queries whose grades are all 0 are left out, which its mean does too.

    >>> qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"x": 3.0, "a": 2.0}}
    >>> challenge_ndcg(qrels, run, within=True), round(challenge_ndcg(qrels, run, within=False)["q"], 4)
    ({'q': 1.0}, 0.6309)
    """
    values = {}
    for query, grades in qrels.items():
        order = ranking(run.get(query, {}))[:CHALLENGE_DEPTH]
        ranked_grades = [grades.get(document, 0) for document in order if document in grades or not within]
        if ideal := _exponential(sorted(grades.values(), reverse=True)):
            values[query] = _exponential(ranked_grades) / ideal
    return values


def _exponential(grades: Sequence[float]) -> float:
    return _gain([2**grade - 1 for grade in grades])


def parse_measure(measure: str) -> tuple[str, int | None]:
    """Name and depth; BadInput for an unknown measure.

    >>> parse_measure("ndcg@10"), parse_measure("mrr")
    (('ndcg', 10), ('mrr', None))
    """
    match = re.fullmatch(r"([a-z_]+)(?:@([1-9][0-9]*))?", measure)
    if not match or (f"{match[1]}@k" if match[2] else match[1]) not in MEASURES:
        raise BadInput(f"no measure called {measure!r}; there are: {', '.join(MEASURES)}")
    return match[1], int(match[2]) if match[2] else None


def ranking(scores: Mapping[str, float]) -> list[str]:
    """Document ids, best first; equal scores keep the order of the mapping.

    >>> ranking({"c": 1.0, "a": 2.0, "b": 1.0})
    ['a', 'c', 'b']
    """
    return sorted(scores, key=scores.__getitem__, reverse=True)  # sorted is stable, reverse too


def mean(values: Mapping[str, float]) -> float:
    """The mean over all queries; 0 for none."""
    return math.fsum(values.values()) / len(values) if values else 0.0


def check(qrels: Qrels, run: Run) -> None:
    """Raise BadInput where the run cannot be judged by these qrels."""
    if not qrels:
        raise BadInput("the qrels are empty; give judgments for at least one query")
    if not run:
        raise BadInput("the run is empty; give the ranking of at least one query")
    unknown = [query for query in run if query not in qrels]
    if unknown:
        raise BadInput(
            f"{len(unknown)} of the run's {len(run)} queries are not judged, first {unknown[0]!r}; "
            "use the qrels that belong to the run, or leave these queries out"
        )
    for query, scores in run.items():
        for document, score in scores.items():
            if math.isnan(score):
                raise BadInput(f"query {query!r}: the score of document {document!r} is NaN; correct the run")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean difference between two runs over the same queries, with its confidence interval and p-value."""

    difference: float
    low: float
    high: float
    p: float
    queries: int


def compare(values: Mapping[str, float], baseline: Mapping[str, float]) -> Comparison:
    """`values` minus `baseline`: paired percentile bootstrap interval, two-sided randomization test.

    Queries are resampled with replacement for the interval; for the p-value each query's two values
    are swapped at random (all 2^n ways where these are fewer than RESAMPLES).
    Raises BadInput where the two are not over the same queries, or over none.
    """
    difference, low, high = paired_interval(values, baseline)
    return Comparison(difference, low, high, _p_value(*_paired(values, baseline)), len(values))


def paired_interval(values: Mapping[str, float], baseline: Mapping[str, float]) -> tuple[float, float, float]:
    """Difference, low and high of `compare`, without the test, which takes most of its time."""
    left, right = _paired(values, baseline)
    low, high = _interval(left - right)
    return float((left - right).mean()), low, high


def interval(values: Mapping[str, float]) -> tuple[float, float]:
    """Percentile bootstrap interval of one run's mean over its queries; BadInput for none."""
    return _interval(np.fromiter(values.values(), float, len(values)))


def _paired(values: Mapping[str, float], baseline: Mapping[str, float]) -> tuple[Vector, Vector]:
    if values.keys() != baseline.keys():
        odd = sorted(values.keys() ^ baseline.keys())
        raise BadInput(f"the two runs are not over the same queries ({odd[0]!r} is in one only); judge both alike")
    left = np.fromiter(values.values(), float, len(values))
    return left, np.fromiter((baseline[query] for query in values), float, len(values))


def _interval(values: Vector) -> tuple[float, float]:
    if not len(values):
        raise BadInput("no queries to compare; judge at least one")
    if (values == values[0]).all():  # nothing varies (also: one query), so no resample differs
        return float(values[0]), float(values[0])
    result = bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, batch=1000, confidence_level=CONFIDENCE, method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    return float(result.low), float(result.high)


def _p_value(left: Vector, right: Vector) -> float:
    if len(left) < 2 or (left == right).all():  # every swap gives a difference of the same size
        return 1.0

    def mean_difference(x: Vector, y: Vector, axis: int) -> Any:
        return np.mean(x - y, axis=axis)

    result = permutation_test(
        (left, right), mean_difference, permutation_type="samples", vectorized=True, n_resamples=RESAMPLES, batch=1000,
        random_state=np.random.default_rng(0),
    )  # fmt: skip
    return float(result.pvalue)
