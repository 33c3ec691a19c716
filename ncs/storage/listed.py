"""Vectors of a byte a number, read row by row from the lists of a file that faiss wrote.

faiss finds a row in its lists only by a table of all rows, which it reads whole when it opens the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import IndexDamaged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix

PLACES = "places.npy"
ID = 8
"""Bytes of an id; places count in these, as codes are multiples of it long."""


@dataclass(frozen=True, slots=True)
class Listed:
    """codes: uint8 [m, dim], overlapping rows of the file; places: uint32 [n]: row i's bytes are codes[places[i]].

    Byte b of number j says low[j] + (b + .5) / 255 * wide[j], to be added to the centre of the row's list. codes and
    places are memory-mapped.
    """

    codes: NDArray[np.uint8]
    places: NDArray[np.uint32]
    low: Matrix
    wide: Matrix
    centres: Matrix
    """[lists, dim]."""
    starts: NDArray[np.int64]
    """Where each list begins, in what places count, [lists]."""

    @classmethod
    def open(cls, path: Path, trained: Matrix, centres: Matrix, sizes: NDArray[np.int64]) -> Listed:
        """The lists are the end of the file. trained: low and wide, [2 * dim]; sizes: rows a list, [lists].

        Raises IndexDamaged for files that do not fit.
        """
        low, wide = trained.reshape(2, -1).astype(np.float32)
        places = np.load(path.with_name(PLACES), mmap_mode="r", allow_pickle=False)
        length = len(places) * (len(low) + ID)
        size = path.stat().st_size
        if places.dtype != np.uint32 or places.ndim != 1 or length > size or not length:
            raise IndexDamaged(f"{path.with_name(PLACES)} does not fit {path.name}; build the index again")
        lists = np.memmap(path, np.uint8, "r", size - length, (length,))
        codes = np.lib.stride_tricks.as_strided(
            lists, ((length - len(low)) // ID + 1, len(low)), (ID, 1), writeable=False
        )
        starts = np.concatenate([[0], np.cumsum(sizes * (len(low) // ID + 1))[:-1]])
        return cls(codes, np.asarray(places), low, wide, centres, starts)

    def reconstruct_batch(self, rows: NDArray[np.int64]) -> Matrix:
        """The vectors of these rows, [len(rows), dim]; named as faiss names it."""
        places = self.places[rows]
        codes = np.asarray(self.codes[places], np.float32)
        found: Matrix = self.low + (codes + np.float32(0.5)) * (self.wide / np.float32(255))
        found += self.centres[np.searchsorted(self.starts, places, "right") - 1]
        return found


def places_of(lists: Sequence[NDArray[np.int64]], dim: int) -> NDArray[np.uint32]:
    """Of every row, where faiss writes its bytes: of each list, given as its ids, all codes and then all ids.

    >>> places_of([np.array([2, 0]), np.array([1])], 16).tolist()
    [2, 6, 0]
    """
    places, start = np.zeros(sum(map(len, lists)), np.uint32), 0
    for ids in lists:
        places[ids] = start + np.arange(len(ids)) * (dim // ID)
        start += len(ids) * (dim // ID + 1)
    return places


def list_places(path: Path, sizes: NDArray[np.int64], dim: int) -> NDArray[np.int64]:
    """Where the lists begin at the end of a file, and its end, in bytes; sizes: rows a list, [lists]."""
    places: NDArray[np.int64] = np.concatenate([[0], np.cumsum(sizes * (dim + ID))])
    return places + (path.stat().st_size - int(places[-1]))


def read_ahead(path: Path, places: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """Ask the system for the lists of these numbers at once; places: where each begins and the last one ends.

    A cold file that is only mapped is read page by page: without this the first question to 266,000 vectors took five
    times as long (480 ms; by hand).
    """
    if not hasattr(os, "posix_fadvise"):
        return
    lengths = np.diff(places)
    with path.open("rb") as file:
        for number in np.sort(numbers[numbers >= 0]).tolist():
            os.posix_fadvise(file.fileno(), int(places[number]), int(lengths[number]), os.POSIX_FADV_WILLNEED)
