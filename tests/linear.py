"""Whether work grows as its input does, and stays within a bound; measured again where a busy machine slowed it."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

TIMES, GROWTH, ATTEMPTS = 4, 7, 15
"""TIMES the input takes TIMES the work where it is linear, and TIMES**2 where quadratic: GROWTH lies between.
On a quiet machine linear work needs one attempt."""


def growth(work: Callable[[int], Callable[[], object]], n: int) -> float:
    """CPU time for TIMES n divided by that for n, the least of each in some attempts; a slow machine slows both.

    work: makes the input of a size, and returns what is to be measured.
    """
    work(10)()
    least = {n: float("inf"), TIMES * n: float("inf")}
    ratio = float("inf")
    for _ in range(ATTEMPTS):
        for size in least:
            run = work(size)
            start = process_time()
            run()
            least[size] = min(least[size], process_time() - start)
        ratio = least[TIMES * n] / max(least[n], 1e-4)
        if ratio < GROWTH or least[TIMES * n] > 5:
            break
    return ratio


def within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work takes less CPU time than this, in one of some attempts."""
    for _ in range(ATTEMPTS):
        start = process_time()
        work()
        if process_time() - start < seconds:
            return True
    return False
