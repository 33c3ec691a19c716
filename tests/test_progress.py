"""Progress: the time left of work of several stages, with times set by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

from ncs import progress
from ncs.progress import Part, Whole

T = TypeVar("T")


def test_the_time_left_is_that_of_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    whole, estimates = Whole(), list[tuple[float | None, ...]]()

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        assert isinstance(items, Part)
        for item in items:
            yield item
            estimates.append(tuple(each and round(each, 1) for each in (items.whole.seconds(), items.whole.left())))

    for size in track(Part([8, 24, 8], whole, 0.8, 32, float, waiting=8), "reading"):
        now += size  # 40 seconds of 50
    for _ in whole.stage(track, 1)(range(2), "learning", total=2):
        now += 5
    assert estimates == [(None, None), (53.3, 21.3), (50, 10), (50, 5), (50, 0)]


def test_files_that_are_not_read_do_not_count() -> None:
    whole = Whole()
    assert list(Part([0, 0, 10], whole, 0.5, 40, float)) == [0, 0, 10]
    assert whole.done == 0.5 * 10 / 40
    assert list(whole.stage(progress.silent, 1.0)([1], "learning", total=1)) == [1]
    assert whole.done == 1
