"""The words of a corpus, numbered in alphabetical order, and which of them stand in which document."""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.delta import room_of
from ncs.errors import IndexDamaged
from ncs.read_ahead import ReadAhead
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray


COUNTS = "words.counts.npy"
"""How often each word of the vocabulary stands in documents, int64."""
IDS, OFFSETS, SPILLED = "words.ids.npy", "words.offsets.npy", "words.ids.part"
SOUGHT = 500
"""Words up to which each is looked up in the file."""
SPILL_WORDS = 1 << 20
"""Words that are renumbered at a time."""
FEW = 5_000
"""Rows up to which they are a question's candidates, and not all there are."""


class Vocabulary:
    """Word <-> id. Ids follow the byte order of the words, so they never depend on the order of reading.

    On disk: `vocabulary.txt` (UTF-8, a word a line) and `vocabulary.npy` (where each line starts).
    A lookup is a binary search in the memory-mapped file, so loading costs nothing.
    """

    def __init__(self, text: bytes | mmap.mmap, starts: NDArray[np.int64]) -> None:
        self._text = text
        self._starts = starts

    @classmethod
    def of(cls, words: Iterable[str]) -> Vocabulary:
        """From distinct words in any order.

        >>> v = Vocabulary.of(["soft", "hide"])
        >>> len(v), v.id("hide"), v.id("nope"), v.word(1), list(v)
        (2, 0, None, 'soft', ['hide', 'soft'])
        """
        lines = sorted(word.encode() for word in words)
        starts = np.zeros(len(lines) + 1, np.int64)
        np.cumsum([len(line) + 1 for line in lines], out=starts[1:])
        return cls(b"".join(line + b"\n" for line in lines), starts)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        return iter(bytes(self._text[:]).decode().split("\n")[:-1])

    def __contains__(self, word: str) -> bool:
        return self.id(word) is not None

    def word(self, id: int) -> str:
        """The word of an id."""
        return bytes(self._text[self._starts[id] : self._starts[id + 1] - 1]).decode()

    def id(self, word: str) -> int | None:
        """The id of a word, None where it is unknown."""
        wanted = word.encode(errors="replace")
        low = self.first_from(wanted)
        found = low < len(self) and self._text[self._starts[low] : self._starts[low + 1] - 1] == wanted
        return low if found else None

    def ids_of(self, words: Collection[str]) -> NDArray[np.int32]:
        """The ids of some words, -1 for those that are unknown. Of many all words are read: looking in a list is
        quicker than in a file."""
        if len(words) < SOUGHT:
            return np.array([-1 if (id := self.id(word)) is None else id for word in words], np.int32)
        lines = bytes(self._text[:]).split(b"\n")
        lines.pop()
        sought = [word.encode(errors="replace") for word in words]
        at = [bisect_left(lines, word) for word in sought]
        return np.array(
            [i if i < len(lines) and lines[i] == w else -1 for i, w in zip(at, sought, strict=True)], np.int32
        )

    def first_from(self, word: str | bytes) -> int:
        """The id of the first word that does not come before this one."""
        wanted = word.encode(errors="replace") if isinstance(word, str) else word
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._text[self._starts[middle] : self._starts[middle + 1] - 1] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def starting(self, prefix: str) -> range:
        """The ids of all words with this prefix: they stand side by side.

        >>> v = Vocabulary.of(["hid", "hide", "hiding", "soft"])
        >>> v.starting("hid"), v.starting("x")
        (range(0, 3), range(4, 4))
        """
        start, end = prefix.encode(errors="replace"), prefix.encode(errors="replace") + b"\xff"
        return range(self.first_from(start), self.first_from(end))

    def save(self, folder: Path) -> None:
        """Write `vocabulary.txt` and `vocabulary.npy`."""
        (folder / "vocabulary.txt").write_bytes(bytes(self._text[:]))
        np.save(folder / "vocabulary.npy", self._starts)

    def is_gone(self, id: int) -> bool:
        """Whether no document has this word any more."""
        return False

    def size(self) -> int:
        """How many words documents have."""
        return len(self)

    def known(self) -> list[str]:
        """All words that documents have, in byte order."""
        return list(self)

    def ranks(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Numbers that are in the order of the words, [len(ids)]."""
        return ids.astype(np.float64)

    @classmethod
    def load(cls, folder: Path) -> Vocabulary:
        """Of an index: with the words that came since it was built (ncs.delta)."""
        if room := room_of(folder):
            from ncs.delta.words import StackedVocabulary

            return StackedVocabulary.load(folder, room)
        return cls.of_folder(folder)

    @staticmethod
    def of_folder(folder: Path) -> Vocabulary:
        """Memory-mapped; raises IndexDamaged where the two files disagree."""
        starts = np.asarray(np.load(folder / "vocabulary.npy", mmap_mode="r", allow_pickle=False))
        path = folder / "vocabulary.txt"
        if path.stat().st_size != starts[-1]:
            raise IndexDamaged(f"{path} does not fit vocabulary.npy; build the index again")
        if not starts[-1]:
            return Vocabulary(b"", starts)
        with path.open("rb") as file:
            return Vocabulary(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), starts)


class WordTable:
    """Documents x fields -> word ids, in document order, as one flat array and its offsets.

    ids: int32 [n_words]; offsets: int64 [n_documents * len(FIELDS) + 1], fields in the order of FIELDS.
    On disk: `words.ids.npy` and `words.offsets.npy`, memory-mapped when loaded.
    room: where a build may put what is too large for memory; None: nowhere.
    """

    room: Path | None = None

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
        """Have the pages of these rows read at once where they are not in memory."""
        offsets, ids = self._pages = self._pages or (ReadAhead(self.offsets), ReadAhead(self.ids))
        if len(rows) and offsets.mapped:
            first = rows * len(FIELDS)
            offsets.ask(first, first + len(FIELDS) + 1)
            ids.ask(np.asarray(self.offsets[first]), np.asarray(self.offsets[first + len(FIELDS)]))

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many words each field of these rows has, [len(rows), len(FIELDS)]."""
        at = rows[:, None] * len(FIELDS) + np.arange(len(FIELDS))
        found: NDArray[np.int64] = self.offsets[at + 1] - self.offsets[at]
        return found

    def part(self, start: int, stop: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All words of rows start..stop, and how many each field of them has, [(stop - start) * len(FIELDS)]."""
        bounds = self.offsets[start * len(FIELDS) : stop * len(FIELDS) + 1]
        return self.ids[bounds[0] : bounds[-1]], np.diff(bounds)

    def each(self, work: Work, starts: Iterable[int], size: int) -> Iterator[Arrays]:
        """What `work` makes of `size` documents from each of these rows on, in order; a cluster's table has it made."""
        for start in starts:
            yield work(self.stretch(start, min(start + size, len(self))))

    def total(self, work: Work, size: int) -> Arrays:
        """The sum of what `work` makes of all documents, `size` at a time; of whole numbers, as order may not count."""
        return reduce(added, self.each(work, range(0, max(1, len(self)), size), size))

    def close(self) -> None:
        """Let go of what a table of a cluster holds there."""

    def stretch(self, start: int, stop: int) -> WordTable:
        """The documents of rows start..stop alone."""
        return cut(*self.part(start, stop), self.vocabulary)

    def counts(self) -> NDArray[np.int64]:
        """How often each word of the vocabulary stands in documents."""
        found = np.zeros(len(self.vocabulary), np.int64)
        for start in range(0, len(self.ids), SPILL_WORDS):
            found += np.bincount(self.ids[start : start + SPILL_WORDS], minlength=len(found))
        return found

    def save(self, folder: Path) -> None:
        """Write the vocabulary and both arrays."""
        self.vocabulary.save(folder)
        np.save(folder / IDS, self.ids)
        np.save(folder / OFFSETS, self.offsets)

    @classmethod
    def load(cls, folder: Path) -> WordTable:
        """Of an index: with what came since it was built (ncs.delta)."""
        if room := room_of(folder):
            from ncs.delta.words import StackedWords

            return StackedWords.of_room(folder, room)
        return cls.of_folder(folder)

    @staticmethod
    def of_folder(folder: Path) -> WordTable:
        """Memory-mapped."""
        ids = np.asarray(np.load(folder / IDS, mmap_mode="r", allow_pickle=False))
        offsets = np.asarray(np.load(folder / OFFSETS, mmap_mode="r", allow_pickle=False))
        return WordTable(Vocabulary.of_folder(folder), ids, offsets)


def numbered(base: Vocabulary, own: Vocabulary) -> NDArray[np.int32]:
    """The number of each word of the second vocabulary in the first; of those that it has not, the next ones."""
    numbers = base.ids_of(list(own))
    new = np.flatnonzero(numbers < 0)
    numbers[new] = len(base) + np.arange(len(new))
    return numbers


Arrays = Sequence["NDArray[Any]"]
Work = Callable[[WordTable], Arrays]
"""What is made of some documents as if there were no others; to be sent elsewhere it must be of a module's top."""


def cut(ids: NDArray[np.int32], lengths: NDArray[np.integer[Any]], vocabulary: Vocabulary) -> WordTable:
    """A table of what `WordTable.part` gives."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return WordTable(vocabulary, ids, offsets)


def added(*found: Arrays) -> Arrays:
    """The sums of arrays that stand at the same place."""
    return [sum(arrays[1:], start=arrays[0]) for arrays in zip(*found, strict=True)]


def ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin, begin+1, ... for every range, joined: [0, 7], [2, 1] -> 0 1 7."""
    ends = np.cumsum(lengths)
    positions: NDArray[np.int64] = np.arange(int(ends[-1]) if len(ends) else 0)
    positions += np.repeat(begins - (ends - lengths), lengths)
    return positions


class WordTableBuilder:
    """Collects batches of documents' words, each distinct word once in memory.

    Ids of words lie in memory, four bytes each, or in files of a folder, in which the table is then saved.
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
        """The table, its vocabulary in byte order; of a folder, memory-mapped."""
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
        table = WordTable.of_folder(self._folder)
        table.room = self._folder
        return table

    def _offsets(self) -> NDArray[np.int64]:
        """Of the lengths, batch by batch: their sums are four times as long as they are; of a folder, in its file."""
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
        """What was put aside, renumbered, as one array on disk."""
        header = {"descr": np.dtype(np.int32).str, "fortran_order": False, "shape": (total,)}
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for ids in self._aside():
                file.write(renumber[ids].data)

    def _aside(self) -> Iterator[NDArray[np.int32]]:
        spill = self._spill
        if spill is not None:
            spill.seek(0)
            while piece := spill.read(4 * SPILL_WORDS):
                yield np.frombuffer(piece, np.int32)
        self.close()

    def close(self) -> None:
        """Remove what was put aside."""
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
