"""Which rows of the base and of the delta an index consists of, in the order in which a whole build would have them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import IndexDamaged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask

    Rows = NDArray[np.int64]

ROWS = "rows.npy"
GONE = -1


@dataclass(frozen=True, slots=True)
class Stack:
    """held int32 [n]: where each row is held, numbers of the base first, from `base` on those of the delta.
    row int32 [base + delta]: the other way round, GONE for what is no document any more."""

    held: NDArray[np.int32]
    base: int
    row: NDArray[np.int32]

    @classmethod
    def of(cls, held: NDArray[np.int32], base: int, delta: int) -> Stack:
        """Of as many documents of the base and the delta."""
        row = np.full(base + delta, GONE, np.int32)
        row[held] = np.arange(len(held), dtype=np.int32)
        return cls(held, base, row)

    @classmethod
    def load(cls, room: Path, base: int, delta: int) -> Stack:
        """From the folder of a delta; raises IndexDamaged where it does not fit."""
        try:
            return _loaded(room, (room / ROWS).stat().st_mtime_ns, base, delta)
        except (OSError, ValueError, EOFError, IndexError) as error:
            raise IndexDamaged(f"cannot read {room / ROWS} ({error}); build the index again") from error

    def __len__(self) -> int:
        """How many rows."""
        return len(self.held)

    def split(self, rows: Rows) -> tuple[Mask, Rows, Rows]:
        """Which of these rows the delta holds, and their numbers in the base and in the delta, apart."""
        held = self.held[rows].astype(np.int64)
        late = held >= self.base
        return late, held[~late], held[late] - self.base

    def living(self) -> tuple[Mask, Mask]:
        """Which documents of the base and of the delta are rows."""
        living = self.row != GONE
        return living[: self.base], living[self.base :]

    def masks(self, allowed: Mask | None) -> tuple[Mask | None, Mask | None]:
        """A mask of rows as one of the base and one of the delta; None where all may be found."""
        if allowed is None:
            base, delta = self.living()
            return None if base.all() else base, None if delta.all() else delta
        found = np.zeros(len(self.row), np.bool_)
        found[self.held] = allowed
        return found[: self.base], found[self.base :]


@lru_cache(maxsize=4)
def _loaded(room: Path, changed: int, base: int, delta: int) -> Stack:
    """Once for all that share it. changed: when the file was written."""
    return Stack.of(np.load(room / ROWS, allow_pickle=False), base, delta)
