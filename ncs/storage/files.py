"""The source files of a segment: location, stamp and digest of each, and which documents it has."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncs.storage.arrays import ArrayTable, are_below, are_offsets, offsets_of
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ncs.sources import SourceFile

FILES = "files"
"""Folder of a segment."""
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
        digest = blake2b(file.data, digest_size=DIGEST_BYTES).digest()
        return cls(file.repository, file.path, place, stamp, digest, len(file.data))


@dataclass(frozen=True, slots=True)
class FileTable(ArrayTable):
    """The files of a segment in the order they were read; on disk in `<segment>/files/`.

    Places inside the folder that holds the index are relative to it, so that both can be moved. File i has the
    documents rows[i]..rows[i + 1] and the copies copies[i]..copies[i + 1] of documents in earlier files.
    """

    texts: Vocabulary
    """JSON strings, since a path may contain a line break."""
    repository: NDArray[np.int32]
    """[n_files]: the id of a text, as in the next three."""
    path: NDArray[np.int32]
    place: NDArray[np.int32]
    stamp: NDArray[np.int32]
    digest: NDArray[np.uint8] = field(metadata={"dimensions": 2})
    bytes: NDArray[np.int64]
    state: NDArray[np.uint8]
    rows: NDArray[np.int64]
    """[n_files + 1], as the next."""
    copies: NDArray[np.int64]
    began: NDArray[np.int64]
    """[1]: when reading began, in nanoseconds since 1970; a stamp from just before it may hide a later change."""

    def fits(self) -> bool:
        columns: tuple[NDArray[Any], ...] = (*self._names(), self.digest, self.bytes, self.state)
        return {len(self.rows), len(self.copies)} == {len(column) + 1 for column in columns} and len(self.began) == 1

    def is_sound(self, documents: int) -> bool:
        names = all(are_below(ids, len(self.texts)) for ids in self._names())
        digests = self.digest.shape == (len(self.bytes), DIGEST_BYTES)
        copies = len(self.copies) > 0 and are_offsets(self.copies, int(self.copies[-1]))
        of_files = documents if len(self.bytes) else 0  # `Index.of` makes documents without files
        return names and digests and copies and are_offsets(self.rows, of_files)

    @classmethod
    def of(cls, entries: Sequence[FileEntry], counts: NDArray[np.int64], began: int = 0, home: str = "") -> FileTable:
        """The table of files in order. counts: numbers of documents and copies of each, [2, n_files]; began: when
        reading began, in nanoseconds since 1970; home: the folder that holds the index, "" for a part of a cluster."""
        texts: dict[str, int] = {}
        names = ((each.repository, each.path, stored_place(each.place, home), each.stamp) for each in entries)
        numbers = [texts.setdefault(json.dumps(text), len(texts)) for entry in names for text in entry]
        vocabulary, ids = Vocabulary.numbered(texts)
        repository, path, place, stamp = ids[np.array(numbers, np.int64)].reshape(-1, 4).T
        rows, copies = map(offsets_of, counts)
        return cls(
            vocabulary,
            repository,
            path,
            place,
            stamp,
            np.frombuffer(b"".join(entry.digest for entry in entries), np.uint8).reshape(-1, DIGEST_BYTES),
            np.array([entry.bytes for entry in entries], np.int64),
            np.array([entry.state for entry in entries], np.uint8),
            rows,
            copies,
            np.array([began], np.int64),
        )

    @classmethod
    def of_segment(cls, segment: Path) -> FileTable:
        """The files of a segment, none if it was built from documents; raises IndexDamaged."""
        folder = segment / FILES
        return cls.load(folder) if folder.is_dir() else cls.of((), np.zeros((2, 0), np.int64))

    def entries(self, home: str = "") -> list[FileEntry]:
        """All files, with absolute places if `home`, the folder that holds the index, is given; raises ValueError or
        IndexError for damaged texts."""
        texts = json.loads(f"[{','.join(self.texts)}]")
        repositories, paths, places, stamps = ([texts[id] for id in column.tolist()] for column in self._names())
        if home:
            places = [full_place(place, home) for place in places]
        digests = (digest.tobytes() for digest in self.digest)
        states = self.state.tolist()
        return list(map(FileEntry, repositories, paths, places, stamps, digests, self.bytes.tolist(), states))

    def _names(self) -> tuple[NDArray[np.int32], ...]:
        return self.repository, self.path, self.place, self.stamp


def home_of(index: Path) -> str:
    """The folder that holds an index folder."""
    return str(index.resolve().parent)


def stored_place(place: str, home: str) -> str:
    """A place as an index stores it: relative to `home`, the folder that holds the index, if inside.

    >>> stored_place("/me/app/a.py", "/me/app"), stored_place("/me/other/a.py", "/me/app")
    ('a.py', '/me/other/a.py')
    """
    return place.removeprefix(home + os.sep) if home else place


def full_place(place: str, home: str) -> str:
    """A stored place as a path; addresses and empty places are unchanged.

    >>> full_place("a.py", "/me/app"), full_place("/x/a.py", "/me/app"), full_place("s3://x/a.py", "/me/app")
    ('/me/app/a.py', '/x/a.py', 's3://x/a.py')
    """
    stays = not place or "://" in place or os.path.isabs(place)  # noqa: PTH117  (for every file of an index)
    return place if stays else home + os.sep + place
