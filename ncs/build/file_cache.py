"""What an index knows of files that have not changed since: these are neither read nor parsed again.

The result is the same as without: a document is taken over whole, as the store keeps it, with the ids of its words.
A file whose documents are copies of another file's is taken over only where that file is too: otherwise what the
copies differ in (comments) is not in the index.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.batches import Batch
from ncs.learn.embeddings import Embeddings
from ncs.extract import LANGUAGES
from ncs.storage.files import DIGEST_BYTES, FileEntry, FileTable
from ncs.storage.uses import References
from ncs.sources.seen import RACY
from ncs.types import FIELDS
from ncs.text.vocabulary import Vocabulary
from ncs.storage.words import WordTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.packing import Packed
    from ncs.sources import Origin
    from ncs.storage.documents import Store

MADE_BY = (
    "extract",
    "text/tokens.py",
    "storage/packing.py",
    "build/batches.py",
    "storage/uses.py",
    "types.py",
    "storage/words_builder.py",
)


def carried_over(data: Path, words: WordTable) -> Embeddings:
    """The word vectors of an index for the words of another: what was not learnt there has none."""
    learnt = Embeddings.of_folder(data)
    rows = {word: i for i, word in enumerate(Vocabulary.of_folder(data))}
    vectors = np.zeros((len(words.vocabulary), learnt.vectors.shape[1]), np.float32)
    pairs = [(i, rows[word]) for i, word in enumerate(words.vocabulary) if word in rows]
    here, there = np.array(pairs, np.int64).reshape(-1, 2).T
    vectors[here] = learnt.vectors[there]
    return replace(learnt, vectors=vectors)


class Known:
    """The files of an index that stands. Ask `unchanged` and `number_of` in the order of the files."""

    def __init__(self, data: Path, store: Store, table: FileTable, began: int) -> None:
        """began: when the build that made it began, in nanoseconds since 1970."""
        self.table = table = replace(table, entries=list(table.entries))  # all will be asked for
        self._store = store
        self._data = data
        self._began = began
        self._at_place = {entry.place: i for i, entry in enumerate(table.entries) if entry.place}
        self._by_name = {(entry.repository, entry.path): i for i, entry in enumerate(table.entries)}
        self._taken = np.zeros(len(table), np.bool_)

    def unchanged(self, origin: Origin) -> bool:
        """Whether the content that lies there is what the index holds, without reading it."""
        number = self._at_place.get(origin.place, -1)
        if number < 0 or not origin.stamp:  # of an archive's files only reading tells
            return False
        if self.table.entries[number].stamp != origin.stamp or self._racy(origin.stamp):
            return False
        return self._take(number)

    def number_at(self, origin: Origin | None) -> int:
        """The file of the index whose content lies there; it must be `unchanged`."""
        return self._at_place[origin.place if origin else ""]

    def number_of(self, entry: FileEntry) -> int | None:
        """The file of the index with this name and content; None where there is none to take over."""
        number = self._by_name.get((entry.repository, entry.path), -1)
        if number < 0 or self.table.entries[number].digest != entry.digest:
            return None
        return number if self._take(number) else None

    def _racy(self, stamp: str) -> bool:
        """Whether it may have changed after it was read, within the grain of the clock; names of objects never do."""
        _, *times = stamp.split(":")
        return any(int(time) >= self._began - RACY for time in times)

    def _take(self, number: int) -> bool:
        """Take it over, unless what its copies are copies of was not."""
        copied = self._copied_files[self.table.copies[number] : self.table.copies[number + 1]]
        self._taken[number] = bool((self._taken[copied] | (copied == number)).all())
        return bool(self._taken[number])

    @cached_property
    def _copied_files(self) -> NDArray[np.int64]:
        """For each copy of the store the file of the document it is a copy of."""
        return np.searchsorted(self.table.rows, self._store.copied_rows(), side="right") - 1

    def batch(self, numbers: Sequence[int]) -> tuple[Batch, NDArray[np.int64]]:
        """The documents of these files, ascending, and of each the position of its file among the numbers."""
        first, last = numbers[0], numbers[-1]
        if last - first + 1 != len(numbers):
            raise ValueError("the files must follow each other")
        rows = self.table.rows[first : last + 2]
        copies = self.table.copies[first : last + 2]
        packed = self._store.packed(int(rows[0]), int(rows[-1]))
        copied = self._store.copies(int(copies[0]), int(copies[-1]))
        locations = [(each[1], each[2], each[3], each[4], each[8]) for each in packed]
        locations += [(at.repository, at.path, at.start_line, at.end_line, at.qualified_name) for _, at in copied]
        (first, last), more = (int(rows[0]), int(rows[-1])), len(copied)
        batch = Batch(
            packed + [NOT_KEPT] * more,
            [each[9] for each in packed] + [digest for digest, _ in copied],
            locations,
            *self._used(self._words, *self._table.part(first, last), more * len(FIELDS)),
            self._used(self._names, *self._references.of(np.arange(first, last)), more),
        )
        owners = [np.repeat(np.arange(len(numbers)), np.diff(offsets)) for offsets in (rows, copies)]
        return batch, np.concatenate(owners)

    @staticmethod
    def _used(
        names: Sequence[str], ids: NDArray[np.int32], lengths: NDArray[np.int64], more: int
    ) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
        """The distinct words of these ids, numbers in them, and the lengths with as many more of nothing: copies."""
        used, local = np.unique(ids, return_inverse=True)
        lengths = np.concatenate([lengths, np.zeros(more, np.int64)])
        return [names[i] for i in used.tolist()], local.astype(np.int32), lengths.astype(np.int32)

    @cached_property
    def _table(self) -> WordTable:
        return WordTable.load(self._data)

    @cached_property
    def _words(self) -> list[str]:
        return list(self._table.vocabulary)

    @cached_property
    def _references(self) -> References:
        return References.load(self._data)

    @cached_property
    def _names(self) -> list[str]:
        return list(self._references.names)


NOT_KEPT: Packed = ("", "", "", 0, 0, "", "", "", "", b"", b"")
"""In place of a copy's content, which is its original's."""


@cache
def made_by() -> str:
    """What decides which documents a file gives: our own code, and the grammars that are installed."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    room = Path(__file__).parents[1]
    for path in sorted(
        chain.from_iterable([room / name] if name.endswith(".py") else (room / name).iterdir() for name in MADE_BY)
    ):
        if path.suffix in (".py", ".scm"):
            digest.update(path.read_bytes())
    for name in sorted({row.grammar.partition(":")[0] for row in LANGUAGES.values()}):
        digest.update(f"{name} {_version(name)}\n".encode())
    return digest.hexdigest()


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return "missing"
