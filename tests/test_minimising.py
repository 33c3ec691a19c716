"""Newton steps of our own against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ncs.minimising import minimise


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_a_penalised_logistic_loss_is_as_low_as_scipy_finds_it(seed: int, n: int, bounded: bool) -> None:
    draw = np.random.default_rng(seed)
    rows, right = draw.normal(size=(40, n)), draw.random(40) < 0.3

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        z = rows @ at
        slope = rows.T @ (1 / (1 + np.exp(-z)) - right) + 0.5 * at
        return float((np.logaddexp(0, z) - z * right).sum() + 0.25 * at @ at), slope

    lower = [0.0 if bounded else -np.inf] * n
    bounds = [(0 if bounded else None, None)] * n
    expected = minimize(loss, np.ones(n), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14})
    found = minimise(loss, np.ones(n), lower)
    assert found == pytest.approx(expected.x, abs=1e-4)
    assert loss(found)[0] <= expected.fun + 1e-9
    assert (found >= np.array(lower)).all()


def test_a_function_that_bends_downwards_is_followed_to_its_bottom() -> None:
    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        return float(np.cos(at).sum()), -np.sin(at)

    assert minimise(loss, np.array([0.3, 6.0]), [0.0, 0.0]) == pytest.approx([np.pi, np.pi], abs=1e-6)


def test_a_point_where_the_bound_holds_it_stays() -> None:
    assert minimise(lambda at: (float(at.sum()), np.ones(2)), np.zeros(2), [0.0, 0.0]).tolist() == [0, 0]
