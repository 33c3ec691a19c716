"""Names that documents use, of a base and its delta as one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.rows import Stack
from ncs.build.delta.vocabulary import StackedVocabulary
from ncs.build.delta.words import woven
from ncs.errors import IndexDamaged
from ncs.storage.uses import ROOM as USED
from ncs.storage.uses import References

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

DOCUMENTS = "documents.all.npy"
"""In the delta's references: how many documents use each name of all."""


@dataclass(frozen=True, slots=True)
class StackedReferences(References):
    """Numbers of the base's names stay, new names come behind them. Of the arrays `documents` alone is there."""

    base: References | None = None
    delta: References | None = None
    stack: Stack | None = None

    @classmethod
    def of_rooms(cls, data: Path, room: Path) -> StackedReferences:
        """data: of the base; room: of the delta."""
        base, own = References.of_folder(data), References.of_folder(room)
        names = StackedVocabulary.load(data / USED, room / USED)
        delta = References(own.names, names.numbers[own.ids], own.offsets, own.documents)
        documents = np.asarray(np.load(room / USED / DOCUMENTS, mmap_mode="r", allow_pickle=False))
        if len(documents) != len(names):
            raise IndexDamaged(f"the files in {room / USED} do not fit each other; build the index again")
        stack = Stack.load(room, len(base), len(own))
        return cls(names, np.zeros(0, np.int32), np.zeros(1, np.int64), documents, base, delta, stack)

    def __len__(self) -> int:
        """How many documents."""
        return len(self.stack) if self.stack else 0

    def of(self, rows: Rows) -> tuple[NDArray[np.int32], Rows]:
        """The names used by these rows, joined, and how many each row uses."""
        if self.base is None or self.delta is None or self.stack is None:
            raise ValueError("open with of_rooms")
        late, early, others = self.stack.split(rows)
        found = (_lists(*part) for part in (self.base.of(early), self.delta.of(others)))
        ids, offsets = woven(late, *found)
        return ids, np.diff(offsets)


def _lists(values: NDArray[np.int32], lengths: Rows) -> tuple[NDArray[np.int32], Rows]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return values, offsets
