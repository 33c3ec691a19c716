"""Hash -> first row with it, as sorted runs: an eighth of the memory of a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]

BYTES = 16


class SeenHashes:
    """Hash -> the first row with it. Hashes are pairs of 64-bit numbers.

    Runs are merged while the last is more than half as long as the one before (O'Neil et al. 1996, "The log-structured
    merge-tree").
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Keys, Keys, NDArray[np.int32]]] = []
        self._odd: dict[bytes, int] = {}
        """Hashes of other lengths than BYTES, as documents from elsewhere may have."""

    def rows(self, hashes: Sequence[bytes], free: int) -> list[int]:
        """The row of each hash: its first row, or the next free one from `free` on. Empty hashes are never equal."""
        keys = np.frombuffer(b"".join(each if len(each) == BYTES else bytes(BYTES) for each in hashes), np.uint64)
        earlier_rows = self._find(keys[::2], keys[1::2]).tolist()
        rows, new, here = [], [], dict[bytes, int]()
        for at, digest in enumerate(hashes):
            row = self._odd.get(digest, -1) if len(digest) != BYTES else earlier_rows[at]
            row = here.get(digest, -1) if row < 0 and digest else row
            if row < 0:
                row, free = free, free + 1
                if digest:
                    here[digest] = row
                    new.append(at)
            rows.append(row)
        self._odd.update((digest, row) for digest, row in here.items() if len(digest) != BYTES)
        whole = [at for at in new if len(hashes[at]) == BYTES]
        self._add(keys[::2][whole], keys[1::2][whole], np.array([rows[at] for at in whole], np.int32))
        return rows

    def _find(self, first: Keys, second: Keys) -> NDArray[np.int64]:
        """The row of each key, -1 if it is in no run."""
        rows = np.full(len(first), -1, np.int64)
        for firsts, seconds, numbers in self._runs:
            at = np.searchsorted(firsts, first)
            open_ = np.flatnonzero((rows < 0) & (at < len(firsts)))
            while len(open_):  # keys with equal first halves are adjacent
                here = at[open_]
                half = firsts[here] == first[open_]
                whole = half & (seconds[here] == second[open_])
                rows[open_[whole]] = numbers[here[whole]]
                open_ = open_[half & ~whole]
                at[open_] += 1
                open_ = open_[at[open_] < len(firsts)]
        return rows

    def _add(self, first: Keys, second: Keys, rows: NDArray[np.int32]) -> None:
        if not len(rows):
            return
        order = np.argsort(first, kind="stable")
        self._runs.append((first[order], second[order], rows[order]))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) > len(self._runs[-2][0]):
            last, before = self._runs.pop(), self._runs.pop()
            order = np.argsort(np.concatenate([before[0], last[0]]), kind="stable")
            first, second, rows = (np.concatenate([old, new])[order] for old, new in zip(before, last, strict=True))
            self._runs.append((first, second, rows))
