"""The vectors of a base and its delta as one: both are searched, the better ones win; the delta's are all compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.rows import GONE, Stack
from ncs.errors import BadInput
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix
    from ncs.storage.vectors import About

    Rows = NDArray[np.int64]
    Scores = NDArray[np.float32]


class StackedVectors(VectorIndex):
    """Rows as they are numbered in the whole index."""

    def __init__(self, base: VectorIndex, delta: VectorIndex, stack: Stack) -> None:
        self._base, self._delta, self._stack = base, delta, stack

    @classmethod
    def of_rooms(cls, folder: Path, room: Path) -> StackedVectors:
        """folder: of the base's vectors; room: of the delta."""
        base, delta = VectorIndex.of_folder(folder), VectorIndex.of_folder(room / folder.name)
        return cls(base, delta, Stack.load(room, len(base), len(delta)))

    def __len__(self) -> int:
        """How many rows."""
        return len(self._stack)

    @property
    def about(self) -> About:
        """Of the base."""
        return self._base.about

    @property
    def dim(self) -> int:
        """Numbers a vector."""
        return self._base.dim

    def search(self, queries: Matrix, k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """The k best rows of each query and their scores, as VectorIndex gives them."""
        if allowed is not None and allowed.shape != (len(self),):
            raise BadInput(f"a filter of shape {allowed.shape} does not fit {len(self)} rows")
        early, late = self._stack.masks(allowed)
        base, delta = self._base.search(queries, k, allowed=early), self._delta.search(queries, k, allowed=late)
        rows = np.concatenate([self._numbered(base[0], 0), self._numbered(delta[0], self._stack.base)], axis=1)
        scores = np.concatenate([base[1], delta[1]], axis=1)
        order = np.array([np.lexsort((own, -of))[:k] for own, of in zip(rows, scores, strict=True)], np.int64)
        order = order.reshape(len(queries), k)
        return np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)

    def _numbered(self, rows: Rows, first: int) -> Rows:
        held = np.where(rows >= 0, rows + first, 0)
        return np.where(rows >= 0, self._stack.row[held], np.int32(-1)).astype(np.int64)

    def vectors(self, rows: Rows) -> Matrix:
        """The vectors of these rows, [len(rows), dim]."""
        late, early, others = self._stack.split(np.asarray(rows, np.int64))
        found: Matrix = np.zeros((len(late), self.dim), np.float32)
        found[~late], found[late] = self._base.vectors(early), self._delta.vectors(others)
        return found

    def filled(self) -> Rows:
        """The rows that are not zero, rising."""
        held = np.concatenate([self._base.filled(), self._delta.filled() + self._stack.base])
        rows = self._stack.row[held].astype(np.int64)
        return np.sort(rows[rows != GONE])
