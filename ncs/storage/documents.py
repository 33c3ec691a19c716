"""The reader of documents in SQLite; `ncs.storage.documents_writer` is the writer."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.documents_writer import TEXT
from ncs.storage.filters import Matcher, matcher
from ncs.storage.packing import Packed, to_bytes, to_str, unpack_body
from ncs.types import Document, Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask

T = TypeVar("T")

NAME = "documents.sqlite"
LINE = re.compile("[1-9][0-9]{0,11}")
PLACE = "repositories.name, files.path, start_line, end_line, qualified_name"
JOIN = "JOIN files ON files.id = file JOIN repositories ON repositories.id = files.repository"
ROWS = "(SELECT value FROM json_each(?))"
SELECT_LOCATIONS = f"SELECT row, {PLACE} FROM documents {JOIN} WHERE row IN {ROWS}"  # noqa: S608
SELECT_COPIES = f"SELECT row, copies.file, {PLACE} FROM copies {JOIN} WHERE row IN {ROWS} ORDER BY copies.rowid"  # noqa: S608
SELECT_IDS = f"SELECT row, documents.id, {PLACE} FROM documents {JOIN} WHERE row IN {ROWS}"  # noqa: S608
LABELS = "JOIN labels AS languages ON languages.id = language JOIN labels AS kinds ON kinds.id = kind"
SELECT_DOCUMENTS = f"""
    SELECT row, documents.id, {PLACE}, languages.label, kinds.label, documents.name, digest, body FROM documents {JOIN}
    {LABELS} WHERE row IN {ROWS}"""  # noqa: S608
SELECT_PACKED = f"""
    SELECT documents.id, {PLACE}, languages.label, kinds.label, documents.name, digest, body FROM documents {JOIN}
    {LABELS} WHERE row >= ? AND row < ? ORDER BY row"""  # noqa: S608
SELECT_COPIES_FROM = f"""
    SELECT digest, repositories.name, files.path, copies.start_line, copies.end_line, copies.qualified_name
    FROM copies JOIN documents ON documents.row = copies.row {JOIN.replace("= file ", "= copies.file ")}
    WHERE copies.rowid > ? AND copies.rowid <= ? ORDER BY copies.rowid"""  # noqa: S608
SELECT_FILES = "SELECT name, path FROM files JOIN repositories ON repositories.id = repository ORDER BY files.id"
SELECT_OWNERS = "SELECT files.id, name FROM files JOIN repositories ON repositories.id = repository"
SELECT_NAMES = """
    SELECT documents.name, qualified_name, label FROM documents JOIN labels ON labels.id = kind
    WHERE row >= ? AND row < ? ORDER BY row"""
NAMES = 10_000
"""Rows per read of names."""
SELECT_LENGTH = "SELECT length(data) / 4 FROM columns WHERE name = 'file'"
SELECT_ROW = f"SELECT row FROM documents WHERE id = {TEXT}"  # noqa: S608
SELECT_ROW_AT = f"""
    SELECT row FROM documents {JOIN} WHERE documents.id IS NULL
    AND start_line = ? AND repositories.name || '/' || files.path = {TEXT}"""  # noqa: S608


class DocumentTable:
    """The documents of a segment, read only; works on read-only media and from several threads."""

    def __init__(self, path: Path) -> None:
        """Raises IndexDamaged if the file is missing or not a document table."""
        self.path = path
        self._lock = threading.Lock()
        with self._lock_reads():
            uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
            self._db = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._db.text_factory = to_str
            try:
                self._length = int(self._db.execute(SELECT_LENGTH).fetchone()[0])
            except BaseException:
                self._db.close()
                raise

    def __len__(self) -> int:
        """How many documents."""
        return self._length

    def __enter__(self) -> DocumentTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def counts(self) -> Mapping[str, Any]:
        """Documents per repository, language and kind, and the number of copies."""
        with self._lock_reads():
            counts: dict[str, Any] = json.loads(self._data("counts"))
        return counts

    def documents(self, rows: Sequence[int], dead_files: frozenset[int] = frozenset()) -> list[Document]:
        """Whole documents with words, code and copies, in the order of `rows`; copies in dead files are left out.

        Raises IndexDamaged for unknown rows.
        """
        with self._lock_reads():
            copies: dict[int, list[Location]] = {}
            for row, file, *place in self._select(SELECT_COPIES, rows):
                if file not in dead_files:
                    copies.setdefault(row, []).append(Location(*place))
            by_row = {row[0]: document_of(row, copies.get(row[0], ())) for row in self._select(SELECT_DOCUMENTS, rows)}
        return self._in_order(by_row, rows)

    def locations(self, rows: Sequence[int]) -> list[Location]:
        """The locations of documents, in the order of `rows`."""
        with self._lock_reads():
            by_row = {row: Location(*place) for row, *place in self._select(SELECT_LOCATIONS, rows)}
        return self._in_order(by_row, rows)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Ids of rows, in their order."""
        with self._lock_reads():
            by_row = {row: id_of(id, Location(*place)) for row, id, *place in self._select(SELECT_IDS, rows)}
        return self._in_order(by_row, rows)

    def packed(self, start: int, stop: int) -> list[Packed]:
        """The rows start..stop as `pack` made them."""
        with self._lock_reads():
            rows = self._db.execute(SELECT_PACKED, (start, stop)).fetchall()
        return [
            (id_of(id, Location(*place)), *place[:4], language, kind, name, place[4], digest, body)
            for id, *place, language, kind, name, digest, body in rows
        ]

    def copies(self, start: int, stop: int) -> list[tuple[bytes, Location]]:
        """The copies start..stop in insertion order: the digest of the original and the copy's location."""
        with self._lock_reads():
            rows = self._db.execute(SELECT_COPIES_FROM, (start, stop)).fetchall()
        return [(digest, Location(*place)) for digest, *place in rows]

    def copied_rows(self) -> NDArray[np.int32]:
        """The original's row for each copy, in the order of `copies`."""
        with self._lock_reads():
            return self._column("copy_row")

    def files(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The number of each row's file, int32 [n], and (repository, path) of each number."""
        with self._lock_reads():
            places = [(repository, path) for repository, path in self._db.execute(SELECT_FILES)]
            return self._column("file"), places

    def names(self) -> Iterator[tuple[str, str, str]]:
        """(name, qualified name, kind) of every row, in order."""
        for start in range(0, len(self), NAMES):
            with self._lock_reads():
                rows = self._db.execute(SELECT_NAMES, (start, start + NAMES)).fetchall()
            yield from rows

    def of_kinds(self, kinds: Collection[str]) -> Mask:
        """Mask of the rows of these kinds, bool [n]."""
        return self.labelled("kind", kinds.__contains__)

    def rows_of(self, id: str) -> list[int]:
        """The rows with this id."""
        place, _, line = id.rpartition(":")
        with self._lock_reads():
            rows = self._db.execute(SELECT_ROW, (to_bytes(id),)).fetchall()
            if not rows and LINE.fullmatch(line):
                rows = self._db.execute(SELECT_ROW_AT, (int(line), to_bytes(place))).fetchall()
        return [int(row) for (row,) in rows]

    def column(self, name: str) -> NDArray[np.int32]:
        """One of ncs.storage.documents_writer.COLUMNS."""
        with self._lock_reads():
            return self._column(name)

    def live_counts(self, dead_files: NDArray[np.int64]) -> dict[str, Any]:
        """`counts` without the documents and copies of dead files, and the number of live documents."""
        with self._lock_reads():
            labels = dict(self._db.execute("SELECT id, label FROM labels"))
            owners = dict(self._db.execute(SELECT_OWNERS))
            file, copy_file = self._column("file"), self._column("copy_file")
            live = ~np.isin(file, dead_files)
            repositories: Counter[str] = Counter()
            for number, n in enumerate(np.bincount(file[live]).tolist()):
                if n:
                    repositories[owners[number]] += n
            by_label = {
                name: {labels[id]: n for id, n in enumerate(np.bincount(self._column(column)[live]).tolist()) if n}
                for name, column in (("languages", "language"), ("kinds", "kind"))
            }
        copies = int(np.count_nonzero(~np.isin(copy_file, dead_files)))
        return {"documents": int(live.sum()), "copies": copies, "repositories": repositories, **by_label}

    def labelled(self, column: str, accept: Callable[[str], bool]) -> Mask:
        """Mask of the rows whose "language" or "kind" is accepted, bool [n]."""
        with self._lock_reads():
            return np.isin(self._column(column), self._numbers("SELECT id, label FROM labels", accept))

    def files_matching(self, in_repository: Matcher, in_path: Matcher) -> list[int]:
        """The numbers of files whose repository and path match."""
        with self._lock_reads():
            owners = self._numbers("SELECT id, name FROM repositories", in_repository)
            files = self._db.execute(f"SELECT id, path FROM files WHERE repository IN {ROWS}", (json.dumps(owners),))  # noqa: S608
            return [file for file, path in files if in_path(path)]

    def mask(
        self,
        language: str | None,
        repository: str | None,
        path: str | None,
        kind: str | None,
        dead_files: NDArray[np.int64],
    ) -> Mask:
        """Mask of the rows that match all filters, themselves or by a copy in a live file, bool [n]."""
        mask = np.ones(len(self), np.bool_)
        for column, label in (("language", language), ("kind", kind)):
            if label is not None:
                mask &= self.labelled(column, label.lower().__eq__)
        if repository is not None or path is not None:
            files = self.files_matching(matcher(repository), matcher(path))
            mask &= self._in_files(np.setdiff1d(np.array(files, np.int64), dead_files))
        return mask

    def _in_files(self, files: NDArray[np.int64]) -> Mask:
        """Mask of the rows in these files, themselves or by a copy."""
        with self._lock_reads():
            mask = np.isin(self._column("file"), files)
            mask[self._column("copy_row")[np.isin(self._column("copy_file"), files)]] = True
        return mask

    def _numbers(self, query: str, accept: Callable[[str], bool]) -> list[int]:
        return [number for number, name in self._db.execute(query) if accept(name)]

    def _select(self, query: str, rows: Sequence[int]) -> Iterator[Any]:
        return self._db.execute(query, (json.dumps([int(row) for row in rows]),))

    def _in_order(self, by_row: Mapping[int, T], rows: Sequence[int]) -> list[T]:
        try:
            return [by_row[row] for row in rows]
        except KeyError as error:
            raise IndexDamaged(f"{self.path} has no row {error}; {REMEDY}") from None

    def _data(self, name: str) -> bytes:
        row = self._db.execute("SELECT data FROM columns WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise sqlite3.DatabaseError(f"{name} is missing")
        data: bytes = row[0]
        return data

    def _column(self, name: str) -> NDArray[np.int32]:
        return np.frombuffer(self._data(name), np.dtype("<i4"))

    @contextmanager
    def _lock_reads(self) -> Iterator[None]:
        """Serialize reads: since Python 3.12, threads that share a connection mix up each other's rows."""
        try:
            with self._lock:
                yield
        except sqlite3.ProgrammingError:  # a closed table: the caller's fault
            raise
        except (sqlite3.Error, zlib.error, ValueError, IndexError, TypeError) as error:
            raise IndexDamaged(f"{self.path} is damaged ({error}); {REMEDY}") from error


REMEDY = "build the index again with: ncs build"


class Documents:
    """The documents of a snapshot. Rows are counted through all segments, tombstones included."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.tables: list[DocumentTable] = []
        try:
            for segment in snapshot.segments:
                self.tables.append(DocumentTable(segment.path / NAME))
                if len(self.tables[-1]) != segment.documents:
                    raise IndexDamaged(f"{segment.path / NAME} does not have {segment.documents} documents; {REMEDY}")
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return len(self._snapshot)

    def rows(self) -> NDArray[np.int64]:
        """All rows but tombstones, ascending."""
        live = self._snapshot.live
        return np.arange(len(self)) if live is None else np.flatnonzero(live)

    def close(self) -> None:
        """Close the files."""
        for table in self.tables:
            table.close()

    @property
    def counts(self) -> Mapping[str, Any]:
        """Live documents per repository, language and kind, and the number of copies."""
        return self._snapshot.description.counts

    def document(self, row: int) -> Document:
        """One document."""
        return self.documents([row])[0]

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Whole documents with words, code and copies, in the order of `rows`. Raises IndexDamaged for unknown rows."""
        return self._gather(
            rows,
            lambda number, local: self.tables[number].documents(
                local, frozenset(self._snapshot.segments[number].dead_files.tolist())
            ),
        )

    def locations(self, rows: Sequence[int]) -> list[Location]:
        """The locations of documents, in the order of `rows`."""
        return self._gather(rows, lambda number, local: self.tables[number].locations(local))

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Ids of rows, in their order."""
        return self._gather(rows, lambda number, local: self.tables[number].ids(local))

    def names(self) -> Iterator[tuple[str, str, str]]:
        """(name, qualified name, kind) of every row, tombstones included."""
        return chain.from_iterable(table.names() for table in self.tables)

    def files(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The number of each row's file, int32 [n], -1 for tombstones, and (repository, path) of each number."""
        numbers, places = [], list[tuple[str, str]]()
        for table in self.tables:
            own, own_files = table.files()
            numbers.append(own + len(places))
            places += own_files
        files, live = np.concatenate(numbers).astype(np.int32), self._snapshot.live
        return files if live is None else np.where(live, files, np.int32(-1)), places

    def row_of(self, id: str) -> int | None:
        """The row of a document; None for an unknown id."""
        return next(iter(self.rows_of(id)), None)

    def rows_of(self, id: str) -> list[int]:
        """The rows of the documents with an id."""
        live = self._snapshot.live
        pairs = zip(self._snapshot.segments, self.tables, strict=True)
        rows = [segment.first + row for segment, table in pairs for row in table.rows_of(id)]
        return rows if live is None else [row for row in rows if live[row]]

    def mask(
        self,
        language: str | None = None,
        repository: str | None = None,
        path: str | None = None,
        kind: str | None = None,
    ) -> Mask | None:
        """Mask of the live rows that match all filters, bool [n]; None if all rows do.

        repository and path are patterns (`ncs.storage.filters.matcher`); one location of a row must match both.
        """
        if language is None and repository is None and path is None and kind is None:
            return self._snapshot.live
        pairs = zip(self._snapshot.segments, self.tables, strict=True)
        masks = [table.mask(language, repository, path, kind, segment.dead_files) for segment, table in pairs]
        return self._snapshot.allowed(np.concatenate(masks))

    def _gather(self, rows: Sequence[int], read: Callable[[int, list[int]], list[T]]) -> list[T]:
        """Read local rows segment by segment; values in the order of `rows`."""
        values: dict[int, T] = {}
        for number, at, local in self._snapshot.split(np.array(rows, np.int64)):
            values.update(zip(at.tolist(), read(number, local.tolist()), strict=True))
        return [values[at] for at in range(len(rows))]


def id_of(stored: str | None, place: Location) -> str:
    """The id of a document; ids made of its location are not stored."""
    return f"{place.repository}/{place.path}:{place.start_line}" if stored is None else stored


def document_of(row: Sequence[Any], copies: Sequence[Location]) -> Document:
    """A document from a row of SELECT_DOCUMENTS."""
    _, id, repository, path, start, end, qualified_name, language, kind, name, digest, body = row
    place = Location(repository, path, start, end, qualified_name)
    code, words = unpack_body(body)
    return Document(
        id_of(id, place),
        repository,
        path,
        start,
        end,
        language,
        kind,
        name,
        qualified_name,
        words,
        code,
        digest,
        tuple(copies),
    )
