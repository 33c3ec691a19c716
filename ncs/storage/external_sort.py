"""What is too large for memory lies in files that have no name: arrays, and what is to be merged by number."""

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


def temporary(shape: tuple[int, ...], dtype: DTypeLike, room: Path | None) -> NDArray[Any]:
    """An array of zeros in a file of a folder that goes when the array does; without a folder, in memory."""
    if room is None or os.name == "nt" or not np.prod(shape):  # there an open file cannot be removed
        return np.zeros(shape, dtype)
    with TemporaryFile(prefix="array-", dir=room) as file:
        return np.memmap(file, dtype, "w+", shape=shape)


class Aside:
    """Batches of (number, row, value), each sorted by number, put aside until all numbers are counted.

    Of a batch only the numbers that stand in it are kept, each with where its rows end: of the millions of numbers of
    a large corpus few stand in any batch.
    """

    def __init__(self, room: Path | None) -> None:
        """room: the folder of the files; None: memory."""
        self._sizes: list[tuple[int, int]] = []
        self._memory: list[tuple[Numbers, Numbers, Numbers, Values]] = []
        self._files: tuple[IO[bytes], ...] = ()
        self._open = ExitStack()
        if room is not None:
            self._files = tuple(
                self._open.enter_context(TemporaryFile(prefix="postings-", dir=room))  # noqa: SIM115
                for _ in range(3)
            )

    def __enter__(self) -> Aside:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def put(self, counts: NDArray[np.int64], rows: NDArray[np.int64], values: Values) -> None:
        """The next batch: how often each number stands in it [numbers], rows and values [sum of counts]."""
        present = np.flatnonzero(counts)
        ends = np.cumsum(counts[present])
        batch = (present.astype(np.int32), ends.astype(np.int32), rows.astype(np.int32), values.astype(np.float64))
        if self._files:
            heads, numbers, weights = self._files
            heads.write(batch[0].tobytes() + batch[1].tobytes())
            numbers.write(batch[2].tobytes())
            weights.write(batch[3].tobytes())
        else:
            self._memory.append(batch)
        self._sizes.append((len(present), len(rows)))

    def of(self, start: int, stop: int) -> Iterator[tuple[NDArray[np.int64], Numbers, Values]]:
        """Of the numbers start..stop, batch by batch: counts [stop - start], rows and values."""
        here, base = 0, 0
        heads = self._heads()
        for batch, (numbers, size) in enumerate(self._sizes):
            if self._files:
                present, ends = heads[here : here + numbers], heads[here + numbers : here + 2 * numbers]
            else:
                present, ends = self._memory[batch][:2]
            low, high = np.searchsorted(present, np.array([start, stop], np.int32)).tolist()
            met, up_to = np.asarray(present[low:high]), np.asarray(ends[low:high])
            first = int(ends[low - 1]) if low else 0
            counts = np.zeros(stop - start, np.int64)
            counts[met - start] = np.diff(up_to, prepend=first)
            length = int(up_to[-1]) - first if len(up_to) else 0
            if self._files:
                rows, values = (
                    self._read(1, base + first, length, np.int32),
                    self._read(2, base + first, length, np.float64),
                )
            else:
                rows, values = (array[first : first + length] for array in self._memory[batch][2:])
            here, base = here + 2 * numbers, base + size
            yield counts, rows, values

    def _heads(self) -> Numbers:
        """Of all batches which numbers stand in them and where their rows end, mapped."""
        if not self._files:
            return np.zeros(0, np.int32)
        self._files[0].flush()
        size = sum(2 * numbers for numbers, _ in self._sizes)
        return np.memmap(self._files[0], np.int32, "r", shape=(size,)) if size else np.zeros(0, np.int32)

    def _read(self, file: int, at: int, length: int, dtype: DTypeLike) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        self._files[file].seek(at * size)
        return np.frombuffer(self._files[file].read(length * size), dtype)
