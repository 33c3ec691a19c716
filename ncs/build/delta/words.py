"""The words of the documents of a base and its delta as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.rows import Stack
from ncs.build.delta.vocabulary import StackedVocabulary
from ncs.types import FIELDS, Field
from ncs.storage.words import WordTable, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Rows = NDArray[np.int64]


class StackedWords(WordTable):
    """Base and delta as one table. `ids` and `offsets` are made when asked for: who reads rows need not."""

    def __init__(self, base: WordTable, delta: WordTable, vocabulary: StackedVocabulary, stack: Stack) -> None:
        """delta: in the numbers of the vocabulary."""
        self.vocabulary = vocabulary
        self.base, self._delta, self._stack = base, delta, stack
        self._flat: WordTable | None = None

    def __len__(self) -> int:
        """How many documents."""
        return len(self._stack)

    @classmethod
    def of_room(cls, data: Path, room: Path) -> StackedWords:
        """Memory-mapped but for the delta's."""
        base, own = WordTable.of_folder(data), WordTable.of_folder(room)
        vocabulary = StackedVocabulary.load(data, room)
        delta = WordTable(own.vocabulary, vocabulary.numbers[own.ids], own.offsets)
        return cls(base, delta, vocabulary, Stack.load(room, len(base), len(own)))

    def ids_of(self, row: int, field: Field) -> Ids:
        """Word ids of one field of one document, in source order."""
        held = int(self._stack.held[row])
        if held < self._stack.base:
            return self.base.ids_of(held, field)
        return self._delta.ids_of(held - self._stack.base, field)

    def select(self, fields: Sequence[Field], start: int = 0, stop: int | None = None) -> tuple[Ids, Rows]:
        """The words of these fields joined per document, for rows start..stop."""
        return self.select_rows(fields, np.arange(start, len(self) if stop is None else stop))

    def select_rows(self, fields: Sequence[Field], rows: Rows) -> tuple[Ids, Rows]:
        """`select` for some rows in any order."""
        late, early_rows, late_rows = self._stack.split(rows)
        if not late.any():
            return self.base.select_rows(fields, early_rows)
        parts = self.base.select_rows(fields, early_rows), self._delta.select_rows(fields, late_rows)
        return woven(late, *parts)

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """How many words each field of these rows has, [len(rows), len(FIELDS)]."""
        late, early_rows, late_rows = self._stack.split(rows)
        found = np.zeros((len(rows), len(FIELDS)), np.int64)
        found[~late], found[late] = self.base.lengths(early_rows), self._delta.lengths(late_rows)
        return found

    def part(self, start: int, stop: int) -> tuple[Ids, Rows]:
        """All words of rows start..stop, and how many each field of them has."""
        rows = np.arange(start, stop)
        return self.select_rows(FIELDS, rows)[0], self.lengths(rows).ravel()

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        """All words."""
        return self._joined().ids

    @property
    def offsets(self) -> Rows:  # type: ignore[override]
        """Where each field of each row begins."""
        return self._joined().offsets

    def _joined(self) -> WordTable:
        if self._flat is None:
            rows = np.arange(len(self))
            ids, _ = self.select_rows(FIELDS, rows)
            offsets = np.zeros(len(rows) * len(FIELDS) + 1, np.int64)
            np.cumsum(self.lengths(rows).ravel(), out=offsets[1:])
            self._flat = WordTable(self.vocabulary, ids, offsets)
        return self._flat


def woven(late: NDArray[np.bool_], early: tuple[Ids, Rows], other: tuple[Ids, Rows]) -> tuple[Ids, Rows]:
    """Two lists of lists, as values and offsets, as one: where `late` says so the next of the other."""
    lengths = np.zeros(len(late), np.int64)
    lengths[~late], lengths[late] = np.diff(early[1]), np.diff(other[1])
    offsets = np.zeros(len(late) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    found = np.zeros(offsets[-1], early[0].dtype)
    for which, (values, _) in ((~late, early), (late, other)):
        found[ranges(offsets[:-1][which], lengths[which])] = values
    return found, offsets
