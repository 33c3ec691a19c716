"""Judgments: people's answers in SQLite, the next pair, grades as qrels, and annotator agreement.

The database is not the index's: an index can be built again, people's judgments cannot. Every answer is a transaction
of its own, on disk before it is confirmed (rollback journal, synchronous EXTRA): a kill loses nothing confirmed.
Agreement is Cohen's kappa with squared weights, as CodeSearchNet reports it (section 3).
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.annotation.pool import Pair, Recipe
from ncs.errors import BadInput, NcsError
from ncs.storage.packing import to_bytes, to_str
from ncs.types import Qrels, Query

GRADES = (0, 1, 2, 3)
EVERYBODY = "everybody"
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


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. pair: its number; grade: 0 to 3, None for skipped; at: UTC, ISO 8601."""

    annotator: str
    pair: int
    grade: int | None
    notes: str
    at: str


def grades_of(answers: Sequence[Answer]) -> dict[int, dict[str, int]]:
    """pair -> annotator -> grade; skipped ones are left out."""
    grades: dict[int, dict[str, int]] = defaultdict(dict)
    for answer in answers:
        if answer.grade is not None:
            grades[answer.pair][answer.annotator] = answer.grade
    return dict(grades)


def next_pair(pairs: Sequence[Pair], answers: Sequence[Answer], annotator: str, seed: int) -> Pair | None:
    """The next pair of an annotator; None when all are judged.

    "Randomized but weakly ordered by the number of annotations already collected" (section 3): of the pairs that the
    annotator has not judged those with the fewest judgments, and among these a draw that seed, annotator and pair
    decide. So the order is deterministic but differs by annotator. Skipped pairs come last.
    """
    judged = grades_of(answers)
    skips = Counter(answer.pair for answer in answers if answer.grade is None and answer.annotator == annotator)
    candidates = [pair for pair in pairs if annotator not in judged.get(pair.number, ())]

    def place(pair: Pair) -> tuple[int, int, bytes]:
        return skips[pair.number], len(judged.get(pair.number, ())), _draw(seed, annotator, pair.number)

    return min(candidates, key=place, default=None)


def _draw(seed: int, annotator: str, number: int) -> bytes:
    return blake2b(f"{seed}\0{number}\0{annotator}".encode(), digest_size=8).digest()


def mean_grades(pairs: Sequence[Pair], answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """query id -> document id -> mean of all annotators' grades."""
    judged = grades_of(answers)
    means: dict[str, dict[str, float]] = {}
    for pair in pairs:
        if grades := judged.get(pair.number):
            means.setdefault(pair.query, {})[pair.document] = sum(grades.values()) / len(grades)
    return means


def qrels_of(pairs: Sequence[Pair], answers: Sequence[Answer]) -> Qrels:
    """The means as whole numbers, halves rounded up, as `corpora.codesearchnet` reads the Challenge's."""
    means = mean_grades(pairs, answers)
    return {query: {id: int(grade + 0.5) for id, grade in grades.items()} for query, grades in means.items()}


class JudgedAlready(BadInput):
    """The annotator has given this pair another grade, in another window."""


class Judgments:
    """A database of one pool and the answers to it. recipe, queries and pairs never change."""

    def __init__(self, path: Path) -> None:
        """Open an existing one. Raises BadInput for a file that is none."""
        if not path.is_file():
            raise BadInput(f"no database {path}: nothing is judged yet; judge with: ncs annotate INDEX QUERIES")
        self.path, self._lock = path, threading.Lock()
        self._db = _connect(path)
        try:
            with _readable_errors(path):
                self._check()
                row = self._db.execute("SELECT json FROM recipe").fetchone()
                recipe = json.loads(row[0])
                self.recipe = Recipe(tuple(recipe["rankers"]), recipe["k"], tuple(recipe["languages"]), recipe["seed"])
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
        """Write the pool in one transaction, and open the database."""
        with _readable_errors(path):
            db = _connect(path)
            try:
                db.execute("BEGIN IMMEDIATE")
                if not is_empty(path, db):
                    raise BadInput(f"{path} was made by another process; run the command again")
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
        """Close the file."""
        self._db.close()

    def answers(self) -> list[Answer]:
        """All answers, in the order they were given."""
        with self._transaction():
            rows = self._db.execute("SELECT annotator, pair, grade, notes, at FROM answers ORDER BY id").fetchall()
        return [Answer(*row) for row in rows]

    def add(self, annotator: str, pair: int, grade: int | None, notes: str) -> None:
        """Store an answer; it is on disk when this returns. A repeated request (after a lost reply) changes nothing.

        Raises JudgedAlready where the annotator gave this pair another grade.
        """
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._transaction():
            previous = self._db.execute(
                "SELECT grade, notes FROM answers WHERE annotator = ? AND pair = ? AND grade IS NOT NULL",
                (annotator, pair),
            ).fetchone()
            if previous == (grade, notes):
                return
            if previous is not None:
                raise JudgedAlready(
                    f"you gave this one a {previous[0]} already, in another window; undo it there first"
                )
            self._db.execute(INSERT_ANSWER, (annotator, pair, grade, notes, at))

    def undo(self, annotator: str) -> Answer | None:
        """Delete and return the annotator's last answer; None where there is none."""
        with self._transaction():
            row = self._db.execute(SELECT_LAST, (annotator,)).fetchone()
            if row is None:
                return None
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
    with _readable_errors(path):
        db = _connect(path)
        try:
            return is_empty(path, db)
        finally:
            db.close()


def is_empty(path: Path, db: sqlite3.Connection) -> bool:
    """Whether a database has no tables, after SQLite's rollback of a killed process."""
    return not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _connect(path: Path) -> sqlite3.Connection:
    with _readable_errors(path):
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
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NcsError(f"cannot use {path} ({error}); see to its disk and permissions") from error
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no database of judgments ({error}); name another --database") from error


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two annotators over the pairs that both judged. same: share of equal grades; kappa: None where it is 0 / 0."""

    one: str
    other: str
    pairs: int
    same: float
    kappa: float | None


def kappa(left: Sequence[int], right: Sequence[int]) -> float | None:
    """Cohen's kappa with weights (i - j)^2: 1 agree, 0 as by chance; None where both always gave the same grade.

    One minus observed disagreement over expected disagreement of independent annotators with the same frequencies.

    >>> kappa([0, 1, 2, 3], [0, 1, 2, 3]), kappa([0, 3], [3, 0]), kappa([2, 2], [2, 2])
    (1.0, -1.0, None)
    """
    observed = np.zeros((len(GRADES), len(GRADES)))
    np.add.at(observed, (np.asarray(left, np.intp), np.asarray(right, np.intp)), 1)
    weights = np.subtract.outer(GRADES, GRADES) ** 2
    chance = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / max(observed.sum(), 1)
    expected = float((weights * chance).sum())
    return 1 - float((weights * observed).sum()) / expected if expected else None


def agreements(answers: Sequence[Answer]) -> list[Agreement]:
    """The agreement of every two annotators with common pairs, by name; of more than two also of everybody.

    Everybody: each two judgments of a pair count in both orders, so that the order of names does not matter.
    Raises BadInput where no pair was judged by two people.
    """
    judged = grades_of(answers)
    names = sorted({name for grades in judged.values() for name in grades})
    result, left, right = list[Agreement](), list[int](), list[int]()
    for one, other in combinations(names, 2):
        common = [(grades[one], grades[other]) for grades in judged.values() if one in grades and other in grades]
        if common:
            a, b = zip(*common, strict=True)
            result.append(_agreement(one, other, a, b, len(common)))
            left += [*a, *b]
            right += [*b, *a]
    if not result:
        raise BadInput("no function was judged by two people for the same query; agreement needs a second annotator")
    if len(names) > 2:
        twice = sum(len(grades) > 1 for grades in judged.values())
        result.append(_agreement(EVERYBODY, "", left, right, twice))
    return result


def _agreement(one: str, other: str, left: Sequence[int], right: Sequence[int], pairs: int) -> Agreement:
    same = sum(a == b for a, b in zip(left, right, strict=True)) / len(left)
    return Agreement(one, other, pairs, same, kappa(left, right))


def agreement_text(agreements: Sequence[Agreement]) -> str:
    """A line per agreement."""
    lines = []
    for each in agreements:
        names = f"{each.one} and {each.other}" if each.other else each.one
        value = "not defined (all grades are the same)" if each.kappa is None else f"{each.kappa:.3f}"
        lines.append(f"{names}: {each.pairs:,} judged by both, {each.same:.0%} alike, squared Cohen's kappa {value}")
    return "\n".join(lines)
