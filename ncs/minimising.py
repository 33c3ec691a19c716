"""The lowest point of a smooth function of a few numbers that have lower bounds: projected Newton steps.

scipy.optimize finds the same; importing it takes a third of a second, more than a small index's calibration itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Point = NDArray[np.float64]
    Loss = Callable[[Point], tuple[float, Point]]

STEPS, NEAR = 100, 1e-9
APART = 1e-5
"""How far apart two slopes are taken whose difference is the curvature."""


def minimise(loss: Loss, start: Point, lower: Sequence[float]) -> Point:
    """loss: a point [n] -> its value and slope [n]. lower: bounds, -inf for none; start must keep them."""
    at, bounds = start.astype(np.float64), np.array(lower, np.float64)
    for _ in range(STEPS):
        value, slope = loss(at)
        free = np.flatnonzero((at > bounds) | (slope < 0))
        if not len(free) or np.abs(slope[free]).max() < NEAR * max(1.0, abs(value)):
            break
        step = np.zeros(len(at))
        step[free] = -np.linalg.solve(_curvature(loss, at, slope, free), slope[free])
        after = _lower(loss, at, value, slope, step, bounds)
        if after is None:
            break
        at = after
    return at


def _curvature(loss: Loss, at: Point, slope: Point, free: NDArray[np.int64]) -> Point:
    """The second derivatives [free, free], made positive where the function bends downwards."""
    rows = []
    for number in free:
        beside = at.copy()
        beside[number] += APART
        rows.append((loss(beside)[1][free] - slope[free]) / APART)
    curved = np.array(rows)
    values, vectors = np.linalg.eigh((curved + curved.T) / 2)
    bent: Point = (vectors * np.maximum(np.abs(values), 1e-8)) @ vectors.T
    return bent


def _lower(loss: Loss, at: Point, value: float, slope: Point, step: Point, bounds: Point) -> Point | None:
    """The first point on the way, by halves, that is lower as far as the slope promises; None for none."""
    for halves in range(40):
        after: Point = np.maximum(at + step / 2**halves, bounds)
        if np.array_equal(after, at):
            return None
        if loss(after)[0] <= value + 1e-4 * float(slope @ (after - at)):
            return after
    return None
