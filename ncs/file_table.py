"""Which files an index was made of: where each lies, what it held, and which documents came from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.arrays import load_arrays, save_arrays
from ncs.errors import IndexDamaged
from ncs.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.sources import SourceFile

ROOM = "files"
DIGEST_BYTES = 16
READ, BROKEN, FAILED = 0, 1, 2
TEXTS = ("repository", "path", "place", "stamp")
NUMBERS = ("digest", "bytes", "state", "rows", "copies")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file as it was read. digest: of its content. state: READ, BROKEN (syntax errors) or FAILED (gave nothing)."""

    repository: str
    path: str
    place: str
    stamp: str
    digest: bytes
    bytes: int
    state: int = READ

    @classmethod
    def of(cls, file: SourceFile) -> FileEntry:
        """Of a file that was read."""
        place, stamp = file.origin or ("", "")
        return cls(file.repository, file.path, place, stamp, digest_of(file.data), len(file.data))


def digest_of(data: bytes) -> bytes:
    """What tells contents apart."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class FileTable:
    """The files of an index in the order they were read.

    rows, copies: int64 [n + 1]; file i gave the documents rows[i]..rows[i + 1] and, of those that other files had
    given before, the copies[i]..copies[i + 1]-th copies of the store. On disk in `<folder>/files/`.
    """

    entries: Sequence[FileEntry]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]

    def __len__(self) -> int:
        """How many files."""
        return len(self.entries)

    def save(self, folder: Path) -> None:
        """Write `<folder>/files/`; texts as JSON strings, since a path may hold a line's end."""
        columns = {name: [json.dumps(getattr(entry, name)) for entry in self.entries] for name in TEXTS}
        texts = Vocabulary.of({text for column in columns.values() for text in column})
        number = {text: i for i, text in enumerate(texts)}
        arrays = {name: np.array([number[text] for text in column], np.int32) for name, column in columns.items()}
        digests = np.frombuffer(b"".join(entry.digest for entry in self.entries), np.uint8)
        save_arrays(
            folder / ROOM,
            texts,
            {
                **arrays,
                "digest": digests.reshape(-1, DIGEST_BYTES),
                "bytes": np.array([entry.bytes for entry in self.entries], np.int64),
                "state": np.array([entry.state for entry in self.entries], np.uint8),
                "rows": self.rows,
                "copies": self.copies,
            },
        )

    @classmethod
    def load(cls, folder: Path) -> FileTable | None:
        """None where the index keeps none (made of documents at hand, or by an older ncs); raises IndexDamaged."""
        room = folder / ROOM
        if not room.is_dir():
            return None
        texts, arrays = load_arrays(room, (*TEXTS, *NUMBERS))
        try:
            known = [json.loads(text) for text in texts]
            columns = [[known[i] for i in array] for array in arrays[: len(TEXTS)]]
            digests = np.ascontiguousarray(arrays[4]).tobytes()
            parts = [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
            fields = zip(*columns, parts, arrays[5].tolist(), arrays[6].tolist(), strict=True)
            entries = [FileEntry(*each) for each in fields]
        except (ValueError, IndexError) as error:
            raise IndexDamaged(f"cannot read {room} ({error}); build the index again") from error
        if not len(arrays[7]) == len(arrays[8]) == len(entries) + 1:
            raise IndexDamaged(f"the files in {room} do not fit each other; build the index again")
        return cls(entries, np.asarray(arrays[7]), np.asarray(arrays[8]))


class FileTableBuilder:
    """Collects files in order, with how many documents and copies each gave."""

    def __init__(self) -> None:
        self._entries: list[FileEntry] = []
        self._counts: list[NDArray[np.int64]] = []

    def add(self, entries: Iterable[FileEntry], owners: NDArray[np.int64], kept: NDArray[np.bool_]) -> None:
        """The next files; owners [n]: which of them each document came from; kept [n]: no copy."""
        entries = list(entries)
        self._entries += entries
        size = len(entries)
        counts = [np.bincount(owners[which], minlength=size) for which in (kept, ~kept)]
        self._counts.append(np.array(counts, np.int64).reshape(2, size))

    def finish(self) -> FileTable:
        """All of them."""
        counts = np.concatenate(self._counts, axis=1) if self._counts else np.zeros((2, 0), np.int64)
        offsets = np.zeros((2, counts.shape[1] + 1), np.int64)
        np.cumsum(counts, axis=1, out=offsets[:, 1:])
        return FileTable(self._entries, offsets[0], offsets[1])
