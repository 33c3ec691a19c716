"""Weights fitted to judged queries, and gains: what is above chance, and which head they let in."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from evaluation.experiments import OFF
from ncs.build.tune import WEIGHTS, Example, cross_validate, fit_factors
from ncs.search.hybrid import Weights


def examples(good: int, n: int = 40) -> list[Example]:
    """Queries of ten candidates whose right one has the most of signal `good`; the others are noise."""
    rng = np.random.default_rng(1)
    signals = [rng.random((10, 3)) for _ in range(n)]
    return [Example(each, np.array([int(each[:, good].argmax())])) for each in signals]


def test_the_signal_that_tells_the_right_one_gains_weight_and_the_rest_lose() -> None:
    few, many = (fit_factors(examples(1, n)) for n in (40, 200))
    assert few[0] == many[0] == 1
    assert many[1] > few[1] > 1.5  # the penalty is for all queries together: more of them may say more
    assert many[2] < few[2] < 1
    validated = cross_validate(examples(1), before=np.ones(3))
    assert validated.wins
    assert validated.after > validated.before


def test_every_weight_of_the_default_ranker_is_learned_and_has_a_row_in_the_ablation() -> None:
    weights = set(asdict(Weights()))
    assert {name for names in WEIGHTS.values() for name in names} == weights
    assert weights <= set(OFF)


def test_a_silent_signal_keeps_its_weight_and_one_that_finds_wrong_ones_loses_it() -> None:
    silent = [Example(example.signals * [1, 1, 0], example.right) for example in examples(1)]
    factors = fit_factors(silent)
    assert factors[1] > 1.5
    assert factors[2] == pytest.approx(1, abs=1e-3)
    any_but_the_best = [Example(each.signals, np.delete(np.arange(10), each.right)) for each in examples(1)]
    factors = fit_factors(any_but_the_best)
    assert factors[1] < min(0.9, factors[2])


def test_queries_that_tell_nothing_leave_the_weights() -> None:
    assert fit_factors([Example(np.ones((4, 3)), np.array([2]))] * 20).tolist() == [1, 1, 1]
    assert fit_factors([Example(np.ones((4, 3)), np.zeros(0, np.int64))]).tolist() == [1, 1, 1]
    rng = np.random.default_rng(2)
    by_chance = [Example(rng.random((10, 3)), np.array([int(rng.integers(10))])) for _ in range(60)]
    assert not cross_validate(by_chance, before=np.ones(3)).wins


def test_the_reciprocal_rank_counts_ties_against_the_right_one() -> None:
    example = Example(np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.1]]), np.array([1]))
    ranks = [example.reciprocal_rank(np.array(factors)) for factors in ([1.0, 0.0], [1.0, 1.0], [0.0, 1.0])]
    assert ranks == [1 / 2, 1 / 2, 1]
    assert Example(example.signals, np.zeros(0, np.int64)).reciprocal_rank(np.ones(2)) == 0
