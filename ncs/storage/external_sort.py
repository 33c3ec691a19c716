"""Temporary files for what does not fit into memory during a build: arrays, and sorted runs to be merged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    Numbers = NDArray[np.int32]
    Values = NDArray[np.float64]


def temporary(shape: tuple[int, ...], dtype: DTypeLike, folder: Path | None) -> NDArray[Any]:
    """An array of zeros in an unlinked temporary file of a folder; without a folder, in memory."""
    if folder is None or os.name == "nt" or not np.prod(shape):  # Windows cannot remove an open file
        return np.zeros(shape, dtype)
    with TemporaryFile(prefix="array-", dir=folder) as file:
        return np.memmap(file, dtype, "w+", shape=shape)


class SortedRuns:
    """Runs of (key, row, value), each sorted by key, written until all keys are counted and then merged by key.

    A run stores only the keys that occur in it, with the end of their rows.
    """

    def __init__(self, folder: Path | None) -> None:
        """folder: for the files; None: keep runs in memory."""
        self._sizes: list[tuple[int, int]] = []
        self._memory: list[tuple[Numbers, Numbers, Numbers, Values]] = []
        self._files: tuple[IO[bytes], ...] = ()
        self._stack = ExitStack()
        if folder is not None:
            self._files = tuple(
                self._stack.enter_context(TemporaryFile(prefix="postings-", dir=folder))  # noqa: SIM115
                for _ in range(3)
            )

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def add(self, counts: NDArray[np.int64], rows: NDArray[np.int64], values: Values) -> None:
        """The next run: how often each key is in it [keys], rows and values [sum of counts]."""
        present = np.flatnonzero(counts)
        ends = np.cumsum(counts[present])
        run = (present.astype(np.int32), ends.astype(np.int32), rows.astype(np.int32), values.astype(np.float64))
        if self._files:
            heads, numbers, weights = self._files
            heads.write(run[0].tobytes() + run[1].tobytes())
            numbers.write(run[2].tobytes())
            weights.write(run[3].tobytes())
        else:
            self._memory.append(run)
        self._sizes.append((len(present), len(rows)))

    def read(self, start: int, stop: int) -> Iterator[tuple[NDArray[np.int64], Numbers, Values]]:
        """Of the keys start..stop, run by run: counts [stop - start], rows and values."""
        head, base = 0, 0
        heads = self._heads()
        for number, (keys, size) in enumerate(self._sizes):
            if self._files:
                present, ends = heads[head : head + keys], heads[head + keys : head + 2 * keys]
            else:
                present, ends = self._memory[number][:2]
            low, high = np.searchsorted(present, np.array([start, stop], np.int32)).tolist()
            own, own_ends = np.asarray(present[low:high]), np.asarray(ends[low:high])
            first = int(ends[low - 1]) if low else 0
            counts = np.zeros(stop - start, np.int64)
            counts[own - start] = np.diff(own_ends, prepend=first)
            length = int(own_ends[-1]) - first if len(own_ends) else 0
            if self._files:
                rows = self._read(1, base + first, length, np.int32)
                values = self._read(2, base + first, length, np.float64)
            else:
                rows, values = (array[first : first + length] for array in self._memory[number][2:])
            head, base = head + 2 * keys, base + size
            yield counts, rows, values

    def _heads(self) -> Numbers:
        """The keys of all runs and the ends of their rows, memory-mapped."""
        if not self._files:
            return np.zeros(0, np.int32)
        self._files[0].flush()
        size = sum(2 * keys for keys, _ in self._sizes)
        return np.memmap(self._files[0], np.int32, "r", shape=(size,)) if size else np.zeros(0, np.int32)

    def _read(self, file: int, at: int, length: int, dtype: DTypeLike) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        self._files[file].seek(at * size)
        return np.frombuffer(self._files[file].read(length * size), dtype)
