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
    """Batches of (number, row, value), each sorted by number, put aside until all numbers are counted."""

    def __init__(self, numbers: int, room: Path | None) -> None:
        """numbers: they are below this. room: the folder of the files; None: memory."""
        self._numbers = numbers
        self._sizes: list[int] = []
        self._memory: list[tuple[Numbers, Numbers, Values]] = []
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
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        batch = (ends, rows.astype(np.int32), values.astype(np.float64))
        if self._files:
            for file, data in zip(self._files, [array.tobytes() for array in batch], strict=True):
                file.write(data)
        else:
            self._memory.append(batch)
        self._sizes.append(len(rows))

    def of(self, start: int, stop: int) -> Iterator[tuple[NDArray[np.int64], Numbers, Values]]:
        """Of the numbers start..stop, batch by batch: counts [stop - start], rows and values."""
        base = 0
        for batch, size in enumerate(self._sizes):
            if self._files:
                ends = self._read(0, batch * (self._numbers + 1) + start, stop - start + 1, np.int32)
                first, length = int(ends[0]), int(ends[-1] - ends[0])
                rows = self._read(1, base + first, length, np.int32)
                values = self._read(2, base + first, length, np.float64)
            else:
                ends = self._memory[batch][0][start : stop + 1]
                rows, values = (array[ends[0] : ends[-1]] for array in self._memory[batch][1:])
            base += size
            yield np.diff(ends).astype(np.int64), rows, values

    def _read(self, file: int, at: int, length: int, dtype: DTypeLike) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        self._files[file].seek(at * size)
        return np.frombuffer(self._files[file].read(length * size), dtype)
