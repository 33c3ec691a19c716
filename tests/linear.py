"""Whether work grows as its input does, and stays within a bound; measured again where a busy machine slowed it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time

TIMES, GROWTH, ATTEMPTS = 4, 7, 15
"""TIMES the input takes TIMES the work where it is linear, and TIMES**2 where quadratic: GROWTH lies between.
On a quiet machine linear work needs one attempt."""


def growth(work: Callable[[int], Callable[[], object]], n: int) -> float:
    """CPU time for TIMES n divided by that for n, the median of some attempts.

    The two are measured one after the other, so that what slows a busy machine slows both of an attempt.
    work: makes the input of a size, and returns what is to be measured.
    """
    work(10)()
    ratios = list[float]()
    for _ in range(ATTEMPTS):
        small, large = (_seconds(work(size)) for size in (n, TIMES * n))
        ratios.append(large / max(small, 1e-4))
        if median(ratios) < GROWTH or large > 5:
            break
    return median(ratios)


def within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work takes less CPU time than this, in one of some attempts."""
    return any(_seconds(work) < seconds for _ in range(ATTEMPTS))


def _seconds(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start
