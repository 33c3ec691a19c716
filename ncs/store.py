"""Documents on disk, in SQLite: rows in the order they were added, their words and code compressed."""

from __future__ import annotations

import json
import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import translate
from glob import escape
from pathlib import Path
from re import compile as compile_pattern
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ncs.errors import IndexDamaged, NcsError
from ncs.types import Document, Location

if TYPE_CHECKING:
    from ncs.types import Mask

Packed: TypeAlias = tuple[str, str, str, int, int, str, str, str, str, bytes, bytes, bytes]
"""id, repository, path, start and end line, language, kind, name, qualified name, digest, words, code."""

LEVEL = 5  # of zlib
PAGE = 8192  # bytes

SCHEMA = """
CREATE TABLE repositories (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE files (id INTEGER PRIMARY KEY, repository INTEGER NOT NULL, path TEXT NOT NULL);
CREATE TABLE labels (id INTEGER PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE documents (
    row INTEGER PRIMARY KEY, id TEXT, file INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    language INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL, qualified_name TEXT NOT NULL, digest BLOB);
CREATE TABLE bodies (row INTEGER PRIMARY KEY, words BLOB NOT NULL, code BLOB NOT NULL);
CREATE TABLE copies (
    row INTEGER NOT NULL, file INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    qualified_name TEXT NOT NULL);
CREATE TABLE columns (name TEXT PRIMARY KEY, data BLOB NOT NULL);
"""
INDICES = """
CREATE INDEX copies_of ON copies (row);
CREATE INDEX documents_id ON documents (id) WHERE id IS NOT NULL;
"""


def pack(document: Document, *, code: bool = True) -> Packed:
    """A document as the store keeps it; runs where the document was made, so that compression is parallel.

    code=False keeps where it stands and its names: literals and comments among the words are content too.
    """
    d = document
    words = source = digest = b""
    if code:
        spelt = json.dumps(dict(d.words), ensure_ascii=False, separators=(",", ":"))
        words = zlib.compress(_encode(spelt), LEVEL)
        source = zlib.compress(_encode(d.code), LEVEL) if d.code else b""
        digest = d.digest
    place = (d.repository, d.path, d.start_line, d.end_line)
    return (d.id, *place, d.language, d.kind, d.name, d.qualified_name, digest, words, source)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(value: str) -> str | bytes:
    """SQLite text must be valid Unicode; names of files need not be."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return _encode(value)
    return value


def _str(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


class StoreWriter:
    """Appends documents to a new file; `finish` makes it readable. Nothing is synced: the index folder does that."""

    def __init__(self, path: Path, *, code: bool = True) -> None:
        self.path = path
        with _writing(path):
            self._db = sqlite3.connect(path, isolation_level=None)
            for pragma in (
                f"page_size = {PAGE}",
                "journal_mode = OFF",
                "synchronous = OFF",
                "locking_mode = EXCLUSIVE",
            ):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(SCHEMA)
            self._db.execute("BEGIN")
        self._repositories: dict[str, int] = {}
        self._files: dict[tuple[int, str], int] = {}
        self._labels: dict[str, int] = {}
        self._columns = {name: array("i") for name in ("file", "language", "kind", "copy_row", "copy_file")}

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, packed: Sequence[Packed]) -> None:
        """The next rows, in order."""
        columns = self._columns
        row, documents, bodies = len(columns["file"]), [], []
        for id, repository, path, start, end, language, kind, name, qualified_name, digest, words, code in packed:
            file, language_label, kind_label = self._file(repository, path), self._label(language), self._label(kind)
            own_id = None if id == f"{repository}/{path}:{start}" else _text(id)
            names = (_text(name), _text(qualified_name))
            documents.append((row, own_id, file, start, end, language_label, kind_label, *names, digest or None))
            bodies.append((row, words, code))
            columns["file"].append(file)
            columns["language"].append(language_label)
            columns["kind"].append(kind_label)
            row += 1
        with _writing(self.path):
            self._db.executemany("INSERT INTO documents VALUES (?,?,?,?,?,?,?,?,?,?)", documents)
            self._db.executemany("INSERT INTO bodies VALUES (?,?,?)", bodies)

    def add_copy(self, row: int, location: Location) -> None:
        """Where an exact duplicate of a row stands."""
        file = self._file(location.repository, location.path)
        self._columns["copy_row"].append(row)
        self._columns["copy_file"].append(file)
        values = (row, file, location.start_line, location.end_line, _text(location.qualified_name))
        with _writing(self.path):
            self._db.execute("INSERT INTO copies VALUES (?,?,?,?,?)", values)

    def finish(self) -> dict[str, Any]:
        """Complete and close the file; documents a repository, language and kind, and the number of copies."""
        counts = self._counts()
        with _writing(self.path):
            for name, column in self._columns.items():
                little_endian = np.frombuffer(column, np.intc).astype("<i4").tobytes()
                self._db.execute("INSERT INTO columns VALUES (?,?)", (name, little_endian))
            self._db.execute("INSERT INTO columns VALUES (?,?)", ("counts", json.dumps(counts).encode()))
            self._db.execute("COMMIT")
            self._db.executescript(INDICES)
            self._db.close()
        return counts

    def close(self) -> None:
        """Let go of the file; without `finish` before, it is no store."""
        self._db.close()

    def _file(self, repository: str, path: str) -> int:
        owner = self._intern(self._repositories, repository, "repositories", _text(repository))
        return self._intern(self._files, (owner, path), "files", owner, _text(path))

    def _label(self, label: str) -> int:
        return self._intern(self._labels, label, "labels", label)

    def _intern(self, known: dict[Any, int], key: Any, table: str, *values: object) -> int:
        number = known.get(key)
        if number is None:
            number = known[key] = len(known)
            with _writing(self.path):
                self._db.execute(f"INSERT INTO {table} VALUES (?{',?' * len(values)})", (number, *values))  # noqa: S608
        return number

    def _counts(self) -> dict[str, Any]:
        owners = np.array([owner for owner, _ in self._files], np.int64)
        of = {name: np.frombuffer(column, np.intc) for name, column in self._columns.items()}
        return {
            "repositories": _tally(owners[of["file"]], self._repositories),
            "languages": _tally(of["language"], self._labels),
            "kinds": _tally(of["kind"], self._labels),
            "copies": len(of["copy_row"]),
        }


def _tally(numbers: Any, names: Iterable[str]) -> dict[str, int]:
    """How many rows a name has, in order of names; names without rows are left out."""
    counts = zip(names, np.bincount(numbers, minlength=0).tolist(), strict=False)
    return dict(sorted((name, count) for name, count in counts if count))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(
            f"cannot write {path}: {error}; free some space there or choose another folder with -i"
        ) from error


class Store:
    """The documents of an index, read only; works on read-only media and from several threads."""

    def __init__(self, path: Path) -> None:
        """Raises IndexDamaged for a file that is missing or no store."""
        self.path = path
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with self._reading():
            self._db = sqlite3.connect(uri, uri=True, check_same_thread=False)
            try:
                self._files = self._column("file")
            except BaseException:
                self._db.close()
                raise

    def __len__(self) -> int:
        """How many documents."""
        return len(self._files)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @property
    def counts(self) -> Mapping[str, Any]:
        """Documents a repository, language and kind, and the number of copies."""
        with self._reading():
            found: dict[str, Any] = json.loads(self._blob("counts"))
        return found

    def document(self, row: int) -> Document:
        """One document."""
        return self.documents([row])[0]

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Whole documents with words, code and copies, in the order asked for.

        Raises IndexDamaged for rows that are not there: the arrays that named them belong to other documents.
        """
        copies: dict[int, list[Location]] = {}
        found: dict[int, Document] = {}
        with self._reading():
            for row, *place in self._db.execute(COPIES, _json(rows)):
                copies.setdefault(row, []).append(_location(place))
            for row, id, repository, path, start, end, language, kind, *rest in self._db.execute(
                DOCUMENTS, _json(rows)
            ):
                repository, path = _str(repository), _str(path)
                name, qualified_name, digest, words, code = rest
                found[row] = Document(
                    f"{repository}/{path}:{start}" if id is None else _str(id),
                    repository,
                    path,
                    start,
                    end,
                    language,
                    kind,
                    _str(name),
                    _str(qualified_name),
                    _unpack_words(words),
                    zlib.decompress(code).decode("utf-8", "surrogatepass") if code else "",
                    digest or b"",
                    tuple(copies.get(row, ())),
                )
        return self._ordered(found, rows)

    def locations(self, rows: Sequence[int]) -> list[Location]:
        """Where documents stand, in the order asked for, without reading their code."""
        with self._reading():
            found = {row: _location(place) for row, *place in self._db.execute(LOCATIONS, _json(rows))}
        return self._ordered(found, rows)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Ids of rows, in the order asked for."""
        with self._reading():
            found = {
                row: f"{_str(repository)}/{_str(path)}:{start}" if id is None else _str(id)
                for row, id, repository, path, start in self._db.execute(IDS, _json(rows))
            }
        return self._ordered(found, rows)

    def _ordered(self, found: Mapping[int, Any], rows: Sequence[int]) -> list[Any]:
        try:
            return [found[row] for row in rows]
        except KeyError as error:
            raise IndexDamaged(f"{self.path} has no row {error}; {REMEDY}") from None

    def row_of(self, id: str) -> int | None:
        """The row of a document; None for an unknown id."""
        with self._reading():
            found = self._db.execute("SELECT row FROM documents WHERE id = ?", (_text(id),)).fetchone()
            place, _, line = id.rpartition(":")
            if found is None and line.isdecimal() and len(line) < 10:
                found = self._db.execute(ROW_AT, (int(line), place)).fetchone()
        return int(found[0]) if found else None

    def mask(self, language: str | None = None, repository: str | None = None, path: str | None = None) -> Mask | None:
        """Rows that meet every filter given, bool [n]; None without filters. A row meets them where a copy does.

        language: as the documents say it. repository and path: see `matcher`.
        """
        if language is None and repository is None and path is None:
            return None
        with self._reading():
            mask = np.ones(len(self), np.bool_)
            if language is not None:
                labels = self._numbers("SELECT id, label FROM labels", language.lower().__eq__)
                mask &= np.isin(self._column("language"), labels)
            if repository is not None or path is not None:
                files = self._matching_files(repository, path)
                inside = np.isin(self._files, files)
                inside[self._column("copy_row")[np.isin(self._column("copy_file"), files)]] = True
                mask &= inside
        return mask

    def _matching_files(self, repository: str | None, path: str | None) -> list[int]:
        in_repository, in_path = matcher(repository), matcher(path)
        owners = set(self._numbers("SELECT id, name FROM repositories", in_repository))
        return [
            id
            for id, owner, name in self._db.execute("SELECT id, repository, path FROM files")
            if owner in owners and in_path(_str(name))
        ]

    def _numbers(self, query: str, wanted: Any) -> list[int]:
        return [id for id, name in self._db.execute(query) if wanted(_str(name))]

    def matching_location(self, document: Document, repository: str | None = None, path: str | None = None) -> Location:
        """Where a document meets the filters: itself, or the first copy that does; itself where none does."""
        in_repository, in_path = matcher(repository), matcher(path)
        for location in (document.location, *document.copies):
            if in_repository(location.repository) and in_path(location.path):
                return location
        return document.location

    def shown_at(self, document: Document, repository: str | None = None, path: str | None = None) -> Document:
        """The document as it stands where it meets the filters; its first place becomes a copy."""
        shown = self.matching_location(document, repository, path)
        places = [place for place in (document.location, *document.copies) if place != shown]
        return replace(
            document,
            repository=shown.repository,
            path=shown.path,
            start_line=shown.start_line,
            end_line=shown.end_line,
            qualified_name=shown.qualified_name,
            copies=tuple(places),
        )

    def _blob(self, name: str) -> bytes:
        found = self._db.execute("SELECT data FROM columns WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise sqlite3.DatabaseError(f"has no {name}")
        blob: bytes = found[0]
        return blob

    def _column(self, name: str) -> Any:
        return np.frombuffer(self._blob(name), "<i4")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:  # a closed store: the caller's fault, not the file's
            raise
        except (sqlite3.Error, zlib.error, ValueError) as error:
            raise IndexDamaged(f"{self.path} is damaged ({error}); {REMEDY}") from error


REMEDY = "build the index again with: ncs build"

PLACE = "repositories.name, files.path, start_line, end_line, qualified_name"
ROWS = "(SELECT value FROM json_each(?))"
JOIN = "JOIN files ON files.id = file JOIN repositories ON repositories.id = files.repository"
COPIES = f"SELECT row, {PLACE} FROM copies {JOIN} WHERE row IN {ROWS} ORDER BY copies.rowid"  # noqa: S608
LOCATIONS = f"SELECT row, {PLACE} FROM documents {JOIN} WHERE row IN {ROWS}"  # noqa: S608
IDS = f"SELECT row, documents.id, repositories.name, path, start_line FROM documents {JOIN} WHERE row IN {ROWS}"  # noqa: S608
ROW_AT = f"""SELECT row FROM documents {JOIN}
    WHERE documents.id IS NULL AND start_line = ? AND repositories.name || '/' || files.path = ?"""  # noqa: S608
DOCUMENTS = f"""SELECT documents.row, documents.id, repositories.name, files.path, start_line, end_line,
    languages.label, kinds.label, documents.name, qualified_name, digest, words, code
    FROM documents {JOIN} JOIN bodies ON bodies.row = documents.row
    JOIN labels AS languages ON languages.id = language JOIN labels AS kinds ON kinds.id = kind
    WHERE documents.row IN {ROWS}"""  # noqa: S608


def _json(rows: Sequence[int]) -> tuple[str]:
    return (json.dumps([int(row) for row in rows]),)


def _location(place: Sequence[Any]) -> Location:
    repository, path, start, end, qualified_name = place
    return Location(_str(repository), _str(path), start, end, _str(qualified_name))


def _unpack_words(packed: bytes) -> Any:
    if not packed:
        return {}
    return {field: tuple(spellings) for field, spellings in json.loads(zlib.decompress(packed)).items()}


def matcher(pattern: str | None) -> Any:
    """A filter by name: whole folders of a path, or parts of owner/name, from any level; `*` crosses `/`.

    A leading `/` pins the pattern to the top. None matches everything.

    >>> inside = matcher("src/main")
    >>> [inside(path) for path in ("src/main/A.java", "app/src/main/A.java", "src/main2/A.java")]
    [True, True, False]
    >>> inside = matcher("/src/*.java")
    >>> [inside(path) for path in ("src/main/A.java", "app/src/A.java")]
    [True, False]
    """
    if pattern is None:
        return lambda name: True
    core = pattern.removeprefix("./").strip("/")
    pinned = pattern.startswith(("/", "./"))
    globs = [
        before + body + after
        for body in (core, escape(core))
        for before in (("",) if pinned else ("", "*/"))
        for after in ("", "/*")
    ]
    matches = compile_pattern("|".join(map(translate, globs))).match
    return lambda name: matches(name) is not None
