"""Names that documents define, of a base and its delta as one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.rows import GONE, Stack
from ncs.storage.uses import References
from ncs.storage.definitions import MOST, SHORT, Symbols

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Marks = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class StackedSymbols(Symbols):
    """Definitions of both; `names` are the base's."""

    delta: Symbols | None = None
    stack: Stack | None = None

    @classmethod
    def of_rooms(cls, data: Path, room: Path) -> StackedSymbols:
        """data: of the base; room: of the delta."""
        base, delta = Symbols.of_folder(data), Symbols.of_folder(room)
        stack = Stack.load(room, *_sizes(data, room))
        return cls(base.names, base.rows, base.offsets, base.spelled, base.scopes, delta, stack)

    def definitions(self, key: str) -> tuple[Rows, Marks, Marks, bool]:
        """As Symbols gives them, of documents that are rows."""
        if self.delta is None or self.stack is None:
            raise ValueError("open with of_rooms")
        found = self._merged(self.delta, self.stack, *(_alone(one, key) for one in (self, self.delta)))
        if len(found[0]) or len(key) <= SHORT:
            return *found, bool(len(found[0]))
        return *self._merged(self.delta, self.stack, self.names.starting(key), self.delta.names.starting(key)), False

    def _merged(self, delta: Symbols, stack: Stack, ids: range, own: range) -> tuple[Rows, Marks, Marks]:
        """The first MOST definitions of names of the base and of the delta, by name and row."""
        early, late = Symbols.of_names(self, ids, len(self.rows)), delta.of_names(own, len(delta.rows))
        ranks = [np.repeat(np.arange(ids.start, ids.stop, dtype=np.float64), _counts(self, ids))]
        ranks.append(np.repeat([_rank(self, delta, id) for id in own], _counts(delta, own)))
        rows = np.concatenate([stack.row[early[0]], stack.row[late[0] + stack.base]]).astype(np.int64)
        order = np.lexsort((rows, np.concatenate(ranks)))
        order = order[rows[order] != GONE][:MOST]
        spelled, scopes = (np.concatenate([early[i], late[i]])[order] for i in (1, 2))
        return rows[order], spelled, scopes


def _alone(symbols: Symbols, key: str) -> range:
    id = symbols.names.id(key)
    return range(0) if id is None else range(id, id + 1)


def _counts(symbols: Symbols, ids: range) -> Rows:
    return np.diff(symbols.offsets[ids.start : ids.stop + 1])


def _rank(base: Symbols, delta: Symbols, id: int) -> float:
    """A number in the order of the base's names: theirs for one of them, else between two."""
    name = delta.names.word(id)
    known = base.names.id(name)
    return base.names.first_from(name) - 0.5 + id / (2 * len(delta.names) + 2) if known is None else float(known)


def _sizes(data: Path, room: Path) -> tuple[int, int]:
    """Documents of the base and of the delta."""
    return References.of_folder(data).offsets.size - 1, References.of_folder(room).offsets.size - 1
