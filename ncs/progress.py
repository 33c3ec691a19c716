"""Progress of long work: a function is passed in, core code never prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Track(Protocol):
    """Passes items on unchanged; whether it shows a bar or nothing is the caller's choice."""

    def __call__(self, items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]: ...


def silent(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Show nothing."""
    yield from items
