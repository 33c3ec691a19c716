"""Intervals and p-values against what is known by counting."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from evaluation.measures import compare, interval
from ncs.errors import BadInput


def test_the_p_value_of_few_queries_is_the_share_of_all_exchanges_at_least_as_uneven() -> None:
    ours = {"a": 0.9, "b": 0.5, "c": 0.4, "d": 1.0, "e": 0.2}
    theirs = {"e": 0.3, "d": 0.25, "c": 0.1, "b": 0.5, "a": 0.1}
    differences = np.array([ours[query] - theirs[query] for query in ours])
    sums = np.array([differences @ signs for signs in product([1, -1], repeat=5)])
    counted = (np.abs(sums) >= abs(differences.sum()) - 1e-12).mean()
    found = compare(ours, theirs)
    assert found.p == pytest.approx(counted)
    assert found.difference == pytest.approx(differences.mean())
    assert found.queries == 5


def test_the_interval_of_a_mean_is_the_normal_one_for_many_queries() -> None:
    rng = random.Random(3)
    values = {str(i): rng.random() for i in range(2000)}
    sample = np.array(list(values.values()))
    half = 1.96 * sample.std(ddof=1) / np.sqrt(len(sample))
    assert interval(values) == pytest.approx((sample.mean() - half, sample.mean() + half), abs=half / 10)


def test_pairing_makes_the_interval_narrower_than_the_runs_own_ones() -> None:
    rng = random.Random(4)
    hard = {str(i): rng.random() for i in range(300)}
    better = {query: value + 0.01 * rng.random() for query, value in hard.items()}
    found = compare(better, hard)
    assert 0 < found.low < found.difference < found.high
    low, high = interval(hard)
    assert found.high - found.low < (high - low) / 20
    assert found.p < 0.001


def test_equal_runs_differ_by_nothing() -> None:
    values = {"a": 0.5, "b": 0.0}
    found = compare(values, dict(reversed(values.items())))
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_same_seed_gives_the_same_interval() -> None:
    rng = random.Random(5)
    ours, theirs = ({str(i): rng.random() for i in range(50)} for _ in range(2))
    assert compare(ours, theirs, seed=1) == compare(ours, theirs, seed=1)
    assert compare(ours, theirs, seed=1) != compare(ours, theirs, seed=2)


def test_runs_over_different_queries_are_refused() -> None:
    with pytest.raises(BadInput, match="'b' is in one only"):
        compare({"a": 1.0, "b": 1.0}, {"a": 1.0})
    with pytest.raises(BadInput, match="no queries"):
        compare({}, {})
