"""The names each document uses: called functions, types and constants, as spelled; read by the consensus signal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.arrays import load_arrays, save_arrays
from ncs.storage.words import ranges, scatter
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.text.vocabulary import Vocabulary, merge
from ncs.types import Document, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot

    BatchUses = tuple[Sequence[str], NDArray[np.int32], NDArray[np.int32]]

USED: tuple[Field, ...] = ("calls", "types", "enums")
LONGEST = 80  # characters; longer names are generated
FOLDER = "uses"
SORTED = 100_000
"""Documents whose names are sorted at a time."""


@dataclass(frozen=True, slots=True)
class NameUses:
    """The distinct names of each document: ids int32 [n_uses] and offsets int64 [n_documents + 1] into `names`;
    documents int32 [len(names)]: how many use each. On disk in `<segment>/uses/`, memory-mapped when loaded.
    """

    names: Vocabulary
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]

    def __len__(self) -> int:
        """How many documents."""
        return len(self.offsets) - 1

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The names used by these rows, joined: ids [m], and how many each row uses [len(rows)]."""
        begins, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        return self.ids[ranges(begins, lengths)], lengths

    def save(self, folder: Path) -> None:
        """Write `<folder>/uses/`."""
        save_arrays(folder / FOLDER, self.names, {name: getattr(self, name) for name in FILES})

    @staticmethod
    def load(folder: Path) -> NameUses:
        """Load from a segment; raises IndexDamaged if files are missing or inconsistent."""
        names, (ids, offsets, documents) = load_arrays(folder / FOLDER, FILES)
        uses = NameUses(names, ids, offsets, documents)
        if len(uses.documents) != len(uses.names) or len(uses.ids) != uses.offsets[-1]:
            raise IndexDamaged(f"the files in {folder / FOLDER} do not fit each other; build the index again")
        return uses


class Uses:
    """The names that the documents of a snapshot use, in ids of one vocabulary.

    names: those of the first segment, extended. documents: int32 [len(names)], how many documents use each,
    counted in the first segment that has the name.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._parts = [NameUses.load(segment.path) for segment in snapshot.segments]
        first, *others = self._parts
        self.names, self._ids = merge(first.names, [part.names for part in others])
        self.documents = first.documents
        if others:
            self.documents = np.concatenate([first.documents, np.zeros(len(self.names) - len(first.names), np.int32)])
            for part, ids in zip(others, self._ids, strict=True):
                new = ids >= len(first.names)
                self.documents[ids[new]] = np.maximum(self.documents[ids[new]], part.documents[new])

    def __len__(self) -> int:
        """Number of documents in the first segment, where `documents` was counted."""
        return len(self._parts[0])

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The names used by these rows, joined: ids [m], and how many each row uses [len(rows)]."""
        if len(self._parts) == 1:
            return self._parts[0].of(rows)
        parts = []
        for number, at, local in self._snapshot.split(rows):
            ids, counts = self._parts[number].of(local)
            parts.append((at, ids if number == 0 else self._ids[number - 1][ids], counts))
        ids, offsets = scatter(len(rows), parts)
        return ids, np.diff(offsets)


FILES = ("ids", "offsets", "documents")


class UsesBuilder:
    """Collects batches of documents' names, as `WordTableBuilder` collects their words."""

    def __init__(self) -> None:
        self._builder = WordTableBuilder()

    def add(self, names: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> None:
        """One batch: its distinct names, ids into them, and how many each document uses."""
        self._builder.add(names, ids, lengths)

    def finish(self) -> NameUses:
        """The table, with names in byte order and ids ascending in each document."""
        table = self._builder.finish()
        ids, offsets = table.ids, table.offsets
        for start in range(0, len(offsets) - 1, SORTED):
            stop = min(start + SORTED, len(offsets) - 1)
            owners = np.repeat(np.arange(stop - start), np.diff(offsets[start : stop + 1]))
            here = ids[offsets[start] : offsets[stop]]
            here[:] = here[np.lexsort((here, owners))]
        documents = np.bincount(ids, minlength=len(table.vocabulary)).astype(np.int32)
        return NameUses(table.vocabulary, ids, offsets, documents)


def batch_uses(documents: Iterable[Document]) -> BatchUses:
    """Each document's distinct names, as `UsesBuilder.add` takes them."""
    return batch_words([[_names(document)] for document in documents])


def _names(document: Document) -> list[str]:
    distinct_names: dict[str, None] = {}
    for field in USED:
        distinct_names.update(dict.fromkeys(document.words.get(field, ())))
    return [name for name in distinct_names if len(name) <= LONGEST]
