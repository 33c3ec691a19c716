"""Which digests were seen before, and in which row: sorted runs of numbers, an eighth of what a dictionary takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]

BYTES = 16


class Digests:
    """Digest -> the row it was first met in. Digests are compared whole: two numbers of 64 bits each.

    Runs are merged while the last is not half as long as the one before it: there are few, and each row is sorted
    anew a few times only (O'Neil et al. 1996, "The log-structured merge-tree").
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Keys, Keys, NDArray[np.int32]]] = []
        self._odd: dict[bytes, int] = {}
        """Of other lengths than BYTES: documents that others made may have such."""

    def rows(self, digests: Sequence[bytes], following: int) -> list[int]:
        """The row of each digest: the one it was met in before, else the next that is free, `following` and on.

        An empty digest is like no other.
        """
        keys = np.frombuffer(b"".join(each if len(each) == BYTES else bytes(BYTES) for each in digests), np.uint64)
        known = self._known(keys[::2], keys[1::2]).tolist()
        found, new, met = [], [], dict[bytes, int]()
        free = following
        for at, digest in enumerate(digests):
            row = self._odd.get(digest, -1) if len(digest) != BYTES else known[at]
            row = met.get(digest, -1) if row < 0 and digest else row
            if row < 0:
                row, free = free, free + 1
                if digest:
                    met[digest] = row
                    new.append(at)
            found.append(row)
        self._odd.update((digest, row) for digest, row in met.items() if len(digest) != BYTES)
        whole = [at for at in new if len(digests[at]) == BYTES]
        self._add(keys[::2][whole], keys[1::2][whole], np.array([found[at] for at in whole], np.int32))
        return found

    def _known(self, first: Keys, second: Keys) -> NDArray[np.int64]:
        """The row of each key, -1 for one that is in no run."""
        rows = np.full(len(first), -1, np.int64)
        for firsts, seconds, numbers in self._runs:
            at = np.searchsorted(firsts, first)
            open_ = np.flatnonzero((rows < 0) & (at < len(firsts)))
            while len(open_):  # keys whose first halves are alike follow each other
                here = at[open_]
                alike = firsts[here] == first[open_]
                whole = alike & (seconds[here] == second[open_])
                rows[open_[whole]] = numbers[here[whole]]
                open_ = open_[alike & ~whole]
                at[open_] += 1
                open_ = open_[at[open_] < len(firsts)]
        return rows

    def _add(self, first: Keys, second: Keys, rows: NDArray[np.int32]) -> None:
        if not len(rows):
            return
        order = np.argsort(first, kind="stable")
        self._runs.append((first[order], second[order], rows[order]))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) > len(self._runs[-2][0]):
            one, other = self._runs.pop(), self._runs.pop()
            order = np.argsort(np.concatenate([other[0], one[0]]), kind="stable")
            first, second, rows = (np.concatenate([old, new])[order] for old, new in zip(other, one, strict=True))
            self._runs.append((first, second, rows))
