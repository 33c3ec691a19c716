"""Progress of long work. Core code never prints: it is given a function that does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Track(Protocol):
    """Passes items on unchanged, and may show how many have passed.

    The items of a stage of longer work are a `Part`, which knows how long the whole work takes.
    """

    def __call__(self, items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]: ...


def silent(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Show nothing."""
    yield from items


class Whole:
    """Work of several stages, each of an expected share of its time."""

    def __init__(self) -> None:
        self.done = 0.0
        """The share of the work that is done."""
        self._began = time.monotonic()

    def seconds(self) -> float | None:
        """The estimated seconds of the whole work, from its pace so far; None at the beginning."""
        return (time.monotonic() - self._began) / self.done if self.done else None

    def left(self) -> float | None:
        """Seconds until it ends; None in the first half minute and the first fifth of the work, which tell little."""
        seconds = self.seconds() or 0
        return seconds * (1 - self.done) if self.done >= 0.2 and seconds * self.done >= 30 else None

    def stage(self, track: Track, until: float) -> Track:
        """A Track for the stage that ends when this share of the work is done."""

        def track_part(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
            return track(Part(items, self, until, total or 0), stage, total=total, unit=unit)

        return track_part


class Part(Generic[T]):
    """The items of a stage of longer work; their sizes advance the work to the share `until`.

    waiting: the size of items that were taken but are not finished yet.
    """

    def __init__(
        self,
        items: Iterable[T],
        whole: Whole,
        until: float,
        total: float,
        size: Callable[[T], float] = lambda item: 1,
        waiting: float = 0,
    ) -> None:
        self.whole = whole
        self._items, self._until, self._total, self._size = items, until, max(total, 1), size
        self._waiting = waiting

    def __iter__(self) -> Iterator[T]:
        start, over = self.whole.done, -self._waiting
        for item in self._items:
            over += self._size(item)
            self.whole.done = start + (self._until - start) * min(1, max(0, over) / self._total)
            yield item
