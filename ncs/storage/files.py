"""The source files of a segment: location, stamp and digest of each, and which documents it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.arrays import load_arrays, save_arrays
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.sources import SourceFile

FOLDER = "files"
DIGEST_BYTES = 16
READ, BROKEN, FAILED = 0, 1, 2
TEXTS = ("repository", "path", "place", "stamp")
NUMBERS = ("digest", "bytes", "state", "rows", "copies", "began")


class FileEntry(NamedTuple):
    """One source file. digest: of its content. state: READ, BROKEN (syntax errors) or FAILED (unreadable)."""

    repository: str
    path: str
    place: str
    stamp: str
    digest: bytes
    bytes: int
    state: int = READ

    @classmethod
    def of(cls, file: SourceFile) -> FileEntry:
        """From a file that was read."""
        place, stamp = file.origin or ("", "")
        return cls(file.repository, file.path, place, stamp, digest_of(file.data), len(file.data))


def digest_of(data: bytes) -> bytes:
    """The digest of a file's content."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class FileTable:
    """The files of an index in the order they were read.

    rows, copies: int64 [n + 1]; file i has the documents rows[i]..rows[i + 1] and the copies copies[i]..copies[i + 1]
    of documents in earlier files. On disk in `<folder>/files/`.
    """

    entries: Sequence[FileEntry]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]
    began: int = 0
    """When reading began, in nanoseconds since 1970: a stamp from just before it may hide a later change."""

    def __len__(self) -> int:
        """How many files."""
        return len(self.entries)

    def save(self, folder: Path) -> None:
        """Write `<folder>/files/`; texts as JSON strings, since a path may contain a line break."""
        columns = {name: [json.dumps(getattr(entry, name)) for entry in self.entries] for name in TEXTS}
        texts = Vocabulary.of({text for column in columns.values() for text in column})
        number = {text: i for i, text in enumerate(texts)}
        arrays = {name: np.array([number[text] for text in column], np.int32) for name, column in columns.items()}
        digests = np.frombuffer(b"".join(entry.digest for entry in self.entries), np.uint8)
        save_arrays(
            folder / FOLDER,
            texts,
            {
                **arrays,
                "digest": digests.reshape(-1, DIGEST_BYTES),
                "bytes": np.array([entry.bytes for entry in self.entries], np.int64),
                "state": np.array([entry.state for entry in self.entries], np.uint8),
                "rows": self.rows,
                "copies": self.copies,
                "began": np.array([self.began], np.int64),
            },
        )

    @staticmethod
    def load(folder: Path) -> FileTable | None:
        """Load from a segment; None if it was built from documents, not files. Raises IndexDamaged."""
        folder = folder / FOLDER
        if not folder.is_dir():
            return None
        texts, arrays = load_arrays(folder, (*TEXTS, *NUMBERS))
        entries = Entries(texts, arrays, folder)
        if not len(arrays[7]) == len(arrays[8]) == len(entries) + 1 or any(len(a) != len(entries) for a in arrays[:7]):
            raise IndexDamaged(f"the files in {folder} do not fit each other; build the index again")
        return FileTable(entries, np.asarray(arrays[7]), np.asarray(arrays[8]), int(arrays[9][0]))


class Entries(Sequence[FileEntry]):
    """File entries, read lazily: one at a time by index, all at once when iterated."""

    def __init__(self, texts: Vocabulary, columns: Sequence[NDArray[Any]], folder: Path) -> None:
        """columns: numbers of texts for each of TEXTS, then digest, bytes and state."""
        self._texts, self._columns, self._folder = texts, columns, folder
        self._all_texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, at: int) -> FileEntry: ...
    @overload
    def __getitem__(self, at: slice) -> list[FileEntry]: ...
    def __getitem__(self, at: int | slice) -> FileEntry | list[FileEntry]:
        if isinstance(at, slice):
            return list(self)[at]
        repository, path, place, stamp = (self.text(int(column[at])) for column in self._columns[: len(TEXTS)])
        digest, size, state = self._columns[4][at], self._columns[5][at], self._columns[6][at]
        return FileEntry(repository, path, place, stamp, digest.tobytes(), int(size), int(state))

    def text(self, number: int) -> str:
        """One of the texts."""
        return str(self._all_texts[number] if self._all_texts is not None else self._read(self._texts.word(number)))

    def _read(self, line: str) -> Any:
        if line[:1] == line[-1:] == '"' and "\\" not in line:  # a plain string needs no JSON parser
            return line[1:-1]
        try:
            return json.loads(line)
        except ValueError as error:
            raise IndexDamaged(f"cannot read {self._folder} ({error}); build the index again") from error

    def __iter__(self) -> Iterator[FileEntry]:
        if self._all_texts is None:
            self._all_texts = self._read(f"[{','.join(self._texts)}]")
        texts = self._all_texts
        try:
            columns = [[texts[i] for i in column.tolist()] for column in self._columns[: len(TEXTS)]]
        except IndexError as error:
            raise IndexDamaged(f"cannot read {self._folder} ({error}); build the index again") from error
        digests = np.ascontiguousarray(self._columns[4]).tobytes()
        parts = [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
        numbers = (self._columns[5].tolist(), self._columns[6].tolist())
        return (FileEntry(*each) for each in zip(*columns, parts, *numbers, strict=True))


class FileTableBuilder:
    """Collects files in order, with the number of documents and copies in each."""

    def __init__(self) -> None:
        self._entries: list[FileEntry] = []
        self._counts: list[NDArray[np.int64]] = []

    def add(self, entries: Iterable[FileEntry], owners: NDArray[np.int64], unique: NDArray[np.bool_]) -> None:
        """The next files; owners [n]: the file of each document; unique [n]: False for copies."""
        entries = list(entries)
        self._entries += entries
        size = len(entries)
        counts = [np.bincount(owners[which], minlength=size) for which in (unique, ~unique)]
        self._counts.append(np.array(counts, np.int64).reshape(2, size))

    def finish(self, began: int = 0) -> FileTable:
        """The table; began: when reading began, in nanoseconds since 1970."""
        counts = np.concatenate(self._counts, axis=1) if self._counts else np.zeros((2, 0), np.int64)
        offsets = np.zeros((2, counts.shape[1] + 1), np.int64)
        np.cumsum(counts, axis=1, out=offsets[:, 1:])
        return FileTable(self._entries, offsets[0], offsets[1], began)
