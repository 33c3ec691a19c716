"""Documents in SQLite, one database a segment: packing, writing, reading."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
import threading
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from ncs.errors import BROKEN, NcsError, damaged
from ncs.files import open_regular
from ncs.storage.arrays import both, split
from ncs.storage.filters import Filters, LocationFilter, names_of
from ncs.storage.snapshot import Snapshot
from ncs.types import Document, Field, Location, Mask, Tokens

T = TypeVar("T")
Packed: TypeAlias = tuple[str, str, str, int, int, str, str, str, str, bytes, bytes, bool]
"""id, repository, path, start and end line, language, kind, name, qualified name, digest, body, whether it is a test: a
document as stored, its body (words and code) compressed."""
PACKED, PLACED = get_args(Packed)[:-1], (str, str, int, int, str)

NAME = "documents.sqlite"
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
FIELD_END, WORD_END = "\x1e", "\x1f"
PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0")
BYTES, SHARE = 16 << 20, 4
"""Bound on the bytes of one read: BYTES plus SHARE times the file's size, as damaged pages may form circles. The same
bound holds for SQLite's instructions, counted in steps of STRIDE."""
STRIDE = 50_000
DENSITY = 32
"""Bodies unpack to at most BYTES plus DENSITY times their size; those of code to ten times."""
PLAIN, IN_JSON = "p", "j"
"""First letter of a body: words separated by FIELD_END and WORD_END, or JSON where they contain one of these."""
TEXT = "CAST(? AS TEXT)"
"""SQLite rejects invalid Unicode, as in file names, in bound text but not in text cast from bytes."""
LINE = re.compile("[1-9][0-9]{0,11}")
"""Numbers of lines, of a length that int() and SQLite accept."""
NAMES = 10_000
"""Rows per read of names."""
ID = "coalesce(documents.id, repositories.name || '/' || path || ':' || start_line)"
"""Ids made of a location are not stored."""
PLACE = "repositories.name, path, start_line, end_line, qualified_name"
JOIN = "JOIN files ON files.id = file JOIN repositories ON repositories.id = repository"
ROWS = "row IN (SELECT value FROM json_each(?))"
SELECT_IDS = f"SELECT row, {ID}, {PLACE} FROM documents {JOIN} WHERE {ROWS}"  # noqa: S608
SELECT_PACKED = f"""
    SELECT row, {ID}, repositories.name, path, start_line, end_line, languages.label, kinds.label, documents.name,
    qualified_name, digest, body FROM documents {JOIN} JOIN labels AS languages ON languages.id = language
    JOIN labels AS kinds ON kinds.id = kind WHERE {ROWS}"""  # noqa: S608
SELECT_CODE = f"SELECT row, qualified_name, body FROM documents WHERE {ROWS}"  # noqa: S608
SELECT_COPIES = f"SELECT row, file, {PLACE} FROM copies {JOIN} WHERE {ROWS} ORDER BY copies.rowid"  # noqa: S608
SELECT_COPIES_FROM = f"""
    SELECT digest, repositories.name, path, copies.start_line, copies.end_line, copies.qualified_name
    FROM copies JOIN documents USING (row) {JOIN.replace("= file ", "= copies.file ")}
    WHERE copies.rowid > ? AND copies.rowid <= ? ORDER BY copies.rowid"""  # noqa: S608
SELECT_FILES = f"SELECT name, path FROM files {JOIN.partition('file ')[2]} ORDER BY files.id"  # noqa: S608
SELECT_NAMES = """
    SELECT documents.name, qualified_name, label FROM documents JOIN labels ON labels.id = kind
    WHERE row >= ? AND row < ? ORDER BY row"""
SELECT_ROW = f"SELECT row FROM documents WHERE id = {TEXT}"  # noqa: S608
SELECT_ROW_AT = f"""
    SELECT row FROM documents {JOIN} WHERE documents.id IS NULL
    AND start_line = ? AND repositories.name || '/' || path = {TEXT}"""  # noqa: S608
SELECT_LENGTH = "SELECT length(data) / 4 FROM columns WHERE name = 'file'"
SETTINGS = ("page_size = 8192", "journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")
COLUMNS = ("file", "language", "kind", "copy_row", "copy_file", "test_row")
"""Columns for filters: file and label numbers by row, the rows and files of copies, and the rows of tests; int32,
little endian."""

# A function is small. With zlib's own 32 KB window and memory level 8, preparing each stream takes four times as long
# as compressing it (70 us instead of 19 us a document); half of each costs .1 % in size.
LEVEL, WINDOW_BITS, MEMORY_LEVEL = 6, 14, 7


def database_uri(path: PurePath) -> str:
    """The read-only URI of a database; the server of a Windows share becomes part of the path, as SQLite needs it."""
    return re.sub("^file://(?!/)", "file:////", path.as_uri()) + "?mode=ro&immutable=1"


class DocumentTable:
    """The documents of a segment, read only; works on read-only media and from several threads."""

    def __init__(self, path: Path) -> None:
        """Raises IndexDamaged if the file is missing or not a document table."""
        self.path = path
        self._lock = threading.RLock()
        self._steps = [0]  # counted since a read began, in STRIDE
        with self._reading():
            with open_regular(path) as file:
                self._bytes = BYTES + SHARE * os.fstat(file.fileno()).st_size
            self._db = sqlite3.connect(database_uri(path.resolve()), uri=True, check_same_thread=False)
            self._db.text_factory = to_str
            try:
                self._limit(self._db, self._steps, self._bytes)
                self._check_schema()
                self._length = int(self._db.execute(SELECT_LENGTH).fetchone()[0])
            except BaseException:
                self._db.close()
                raise

    @staticmethod
    def _limit(db: sqlite3.Connection, steps: list[int], most: int) -> None:
        """Set the limits for untrusted files: no code of the schema is run, and endless statements are stopped."""

        def count() -> bool:
            steps[0] += STRIDE
            return steps[0] > most

        db.set_progress_handler(count, STRIDE)
        for pragma in PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        if sys.version_info >= (3, 11):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most, 1 << 30))

    def _check_schema(self) -> None:
        """Raise ValueError for any schema but that of `StoreWriter`."""
        schema = set(self._db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100"))
        if schema != _expected_schema():
            raise ValueError("its tables are not those of ncs")

    def __len__(self) -> int:
        """The number of documents."""
        return self._length

    def __enter__(self) -> DocumentTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def documents(self, rows: Sequence[int], dead_files: frozenset[int] = frozenset()) -> list[Document]:
        """Documents with words, code and copies in live files, in the order of `rows`; raises IndexDamaged for unknown
        rows."""
        with self._reading():
            copies: dict[int, list[Location]] = {}
            for row, file, *place in self._rows(SELECT_COPIES, (_json(rows),), (int, int, *PLACED)):
                if file not in dead_files:
                    copies.setdefault(row, []).append(Location(*place))
            packed = self.packed(rows)
            bodies = map(_unpack_text, _unpack([body for *_, body, _ in packed]))
            return [
                Document(*each[:-3], words, code, each[-3], tuple(copies.get(row, ())), each[-1])
                for row, each, (code, words) in zip(rows, packed, bodies, strict=True)
            ]

    def packed(self, rows: Sequence[int]) -> list[Packed]:
        """Rows as `pack` made them."""
        packed, tests = self._select(SELECT_PACKED, rows, PACKED), self.tests(rows).tolist()
        return [(*each, test) for each, test in zip(packed, tests, strict=True)]

    def tests(self, rows: Sequence[int]) -> Mask:
        """Whether each row is a test by its syntax."""
        first, last = (np.searchsorted(self._test_rows, rows, side) for side in ("left", "right"))
        return np.asarray(first < last)

    @cached_property
    def _test_rows(self) -> NDArray[np.int32]:
        return self.column("test_row")

    def locations(self, rows: Sequence[int]) -> list[Location]:
        """The locations of documents, in the order of `rows`."""
        return [Location(*place) for _, *place in self._select(SELECT_IDS, rows, (str, *PLACED))]

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Ids of rows, in their order."""
        return [id for id, *_ in self._select(SELECT_IDS, rows, (str, *PLACED))]

    def copies(self, start: int, stop: int) -> list[tuple[bytes, Location]]:
        """The copies start..stop in insertion order: the digest of the original and the copy's location."""
        with self._reading():
            rows = list(self._rows(SELECT_COPIES_FROM, (start, stop), (bytes, *PLACED)))
        return [(digest, Location(*place)) for digest, *place in rows]

    @cached_property
    def files(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The number of each row's file, int32 [n], and (repository, path) of each number."""
        with self._reading():
            return self.column("file"), list(self._rows(SELECT_FILES, (), (str, str)))

    def names(self) -> Iterator[tuple[str, str, str]]:
        """(name, qualified name, kind) of every row, in order."""
        for start in range(0, len(self), NAMES):
            with self._reading():
                rows = list(self._rows(SELECT_NAMES, (start, start + NAMES), (str, str, str)))
            yield from rows

    def codes(self, rows: Sequence[int]) -> Iterator[tuple[str, str]]:
        """(qualified name, code) of some rows, in their order; code that was not stored is ""."""
        return self._bodies(rows, _unpack_code)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Qualified name, code and words (but those of the path) of each row as one text, joined by zeros."""
        return [f"{name}\0{text}" for name, text in self._bodies(rows, _unpack_all)]

    def declared(self, rows: Sequence[int]) -> Iterator[Tokens]:
        """The names that each row declares; none without stored words."""
        return (names for _, names in self._bodies(rows, lambda text: _unpack_text(text)[1].get("declared", ())))

    def _bodies(self, rows: Sequence[int], read: Callable[[str], T]) -> Iterator[tuple[str, T]]:
        """(qualified name, `read` of the unpacked body) of each row."""
        for start in range(0, len(rows), NAMES):
            found = self._select(SELECT_CODE, rows[start : start + NAMES], (str, bytes))
            with self._reading():
                bodies = list(map(read, _unpack([body for _, body in found])))
            yield from zip((name for name, _ in found), bodies, strict=True)

    def rows_of(self, id: str) -> list[int]:
        """The rows with this id."""
        place, _, line = id.rpartition(":")
        with self._reading():
            rows = list(self._rows(SELECT_ROW, (to_bytes(id),), (int,)))
            if not rows and LINE.fullmatch(line):
                rows = list(self._rows(SELECT_ROW_AT, (int(line), to_bytes(place)), (int,)))
            if any(not 0 <= row < len(self) for (row,) in rows):
                raise ValueError("a row does not exist")
        return [row for (row,) in rows]

    def column(self, name: str) -> NDArray[np.int32]:
        """One of COLUMNS."""
        with self._reading():
            (data,) = self._db.execute("SELECT data FROM columns WHERE name = ?", (name,)).fetchone()
            return np.frombuffer(data, np.dtype("<i4"))

    def counts(self, dead_files: NDArray[np.int64] | tuple[()] = ()) -> dict[str, Any]:
        """The numbers of documents and copies in live files, and of documents by repository (0: only copies), language
        and kind."""
        with self._reading():
            labels = [label for (label,) in self._rows("SELECT label FROM labels ORDER BY id", (), (str,))]
            files, places = self.files
            live = ~np.isin(files, dead_files)
            copy_files = self.column("copy_file")
            live_copies = copy_files[~np.isin(copy_files, dead_files)]
            repositories = Counter({places[file][0]: 0 for file in live_copies.tolist()})
            repositories.update(places[file][0] for file in files[live].tolist())
            languages, kinds = (
                Counter(labels[label] for label in self.column(name)[live].tolist()) for name in ("language", "kind")
            )
        of_label = {"repositories": repositories, "languages": languages, "kinds": kinds}
        return {"documents": int(live.sum()), "copies": len(live_copies), **of_label}

    def with_labels(self, column: str, labels: Collection[str]) -> Mask:
        """Mask of the rows whose "language" or "kind" is one of the labels, bool [n]."""
        with self._reading():
            ids = [id for id, label in self._rows("SELECT id, label FROM labels", (), (int, str)) if label in labels]
            return np.isin(self.column(column), ids)

    def mask(self, filters: Filters, passes: LocationFilter | None, dead_files: NDArray[np.int64]) -> Mask:
        """Mask of the rows that match language and kind, and with a live location, their own or a copy's, that
        `passes`, bool [n]."""
        mask = np.ones(len(self), np.bool_)
        for column, names in (("language", filters.language), ("kind", filters.kind)):
            if names:
                mask &= self.with_labels(column, names_of(names))
        if filters.language_not:
            mask &= ~self.with_labels("language", names_of(filters.language_not))
        if passes is not None:
            files, places = self.files  # before the lock: until Python 3.11 a cached property has one, too
            with self._reading():
                matching = np.array([passes(*place) for place in places], np.bool_)
                matching[dead_files] = False
                in_files = matching[files]
                in_files[self.column("copy_row")[matching[self.column("copy_file")]]] = True
                mask &= in_files
        return mask

    def _rows(self, query: str, parameters: tuple[object, ...], kinds: tuple[type, ...]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query; raises ValueError or TypeError for values of other types or more than the limit."""
        left = self._bytes
        for values in self._db.execute(query, parameters):
            left -= sum(len(value) for value in values if type(value) is not int)
            if left < 0 or tuple(map(type, values)) != kinds:
                raise ValueError("its values are of other kinds, or endless")
            yield values

    def _select(self, query: str, rows: Sequence[int], kinds: tuple[type, ...]) -> list[Any]:
        """The values of a query for each row, in the order of `rows`; raises IndexDamaged for unknown rows."""
        with self._reading():
            by_row = {row: values for row, *values in self._rows(query, (_json(rows),), (int, *kinds))}
        try:
            return [by_row[row] for row in rows]
        except KeyError as error:
            raise damaged(f"{self.path} has no row {error}") from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Serialize reads: since Python 3.12, threads that share a connection mix up each other's rows."""
        try:
            with self._lock:
                self._steps[0] = 0
                yield
        except sqlite3.ProgrammingError:  # a closed table: the caller's fault
            raise
        except (*BROKEN, OSError, sqlite3.Error, zlib.error) as error:
            raise damaged(f"{self.path} is damaged ({error})") from error


class Documents:
    """The documents of a snapshot. Rows are counted through all segments, tombstones included."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.tables: list[DocumentTable] = []
        try:
            for segment in snapshot.segments:
                self.tables.append(DocumentTable(segment.path / NAME))
                if len(self.tables[-1]) != segment.documents:
                    raise damaged(f"{segment.path / NAME} does not have {segment.documents} documents")
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

    def document(self, row: int) -> Document:
        """One document."""
        return self.documents([row])[0]

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """`DocumentTable.documents`, over all segments."""

        def read(number: int, local: list[int]) -> list[Document]:
            dead_files = frozenset(self._snapshot.segments[number].dead_files.tolist())
            return self.tables[number].documents(local, dead_files)

        return self._gather(rows, read)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """`DocumentTable.texts`, over all segments."""
        return self._gather(rows, lambda number, local: self.tables[number].texts(local))

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
            own, own_files = table.files
            numbers.append(own + len(places))
            places += own_files
        files, live = np.concatenate(numbers).astype(np.int32), self._snapshot.live
        return files if live is None else np.where(live, files, np.int32(-1)), places

    def row_of(self, id: str) -> int | None:
        """The first row of a document; None for an unknown id."""
        live = self._snapshot.live
        pairs = zip(self._snapshot.segments, self.tables, strict=True)
        rows = (segment.first + row for segment, table in pairs for row in table.rows_of(id))
        return next((row for row in rows if live is None or live[row]), None)

    def mask(self, filters: Filters) -> Mask | None:
        """Mask of the live rows that match language, kind and location, bool [n]; None if all rows do. filters: with
        the index's names of languages and kinds (`Filters.known`)."""
        passes = self.location_filter(filters)
        if passes is None and not (filters.language or filters.language_not or filters.kind):
            return self._snapshot.live
        pairs = zip(self._snapshot.segments, self.tables, strict=True)
        return both(np.concatenate([t.mask(filters, passes, s.dead_files) for s, t in pairs]), self._snapshot.live)

    def location_filter(self, filters: Filters) -> LocationFilter | None:
        """Whether a location passes; None if all do."""
        repositories = self._snapshot.description.counts.get("repositories") or ()
        return filters.locations(several=len(repositories) > 1)

    def _gather(self, rows: Sequence[int], read: Callable[[int, list[int]], list[T]]) -> list[T]:
        """Values of rows, in their order; `read` returns those of local rows of one segment."""
        values: dict[int, T] = {}
        for number, at, local in split(self._snapshot.firsts, np.array(rows, np.int64)):
            values.update(zip(at.tolist(), read(number, local.tolist()), strict=True))
        return [values[at] for at in range(len(rows))]


def _unpack(bodies: Sequence[bytes]) -> Iterator[str]:
    """The text of each body, "" if none was stored; raises zlib.error or one of BROKEN for wrong bytes, and ValueError
    for more than code can have."""
    left = BYTES + DENSITY * sum(map(len, bodies))
    for body in bodies:
        stream = zlib.decompressobj()
        data = stream.decompress(body, left) if body else b""
        left -= len(data)
        if left <= 0 or (body and not stream.eof):
            raise ValueError("a body is cut or endless")
        yield to_str(data)


def _unpack_text(text: str) -> tuple[str, Mapping[Field, Tokens]]:
    """Code and words of an unpacked body."""
    if text[:1] == IN_JSON:
        code, words = json.loads(text[1:])
        if {type(each) for each in (code, *chain.from_iterable(words.values()))} != {str}:
            raise ValueError("a body holds no words")
        return code, {field: tuple(spellings) for field, spellings in words.items()}
    code, *fields = text[1:].split(FIELD_END)
    words = {}
    for field in fields:
        name, *spellings = field.split(WORD_END)
        words[name] = tuple(spellings)
    return code, words


def _unpack_code(text: str) -> str:
    return _unpack_text(text)[0] if text[:1] == IN_JSON else text[1:].partition(FIELD_END)[0]


def _unpack_all(text: str) -> str:
    code, words = _unpack_text(text)
    return "\0".join((code, *chain.from_iterable(words[field] for field in words if field != "path")))


@cache
def _expected_schema() -> set[tuple[str, str, str, str | None]]:
    """(type, name, table, SQL) of all tables and indices."""
    made: set[tuple[str, str, str, str | None]] = {("index", "sqlite_autoindex_columns_1", "columns", None)}
    for statement in (SCHEMA + INDICES).split(";\n")[:-1]:
        _, kind, name, *more = statement.split()
        made.add((kind.lower(), name, more[1] if kind == "INDEX" else name, statement.strip()))
    return made


def to_bytes(text: str) -> bytes:
    """UTF-8; surrogates pass, as file names may be invalid Unicode."""
    return text.encode("utf-8", "surrogatepass")


def to_str(data: bytes) -> str:
    """The text of `to_bytes`."""
    return data.decode("utf-8", "surrogatepass")


def _json(rows: Sequence[int]) -> str:
    return json.dumps([int(row) for row in rows])


def pack(document: Document, *, code: bool = True) -> Packed:
    """A document as stored, compressed; called in the worker process. code=False keeps only location and names: words
    and a digest would reveal content."""
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
