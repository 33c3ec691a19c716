"""Documents into SQLite: the schema, and rows in the order they come. `ncs.storage.documents` reads them."""

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

# Names of files need not be Unicode, which SQLite's text must be when it is bound as such; cast from bytes it need not.
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
"""What filters read: numbers of files and labels by row, and the rows and files of copies; int32, little endian."""
INSERT_DOCUMENT = f"INSERT INTO documents VALUES (?,{TEXT},?,?,?,?,?,{TEXT},{TEXT},?,?)"  # noqa: S608


class StoreWriter:
    """Appends documents to a new file; `finish` makes it readable. Nothing is synced: the index folder does that."""

    def __init__(self, path: Path, *, code: bool = True) -> None:
        """code=False keeps neither code nor words, however the documents were packed."""
        self.path = path
        self._code = code
        self._repositories: dict[str, int] = {}
        self._files: dict[tuple[int, str], int] = {}
        self._labels: dict[str, int] = {}
        self._columns = {name: array("i") for name in COLUMNS}
        with _writing(path):
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
        with _writing(self.path):
            self._db.executemany(INSERT_DOCUMENT, rows)

    def number_files(self, places: Iterable[tuple[str, str]]) -> None:
        """Files (repository, path) of the next rows and copies, in order: numbers must not hang on batches."""
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
        """Where an exact duplicate of a row stands."""
        file = self._file(location.repository, location.path)
        self._columns["copy_row"].append(row)
        self._columns["copy_file"].append(file)
        self._insert("copies", row, location.start_line, location.end_line, file, location.qualified_name)

    def finish(self) -> dict[str, Any]:
        """Complete and close the file; the counts of `Store.counts`."""
        counts = self._counts()
        self._insert("columns", "counts", json.dumps(counts).encode())
        for name, column in self._columns.items():
            self._insert("columns", name, np.frombuffer(column, np.intc).astype("<i4").tobytes())
        with _writing(self.path):
            self._db.execute("COMMIT")
            self._db.executescript(INDICES)
        self._db.close()
        return counts

    def close(self) -> None:
        """Let go of the file; without `finish` before, it is no store."""
        self._db.close()

    def _file(self, repository: str, path: str) -> int:
        owner = self._number(self._repositories, repository, "repositories", repository)
        return self._number(self._files, (owner, path), "files", owner, path)

    def _label(self, label: str) -> int:
        return self._number(self._labels, label, "labels", label)

    def _number(self, known: dict[Any, int], key: Any, table: str, *values: str | int) -> int:
        """The number of what stands in many rows."""
        number = known.get(key)
        if number is None:
            number = known[key] = len(known)
            self._insert(table, number, *values)
        return number

    def _insert(self, table: str, *values: str | int | bytes) -> None:
        marks = ",".join(TEXT if isinstance(value, str) else "?" for value in values)
        bound = [to_bytes(value) if isinstance(value, str) else value for value in values]
        with _writing(self.path):
            self._db.execute(f"INSERT INTO {table} VALUES ({marks})", bound)  # noqa: S608

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
    """How many rows a name has, in order of names; names without rows are left out."""
    counted = Counter(numbers)
    return {name: counted[number] for name, number in sorted(names.items()) if counted[number]}


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(
            f"cannot write {path}: {error}; free some space there or choose another folder with -i"
        ) from error
