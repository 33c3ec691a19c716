"""The judgments on disk, in SQLite: the only file of evaluation that knows the database.

It is not the index's: an index is made anew at will, people's judgments are not. Every answer is a transaction of its
own, on the disk before it is confirmed (rollback journal, synchronous EXTRA), so a kill loses nothing that was.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from evaluation.annotation.answers import Answer
from evaluation.annotation.pool import Pair, Recipe
from ncs.errors import BadInput, NcsError
from ncs.storage.packing import to_bytes, to_str
from ncs.types import Query

APPLICATION = 0x6E637361
"""SQLite's application id of our files ("ncsa")."""
FORMAT = 1
BUSY_SECONDS = 10
SCHEMA = """
CREATE TABLE recipe (json TEXT NOT NULL);
CREATE TABLE queries (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
CREATE TABLE pairs (
    number INTEGER PRIMARY KEY, query TEXT NOT NULL REFERENCES queries (id), document TEXT NOT NULL,
    digest BLOB NOT NULL, language TEXT NOT NULL, ranks TEXT NOT NULL, UNIQUE (query, document));
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, annotator TEXT NOT NULL, pair INTEGER NOT NULL REFERENCES pairs (number),
    grade INTEGER CHECK (grade BETWEEN 0 AND 3), notes TEXT NOT NULL, at TEXT NOT NULL);
CREATE UNIQUE INDEX judged_once ON answers (annotator, pair) WHERE grade IS NOT NULL;
"""
# Names of files need not be Unicode, which SQLite's text must be when it is bound as such; cast from bytes it need not.
INSERT_PAIR = "INSERT INTO pairs VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?)"
INSERT_ANSWER = "INSERT INTO answers (annotator, pair, grade, notes, at) VALUES (?, ?, ?, ?, ?)"
SELECT_LAST = "SELECT id, annotator, pair, grade, notes, at FROM answers WHERE annotator = ? ORDER BY id DESC LIMIT 1"


class JudgedAlready(BadInput):
    """The annotator has judged this pair otherwise, in another window."""


class Judgments:
    """A database of one pool and the answers to it. recipe, queries, pairs: as they were when it was made."""

    def __init__(self, path: Path) -> None:
        """Open an existing one. Raises BadInput for a file that is none."""
        if not path.is_file():
            raise BadInput(f"there is no {path}: nothing is judged yet; judge with: ncs annotate INDEX QUERIES")
        self.path, self._lock = path, threading.Lock()
        self._db = _connect(path)
        try:
            with _named(path):
                self._check()
                row = self._db.execute("SELECT json FROM recipe").fetchone()
                told = json.loads(row[0])
                self.recipe = Recipe(tuple(told["rankers"]), told["k"], tuple(told["languages"]), told["seed"])
                queries = self._db.execute("SELECT id, text FROM queries ORDER BY place")
                self.queries = tuple(Query(id, text) for id, text in queries)
                rows = self._db.execute("SELECT * FROM pairs ORDER BY number")
                self.pairs = tuple(_pair(*row) for row in rows)
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        if self._db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise sqlite3.DatabaseError("it is something else")
        if self._db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            raise BadInput(f"{self.path} is of another version of ncs; use that one, or name another --database")

    @classmethod
    def create(cls, path: Path, recipe: Recipe, queries: Sequence[Query], pairs: Sequence[Pair]) -> Judgments:
        """Write the pool, all of it or nothing: a creation that was killed is begun anew. Then open it."""
        with _named(path):
            db = _connect(path)
            try:
                db.execute("BEGIN IMMEDIATE")
                if not is_empty(path, db):
                    raise BadInput(f"{path} was made by another process meanwhile; start again")
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO recipe VALUES (?)", (json.dumps(asdict(recipe)),))
                db.executemany(
                    "INSERT INTO queries VALUES (?, ?, ?)", [(i, q.id, q.text) for i, q in enumerate(queries)]
                )
                db.executemany(INSERT_PAIR, map(_row, pairs))
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {FORMAT}")
                db.execute("COMMIT")
            finally:
                db.close()
        return cls(path)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def answers(self) -> list[Answer]:
        """All answers, in the order they were given."""
        with self._doing():
            rows = self._db.execute("SELECT annotator, pair, grade, notes, at FROM answers ORDER BY id").fetchall()
        return [Answer(*row) for row in rows]

    def add(self, annotator: str, pair: int, grade: int | None, notes: str) -> None:
        """Note an answer; it is on the disk when this returns. The same once more (a lost reply) changes nothing.

        Raises JudgedAlready where the annotator gave this pair another grade.
        """
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._doing():
            given = self._db.execute(
                "SELECT grade, notes FROM answers WHERE annotator = ? AND pair = ? AND grade IS NOT NULL",
                (annotator, pair),
            ).fetchone()
            if given == (grade, notes):
                return
            if given is not None:
                raise JudgedAlready(f"you gave this one a {given[0]} already, in another window; undo it there first")
            self._db.execute(INSERT_ANSWER, (annotator, pair, grade, notes, at))

    def undo(self, annotator: str) -> Answer | None:
        """Take back the annotator's last answer, and give it back; None where there is none."""
        with self._doing():
            found = self._db.execute(SELECT_LAST, (annotator,)).fetchone()
            if found is None:
                return None
            self._db.execute("DELETE FROM answers WHERE id = ?", (found[0],))
        return Answer(*found[1:])

    @contextmanager
    def _doing(self) -> Iterator[None]:
        """One thread at a time, each change whole: another process may have the same file open."""
        with self._lock, _named(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def is_new(path: Path) -> bool:
    """Whether nothing was written there yet: no file, an empty one, or a creation that was killed."""
    if not path.exists():
        return True
    if not path.is_file():
        raise BadInput(f"{path} is no file; name another --database")
    with _named(path):
        db = _connect(path)
        try:
            return is_empty(path, db)
        finally:
            db.close()


def is_empty(path: Path, db: sqlite3.Connection) -> bool:
    """Whether a database has no tables; SQLite first takes back what a killed process left half done."""
    return not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _connect(path: Path) -> sqlite3.Connection:
    with _named(path):
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.text_factory = to_str
        try:
            db.execute("PRAGMA synchronous = EXTRA")
            db.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:
            db.close()
            raise
    return db


def _row(pair: Pair) -> tuple[Any, ...]:
    ranks = json.dumps(dict(pair.ranks))
    return pair.number, pair.query, to_bytes(pair.document), pair.digest, pair.language, ranks


def _pair(number: int, query: str, document: str, digest: bytes, language: str, ranks: str) -> Pair:
    return Pair(number, query, document, digest, language, json.loads(ranks))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(f"cannot use {path} ({error}); see to its disk and permissions") from error
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no database of judgments ({error}); name another --database") from error
