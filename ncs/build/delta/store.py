"""The documents of a base and its delta as one store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.build.delta.rows import GONE, Stack
from ncs.errors import IndexDamaged
from ncs.storage.filters import Matcher
from ncs.storage.packing import Packed
from ncs.storage.documents import NAME, Heading, Store, document_of, id_of
from ncs.types import Document, Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask

    Rows = NDArray[np.int64]

COPIES, FILES, COUNTS = "copies.npy", "store_files.npy", "counts.json"
"""int32 [m, 2]: of every copy the row, and where it stands: a number of the base's documents, from there on of the
base's copies, then of the delta's documents. int32 [files]: the number of each file in the base's store, or ~ of it in
the delta's. What `Store.counts` gives."""
PART = 2_000


class StackedStore(Store):
    """Rows as they are numbered in the whole index."""

    def __init__(self, data: Path, room: Path) -> None:
        """data: of the base; room: of the delta. Raises IndexDamaged."""
        self.path = room / NAME
        self._base = Store(data / NAME)
        try:
            self._delta = Store(room / NAME)
            self._stack = Stack.load(room, len(self._base), len(self._delta))
            self._copies, self._files = (np.load(room / name, allow_pickle=False) for name in (COPIES, FILES))
            self._counts: dict[str, Any] = json.loads((room / COUNTS).read_bytes())
        except (OSError, ValueError, EOFError) as error:
            self._base.close()
            raise IndexDamaged(f"cannot read {room} ({error}); build the index again") from error
        self._by_row = np.argsort(self._copies[:, 0], kind="stable")
        self._copied = self._copies[self._by_row, 0]

    def __len__(self) -> int:
        """How many documents."""
        return len(self._stack)

    def close(self) -> None:
        """Let go of the files."""
        self._base.close()
        self._delta.close()

    @property
    def counts(self) -> Mapping[str, Any]:
        """repositories, languages, kinds: documents a name; copies: how many."""
        return self._counts

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Whole documents with words, code and copies, in the order asked for."""
        at = [self._copies_of(row) for row in rows]
        places = self._places(np.concatenate([*at, np.zeros(0, np.int64)]))
        return [
            document_of(told, [places[source] for source in self._copies[own, 1].tolist()])
            for told, own in zip(self._told(rows), at, strict=True)
        ]

    def _copies_of(self, row: int) -> Rows:
        first, last = np.searchsorted(self._copied, [row, row + 1])
        return self._by_row[first:last]

    def _told(self, rows: Sequence[int]) -> list[Any]:
        return self._gathered(rows, Store.described)

    def _gathered(self, rows: Sequence[int], ask: Callable[[Store, Sequence[int]], Mapping[int, Any]]) -> list[Any]:
        """What both stores tell of their rows, in the order asked for."""
        try:
            late, early, others = self._stack.split(np.array(list(rows), np.int64))
            parts = [(store, numbers.tolist()) for store, numbers in ((self._base, early), (self._delta, others))]
            told = [iter([found[n] for n in own]) for store, own in parts for found in [ask(store, own) if own else {}]]
        except (KeyError, IndexError) as error:
            raise IndexDamaged(f"{self.path} has no row {error}; build the index again with: ncs build") from None
        return [next(told[is_late]) for is_late in late.tolist()]

    def _places(self, copies: Rows) -> dict[int, Location]:
        """Where copies stand, by their sources."""
        sources = np.unique(self._copies[copies, 1]).astype(np.int64)
        documents, copied = len(self._base), len(self._base.column("copy_row"))
        of = [sources[sources < documents], sources[sources >= documents + copied]]
        among = sources[(sources >= documents) & (sources < documents + copied)]
        found: dict[int, Location] = {}
        for store, numbers, first in ((self._base, of[0], 0), (self._delta, of[1], documents + copied)):
            own = (numbers - first).tolist()
            found |= dict(zip(numbers.tolist(), store.locations(own), strict=True)) if own else {}
        at = self._base.copies_at((among - documents).tolist()) if len(among) else {}
        return found | {number + documents: place for number, place in at.items()}

    def locations(self, rows: Sequence[int]) -> list[Location]:
        """Where documents stand, in the order asked for."""
        return self._gathered(rows, lambda store, own: dict(zip(own, store.locations(own), strict=True)))

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Ids of rows, in the order asked for."""
        return self._gathered(rows, lambda store, own: dict(zip(own, store.ids(own), strict=True)))

    def headings(self, rows: Sequence[int]) -> list[Heading]:
        """All that `packed` tells of rows but their contents, in the order asked for."""
        return self._gathered(rows, lambda store, own: dict(zip(own, store.headings(own), strict=True)))

    def packed(self, start: int, stop: int) -> list[Packed]:
        """The rows start..stop as `pack` made them."""
        return [_packed(told) for told in self._told(range(start, stop))]

    def copies(self, start: int, stop: int) -> list[tuple[bytes, Location]]:
        """The copies start..stop in the order they were found: the digest of what it is a copy of, and where it is."""
        part = self._copies[start:stop]
        places = self._places(np.arange(start, stop))
        told = dict(zip(part[:, 0].tolist(), self._told(part[:, 0].tolist()), strict=True))
        return [(told[row][10], places[source]) for row, source in part.tolist()]

    def copied_rows(self) -> NDArray[np.int32]:
        """The row of which each copy is one, in the order of `copies`."""
        return np.ascontiguousarray(self._copies[:, 0])

    def files(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The number of each row's file, and (repository, path) of each number."""
        (early, places), (late, others) = self._base.files(), self._delta.files()
        number = np.full(len(places) + len(others), -1, np.int32)
        own = np.where(self._files >= 0, self._files, len(places) + ~self._files)
        number[own] = np.arange(len(own))
        file = number[np.concatenate([early, late + np.int32(len(places))])]
        both = [*places, *others]
        return file[self._stack.held], [both[at] for at in own.tolist()]

    def names(self) -> Iterator[tuple[str, str, str]]:
        """(name, qualified name, kind) of every row, in order."""
        for start in range(0, len(self), PART):
            yield from self._gathered(range(start, min(start + PART, len(self))), Store.named)

    def labelled(self, column: str, wanted: Callable[[str], bool]) -> Mask:
        """Which rows have a label, of "language" or "kind", that is wanted, bool [n]."""
        return self._joined(self._base.labelled(column, wanted), self._delta.labelled(column, wanted))

    def tallied(self, column: str, rows: Mask) -> Counter[str]:
        """How many of some rows have each label of "language" or "kind"."""
        held = np.zeros(len(self._stack.row), np.bool_)
        held[self._stack.held] = rows
        base = self._stack.base
        return self._base.tallied(column, held[:base]) + self._delta.tallied(column, held[base:])

    def _joined(self, early: Mask, late: Mask) -> Mask:
        found: Mask = np.concatenate([early, late])[self._stack.held]
        return found

    def rows_of(self, id: str) -> list[int]:
        """The rows of what is called so."""
        held = [*self._base.rows_of(id), *(row + self._stack.base for row in self._delta.rows_of(id))]
        return [row for row in self._stack.row[held].tolist() if row != GONE]

    def _standing(self, in_repository: Matcher, in_path: Matcher) -> Mask:
        early, late = (each.files_matching(in_repository, in_path) for each in (self._base, self._delta))
        base, delta = np.isin(self._base.column("file"), early), np.isin(self._delta.column("file"), late)
        sources = np.concatenate([base, np.isin(self._base.column("copy_file"), early), delta])
        mask = self._joined(base, delta)
        mask[self._copies[sources[self._copies[:, 1]], 0]] = True
        return mask


def _packed(told: Sequence[Any]) -> Packed:
    _, id, repository, path, start, end, qualified_name, language, kind, name, digest, body = told
    place = Location(repository, path, start, end, qualified_name)
    return id_of(id, place), repository, path, start, end, language, kind, name, qualified_name, digest, body
