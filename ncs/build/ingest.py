"""The documents of source files as a new segment: extracted in several processes, or copied from the file cache."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import compress
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncs.config import BuildConfig
from ncs.extract import Extraction, extract_files
from ncs.sources import SourceFile
from ncs.storage.documents import NAME, Packed, StoreWriter, pack
from ncs.storage.files import BROKEN, FAILED, READ, FileEntry, FileTable
from ncs.storage.names import NameUses, batch_uses, name_uses
from ncs.storage.words import BatchWords, WordTable, WordTableBuilder
from ncs.text.tokens import literal_tokens, tokenize
from ncs.types import FIELDS, Document, Location

if TYPE_CHECKING:
    from ncs.build.file_cache import FileCache

RUN = 300
"""Cached files copied at once."""
SPLIT_CACHE, MAX_NAME = 100_000, 40
"""Size of the cache of split names (25 MB), and the longest name in it; longer ones are prose."""


class MovedError(Exception):
    """An unchanged file has another name now; start again without the cache."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents of some files: rows of the store, words of the table. digests: to find copies, also without code."""

    packed: Sequence[Packed]
    digests: Sequence[bytes]
    words: BatchWords
    uses: BatchWords

    def renamed(self, names: Mapping[str, str]) -> Batch:
        """The documents with new names of their repositories; names: old -> new."""
        if not names:
            return self
        new = [(names.get(each[1], each[1]), each) for each in self.packed]
        packed = [(each[0] and name + each[0][len(each[1]) :], name, *each[2:]) for name, each in new]
        return replace(self, packed=packed)

    def select(self, keep: NDArray[np.bool_]) -> Batch:
        """Some of the documents, without words that only the others have."""
        if keep.all():
            return self
        mask = keep.tolist()
        return Batch(
            list(compress(self.packed, mask)),
            list(compress(self.digests, mask)),
            _select(self.words, len(FIELDS), keep),
            _select(self.uses, 1, keep),
        )


def _select(words: BatchWords, fields: int, keep: NDArray[np.bool_]) -> BatchWords:
    """The words of some documents; fields: number of fields per document."""
    spellings, ids, lengths = words
    lengths_by_document = lengths.reshape(-1, fields)
    ids = ids[np.repeat(keep, lengths_by_document.sum(axis=1))]
    used = np.zeros(len(spellings), np.bool_)
    used[ids] = True
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return list(compress(spellings, used.tolist())), numbers[ids], lengths_by_document[keep].ravel()


def pack_batch(documents: Sequence[Document], *, code: bool = True) -> Batch:
    """Tokenize and compress documents, in the process that extracted them."""
    return Batch(
        [pack(document, code=code) for document in documents],
        [document.digest for document in documents],
        _words(documents),
        batch_uses(documents),
    )


def _words(documents: Iterable[Document]) -> BatchWords:
    """Words of every document and field, as `WordTableBuilder.add` takes them."""
    numbers: dict[str, int] = {}
    ids_by_spelling: tuple[dict[str, list[int]], dict[str, list[int]]] = {}, {}
    ids: list[int] = []
    lengths: list[int] = []
    for document in documents:
        for name in FIELDS:
            before, literal = len(ids), name == "literals"
            cache = ids_by_spelling[literal]
            for spelling in document.words.get(name, ()):
                token_ids = cache.get(spelling)
                if token_ids is None:
                    split = tokenize if len(spelling) > MAX_NAME else _split
                    tokens = literal_tokens(spelling) if literal else split(spelling)
                    token_ids = cache[spelling] = [numbers.setdefault(token, len(numbers)) for token in tokens]
                ids += token_ids
            lengths.append(len(ids) - before)
    return list(numbers), np.array(ids, np.int32), np.array(lengths, np.int32)


_split = lru_cache(SPLIT_CACHE)(tokenize)  # most names occur in many files


@dataclass(frozen=True, slots=True)
class CollectedDocuments:
    """The documents of a new segment after they are written."""

    words: WordTable
    uses: NameUses
    files_read: FileTable


class Collector:
    """Appends batches to the store and the word table in a folder; exact duplicates become copies of the first."""

    def __init__(self, folder: Path, deduplicate: bool) -> None:
        self._writer = StoreWriter(folder / NAME)
        self._folder = folder
        spill = None if os.name == "nt" else folder  # Windows cannot move a folder with open files
        self._words = WordTableBuilder(spill)
        self._uses = WordTableBuilder()
        self._files: list[FileEntry] = []
        self._counts = [np.zeros((2, 0), np.int64)]
        """Documents and copies of each file, [2, n] per batch."""
        self._row_by_digest: dict[bytes, int] = {}
        self._deduplicate = deduplicate

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *exception: object) -> None:
        self._writer.close()
        self._words.close()
        self._uses.close()

    def add(self, batch: Batch, entries: Sequence[FileEntry] = (), owners: NDArray[np.int64] | None = None) -> None:
        """Add the next documents in order; entries: their files; owners [n]: the file of each document."""
        n, next_row = len(batch.packed), len(self._writer)
        keep = np.ones(n, np.bool_)
        owners = np.arange(n) if owners is None else owners
        copies = []
        for i, digest in enumerate(batch.digests):
            row = next_row
            if digest and self._deduplicate:
                row = self._row_by_digest.setdefault(digest, next_row)
            if row == next_row:
                next_row += 1
            else:
                keep[i] = False
                copies.append((int(owners[i]), row, Location(*batch.packed[i][1:5], batch.packed[i][8])))
        copies.sort(key=itemgetter(0))  # the file table counts them by file
        places = [(repository, path) for _, repository, path, *_ in batch.packed]
        if entries:  # all files: the database and the file table number them alike
            self._files += entries
            self._counts.append(np.stack([np.bincount(owners[of], minlength=len(entries)) for of in (keep, ~keep)]))
            places = [(entry.repository, entry.path) for entry in entries]
        self._writer.number_files(places)
        originals = batch.select(keep)
        self._writer.add(originals.packed)
        for _, row, location in copies:
            self._writer.add_copy(row, location)
        self._words.add(*originals.words)
        self._uses.add(*originals.uses)

    def finish(self, began: int = 0, home: str = "") -> CollectedDocuments:
        """Close the database and save the words of all batches in one table. began, home: of `FileTable.of`."""
        self._writer.finish()
        words = self._words.finish()
        if os.name == "nt":
            words.save(self._folder)
        files = FileTable.of(self._files, np.concatenate(self._counts, axis=1), began, home)
        return CollectedDocuments(words, name_uses(self._uses.finish()), files)


def ingest(
    files: Iterable[SourceFile],
    segment: Path,
    config: BuildConfig,
    workers: int | None,
    cache: FileCache | None = None,
    *,
    began: int = 0,
    home: str = "",
) -> CollectedDocuments:
    """Documents, words and the file table of a new segment, in the order of the files. began, home: of `FileTable.of`.
    Raises MovedError if a cached file has another name."""
    with Collector(segment, config.deduplicate) as collector:
        merger = _Merger(collector, cache)
        for extraction in extract_files(
            merger.files_to_extract(files),
            workers=workers,
            frontend=config.java_frontend,
            outside=config.outside,
            finish=partial(pack_batch, code=config.store_code),
        ):
            merger.add(extraction)
        merger.copy_cached()
        return collector.finish(began, home)


class _Merger:
    """Puts extracted and cached documents into the order of the files."""

    def __init__(self, collector: Collector, cache: FileCache | None) -> None:
        self._collector = collector
        self._cache = cache
        self._queue: deque[tuple[FileEntry, int | None]] = deque()
        """Files in order, with their number in the cache where they are cached."""
        self._in_extraction = 0

    def files_to_extract(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        """The files that must be extracted; cached ones are queued."""
        for file in files:
            entry, number = self._look_up(file)
            self._queue.append((entry, number))
            if number is None:
                self._in_extraction += 1
                yield file
            elif not self._in_extraction and len(self._queue) >= RUN:
                self.copy_cached()

    def _look_up(self, file: SourceFile) -> tuple[FileEntry, int | None]:
        if self._cache is None:
            return FileEntry.of(file), None
        if not file.unchanged:
            entry = FileEntry.of(file)
            number = self._cache.number_of(entry)
            return (entry if number is None else entry._replace(state=self._cache.entries[number].state)), number
        number = self._cache.numbers.get((file.repository, file.path))
        if number is None or (file.origin is not None and self._cache.entries[number].place != file.origin.place):
            raise MovedError
        return self._cache.entries[number], number

    def copy_cached(self) -> None:
        """Copy the cached files at the front of the queue, in runs of adjacent files."""
        while self._cache and self._queue and (first := self._queue[0][1]) is not None:
            entries, last = [self._queue.popleft()[0]], first
            while len(entries) < RUN and self._queue and self._cache.follows(self._queue[0][1], last):
                entries.append(self._queue.popleft()[0])
                last += 1
            batch, owners = self._cache.batch(first, len(entries))
            self._collector.add(batch, entries, owners)

    def add(self, extraction: Extraction[Batch]) -> None:
        """Add the documents of files that were extracted."""
        states = {**dict.fromkeys(extraction.broken, BROKEN), **dict.fromkeys(extraction.failed, FAILED)}
        owners, done = np.repeat(np.arange(len(extraction.counts)), extraction.counts), 0
        while done < len(extraction.counts):
            self.copy_cached()
            entries: list[FileEntry] = []
            while len(entries) < len(extraction.counts) - done and self._queue and self._queue[0][1] is None:
                entry = self._queue.popleft()[0]
                entries.append(entry._replace(state=states.get(f"{entry.repository}/{entry.path}", READ)))
            here = (owners >= done) & (owners < done + len(entries))
            self._collector.add(extraction.result.select(here), entries, owners[here] - done)
            done += len(entries)
        self._in_extraction -= len(extraction.counts)
        self.copy_cached()
