"""The writer of documents in SQLite, and the schema; `ncs.storage.documents` is the reader."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ncs.errors import NcsError
from ncs.storage.packing import Packed, to_bytes
from ncs.types import Location

# File names may be invalid Unicode, which SQLite rejects in bound text but not in text cast from bytes.
TEXT = "CAST(? AS TEXT)"
SCHEMA = """
CREATE TABLE repositories (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE files (id INTEGER PRIMARY KEY, repository INTEGER NOT NULL, path TEXT NOT NULL);
CREATE TABLE labels (id INTEGER PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE documents (
    row INTEGER PRIMARY KEY, id TEXT, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, file INTEGER NOT NULL,
    language INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL, qualified_name TEXT NOT NULL,
    digest BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE copies (
    row INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, file INTEGER NOT NULL,
    qualified_name TEXT NOT NULL);
CREATE TABLE columns (name TEXT PRIMARY KEY, data BLOB NOT NULL);
"""
INDICES = """
CREATE INDEX copies_of ON copies (row);
CREATE INDEX documents_id ON documents (id) WHERE id IS NOT NULL;
"""
SETTINGS = ("page_size = 8192", "journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")
COLUMNS = ("file", "language", "kind", "copy_row", "copy_file")
"""Columns for filters: file and label numbers by row, and the rows and files of copies; int32, little endian."""
INSERT_DOCUMENT = f"INSERT INTO documents VALUES (?,{TEXT},?,?,?,?,?,{TEXT},{TEXT},?,?)"  # noqa: S608


class StoreWriter:
    """Appends documents to a new file; `finish` makes it readable. `IndexWriter.commit` syncs it."""

    def __init__(self, path: Path, *, code: bool = True) -> None:
        """code=False stores neither code nor words."""
        self.path = path
        self._code = code
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

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many documents so far."""
        return len(self._columns["file"])

    def add(self, packed: Sequence[Packed]) -> None:
        """The next rows, in order."""
        rows = [self._row(document) for document in packed]
        with _write_errors(self.path):
            self._db.executemany(INSERT_DOCUMENT, rows)

    def number_files(self, places: Iterable[tuple[str, str]]) -> None:
        """Number the files (repository, path) of the next rows and copies, in this order."""
        for repository, path in places:
            self._file(repository, path)

    def _row(self, packed: Packed) -> tuple[object, ...]:
        id, repository, path, start, end, language, kind, name, qualified_name, digest, body = packed
        row = len(self)
        stored_id = None if id == f"{repository}/{path}:{start}" else to_bytes(id)
        numbers = (self._file(repository, path), self._label(language), self._label(kind))
        for column, number in zip(COLUMNS, numbers, strict=False):
            self._columns[column].append(number)
        content = (digest, body) if self._code else (b"", b"")
        return (row, stored_id, start, end, *numbers, to_bytes(name), to_bytes(qualified_name), *content)

    def add_copy(self, row: int, location: Location) -> None:
        """Add the location of an exact duplicate of a row."""
        file = self._file(location.repository, location.path)
        self._columns["copy_row"].append(row)
        self._columns["copy_file"].append(file)
        self._insert("copies", row, location.start_line, location.end_line, file, location.qualified_name)

    def finish(self) -> dict[str, Any]:
        """Complete and close the file; returns `DocumentTable.counts`."""
        counts = self._counts()
        self._insert("columns", "counts", json.dumps(counts).encode())
        for name, column in self._columns.items():
            self._insert("columns", name, np.frombuffer(column, np.intc).astype("<i4").tobytes())
        with _write_errors(self.path):
            self._db.execute("COMMIT")
            self._db.executescript(INDICES)
        self._db.close()
        return counts

    def close(self) -> None:
        """Close the file; it is readable only after `finish`."""
        self._db.close()

    def _file(self, repository: str, path: str) -> int:
        owner = self._number(self._repositories, repository, "repositories", repository)
        return self._number(self._files, (owner, path), "files", owner, path)

    def _label(self, label: str) -> int:
        return self._number(self._labels, label, "labels", label)

    def _number(self, numbers: dict[Any, int], key: Any, table: str, *values: str | int) -> int:
        """The number of a value that many rows share, inserted on first use."""
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = len(numbers)
            self._insert(table, number, *values)
        return number

    def _insert(self, table: str, *values: str | int | bytes) -> None:
        marks = ",".join(TEXT if isinstance(value, str) else "?" for value in values)
        encoded = [to_bytes(value) if isinstance(value, str) else value for value in values]
        with _write_errors(self.path):
            self._db.execute(f"INSERT INTO {table} VALUES ({marks})", encoded)  # noqa: S608

    def _counts(self) -> dict[str, Any]:
        owners = array("i", (owner for owner, _ in self._files))
        repositories = [owners[file] for file in self._columns["file"]]
        return {
            "repositories": _tally(repositories, self._repositories),
            "languages": _tally(self._columns["language"], self._labels),
            "kinds": _tally(self._columns["kind"], self._labels),
            "copies": len(self._columns["copy_row"]),
        }


def _tally(numbers: Iterable[int], names: Mapping[str, int]) -> dict[str, int]:
    """Rows per name, sorted by name; names without rows are left out."""
    tally = Counter(numbers)
    return {name: tally[number] for name, number in sorted(names.items()) if tally[number]}


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(
            f"cannot write {path}: {error}; free some space there or choose another folder with -i"
        ) from error
