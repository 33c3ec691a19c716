"""The words of each field of each document, as arrays of word ids."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from ncs.files import reserve, save_array
from ncs.storage.arrays import are_below, are_offsets, gather, gather_several, load_array, offsets_of, values_in
from ncs.text.spelling import WordList
from ncs.text.stems import Stems
from ncs.text.vocabulary import Vocabulary, merge
from ncs.types import FIELDS, Field, Ids, Mask, Rows

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot

BatchWords = tuple[Sequence[str], Ids, Ids]
"""Documents as `WordTableBuilder.add` takes them."""

IDS, OFFSETS = "words.ids.npy", "words.offsets.npy"
CHUNK = 1 << 20
"""Words renumbered at a time."""


class WordTable:
    """Documents x fields -> word ids, in document order.

    ids: int32 [n_words]; offsets: int64 [n_documents * len(FIELDS) + 1], fields in the order of FIELDS.
    work_folder: for temporary files of a build; None: anywhere. sections: mask of the documents that are prose, from
    which statistics and embeddings do not learn; None: none.
    """

    work_folder: Path | None = None
    sections: Mask | None = None

    def __init__(self, vocabulary: Vocabulary, ids: Ids, offsets: Rows) -> None:
        self.vocabulary, self.ids, self.offsets = vocabulary, ids, offsets

    def __len__(self) -> int:
        """The number of documents."""
        return (len(self.offsets) - 1) // len(FIELDS)

    def ids_of(self, row: int, field: Field) -> Ids:
        """Word ids of one field of one document, in source order."""
        return self.select_rows((field,), np.array([row]))[0]

    def select(self, fields: Sequence[Field], start: int = 0, stop: int | None = None) -> tuple[Ids, Rows]:
        """`select_rows` for rows start..stop."""
        return self.select_rows(fields, np.arange(start, len(self) if stop is None else stop))

    def select_rows(self, fields: Sequence[Field], rows: Rows) -> tuple[Ids, Rows]:
        """The words of these fields of some rows, joined: ids [m] and offsets [len(rows) + 1]."""
        at = rows[:, None] * len(FIELDS) + [FIELDS.index(field) for field in fields]
        begins = self.offsets[at]
        lengths = self.offsets[at + 1] - begins
        return values_in(self.ids, begins.ravel(), lengths.ravel()), offsets_of(lengths.sum(axis=1))

    def lengths(self, rows: Rows) -> Rows:
        """The number of words of each field of these rows, [len(rows), len(FIELDS)]."""
        at = rows[:, None] * len(FIELDS) + np.arange(len(FIELDS))
        return np.asarray(self.offsets[at + 1] - self.offsets[at])

    def learned(self, start: int, stop: int) -> Rows:
        """The rows of start..stop from which statistics and embeddings are learned."""
        rows = np.arange(start, stop)
        return rows if self.sections is None else rows[~self.sections[start:stop]]

    def is_sound(self, documents: int) -> bool:
        """Whether all values are valid for this number of documents."""
        leads = are_offsets(self.offsets, len(self.ids)) and are_below(self.ids, len(self.vocabulary))
        return leads and len(self.offsets) == documents * len(FIELDS) + 1

    def save(self, folder: Path) -> None:
        """Write the vocabulary and both arrays."""
        self.vocabulary.save(folder)
        save_array(folder / IDS, self.ids)
        save_array(folder / OFFSETS, self.offsets)

    @staticmethod
    def load(folder: Path) -> WordTable:
        """Load from a segment, memory-mapped."""
        ids, offsets = load_array(folder / IDS, np.int32), load_array(folder / OFFSETS, np.int64)
        return WordTable(Vocabulary.load(folder), ids, offsets)

    def renumbered(self, vocabulary: Vocabulary) -> WordTable:
        """The same documents in another vocabulary, without words that are not in it."""
        ids = vocabulary.ids_of(list(self.vocabulary))[self.ids]
        return WordTable(vocabulary, ids[ids >= 0], offsets_of(ids >= 0)[self.offsets])


class Words:
    """The words of all segments, in ids of the first segment's vocabulary, extended with words of later ones."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables = [WordTable.load(segment.path) for segment in snapshot.segments]
        first, *others = (table.vocabulary for table in self._tables)
        self.vocabulary, self._ids = merge(first, others)
        self.stems = Stems(self.vocabulary)

    @cached_property
    def by_spelling(self) -> WordList:
        """The vocabulary, for lookups of similar words."""
        return WordList(sorted(self.vocabulary))

    def table(self) -> WordTable | None:
        """The table of an index of one segment without tombstones; None after updates."""
        return self._tables[0] if len(self._tables) == 1 and self._snapshot.live is None else None

    def ids_of(self, row: int, field: Field) -> Ids:
        """Word ids of one field of one document, in source order."""
        return self.select_rows((field,), np.array([row]))[0]

    def select_rows(self, fields: Sequence[Field], rows: Rows) -> tuple[Ids, Rows]:
        """`WordTable.select_rows`, over all segments."""

        def read(number: int, local: Rows) -> tuple[Ids, Rows]:
            ids, offsets = self._tables[number].select_rows(fields, local)
            return self._ids[number - 1][ids] if number else ids, np.diff(offsets)

        ids, lengths = gather_several(self._snapshot.firsts, rows, read)
        return ids, offsets_of(lengths)

    def lengths(self, rows: Rows) -> Rows:
        """The number of words of each field of these rows, [len(rows), len(FIELDS)]."""
        return gather(self._snapshot.firsts, rows, lambda number, local: self._tables[number].lengths(local))


WordReader: TypeAlias = "WordTable | Words"


class WordTableBuilder:
    """Collects batches of words; distinct words are in memory, ids in a temporary file. folder: of the table and the
    temporary file; None: the table is in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        from tempfile import TemporaryFile  # a query need not import it

        self._folder = folder
        self._numbers: dict[str, int] = {}
        self._ids: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115
        self._lengths: list[Ids] = []

    def add(self, words: Sequence[str], ids: Ids, lengths: Ids) -> None:
        """Add a batch: its distinct words, ids into them, and the length of each (document, field)."""
        numbers = self._numbers
        local = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words), np.int32, len(words))
        self._ids.write(local[ids].tobytes())
        self._lengths.append(lengths)

    def finish(self) -> WordTable:
        """The table, its vocabulary in byte order; with a folder, memory-mapped."""
        vocabulary, renumber = Vocabulary.numbered(self._numbers)
        self._numbers = {}
        lengths = np.concatenate([np.zeros(0, np.int32), *self._lengths])
        offsets = offsets_of(lengths)
        if self._folder is None:
            ids = np.zeros(offsets[-1], np.int32)
        else:
            ids = np.lib.format.open_memmap(self._folder / IDS, "w+", np.int32, (int(offsets[-1]),))
            with (self._folder / IDS).open("r+b") as file:
                reserve(file.fileno(), os.fstat(file.fileno()).st_size)
        self._ids.seek(0)
        for start in range(0, len(ids), CHUNK):
            ids[start : start + CHUNK] = renumber[np.frombuffer(self._ids.read(4 * CHUNK), np.int32)]
        self.close()
        if self._folder is None:
            return WordTable(vocabulary, ids, offsets)
        save_array(self._folder / OFFSETS, offsets)
        vocabulary.save(self._folder)
        table = WordTable.load(self._folder)
        table.work_folder = self._folder
        return table

    def close(self) -> None:
        """Remove the temporary file."""
        self._ids.close()


def batch_words(documents: Iterable[Sequence[Sequence[str]]]) -> BatchWords:
    """Token lists [document][field in FIELDS] as a batch."""
    numbers: dict[str, int] = {}
    ids: list[int] = []
    lengths: list[int] = []
    for fields in documents:
        for tokens in fields:
            ids += [numbers.setdefault(token, len(numbers)) for token in tokens]
            lengths.append(len(tokens))
    return list(numbers), np.array(ids, np.int32), np.array(lengths, np.int32)
