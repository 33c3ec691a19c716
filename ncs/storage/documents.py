"""Documents on disk, in SQLite, read; `ncs.storage.documents_writer` writes them. No other file knows the database."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ncs.build.delta import room_of
from ncs.errors import IndexDamaged
from ncs.storage.documents_writer import TEXT
from ncs.storage.filters import Matcher, matcher, matching_location, shown_at
from ncs.storage.packing import Packed, to_bytes, to_str, unpack_body
from ncs.types import Document, Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask

T = TypeVar("T")

Heading: TypeAlias = tuple[str, str, str, int, int, str, str, str, str]
"""id, repository, path, start and end line, language, kind, name, qualified name."""
NAME, DIGESTS = "documents.sqlite", "digests.npy"
LINE = re.compile("[1-9][0-9]{0,11}")
PLACE = "repositories.name, files.path, start_line, end_line, qualified_name"
JOIN = "JOIN files ON files.id = file JOIN repositories ON repositories.id = files.repository"
ROWS = "(SELECT value FROM json_each(?))"
SELECT_LOCATIONS = f"SELECT row, {PLACE} FROM documents {JOIN} WHERE row IN {ROWS}"  # noqa: S608
SELECT_COPIES = f"SELECT row, {PLACE} FROM copies {JOIN} WHERE row IN {ROWS} ORDER BY copies.rowid"  # noqa: S608
SELECT_IDS = f"SELECT row, documents.id, {PLACE} FROM documents {JOIN} WHERE row IN {ROWS}"  # noqa: S608
LABELS = "JOIN labels AS languages ON languages.id = language JOIN labels AS kinds ON kinds.id = kind"
SELECT_DOCUMENTS = f"""
    SELECT row, documents.id, {PLACE}, languages.label, kinds.label, documents.name, digest, body FROM documents {JOIN}
    {LABELS} WHERE row IN {ROWS}"""  # noqa: S608
SELECT_PACKED = f"""
    SELECT documents.id, {PLACE}, languages.label, kinds.label, documents.name, digest, body FROM documents {JOIN}
    {LABELS} WHERE row >= ? AND row < ? ORDER BY row"""  # noqa: S608
SELECT_HEADINGS = f"""
    SELECT row, documents.id, {PLACE}, languages.label, kinds.label, documents.name FROM documents {JOIN}
    {LABELS} WHERE row IN {ROWS}"""  # noqa: S608
SELECT_COPIES_FROM = f"""
    SELECT digest, repositories.name, files.path, copies.start_line, copies.end_line, copies.qualified_name
    FROM copies JOIN documents ON documents.row = copies.row {JOIN.replace("= file ", "= copies.file ")}
    WHERE copies.rowid > ? AND copies.rowid <= ? ORDER BY copies.rowid"""  # noqa: S608
SELECT_FILES = "SELECT name, path FROM files JOIN repositories ON repositories.id = repository ORDER BY files.id"
SELECT_NAMES = """
    SELECT documents.name, qualified_name, label FROM documents JOIN labels ON labels.id = kind
    WHERE row >= ? AND row < ? ORDER BY row"""
NAMES = 10_000
"""Rows whose names are read at a time."""
SELECT_NAMED = f"""
    SELECT row, documents.name, qualified_name, label FROM documents JOIN labels ON labels.id = kind
    WHERE row IN {ROWS}"""  # noqa: S608
SELECT_COPIES_AT = f"SELECT copies.rowid, {PLACE} FROM copies {JOIN} WHERE copies.rowid IN {ROWS}"  # noqa: S608
SELECT_DIGESTS = "SELECT digest FROM documents ORDER BY row"
SELECT_LENGTH = "SELECT length(data) / 4 FROM columns WHERE name = 'file'"
SELECT_ROW = f"SELECT row FROM documents WHERE id = {TEXT}"  # noqa: S608
SELECT_ROW_AT = f"""
    SELECT row FROM documents {JOIN} WHERE documents.id IS NULL
    AND start_line = ? AND repositories.name || '/' || files.path = {TEXT}"""  # noqa: S608


def open_store(data: Path) -> Store:
    """The documents of an index: with what came since it was built (ncs.build.delta)."""
    if room := room_of(data):
        from ncs.build.delta.store import StackedStore

        return StackedStore(data, room)
    return Store(data / NAME)


class Store:
    """The documents of an index, read only; works on read-only media and from several threads."""

    def __init__(self, path: Path) -> None:
        """Raises IndexDamaged for a file that is missing or no store."""
        self.path = path
        self._lock = threading.Lock()
        with self._reading():
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

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @property
    def counts(self) -> Mapping[str, Any]:
        """repositories, languages, kinds: documents a name; copies: how many."""
        with self._reading():
            found: dict[str, Any] = json.loads(self._data("counts"))
        return found

    def document(self, row: int) -> Document:
        """One document."""
        return self.documents([row])[0]

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Whole documents with words, code and copies, in the order asked for.

        Raises IndexDamaged for rows that are not there: the arrays that named them belong to other documents.
        """
        with self._reading():
            copies: dict[int, list[Location]] = {}
            for row, *place in self._select(SELECT_COPIES, rows):
                copies.setdefault(row, []).append(Location(*place))
            found = {row[0]: document_of(row, copies.get(row[0], ())) for row in self._select(SELECT_DOCUMENTS, rows)}
        return self._in_order(found, rows)

    def locations(self, rows: Sequence[int]) -> list[Location]:
        """Where documents stand, in the order asked for; their bodies are not unpacked."""
        with self._reading():
            found = {row: Location(*place) for row, *place in self._select(SELECT_LOCATIONS, rows)}
        return self._in_order(found, rows)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Ids of rows, in the order asked for."""
        with self._reading():
            found = {row: id_of(id, Location(*place)) for row, id, *place in self._select(SELECT_IDS, rows)}
        return self._in_order(found, rows)

    def headings(self, rows: Sequence[int]) -> list[Heading]:
        """All that `packed` tells of rows but their contents, which are not read, in the order asked for."""
        with self._reading():
            found = {row: _heading(*told) for row, *told in self._select(SELECT_HEADINGS, rows)}
        return self._in_order(found, rows)

    def packed(self, start: int, stop: int) -> list[Packed]:
        """The rows start..stop as `pack` made them."""
        with self._reading():
            rows = self._db.execute(SELECT_PACKED, (start, stop)).fetchall()
        return [
            (id_of(id, Location(*place)), *place[:4], language, kind, name, place[4], digest, body)
            for id, *place, language, kind, name, digest, body in rows
        ]

    def copies(self, start: int, stop: int) -> list[tuple[bytes, Location]]:
        """The copies start..stop in the order they were found: the digest of what it is a copy of, and where it is."""
        with self._reading():
            rows = self._db.execute(SELECT_COPIES_FROM, (start, stop)).fetchall()
        return [(digest, Location(*place)) for digest, *place in rows]

    def copied_rows(self) -> NDArray[np.int32]:
        """The row of which each copy is one, in the order of `copies`."""
        with self._reading():
            return self._column("copy_row")

    def files(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The number of each row's file, int32 [n], and (repository, path) of each number."""
        with self._reading():
            places = [(repository, path) for repository, path in self._db.execute(SELECT_FILES)]
            return self._column("file"), places

    def names(self) -> Iterator[tuple[str, str, str]]:
        """(name, qualified name, kind) of every row, in order; bodies are not unpacked."""
        for start in range(0, len(self), NAMES):
            with self._reading():
                rows = self._db.execute(SELECT_NAMES, (start, start + NAMES)).fetchall()
            yield from rows

    def of_kinds(self, kinds: Collection[str]) -> Mask:
        """Which rows are of one of these kinds, bool [n]."""
        return self.labelled("kind", kinds.__contains__)

    def row_of(self, id: str) -> int | None:
        """The row of a document; None for an unknown id."""
        return next(iter(self.rows_of(id)), None)

    def rows_of(self, id: str) -> list[int]:
        """The rows of what is called so."""
        place, _, line = id.rpartition(":")
        with self._reading():
            found = self._db.execute(SELECT_ROW, (to_bytes(id),)).fetchall()
            if not found and LINE.fullmatch(line):
                found = self._db.execute(SELECT_ROW_AT, (int(line), to_bytes(place))).fetchall()
        return [int(row) for (row,) in found]

    def described(self, rows: Sequence[int]) -> dict[int, Any]:
        """What SELECT_DOCUMENTS tells of rows, by their numbers."""
        with self._reading():
            return {row[0]: row for row in self._select(SELECT_DOCUMENTS, rows)}

    def named(self, rows: Sequence[int]) -> dict[int, tuple[str, str, str]]:
        """What `names` gives, of some rows by their numbers."""
        with self._reading():
            return {row: (name, qualified, kind) for row, name, qualified, kind in self._select(SELECT_NAMED, rows)}

    def copies_at(self, numbers: Sequence[int]) -> dict[int, Location]:
        """Where copies stand, by their numbers in the order of `copies`."""
        with self._reading():
            return {
                number - 1: Location(*place)
                for number, *place in self._select(SELECT_COPIES_AT, [n + 1 for n in numbers])
            }

    def digests(self) -> NDArray[np.uint64]:
        """The first eight bytes of every row's digest, 0 for a row without one."""
        with self._reading():
            found = bytearray()
            for (digest,) in self._db.execute(SELECT_DIGESTS):
                found += digest[:8].ljust(8, b"\0")
        return np.frombuffer(found, np.uint64)

    def column(self, name: str) -> NDArray[np.int32]:
        """One of ncs.storage.documents_writer.COLUMNS."""
        with self._reading():
            return self._column(name)

    def tallied(self, column: str, rows: Mask) -> Counter[str]:
        """How many of some rows have each label of "language" or "kind"."""
        with self._reading():
            labels = dict(self._db.execute("SELECT id, label FROM labels"))
            sums = np.bincount(self._column(column)[rows], minlength=1)
        return Counter({labels[number]: int(n) for number, n in enumerate(sums.tolist()) if n})

    def labelled(self, column: str, wanted: Callable[[str], bool]) -> Mask:
        """Which rows have a label, of "language" or "kind", that is wanted, bool [n]."""
        with self._reading():
            return np.isin(self._column(column), self._numbers("SELECT id, label FROM labels", wanted))

    def files_matching(self, in_repository: Matcher, in_path: Matcher) -> list[int]:
        """The numbers of files whose repository and path match."""
        with self._reading():
            owners = self._numbers("SELECT id, name FROM repositories", in_repository)
            files = self._db.execute(f"SELECT id, path FROM files WHERE repository IN {ROWS}", (json.dumps(owners),))  # noqa: S608
            return [file for file, path in files if in_path(path)]

    def mask(
        self,
        language: str | None = None,
        repository: str | None = None,
        path: str | None = None,
        kind: str | None = None,
    ) -> Mask | None:
        """Rows that meet every filter given, bool [n]; None without filters.

        repository and path are patterns (`ncs.storage.filters.matcher`); a row meets them where one of its copies
        meets both.
        """
        if language is None and repository is None and path is None and kind is None:
            return None
        mask = np.ones(len(self), np.bool_)
        for column, label in (("language", language), ("kind", kind)):
            if label is not None:
                mask &= self.labelled(column, label.lower().__eq__)
        if repository is not None or path is not None:
            mask &= self._standing(matcher(repository), matcher(path))
        return mask

    def _standing(self, in_repository: Matcher, in_path: Matcher) -> Mask:
        """Rows that stand in a file that matches, or of which a copy does."""
        files = self.files_matching(in_repository, in_path)
        with self._reading():
            mask = np.isin(self._column("file"), files)
            mask[self._column("copy_row")[np.isin(self._column("copy_file"), files)]] = True
        return mask

    def _numbers(self, query: str, wanted: Callable[[str], bool]) -> list[int]:
        return [number for number, name in self._db.execute(query) if wanted(name)]

    matching_location = staticmethod(matching_location)
    shown_at = staticmethod(shown_at)

    def _select(self, query: str, rows: Sequence[int]) -> Iterator[Any]:
        return self._db.execute(query, (json.dumps([int(row) for row in rows]),))

    def _in_order(self, found: Mapping[int, T], rows: Sequence[int]) -> list[T]:
        try:
            return [found[row] for row in rows]
        except KeyError as error:
            raise IndexDamaged(f"{self.path} has no row {error}; {REMEDY}") from None

    def _data(self, name: str) -> bytes:
        found = self._db.execute("SELECT data FROM columns WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise sqlite3.DatabaseError(f"{name} is missing")
        data: bytes = found[0]
        return data

    def _column(self, name: str) -> NDArray[np.int32]:
        return np.frombuffer(self._data(name), np.dtype("<i4"))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One thread at a time: from Python 3.12 on, threads that share a connection mix up each other's rows."""
        try:
            with self._lock:
                yield
        except sqlite3.ProgrammingError:  # a closed store: the caller's fault, not the file's
            raise
        except (sqlite3.Error, zlib.error, ValueError, IndexError, TypeError) as error:
            raise IndexDamaged(f"{self.path} is damaged ({error}); {REMEDY}") from error


REMEDY = "build the index again with: ncs build"


def id_of(stored: str | None, place: Location) -> str:
    """Ids that say where a document stands, as extraction gives them, are not stored."""
    return f"{place.repository}/{place.path}:{place.start_line}" if stored is None else stored


def _heading(
    id: str | None,
    repository: str,
    path: str,
    start: int,
    end: int,
    qualified: str,
    language: str,
    kind: str,
    name: str,
) -> Heading:
    place = Location(repository, path, start, end, qualified)
    return id_of(id, place), repository, path, start, end, language, kind, name, qualified


def document_of(row: Sequence[Any], copies: Sequence[Location]) -> Document:
    """A document as `described` tells of it, with its copies."""
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
