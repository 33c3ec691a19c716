"""The files of an index and their documents, so that unchanged files are not extracted again.

A file whose documents are copies of another file's is reused only if that file is: the index does not hold what copies
differ in (comments).
"""

from __future__ import annotations

import importlib.metadata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.batches import Batch
from ncs.extract import LANGUAGES
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.files import DIGEST_BYTES, FileEntry, FileTable
from ncs.storage.uses import NameUses
from ncs.storage.words import WordTable
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.config import BuildConfig
    from ncs.sources import Origin
    from ncs.storage.packing import Packed
    from ncs.storage.snapshot import Segment, Snapshot

EXTRACTION = (
    "extract",
    "text/tokens.py",
    "storage/packing.py",
    "storage/uses.py",
    "storage/words_builder.py",
    "build/batches.py",
    "types.py",
)
"""Modules that decide which documents are extracted from a file."""
FILES = 300
"""Files per batch read from a segment."""
RACY = 2_000_000_000
"""Nanoseconds before reading began in which a file may have changed without a new mtime (FAT: 2 s)."""


class FileCache:
    """The live files of a snapshot, numbered across its segments. Call `is_unchanged` in the order of the files."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._segments = [_CachedSegment(segment) for segment in snapshot.segments]
        self._firsts = list(accumulate((len(each.table) for each in self._segments), initial=0))
        self.entries: list[FileEntry] = []
        """Of live files."""
        self._by_place: dict[str, int] = {}
        self._by_name: dict[tuple[str, str], int] = {}
        self._stamps: dict[str, tuple[str, int]] = {}
        for first, segment in zip(self._firsts, self._segments, strict=False):
            for number, entry in segment.live_entries():
                self.entries.append(entry)
                self._by_name[entry.repository, entry.path] = first + number
                if entry.place:
                    self._by_place[entry.place] = first + number
                    self._stamps[entry.place] = entry.stamp, segment.table.began
        self._reused = np.zeros(self._firsts[-1], np.bool_)

    def is_unchanged(self, origin: Origin) -> bool:
        """Whether the file at this place is the one in the index, by its stamp."""
        stamp, began = self._stamps.get(origin.place, ("", 0))
        if not origin.stamp or stamp != origin.stamp or _is_racy(stamp, began):
            return False
        return self._reuse(self._by_place[origin.place])

    def files(self) -> Iterator[tuple[int, int, FileEntry]]:
        """(segment, number in it, entry) of all live files, in order."""
        return ((int(each.name), number, entry) for each in self._segments for number, entry in each.live_entries())

    def began(self) -> int:
        """When reading of the oldest segment began, in nanoseconds since 1970."""
        return min(each.table.began for each in self._segments)

    def number(self, repository: str, path: str) -> int | None:
        """The number of a file by its name."""
        return self._by_name.get((repository, path))

    def entry(self, number: int) -> FileEntry:
        """A file by its number."""
        segment, local = self._locate(number)
        return segment.entries[local]

    def number_of(self, entry: FileEntry) -> int | None:
        """The number of the file with this name and content; None where none can be reused."""
        number = self._by_name.get((entry.repository, entry.path))
        if number is None or self.entry(number).digest != entry.digest or not self._reuse(number):
            return None
        return number

    def _reuse(self, number: int) -> bool:
        """Mark a file as reused, unless it has copies of documents of a file that was not."""
        segment, local = self._locate(number)
        originals = segment.originals(local) + number - local
        reused = not len(originals) or bool((self._reused[originals] | (originals == number)).all())
        self._reused[number] = reused
        return reused

    def is_adjacent(self, before: int, number: int) -> bool:
        """Whether a file directly follows another in the same segment."""
        return number == before + 1 and self._locate(number)[0] is self._locate(before)[0]

    def batch(self, numbers: Sequence[int]) -> tuple[Batch, NDArray[np.int64]]:
        """The documents of adjacent files, and the position of each document's file in `numbers`."""
        segment, first = self._locate(numbers[0])
        return segment.batch(first, first + len(numbers) - 1)

    def _locate(self, number: int) -> tuple[_CachedSegment, int]:
        at = bisect_right(self._firsts, number) - 1
        return self._segments[at], number - self._firsts[at]

    def dead_files(self, names: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
        """Tombstones [n, 2] (segment, file) after files of these names are removed.

        They include files with copies of their documents, which must be read again."""
        removed = np.zeros(self._firsts[-1], np.bool_)
        removed[[self._by_name[name] for name in names]] = True
        tombstones = []
        for first, segment in zip(self._firsts, self._segments, strict=False):
            dead = segment.with_dependent_copies(removed[first : first + len(segment.table)])
            tombstones.append(np.stack([np.full(len(dead), int(segment.name)), dead], axis=1))
        return np.concatenate(tombstones).astype(np.int64)

    def close(self) -> None:
        """Close the document tables."""
        for segment in self._segments:
            segment.close()


class _CachedSegment:
    """The files of one segment, by their local numbers."""

    def __init__(self, segment: Segment) -> None:
        self.name, self._path = segment.name, segment.path
        self._dead = segment.dead_files
        self.table = FileTable.load(segment.path) or FileTable((), np.zeros(1, np.int64), np.zeros(1, np.int64))
        self.entries = list(self.table.entries)

    def live_entries(self) -> Iterator[tuple[int, FileEntry]]:
        dead = frozenset(self._dead.tolist())
        return ((number, entry) for number, entry in enumerate(self.entries) if number not in dead)

    def originals(self, number: int) -> NDArray[np.int64]:
        """The files of the documents that a file has copies of."""
        return self._copied_files[self.table.copies[number] : self.table.copies[number + 1]]

    @cached_property
    def _copied_files(self) -> NDArray[np.int64]:
        """For each copy the file of the document it is a copy of."""
        return np.searchsorted(self.table.rows, self._documents.copied_rows(), side="right") - 1

    def with_dependent_copies(self, removed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Dead files, ascending: earlier ones, removed ones, and all with copies of their documents."""
        dead = removed.copy()
        dead[self._dead] = True
        if removed.any() and self.table.copies[-1]:
            owners = np.repeat(np.arange(len(self.table)), np.diff(self.table.copies))
            while True:
                more = np.unique(owners[dead[self._copied_files] & ~dead[owners]])
                if not len(more):
                    break
                dead[more] = True
        return np.flatnonzero(dead)

    def batch(self, first: int, last: int) -> tuple[Batch, NDArray[np.int64]]:
        """The documents of files first..last, and the position of each one's file."""
        rows, copies = self.table.rows[first : last + 2], self.table.copies[first : last + 2]
        packed = self._documents.packed(int(rows[0]), int(rows[-1]))
        copied = self._documents.copies(int(copies[0]), int(copies[-1]))
        locations = [(each[1], each[2], each[3], each[4], each[8]) for each in packed]
        locations += [(at.repository, at.path, at.start_line, at.end_line, at.qualified_name) for _, at in copied]
        start, stop, more = int(rows[0]), int(rows[-1]), len(copied)
        batch = Batch(
            packed + [NO_CONTENT] * more,
            [each[9] for each in packed] + [digest for digest, _ in copied],
            locations,
            *_local_ids(self._words, *self._table.slice_ids(start, stop), more * len(FIELDS)),
            _local_ids(self._names, *self._uses.of(np.arange(start, stop)), more),
        )
        owners = [np.repeat(np.arange(last - first + 1), np.diff(offsets)) for offsets in (rows, copies)]
        return batch, np.concatenate(owners)

    @cached_property
    def _documents(self) -> DocumentTable:
        return DocumentTable(self._path / NAME)

    @cached_property
    def _table(self) -> WordTable:
        return WordTable.load(self._path)

    @cached_property
    def _words(self) -> list[str]:
        return list(self._table.vocabulary)

    @cached_property
    def _uses(self) -> NameUses:
        return NameUses.load(self._path)

    @cached_property
    def _names(self) -> list[str]:
        return list(self._uses.names)

    def close(self) -> None:
        if "_documents" in self.__dict__:
            self._documents.close()


def segment_batches(path: Path) -> Iterator[tuple[Batch, Sequence[FileEntry], NDArray[np.int64]]]:
    """All documents of a segment written by a cluster worker: batches, their files, the file of each document."""
    from ncs.storage.snapshot import Segment

    segment = _CachedSegment(Segment(path.name, path, 0, 0, np.zeros(0, np.int64)))
    try:
        for first in range(0, len(segment.entries), FILES):
            files = segment.entries[first : first + FILES]
            batch, owners = segment.batch(first, first + len(files) - 1)
            yield batch, files, owners
    finally:
        segment.close()


def _local_ids(
    names: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int64], more: int
) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """The distinct words of these ids, ids into these words, and the lengths followed by `more` zeros (for copies)."""
    used, local = np.unique(ids, return_inverse=True)
    lengths = np.concatenate([lengths, np.zeros(more, np.int64)])
    return [names[i] for i in used.tolist()], local.astype(np.int32), lengths.astype(np.int32)


NO_CONTENT: Packed = ("", "", "", 0, 0, "", "", "", "", b"", b"")
"""Stands in for the content of a copy."""


def _is_racy(stamp: str, began: int) -> bool:
    """Whether a file may have changed after it was read, within the clock's resolution; git objects never do."""
    _, *times = stamp.split(":")
    return any(int(time) >= began - RACY for time in times)


def is_reusable(snapshot: Snapshot, config: BuildConfig) -> bool:
    """Whether a build would extract the same documents now: same settings, same version, code stored."""
    from ncs.config import BuildConfig

    sources = snapshot.description.counts.get("sources")
    if not isinstance(sources, dict) or not config.store_code or sources.get("made_by") != made_by():
        return False
    return config.same_documents(BuildConfig.of(snapshot.description))


@cache
def made_by() -> str:
    """A digest of what decides which documents are extracted: our own code and the installed grammars."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    package = Path(__file__).parents[1]
    for name in EXTRACTION:
        path = package / name
        for file in [path] if path.suffix else sorted(path.iterdir()):
            if file.suffix in (".py", ".scm"):
                digest.update(file.read_bytes())
    for name in sorted({row.grammar.partition(":")[0] for row in LANGUAGES.values()}):
        digest.update(f"{name} {_version(name)}\n".encode())
    return digest.hexdigest()


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return "missing"
