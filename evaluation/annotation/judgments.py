"""Judgments: people's answers in SQLite, the order of the pairs, and grades as qrels.

The database is not the index's: an index can be built again, people's judgments cannot. Every answer is a transaction
of its own, on disk before it is confirmed (rollback journal, synchronous EXTRA): a kill loses nothing confirmed.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path

from evaluation.annotation.pool import Pair, Recipe
from ncs.errors import BadInput, NcsError
from ncs.files import refuse_links
from ncs.storage.documents import to_bytes, to_str
from ncs.types import Qrels, Query

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
SELECT_GRADE = "SELECT grade, notes FROM answers WHERE annotator = ? AND pair = ? AND grade IS NOT NULL"
SELECT_LAST = "SELECT id, annotator, pair, grade, notes FROM answers WHERE annotator = ? ORDER BY id DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. pair: its number; grade: 0 to 3, None for skipped."""

    annotator: str
    pair: int
    grade: int | None
    notes: str = ""


def grades_of(answers: Sequence[Answer]) -> dict[int, dict[str, int]]:
    """pair -> annotator -> grade; skips are left out."""
    grades: dict[int, dict[str, int]] = defaultdict(dict)
    for answer in answers:
        if answer.grade is not None:
            grades[answer.pair][answer.annotator] = answer.grade
    return grades


def next_pair(pairs: Sequence[Pair], answers: Sequence[Answer], annotator: str, seed: int) -> Pair | None:
    """The next pair of an annotator; None when all are judged.

    "Randomized but weakly ordered by the number of annotations already collected" (section 3): of the pairs that the
    annotator has not judged those with the fewest judgments, and among these a draw that seed, annotator and pair
    decide. So the order is deterministic but differs by annotator. Skipped pairs come last.
    """
    grades = grades_of(answers)
    skips = Counter(answer.pair for answer in answers if answer.grade is None and answer.annotator == annotator)
    candidates = [pair for pair in pairs if annotator not in grades.get(pair.number, ())]

    def place(pair: Pair) -> tuple[int, int, bytes]:
        draw = blake2b(f"{seed}\0{pair.number}\0{annotator}".encode(), digest_size=8).digest()
        return skips[pair.number], len(grades.get(pair.number, ())), draw

    return min(candidates, key=place, default=None)


def qrels_of(pairs: Sequence[Pair], answers: Sequence[Answer]) -> Qrels:
    """Mean grades as whole numbers, halves rounded up, as `corpora.codesearchnet` reads the Challenge's."""
    by_pair = grades_of(answers)
    qrels: dict[str, dict[str, int]] = {}
    for pair in pairs:
        if grades := by_pair.get(pair.number):
            qrels.setdefault(pair.query, {})[pair.document] = int(sum(grades.values()) / len(grades) + 0.5)
    return qrels


class JudgedAlready(BadInput):
    """The annotator has given this pair another grade, in another window."""


class Judgments:
    """A database of one pool and the answers to it. recipe, queries and pairs never change."""

    def __init__(self, path: Path) -> None:
        """Open an existing one. Raises BadInput for any other file."""
        if not path.is_file():
            raise BadInput(f"no database {path}: nothing is judged yet; judge with: ncs annotate INDEX QUERIES")
        self.path, self._lock = path, threading.Lock()
        with _readable_errors(path):
            self._db = _connect(path)
            try:
                self._read()
            except BaseException:
                self._db.close()
                raise

    def _read(self) -> None:
        if self._db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise sqlite3.DatabaseError("it is something else")
        if self._db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            raise BadInput(f"{self.path} is of another version of ncs; use that one, or name another --database")
        recipe = json.loads(self._db.execute("SELECT json FROM recipe").fetchone()[0])
        self.recipe = Recipe(tuple(recipe["rankers"]), recipe["k"], tuple(recipe["languages"]), recipe["seed"])
        self.queries = tuple(Query(*row) for row in self._db.execute("SELECT id, text FROM queries ORDER BY place"))
        rows = self._db.execute("SELECT * FROM pairs ORDER BY number")
        self.pairs = tuple(
            Pair(n, query, id, digest, language, json.loads(ranks)) for n, query, id, digest, language, ranks in rows
        )

    @classmethod
    def create(cls, path: Path, recipe: Recipe, queries: Sequence[Query], pairs: Sequence[Pair]) -> Judgments:
        """Write the pool in one transaction, unless another process was faster, and open the database."""
        with _readable_errors(path), closing(_connect(path)) as db:
            db.execute("BEGIN IMMEDIATE")
            if _is_empty(db):
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO recipe VALUES (?)", (json.dumps(asdict(recipe)),))
                rows = [(place, query.id, query.text) for place, query in enumerate(queries)]
                db.executemany("INSERT INTO queries VALUES (?, ?, ?)", rows)
                for p in pairs:
                    ranks = json.dumps(dict(p.ranks))
                    db.execute(INSERT_PAIR, (p.number, p.query, to_bytes(p.document), p.digest, p.language, ranks))
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("COMMIT")
        return cls(path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def answers(self) -> list[Answer]:
        """All answers, in the order they were given."""
        with self._transaction():
            rows = self._db.execute("SELECT annotator, pair, grade, notes FROM answers ORDER BY id").fetchall()
        return [Answer(*row) for row in rows]

    def add(self, answer: Answer) -> None:
        """Store an answer; it is on disk when this returns. A repeated request (after a lost reply) changes nothing.

        Raises BadInput for a pair that is not in the pool, JudgedAlready where the annotator gave it another grade.
        """
        if not 1 <= answer.pair <= len(self.pairs):
            raise BadInput(f"the pool has no pair {answer.pair}; its pairs are 1 to {len(self.pairs)}")
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._transaction():
            previous = self._db.execute(SELECT_GRADE, (answer.annotator, answer.pair)).fetchone()
            if previous == (answer.grade, answer.notes):
                return
            if previous is not None:
                raise JudgedAlready(f"you gave this one a {previous[0]} already, in another window; "
                                    "undo it there first")  # fmt: skip
            self._db.execute(INSERT_ANSWER, (answer.annotator, answer.pair, answer.grade, answer.notes, at))

    def undo(self, annotator: str) -> Answer:
        """Delete and return the annotator's last answer. Raises BadInput where there is none."""
        with self._transaction():
            row = self._db.execute(SELECT_LAST, (annotator,)).fetchone()
            if row is None:
                raise BadInput("nothing to undo; judge something first")
            self._db.execute("DELETE FROM answers WHERE id = ?", (row[0],))
        return Answer(*row[1:])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction of one thread; other processes may have the file open."""
        with self._lock, _readable_errors(self.path):
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
    with _readable_errors(path), closing(_connect(path)) as db:
        return _is_empty(db)


def _is_empty(db: sqlite3.Connection) -> bool:
    """Whether a database has no tables, after SQLite's rollback of a killed process."""
    return not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _connect(path: Path) -> sqlite3.Connection:
    for suffix in ("", "-journal", "-wal", "-shm"):  # SQLite would write through them
        refuse_links(path.with_name(path.name + suffix))
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.text_factory = to_str
    try:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        db.close()
        raise
    return db


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(f"cannot use {path} ({error}); see to its disk and permissions") from error
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no database of judgments ({error}); name another --database") from error
