"""Vectors of ten bits a number, row by row in a mapped file: what candidates are compared by.

A byte a number loses .025 of the ten best of 5 million documents, ten bits .01, twelve .002 (DESIGN.md, "The index at
size"). Of each row eight bits of every number come first, then the two lower ones of four numbers a byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.storage.read_ahead import ReadAhead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix

    Rows = NDArray[np.int64]
    Codes = NDArray[np.uint8]

FINE = "fine.npy"
LEVELS = 1024
MARGIN = 1 / 16
"""Of the range seen in a sample, added on either side for numbers that it has not."""
QUARTERS = (np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3).astype(np.uint8).view(np.uint32)[:, 0]
"""Of each byte the four numbers of two bits, a byte each."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What ten bits stand for: number j of a row is low[j] + (level + .5) * step[j]; both [dim]."""

    low: Matrix
    step: Matrix

    @classmethod
    def of(cls, sample: Matrix) -> Grid:
        """The range of each number in a sample [n, dim], n > 0, and somewhat more."""
        low, high = sample.min(axis=0), sample.max(axis=0)
        wide = np.maximum(high - low, 1e-6)
        step = wide * (1 + 2 * MARGIN) / LEVELS
        return cls((low - wide * MARGIN).astype(np.float32), step.astype(np.float32))

    @property
    def width(self) -> int:
        """Bytes a row."""
        return 5 * -(-len(self.low) // 4)

    def encoded(self, vectors: Matrix) -> Codes:
        """[n, dim] to [n, width]."""
        levels = np.clip((vectors - self.low) / self.step, 0, LEVELS - 1).astype(np.uint16)
        levels = np.pad(levels, ((0, 0), (0, -levels.shape[1] % 4)))
        quarters = (levels & 3).astype(np.uint8).reshape(len(levels), levels.shape[1] // 4, 4) << np.array(
            [0, 2, 4, 6], np.uint8
        )
        return np.concatenate([(levels >> 2).astype(np.uint8), quarters.sum(axis=2, dtype=np.uint8)], axis=1)

    def levels(self, codes: Codes) -> Matrix:
        """[n, width] to whole numbers, [n, dim]."""
        whole = self.width // 5 * 4
        found = np.left_shift(codes[:, :whole], 2, dtype=np.uint16)
        found |= QUARTERS[codes[:, whole:]].view(np.uint8)
        return found[:, : len(self.low)].astype(np.float32)


class Fine:
    """codes: [n, grid.width], mapped or in memory."""

    def __init__(self, codes: Codes, grid: Grid) -> None:
        self.codes, self.grid = codes, grid
        self._ahead = ReadAhead(codes)

    def vectors(self, rows: Rows) -> Matrix:
        """[len(rows), dim]."""
        found: Matrix = self.grid.low + (self.grid.levels(self._read(rows)) + np.float32(0.5)) * self.grid.step
        return found

    def scores(self, query: Matrix, rows: Rows) -> Matrix:
        """The inner product of a query [dim] with these rows; of equal rows exactly the same."""
        base = np.float32(query @ (self.grid.low + np.float32(0.5) * self.grid.step))
        found: Matrix = np.einsum("ij,j->i", self.grid.levels(self._read(rows)), query * self.grid.step) + base
        return found

    def _read(self, rows: Rows) -> Codes:
        self._ahead.ask(rows * self.codes.shape[1], (rows + 1) * self.codes.shape[1])
        return self.codes[rows]


class FineWriter:
    """Rows as they come, into a temporary file: memory holds none of them."""

    def __init__(self, grid: Grid) -> None:
        import tempfile  # who only searches does not wait for it

        self.grid, self._rows = grid, 0
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115

    def __enter__(self) -> FineWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # what is mapped stays

    def add(self, chunk: Matrix) -> None:
        """The next rows."""
        self._file.write(self.grid.encoded(chunk).tobytes())
        self._rows += len(chunk)

    def done(self) -> Fine:
        """What was written, mapped."""
        self._file.flush()
        shape = (self._rows, self.grid.width)
        codes = np.memmap(self._file, np.uint8, "r", shape=shape) if self._rows else np.zeros(shape, np.uint8)
        return Fine(codes, self.grid)


def opened(folder: Path, grid: Grid) -> Fine:
    """Memory-mapped; raises what numpy raises."""
    return Fine(np.load(folder / FINE, mmap_mode="r", allow_pickle=False), grid)
