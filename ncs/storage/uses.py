"""Which names each document uses: called functions, types and constants, as spelled. What consensus counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta import room_of
from ncs.errors import IndexDamaged
from ncs.storage.arrays import load_arrays, save_arrays
from ncs.storage.words import ranges
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.text.vocabulary import Vocabulary
from ncs.types import Document, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    BatchReferences = tuple[Sequence[str], NDArray[np.int32], NDArray[np.int32]]

USED: tuple[Field, ...] = ("calls", "types", "enums")
LONGEST = 80  # characters; longer names are generated
ROOM = "references"
SORTED = 100_000
"""Documents whose names are put in order at a time."""


@dataclass(frozen=True, slots=True)
class References:
    """Distinct names by document: ids int32 [n_uses] and offsets int64 [n_documents + 1] into `names`;
    documents int32 [len(names)]: how many use each. On disk in `<folder>/references/`, memory-mapped when loaded.
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

    def documents_with(self, names: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many documents use each of these names."""
        return self.documents[names]

    def save(self, folder: Path) -> None:
        """Write `<folder>/references/`."""
        save_arrays(folder / ROOM, self.names, {name: getattr(self, name) for name in FILES})

    @classmethod
    def load(cls, folder: Path) -> References:
        """Of an index: with what came since it was built (ncs.build.delta)."""
        if room := room_of(folder):
            from ncs.build.delta.uses import StackedReferences

            return StackedReferences.of_rooms(folder, room)
        return cls.of_folder(folder)

    @staticmethod
    def of_folder(folder: Path) -> References:
        """Raises IndexDamaged where files are missing or do not fit each other."""
        room = folder / ROOM
        names, (ids, offsets, documents) = load_arrays(room, FILES)
        found = References(names, ids, offsets, documents)
        if len(found.documents) != len(found.names) or len(found.ids) != found.offsets[-1]:
            raise IndexDamaged(f"the files in {room} do not fit each other; build the index again")
        return found


FILES = ("ids", "offsets", "documents")


class ReferencesBuilder:
    """Collects batches of documents' names, as `WordTableBuilder` collects their words."""

    def __init__(self) -> None:
        self._builder = WordTableBuilder()

    def add(self, names: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> None:
        """One batch: its distinct names, ids into them, and how many each document uses."""
        self._builder.add(names, ids, lengths)

    def finish(self) -> References:
        """Everything, names in byte order, ids ascending in each document."""
        table = self._builder.finish()
        ids, offsets = table.ids, table.offsets
        for start in range(0, len(offsets) - 1, SORTED):
            stop = min(start + SORTED, len(offsets) - 1)
            owners = np.repeat(np.arange(stop - start), np.diff(offsets[start : stop + 1]))
            here = ids[offsets[start] : offsets[stop]]
            here[:] = here[np.lexsort((here, owners))]
        documents = np.bincount(ids, minlength=len(table.vocabulary)).astype(np.int32)
        return References(table.vocabulary, ids, offsets, documents)


def batch_references(documents: Iterable[Document]) -> BatchReferences:
    """Each document's distinct names, as `ReferencesBuilder.add` takes them."""
    return batch_words([[_names(document)] for document in documents])


def _names(document: Document) -> list[str]:
    found: dict[str, None] = {}
    for field in USED:
        found.update(dict.fromkeys(document.words.get(field, ())))
    return [name for name in found if len(name) <= LONGEST]
