"""The builder of word tables, from batches of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.words import IDS, OFFSETS, SPILL_WORDS, WordTable
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPILLED = "words.ids.part"


class WordTableBuilder:
    """Collects batches of documents' words, each distinct word once in memory.

    Word ids are in memory, four bytes each, or in temporary files of a folder, into which the table is then saved.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._numbers: dict[str, int] = {}
        self._folder = folder
        self._spill = None if folder is None else (folder / SPILLED).open("w+b")
        self._ids: list[NDArray[np.int32]] = []
        self._lengths: list[NDArray[np.uint16 | np.int32]] = []

    def add(self, words: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> None:
        """One batch: its distinct words, ids into them, and the length of each (document, field)."""
        numbers = self._numbers
        local = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words), np.int32, len(words))
        if self._spill is None:
            self._ids.append(local[ids])
        else:
            self._spill.write(local[ids].data)
        longest = int(lengths.max()) if len(lengths) else 0
        self._lengths.append(np.asarray(lengths, np.uint16 if longest < 1 << 16 else np.int32))

    def finish(self) -> WordTable:
        """The table, its vocabulary in byte order; with a folder, memory-mapped."""
        vocabulary = Vocabulary.of(self._numbers)
        renumber = np.empty(len(self._numbers), np.int32)
        by_bytes = sorted(self._numbers, key=str.encode)
        renumber[np.fromiter((self._numbers[w] for w in by_bytes), np.int64, len(by_bytes))] = np.arange(len(by_bytes))
        self._numbers = {}
        offsets = self._offsets()
        if self._folder is None:
            ids = np.concatenate(self._ids) if self._ids else np.zeros(0, np.int32)
            return WordTable(vocabulary, renumber[ids], offsets)
        self._write_ids(renumber, self._folder / IDS, int(offsets[-1]))
        vocabulary.save(self._folder)
        table = WordTable.load(self._folder)
        table.work_folder = self._folder
        return table

    def _offsets(self) -> NDArray[np.int64]:
        """The cumulated lengths; with a folder, in its file."""
        size = sum(map(len, self._lengths)) + 1
        if self._folder is None:
            offsets = np.zeros(size, np.int64)
        else:
            offsets = np.lib.format.open_memmap(self._folder / OFFSETS, "w+", np.int64, (size,))
        at = 0
        for lengths in self._lengths:
            np.cumsum(lengths, dtype=np.int64, out=offsets[at + 1 : at + len(lengths) + 1])
            offsets[at + 1 : at + len(lengths) + 1] += offsets[at]
            at += len(lengths)
        self._lengths = []
        return offsets

    def _write_ids(self, renumber: NDArray[np.int32], path: Path, total: int) -> None:
        """Write the spilled ids, renumbered, as one array."""
        header = {"descr": np.dtype(np.int32).str, "fortran_order": False, "shape": (total,)}
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for ids in self._spilled_ids():
                file.write(renumber[ids].data)

    def _spilled_ids(self) -> Iterator[NDArray[np.int32]]:
        spill = self._spill
        if spill is not None:
            spill.seek(0)
            while piece := spill.read(4 * SPILL_WORDS):
                yield np.frombuffer(piece, np.int32)
        self.close()

    def close(self) -> None:
        """Remove the spill file."""
        if self._spill is not None and self._folder is not None:
            self._spill.close()
            (self._folder / SPILLED).unlink(missing_ok=True)


def batch_words(
    documents: Iterable[Sequence[Sequence[str]]],
) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """Token lists [document][field in FIELDS] as what `WordTableBuilder.add` takes."""
    numbers: dict[str, int] = {}
    ids: list[int] = []
    lengths: list[int] = []
    for fields in documents:
        for tokens in fields:
            ids += [numbers.setdefault(token, len(numbers)) for token in tokens]
            lengths.append(len(tokens))
    return list(numbers), np.array(ids, np.int32), np.array(lengths, np.int32)
