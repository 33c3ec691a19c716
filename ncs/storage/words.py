"""The words of each field of each document, as arrays of word ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ncs.storage.read_ahead import ReadAhead
from ncs.storage.snapshot import load_array
from ncs.text.stems import Stems
from ncs.text.vocabulary import Vocabulary, merge
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot

IDS, OFFSETS = "words.ids.npy", "words.offsets.npy"
SPILL_WORDS = 1 << 20
"""Words counted or renumbered at a time."""
FEW = 5_000
"""Up to this many rows are prefetched: the candidates of a query, not a scan."""


class WordTable:
    """Documents x fields -> word ids, in document order, as one flat array and its offsets.

    ids: int32 [n_words]; offsets: int64 [n_documents * len(FIELDS) + 1], fields in the order of FIELDS.
    On disk: `words.ids.npy` and `words.offsets.npy`, memory-mapped when loaded.
    work_folder: where a build may write temporary files; None: keep everything in memory.
    """

    work_folder: Path | None = None

    def __init__(self, vocabulary: Vocabulary, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        self.vocabulary = vocabulary
        self.ids = ids
        self.offsets = offsets
        self._pages: tuple[ReadAhead, ReadAhead] | None = None

    def __len__(self) -> int:
        """How many documents."""
        return (len(self.offsets) - 1) // len(FIELDS)

    def ids_of(self, row: int, field: Field) -> NDArray[np.int32]:
        """Word ids of one field of one document, in source order."""
        at = row * len(FIELDS) + FIELDS.index(field)
        return self.ids[self.offsets[at] : self.offsets[at + 1]]

    def select(
        self, fields: Sequence[Field], start: int = 0, stop: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The words of these fields joined per document, in the order given, for rows start..stop.

        Returns ids int32 [m] and offsets int64 [stop - start + 1].
        """
        stop = len(self) if stop is None else stop
        bounds = self.offsets[start * len(FIELDS) : stop * len(FIELDS) + 1]
        begins = bounds[:-1].reshape(-1, len(FIELDS))
        lengths = np.diff(bounds).reshape(-1, len(FIELDS))
        columns = [FIELDS.index(field) for field in fields]
        begins, lengths = begins[:, columns], lengths[:, columns]
        offsets = np.zeros(stop - start + 1, np.int64)
        np.cumsum(lengths.sum(axis=1), out=offsets[1:])
        return self.ids[ranges(begins.ravel(), lengths.ravel())], offsets

    def select_rows(
        self, fields: Sequence[Field], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """`select` for some rows in any order: ids int32 [m] and offsets int64 [len(rows) + 1]."""
        if len(rows) <= FEW:
            self._read_ahead(rows)
        at = rows[:, None] * len(FIELDS) + [FIELDS.index(field) for field in fields]
        begins, lengths = self.offsets[at], self.offsets[at + 1] - self.offsets[at]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths.sum(axis=1), out=offsets[1:])
        return self.ids[ranges(begins.ravel(), lengths.ravel())], offsets

    def _read_ahead(self, rows: NDArray[np.int64]) -> None:
        """Prefetch the pages of these rows."""
        offsets, ids = self._pages = self._pages or (ReadAhead(self.offsets), ReadAhead(self.ids))
        if len(rows) and offsets.mapped:
            first = rows * len(FIELDS)
            offsets.prefetch(first, first + len(FIELDS) + 1)
            ids.prefetch(np.asarray(self.offsets[first]), np.asarray(self.offsets[first + len(FIELDS)]))

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of words of each field of these rows, [len(rows), len(FIELDS)]."""
        at = rows[:, None] * len(FIELDS) + np.arange(len(FIELDS))
        counts: NDArray[np.int64] = self.offsets[at + 1] - self.offsets[at]
        return counts

    def slice_ids(self, start: int, stop: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Word ids of rows start..stop, and the number of words per field, [(stop - start) * len(FIELDS)]."""
        bounds = self.offsets[start * len(FIELDS) : stop * len(FIELDS) + 1]
        return self.ids[bounds[0] : bounds[-1]], np.diff(bounds)

    def slice(self, start: int, stop: int) -> WordTable:
        """The table of rows start..stop."""
        ids, lengths = self.slice_ids(start, stop)
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return WordTable(self.vocabulary, ids, offsets)

    def save(self, folder: Path) -> None:
        """Write the vocabulary and both arrays."""
        self.vocabulary.save(folder)
        np.save(folder / IDS, self.ids)
        np.save(folder / OFFSETS, self.offsets)

    @staticmethod
    def load(folder: Path) -> WordTable:
        """Load from a segment, memory-mapped."""
        ids, offsets = load_array(folder / IDS), load_array(folder / OFFSETS)
        return WordTable(Vocabulary.load(folder), ids, offsets)

    def renumbered(self, vocabulary: Vocabulary) -> WordTable:
        """The same documents in another vocabulary, without words that are not in it."""
        ids = vocabulary.ids_of(list(self.vocabulary))[self.ids]
        offsets_of_known = np.concatenate([[0], np.cumsum(ids >= 0)])
        return WordTable(vocabulary, ids[ids >= 0], offsets_of_known[self.offsets])


class WordReader(Protocol):
    """What a query reads from a WordTable or from Words."""

    vocabulary: Vocabulary

    def select_rows(
        self, fields: Sequence[Field], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]: ...

    def ids_of(self, row: int, field: Field) -> NDArray[np.int32]: ...


class Words:
    """The words of all segments, in ids of one vocabulary.

    vocabulary: of the first segment, extended with the words of later ones.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables = [WordTable.load(segment.path) for segment in snapshot.segments]
        first, *others = (table.vocabulary for table in self._tables)
        self.vocabulary, self._ids = merge(first, others)
        self.stems = Stems(self.vocabulary)

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return len(self._snapshot)

    def table(self) -> WordTable | None:
        """The table of an index of one segment without tombstones; None after updates."""
        return self._tables[0] if len(self._tables) == 1 and self._snapshot.live is None else None

    def ids_of(self, row: int, field: Field) -> NDArray[np.int32]:
        """Word ids of one field of one document, in source order."""
        return self.select_rows((field,), np.array([row]))[0]

    def select_rows(
        self, fields: Sequence[Field], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The words of these fields of some rows, joined by row in their order: ids [m], offsets [len(rows) + 1]."""
        if len(self._tables) == 1:
            return self._tables[0].select_rows(fields, rows)
        parts = []
        for number, at, local in self._snapshot.split(rows):
            ids, offsets = self._tables[number].select_rows(fields, local)
            parts.append((at, ids if number == 0 else self._ids[number - 1][ids], np.diff(offsets)))
        return scatter(len(rows), parts)

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of words of each field of these rows, [len(rows), len(FIELDS)]."""
        lengths = np.zeros((len(rows), len(FIELDS)), np.int64)
        for number, at, local in self._snapshot.split(rows):
            lengths[at] = self._tables[number].lengths(local)
        return lengths


Arrays = Sequence["NDArray[Any]"]
Part = tuple["NDArray[np.int64]", "NDArray[np.int32]", "NDArray[np.int64]"]


def scatter(n: int, parts: Sequence[Part]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Merge parts (row positions, values joined, number of values per row) of n rows: values, offsets [n + 1]."""
    lengths = np.zeros(n, np.int64)
    for at, _, counts in parts:
        lengths[at] = counts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.zeros(offsets[-1], np.int32)
    for at, part, counts in parts:
        values[ranges(offsets[at], counts)] = part
    return values, offsets


def ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin, begin+1, ... for every range, joined: [0, 7], [2, 1] -> 0 1 7."""
    ends = np.cumsum(lengths)
    positions: NDArray[np.int64] = np.arange(int(ends[-1]) if len(ends) else 0)
    positions += np.repeat(begins - (ends - lengths), lengths)
    return positions
