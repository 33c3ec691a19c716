"""The source files of a segment: location, stamp and digest of each, and which documents it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.arrays import ArrayTable, offsets_of
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.sources import SourceFile

FOLDER = "files"
DIGEST_BYTES = 16
READ, BROKEN, FAILED = 0, 1, 2


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
        """The entry of a file that was read."""
        place, stamp = file.origin or ("", "")
        return cls(file.repository, file.path, place, stamp, digest_of(file.data), len(file.data))


def digest_of(data: bytes) -> bytes:
    """The digest of a file's content."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class FileTable:
    """The files of an index in the order they were read.

    rows, copies: int64 [n + 1]; file i has the documents rows[i]..rows[i + 1] and the copies copies[i]..copies[i + 1]
    of documents in earlier files. On disk in `<segment>/files/`.
    """

    entries: Sequence[FileEntry]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]
    began: int = 0
    """When reading began, in nanoseconds since 1970: a stamp from just before it may hide a later change."""

    def __len__(self) -> int:
        """The number of files."""
        return len(self.entries)

    def save(self, folder: Path) -> None:
        """Write `<folder>/files/`."""
        texts: dict[str, int] = {}
        numbers = [texts.setdefault(json.dumps(text), len(texts)) for entry in self.entries for text in entry[:4]]
        vocabulary, ids = Vocabulary.numbered(texts)
        repository, path, place, stamp = ids[np.array(numbers, np.int64)].reshape(-1, 4).T
        FileColumns(
            vocabulary,
            repository,
            path,
            place,
            stamp,
            np.frombuffer(b"".join(entry.digest for entry in self.entries), np.uint8).reshape(-1, DIGEST_BYTES),
            np.array([entry.bytes for entry in self.entries], np.int64),
            np.array([entry.state for entry in self.entries], np.uint8),
            self.rows,
            self.copies,
            np.array([self.began], np.int64),
        ).save(folder / FOLDER)

    @staticmethod
    def load(folder: Path) -> FileTable | None:
        """Load from a segment; None if it was built from documents, not files. Raises IndexDamaged."""
        folder = folder / FOLDER
        if not folder.is_dir():
            return None
        columns = FileColumns.load(folder)
        try:
            texts = json.loads(f"[{','.join(columns.texts)}]")
            names = [[texts[id] for id in column.tolist()] for column in columns.texts_of_files()]
        except (ValueError, IndexError) as error:
            raise IndexDamaged(f"cannot read {folder} ({error}); build the index again") from error
        digests = (digest.tobytes() for digest in columns.digest)
        entries = map(FileEntry, *names, digests, columns.bytes.tolist(), columns.state.tolist())
        return FileTable(list(entries), np.asarray(columns.rows), np.asarray(columns.copies), int(columns.began[0]))


@dataclass(frozen=True, slots=True)
class FileColumns(ArrayTable):
    """A FileTable as arrays over n files. texts: JSON strings, since a path may contain a line break."""

    texts: Vocabulary
    repository: NDArray[np.int32]
    """Of each file the id of its text, as in the next three."""
    path: NDArray[np.int32]
    place: NDArray[np.int32]
    stamp: NDArray[np.int32]
    digest: NDArray[np.uint8]
    bytes: NDArray[np.int64]
    state: NDArray[np.uint8]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]
    began: NDArray[np.int64]

    def texts_of_files(self) -> tuple[NDArray[np.int32], ...]:
        """The columns of text ids."""
        return self.repository, self.path, self.place, self.stamp

    def fits(self) -> bool:
        """Whether the arrays fit each other."""
        columns: tuple[NDArray[Any], ...] = (*self.texts_of_files(), self.digest, self.bytes, self.state)
        return {len(self.rows), len(self.copies)} == {len(column) + 1 for column in columns} and len(self.began) == 1


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
        rows, copies = np.concatenate([np.zeros((2, 0), np.int64), *self._counts], axis=1)
        return FileTable(self._entries, offsets_of(rows), offsets_of(copies), began)
