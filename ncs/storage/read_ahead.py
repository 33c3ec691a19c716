"""Prefetches pages of memory-mapped files with madvise, instead of one page fault after another.

By default a page fault reads 128 KB, so a thousand scattered documents read most of an index: for the words of 1.7
million documents 625 of 656 MB on a first query; with prefetching 8 MB, 5 to 10 times as fast.
"""

from __future__ import annotations

import mmap
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]

PAGE = mmap.PAGESIZE
WILL_NEED: int | None = getattr(mmap, "MADV_WILLNEED", None)
RANDOM: int | None = getattr(mmap, "MADV_RANDOM", None)
MISSING = 64
"""After so many new page faults, pages are assumed to be evicted and requested again."""


def page_faults() -> int:
    """Major page faults of this process; 0 where the system does not count them."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


class ReadAhead:
    """Prefetches pages of one array, each once until the process has page faults again."""

    def __init__(self, array: NDArray[Any]) -> None:
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        self._map: mmap.mmap | None = base if isinstance(base, mmap.mmap) and WILL_NEED is not None else None
        self._size = array.itemsize
        if self._map is not None:
            self._first = array.ctypes.data - np.frombuffer(self._map, np.uint8).ctypes.data
            self._requested = np.zeros(-(-len(self._map) // PAGE), np.bool_)
            self._faults = page_faults()
            if RANDOM is not None:
                self._map.madvise(RANDOM)

    @property
    def mapped(self) -> bool:
        """Whether the array is memory-mapped."""
        return self._map is not None

    def prefetch(self, begins: Positions, ends: Positions) -> None:
        """Request the pages of elements begins[i]..ends[i]; of a long range the first and last page."""
        if self._map is None or WILL_NEED is None or not len(begins):
            return
        inside = np.maximum(ends - 1, begins) * self._size + self._first
        pages = np.concatenate([begins * self._size + self._first, inside]) // PAGE
        pages = pages[pages < len(self._requested)]
        if (now := page_faults()) - self._faults > MISSING:
            self._requested[:] = False
        self._faults = now
        pages = np.unique(pages[~self._requested[pages]])
        self._requested[pages] = True
        cuts = np.flatnonzero(np.diff(pages) > 1) + 1
        for run in np.split(pages, cuts) if len(pages) else ():
            self._map.madvise(WILL_NEED, int(run[0]) * PAGE, min(len(run) * PAGE, len(self._map) - int(run[0]) * PAGE))
