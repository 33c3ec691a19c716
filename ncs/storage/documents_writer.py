"""The writer of documents in SQLite; `ncs.storage.documents` is the reader."""

from __future__ import annotations

import json
import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ncs.errors import NcsError
from ncs.storage.documents import (
    DENSITY,
    FIELD_END,
    IN_JSON,
    INDICES,
    PLAIN,
    SCHEMA,
    TEXT,
    WORD_END,
    Packed,
    to_bytes,
)
from ncs.types import Document, Field, Location, Tokens

SETTINGS = ("page_size = 8192", "journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")
COLUMNS = ("file", "language", "kind", "copy_row", "copy_file", "test_row")
"""Columns for filters: file and label numbers by row, the rows and files of copies, and the rows of tests; int32,
little endian."""

# A function is small. With zlib's own 32 KB window and memory level 8, preparing each stream takes four times as long
# as compressing it (70 us instead of 19 us a document); half of each costs .1 % in size.
LEVEL, WINDOW_BITS, MEMORY_LEVEL = 6, 14, 7


def pack(document: Document, *, code: bool = True) -> Packed:
    """A document as stored; runs in the worker that extracted it, so that compression is parallel.

    code=False keeps only location and names: literals, comments and a digest would reveal content.
    """
    d = document
    body = pack_body(d.code, d.words) if code else b""
    digest = d.digest if code else b""
    place = (d.repository, d.path, d.start_line, d.end_line)
    return (d.id, *place, d.language, d.kind, d.name, d.qualified_name, digest, body, d.test)


def pack_body(code: str, words: Mapping[Field, Tokens]) -> bytes:
    """Code and words in one stream: most words occur in the code and compress to almost nothing."""
    fields = [WORD_END.join((field, *spellings)) for field, spellings in words.items()]
    text = PLAIN + FIELD_END.join((code, *fields))
    if text.count(FIELD_END) != len(fields) or text.count(WORD_END) != sum(map(len, words.values())):
        text = IN_JSON + json.dumps([code, dict(words)])
    data = to_bytes(text)
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        stream = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEMORY_LEVEL, strategy)
        body = stream.compress(data) + stream.flush()
        if len(data) <= DENSITY * len(body):  # a reader takes denser ones for damage
            break
    return body


class StoreWriter:
    """Appends documents to a new file; `finish` makes it readable. `IndexWriter.commit` syncs it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._repositories: dict[str, int] = {}
        self._files: dict[tuple[int, str], int] = {}
        self._labels: dict[str, int] = {}
        self._columns = {name: array("i") for name in COLUMNS}
        with _write_errors(path):
            self._db = sqlite3.connect(path, isolation_level=None)
            try:
                for setting in SETTINGS:
                    self._db.execute(f"PRAGMA {setting}")
                self._db.executescript(SCHEMA)
                self._db.execute("BEGIN")
            except BaseException:
                self._db.close()
                raise

    def __len__(self) -> int:
        """The number of documents so far."""
        return len(self._columns["file"])

    def add(self, packed: Sequence[Packed]) -> None:
        """The next rows, in order."""
        self._insert(f"documents VALUES (?,{TEXT},?,?,?,?,?,{TEXT},{TEXT},?,?)", map(self._row, packed))

    def number_files(self, places: Iterable[tuple[str, str]]) -> None:
        """Number the files (repository, path) of the next rows and copies, in this order."""
        for repository, path in places:
            self._file(repository, path)

    def _row(self, packed: Packed) -> tuple[object, ...]:
        id, repository, path, start, end, language, kind, name, qualified_name, digest, body, test = packed
        row = len(self)
        if test:
            self._columns["test_row"].append(row)
        stored_id = None if id == f"{repository}/{path}:{start}" else to_bytes(id)
        numbers = (self._file(repository, path), self._label(language), self._label(kind))
        for column, number in zip(COLUMNS, numbers, strict=False):
            self._columns[column].append(number)
        return (row, stored_id, start, end, *numbers, to_bytes(name), to_bytes(qualified_name), digest, body)

    def add_copy(self, row: int, location: Location) -> None:
        """Add the location of an exact duplicate of a row."""
        file = self._file(location.repository, location.path)
        self._columns["copy_row"].append(row)
        self._columns["copy_file"].append(file)
        copy = (row, location.start_line, location.end_line, file, to_bytes(location.qualified_name))
        self._insert(f"copies VALUES (?,?,?,?,{TEXT})", [copy])

    def finish(self) -> None:
        """Complete and close the file."""
        repositories, labels = (list(map(to_bytes, numbers)) for numbers in (self._repositories, self._labels))
        self._insert(f"repositories VALUES (?,{TEXT})", enumerate(repositories))
        self._insert(f"labels VALUES (?,{TEXT})", enumerate(labels))
        files = ((number, owner, to_bytes(path)) for number, (owner, path) in enumerate(self._files))
        self._insert(f"files VALUES (?,?,{TEXT})", files)
        columns = ((name, np.array(column, "<i4").tobytes()) for name, column in self._columns.items())
        self._insert("columns VALUES (?,?)", columns)
        with _write_errors(self.path):
            self._db.execute("COMMIT")
            self._db.executescript(INDICES)
        self._db.close()

    def close(self) -> None:
        """Close the file; it is readable only after `finish`."""
        self._db.close()

    def _file(self, repository: str, path: str) -> int:
        owner = self._repositories.setdefault(repository, len(self._repositories))
        return self._files.setdefault((owner, path), len(self._files))

    def _label(self, label: str) -> int:
        return self._labels.setdefault(label, len(self._labels))

    def _insert(self, into: str, rows: Iterable[Sequence[object]]) -> None:
        with _write_errors(self.path):
            self._db.executemany(f"INSERT INTO {into}", rows)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(
            f"cannot write {path}: {error}; free some space there or choose another folder with -i"
        ) from error
