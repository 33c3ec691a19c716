"""The files of an index and their documents, so that unchanged files are not extracted again.

A file with copies of another file's documents is reused only if that file is: comments of copies are not stored.
"""

from __future__ import annotations

import importlib.metadata
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ncs.build.ingest import RUN, Batch
from ncs.config import BuildConfig
from ncs.errors import reading
from ncs.extract import LANGUAGES
from ncs.sources import Origin, repository_names
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.files import DIGEST_BYTES, FILES, FileEntry, FileTable, home_of
from ncs.storage.names import USES, NameUses
from ncs.storage.snapshot import Segment, Snapshot
from ncs.storage.words import BatchWords, WordTable
from ncs.types import FIELDS, Mask

EXTRACTION = (
    "extract",
    "text/declarations.py",
    "text/quotes.py",
    "text/tokens.py",
    "storage/documents.py",
    "storage/names.py",
    "storage/words.py",
    "build/ingest.py",
    "types.py",
)
"""Modules that decide which documents are extracted from a file."""
DECIDES_DOCUMENTS = ("java_frontend", "outside", "store_code", "deduplicate")
"""Settings that do."""
RACY = 2_000_000_000
"""Resolution of mtime (FAT: 2 s), in nanoseconds."""
FASTTEXT = ("fasttext", "fasttext-community")
"""Distributions of the same module."""


class FileCache:
    """The live files of a snapshot, numbered across its segments. Call `is_unchanged` in the order of the files.

    entries: all files, dead ones too. numbers: (repository, path) -> number of each live file. firsts: the number of
    each segment's first file, then the number of files.
    """

    def __init__(self, snapshot: Snapshot, names: Mapping[str, str] | None = None) -> None:
        """names: other names for the repositories in these folders."""
        self.snapshot = snapshot
        self._segments = [_CachedSegment(segment, home_of(snapshot.folder)) for segment in snapshot.segments]
        self.firsts = list(accumulate((len(each.entries) for each in self._segments), initial=0))
        self.entries = [entry for segment in self._segments for entry in segment.entries]
        old = repository_names((each.repository, each.path, each.place) for each in self.entries) if names else {}
        self._names = {old[at]: name for at, name in (names or {}).items() if old.get(at, name) != name}
        if self._names:
            self.entries = [each._replace(repository=self._names.get(each[0], each[0])) for each in self.entries]
        self._dead = np.concatenate([segment.dead for segment in self._segments])
        live: list[int] = np.flatnonzero(~self._dead).tolist()
        self.numbers = {(self.entries[number].repository, self.entries[number].path): number for number in live}
        self._by_place = {self.entries[number].place: number for number in live}
        self._reused = np.zeros(len(self.entries), np.bool_)

    def is_unchanged(self, origin: Origin) -> bool:
        """Whether the file at this place is unchanged, by its stamp."""
        number = self._by_place.get(origin.place)
        if number is None or not origin.stamp or self.entries[number].stamp != origin.stamp:
            return False
        began = self._locate(number)[0].began
        return not _is_racy(origin.stamp, began) and self._reuse(number)

    def number_of(self, entry: FileEntry) -> int | None:
        """The number of the reusable file of this name and content; None without one."""
        number = self.numbers.get((entry.repository, entry.path))
        if number is None or self.entries[number].digest != entry.digest or not self._reuse(number):
            return None
        return number

    def _reuse(self, number: int) -> bool:
        """Mark a file as reused, unless it has copies of documents of a file that was not; whether it is."""
        segment, local = self._locate(number)
        originals = segment.originals(local) + number - local
        reused = not len(originals) or bool((self._reused[originals] | (originals == number)).all())
        self._reused[number] = reused
        return reused

    def follows(self, number: int | None, before: int) -> bool:
        """Whether a file is the next one of the same segment."""
        return number == before + 1 and number not in self.firsts

    def batch(self, number: int, n: int) -> tuple[Batch, NDArray[np.int64]]:
        """The documents of n adjacent files from this number on, and the position of each one's file."""
        segment, first = self._locate(number)
        batch, owners = segment.batch(first, n)
        return batch.renamed(self._names), owners

    def _locate(self, number: int) -> tuple[_CachedSegment, int]:
        at = bisect_right(self.firsts, number) - 1
        return self._segments[at], number - self.firsts[at]

    def dead_without(self, names: Collection[tuple[str, str]]) -> Mask:
        """Mask of the dead files after removing these, including files with copies of their documents."""
        removed = self._dead.copy()
        removed[[self.numbers[name] for name in names]] = True
        parts = zip(self._segments, np.split(removed, self.firsts[1:-1]), strict=True)
        return np.concatenate([segment.with_dependent_copies(part) for segment, part in parts])

    def tombstones(self, dead: Mask) -> NDArray[np.int64]:
        """[n, 2] (segment, file) of dead files."""
        parts = []
        for segment, part in zip(self._segments, np.split(dead, self.firsts[1:-1]), strict=True):
            numbers = np.flatnonzero(part)
            parts.append(np.stack([np.full(len(numbers), int(segment.name)), numbers], axis=1))
        return np.concatenate(parts).astype(np.int64)

    def began(self) -> int:
        """The time when reading of the oldest segment began, in nanoseconds since 1970."""
        return min(each.began for each in self._segments)

    def close(self) -> None:
        """Close the document tables."""
        for segment in self._segments:
            segment.close()


class _CachedSegment:
    """The files of one segment, by their local numbers."""

    def __init__(self, segment: Segment, home: str = "") -> None:
        """home: of `FileTable.entries`."""
        self.name, self._path = segment.name, segment.path
        self.table = FileTable.of_segment(segment.path)
        with reading(segment.path / FILES):
            self.entries = self.table.entries(home)
        self.began = int(self.table.began[0])
        self.dead = np.zeros(len(self.entries), np.bool_)
        self.dead[segment.dead_files] = True

    def originals(self, number: int) -> NDArray[np.int64]:
        """The files of the documents that a file has copies of."""
        return self._copied_files[self.table.copies[number] : self.table.copies[number + 1]]

    @cached_property
    def _copied_files(self) -> NDArray[np.int64]:
        """The file of the original of each copy."""
        return np.searchsorted(self.table.rows, self._documents.column("copy_row"), side="right") - 1

    def with_dependent_copies(self, dead: Mask) -> Mask:
        """Dead files and all files with copies of their documents."""
        if dead.any() and self.table.copies[-1]:
            owners = np.repeat(np.arange(len(self.entries)), np.diff(self.table.copies))
            while len(more := owners[dead[self._copied_files] & ~dead[owners]]):
                dead[more] = True
        return dead

    def batch(self, first: int, n: int) -> tuple[Batch, NDArray[np.int64]]:
        """The documents of n files from the first on, and the position of each one's file."""
        rows, copies = self.table.rows[first : first + n + 1], self.table.copies[first : first + n + 1]
        own = np.arange(rows[0], rows[-1])
        packed = self._documents.packed(own.tolist())
        copied, words = self._documents.copies(int(copies[0]), int(copies[-1])), self._table.select_rows(FIELDS, own)[0]
        places = ((place, (place.repository, place.path, place.start_line, place.end_line)) for _, place in copied)
        batch = Batch(  # of copies an index holds the place alone
            packed + [("", *at, "", "", "", place.qualified_name, b"", b"", False) for place, at in places],
            [each[9] for each in packed] + [digest for digest, _ in copied],
            _local_ids(self._words, words, self._table.lengths(own).ravel(), len(copied) * len(FIELDS)),
            _local_ids(self._names, *self._uses.of(own), len(copied)),
        )
        owners = [np.repeat(np.arange(n), np.diff(offsets)) for offsets in (rows, copies)]
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
        return NameUses.load(self._path / USES)

    @cached_property
    def _names(self) -> list[str]:
        return list(self._uses.names)

    def close(self) -> None:
        if "_documents" in self.__dict__:
            self._documents.close()


def segment_batches(path: Path) -> Iterator[tuple[Batch, Sequence[FileEntry], NDArray[np.int64]]]:
    """All documents of a segment written by a cluster worker: batches, their files, the file of each document."""
    segment = _CachedSegment(Segment(path.name, path, 0, 0, np.zeros(0, np.int64)))
    try:
        for first in range(0, len(segment.entries), RUN):
            files = segment.entries[first : first + RUN]
            batch, owners = segment.batch(first, len(files))
            yield batch, files, owners
    finally:
        segment.close()


def _local_ids(names: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int64], more: int) -> BatchWords:
    """The distinct words of ids, local ids, and the lengths followed by `more` zeros (for copies)."""
    used, local = np.unique(ids, return_inverse=True)
    lengths = np.concatenate([lengths, np.zeros(more, np.int64)])
    return [names[i] for i in used.tolist()], local.astype(np.int32), lengths.astype(np.int32)


def _is_racy(stamp: str, began: int) -> bool:
    """Whether a file may have changed after it was read, within the clock's resolution; not objects of git."""
    _, *times = stamp.split(":")
    return any(int(time) >= began - RACY for time in times)


def is_reusable(snapshot: Snapshot, config: BuildConfig) -> bool:
    """Whether a build would extract the same documents now: same settings, same version, code stored."""
    sources = snapshot.description.counts.get("sources")
    if not isinstance(sources, dict) or not config.store_code or sources.get("made_by") != made_by():
        return False
    built = BuildConfig.of(snapshot.description)
    return all(getattr(config, name) == getattr(built, name) for name in DECIDES_DOCUMENTS)


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
        digest.update(f"{name} {installed_version(name.replace('_', '-')) or 'missing'}\n".encode())
    return digest.hexdigest()


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, or of another of its module where it is of FASTTEXT; None without."""
    for name in FASTTEXT if distribution in FASTTEXT else (distribution,):
        with suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    if distribution not in FASTTEXT:
        return None
    others = importlib.metadata.packages_distributions().get("fasttext")  # half a second
    return importlib.metadata.version(others[0]) if others else None
