"""Batches of documents: packed in the process that extracted them, collected into a new segment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.storage.documents_writer import StoreWriter
from ncs.storage.files import BROKEN, FAILED, FileTable, FileTableBuilder
from ncs.storage.packing import Packed, pack
from ncs.storage.seen_hashes import SeenHashes
from ncs.storage.uses import NameUses, UsesBuilder, batch_uses
from ncs.storage.words import WordTable
from ncs.storage.words_builder import WordTableBuilder
from ncs.text.tokens import literal_tokens, tokenize
from ncs.types import FIELDS, Document, Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.files import FileEntry
    from ncs.storage.uses import BatchUses

SPLIT_CACHE, LONGEST_NAME = 100_000, 40
"""Size of the cache of split names (25 MB), and the longest name it holds; longer ones are prose."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents of some files: rows for the store, words for the table. Cheap to send to another process."""

    packed: Sequence[Packed]
    digests: Sequence[bytes]
    locations: Sequence[tuple[str, str, int, int, str]]
    words: Sequence[str]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    uses: BatchUses

    def part(self, start: int, stop: int) -> Batch:
        """The documents start..stop."""
        if (start, stop) == (0, len(self.packed)):
            return self
        keep = np.zeros(len(self.packed), np.bool_)
        keep[start:stop] = True
        names, used, lengths = self.uses
        return Batch(
            self.packed[start:stop],
            self.digests[start:stop],
            self.locations[start:stop],
            *_without_copies(self.words, self.ids, self.lengths.reshape(-1, len(FIELDS)), keep),
            _without_copies(names, used, lengths[:, None], keep),
        )


def pack_batch(documents: Sequence[Document], *, code: bool = True) -> Batch:
    """Tokenize and compress documents, in the process that extracted them."""
    return Batch(
        [pack(document, code=code) for document in documents],
        [document.digest for document in documents],
        [(d.repository, d.path, d.start_line, d.end_line, d.qualified_name) for d in documents],
        *_words(documents),
        batch_uses(documents),
    )


def _words(documents: Iterable[Document]) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
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
                    tokens = literal_tokens(spelling) if literal else _tokens(spelling)
                    token_ids = cache[spelling] = [numbers.setdefault(token, len(numbers)) for token in tokens]
                ids += token_ids
            lengths.append(len(ids) - before)
    return list(numbers), np.array(ids, np.int32), np.array(lengths, np.int32)


_split_cache: dict[str, list[str]] = {}


def _tokens(spelling: str) -> list[str]:
    """The words of a name, from a cache: most names occur in many files."""
    if len(spelling) > LONGEST_NAME:
        return tokenize(spelling)
    tokens = _split_cache.get(spelling)
    if tokens is None:
        if len(_split_cache) >= SPLIT_CACHE:
            _split_cache.clear()
        tokens = _split_cache[spelling] = tokenize(spelling)
    return tokens


def chunks(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    """Lists of up to `size` documents."""
    iterator = iter(documents)
    while chunk := list(islice(iterator, size)):
        yield chunk


@dataclass(frozen=True, slots=True)
class CollectedDocuments:
    """The documents of a new segment after they are written, with their words and counts in memory."""

    words: WordTable
    uses: NameUses
    files_read: FileTable
    documents: int
    copies: int
    files: int = 0
    bytes: int = 0
    broken: Sequence[str] = ()
    failed: Sequence[str] = ()
    tally: dict[str, Any] = field(default_factory=dict)

    def counts(self) -> dict[str, Any]:
        """Counts for the snapshot; they name the first hundred broken and failed files."""
        return {
            "documents": self.documents,
            "copies": self.copies,
            "files": self.files,
            "source_bytes": self.bytes,
            "broken": len(self.broken),
            "failed": len(self.failed),
            "broken_files": sorted(self.broken)[:100],
            "failed_files": sorted(self.failed)[:100],
            **self.tally,
        }


class Collector:
    """Appends batches to the store and the word table in a folder; an exact duplicate becomes a copy of the first."""

    def __init__(self, folder: Path, code: bool, deduplicate: bool) -> None:
        self._writer = StoreWriter(folder / "documents.sqlite", code=code)
        self._folder = folder
        self._builder = WordTableBuilder(
            None if os.name == "nt" else folder
        )  # Windows cannot move a folder with open files
        self._uses = UsesBuilder()
        self._sources = FileTableBuilder()
        self._hashes = SeenHashes()
        self._deduplicate = deduplicate
        self._documents = self._copies = self._files = self._bytes = 0
        self._repositories: set[str] = set()
        self._broken: list[str] = []
        self._failed: list[str] = []

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *exception: object) -> None:
        self._writer.close()
        self._builder.close()

    def add(self, batch: Batch, entries: Sequence[FileEntry] = (), owners: NDArray[np.int64] | None = None) -> None:
        """Add the next documents in order; entries: their files; owners [n]: the file of each document."""
        keep = np.ones(len(batch.packed), np.bool_)
        copies = []
        digests = batch.digests if self._deduplicate else [b""] * len(batch.packed)
        for i, row in enumerate(self._hashes.rows(digests, self._documents)):
            if row == self._documents:
                self._documents += 1
            else:
                keep[i] = False
                copies.append((int(owners[i]) if owners is not None else i, row, Location(*batch.locations[i])))
        copies.sort(key=itemgetter(0))  # the file table counts them by file
        if owners is not None:
            self._sources.add(entries, owners, keep)
            self._note(entries)
        if owners is None:
            places = [(repository, path) for repository, path, *_ in batch.locations]
        else:  # all files: the database and the file table number them alike
            places = [(entry.repository, entry.path) for entry in entries]
        self._writer.number_files(places)
        self._writer.add([packed for packed, keep_it in zip(batch.packed, keep, strict=True) if keep_it])
        for _, row, location in copies:
            self._writer.add_copy(row, location)
        self._copies += len(copies)
        self._repositories.update(location[0] for location in batch.locations)
        lengths = batch.lengths.reshape(-1, len(FIELDS))
        self._builder.add(*_without_copies(batch.words, batch.ids, lengths, keep))
        names, used, counts = batch.uses
        self._uses.add(*_without_copies(names, used, counts[:, None], keep))

    def _note(self, entries: Sequence[FileEntry]) -> None:
        self._files += len(entries)
        self._bytes += sum(entry.bytes for entry in entries)
        for state, names in ((BROKEN, self._broken), (FAILED, self._failed)):
            names += [f"{entry.repository}/{entry.path}" for entry in entries if entry.state == state]

    def finish(self, began: int = 0) -> CollectedDocuments:
        """Close the database and save the words of all batches in one table. began: see `FileTable`."""
        tally = dict(self._writer.finish() or {})
        documents_of = dict(tally.get("repositories", {}))  # a repository that holds copies only counts 0
        tally["repositories"] = {name: documents_of.get(name, 0) for name in sorted(self._repositories)}
        words = self._builder.finish()
        if os.name == "nt":
            words.save(self._folder)
        return CollectedDocuments(
            words,
            self._uses.finish(),
            self._sources.finish(began),
            self._documents,
            self._copies,
            self._files,
            self._bytes,
            self._broken,
            self._failed,
            tally,
        )


def _without_copies(
    words: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int32], keep: NDArray[np.bool_]
) -> tuple[Sequence[str], NDArray[np.int32], NDArray[np.int32]]:
    """The words of documents that are not copies, so that words of copies only do not enter the vocabulary.

    lengths: [documents, fields].
    """
    if keep.all():
        return words, ids, lengths.ravel()
    kept_ids = ids[np.repeat(keep, lengths.sum(axis=1))]
    used = np.zeros(len(words), np.bool_)
    used[kept_ids] = True
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return list(compress(words, used.tolist())), numbers[kept_ids], lengths[keep].ravel()
