"""A user's judgments: queries with functions that answer them or do not, as lines or as TREC qrels and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ncs.errors import BadInput
from ncs.search.question import check_length
from ncs.storage.documents import LINE, Documents

GRADE = re.compile("-?[0-9]{1,9}")
DOWN = "# down"
"""Prefix of a thumbs-down line; a comment to readers that expect only correct functions."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """A query, the rows judged correct and the rows judged wrong; one of both may be empty."""

    text: str
    rows: tuple[int, ...]
    wrong: tuple[int, ...] = ()


def read_feedback(path: Path, documents: Documents, *, qrels: Path | None = None) -> list[Feedback]:
    """One Feedback per query, in the order of the file; lines of the same query are merged.

    path: lines of a query, a tab, and its functions, separated by tabs: ids, path:line or qualified names; after
    `# down` and a tab, a wrong function. With qrels (TREC: query id, 0, document, grade; 0: wrong) lines of a query id,
    a tab and the query. The last judgment of a function counts. Other comments, empty lines, and wrong functions that
    no longer exist are skipped. Raises BadInput, with file and line, for invalid lines and unknown functions.
    """
    finder = _Finder(documents)
    judgments = _with_qrels(path, qrels, finder) if qrels else _judgments(path, finder)
    rows_of: dict[str, dict[int, bool]] = {}
    for text, rows in judgments:
        check_length(text)
        rows_of.setdefault(text, {}).update(rows)
    return [
        Feedback(text, tuple(row for row in rows if rows[row]), tuple(row for row in rows if not rows[row]))
        for text, rows in rows_of.items()
        if rows
    ]


def _judgments(path: Path, finder: _Finder) -> Iterator[tuple[str, dict[int, bool]]]:
    """(Query, row -> whether it answers it) of each line."""
    for where, line in _lines(path):
        down = line.startswith(f"{DOWN}\t")
        if line.startswith("#") and not down:
            continue
        text, _, rest = line.removeprefix(f"{DOWN}\t").partition("\t")
        targets = [target.strip() for target in ([rest] if down else rest.split("\t")) if target.strip()]
        if not (text.strip() and targets):
            if down:
                continue
            raise BadInput(f"{where}: not a query, a tab, the id of its function; separate them with one tab")
        rows = [row for target in targets for row in finder.rows(target, where, required=not down)]
        yield text.strip(), dict.fromkeys(rows, not down)


def _with_qrels(path: Path, qrels: Path, finder: _Finder) -> Iterator[tuple[str, dict[int, bool]]]:
    judgments: dict[str, dict[int, bool]] = {}
    for where, line in _lines(qrels):
        if line.startswith("#"):
            continue
        parts = line.split()
        if len(parts) != 4 or not GRADE.fullmatch(parts[3]):
            raise BadInput(f"{where}: not a line of TREC qrels; write: query-id 0 document-id grade")
        right = int(parts[3]) > 0
        rows = finder.rows(parts[2], where, required=right)
        judgments.setdefault(parts[0], {}).update(dict.fromkeys(rows, right))
    for where, line in _lines(path):
        if not line.startswith("#"):
            id, _, text = (part.strip() for part in line.partition("\t"))
            if not (id and text):
                raise BadInput(f"{where}: not a query id, a tab, the query; separate them with one tab")
            yield text, judgments.get(id, {})


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """(FILE, line N; the line) of every line that is not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; name a file of queries") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8; save it as UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{path}, line {number}", line


class _Finder:
    """Resolves names and places of functions to rows."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def rows(self, target: str, where: str, *, required: bool) -> list[int]:
        """Rows of an id, of path:line (the path may be a suffix), or of a qualified name (or its suffix).

        Raises BadInput if there are none but one is required.
        """
        row = self._documents.row_of(target)
        name = target.replace("::", ".").replace("#", ".")
        rows = [row] if row is not None else self._at(target) or self._names.get(name, [])
        if required and not rows:
            raise BadInput(
                f"{where}: this index has no function {target!r}; write an id, path:line or a qualified name"
                " as ncs query shows them"
            )
        return rows

    def _at(self, target: str) -> list[int]:
        path, _, line = target.rpartition(":")
        if not (path and LINE.fullmatch(line)):
            return []
        file, places = self._documents.files()
        suffix = f"/{path.lstrip('/')}"
        numbers = [at for at, place in enumerate(map("/".join, places)) if place == path or place.endswith(suffix)]
        rows = np.flatnonzero(np.isin(file, numbers)).tolist()
        spans = [
            (place.end_line - place.start_line, row)
            for place, row in zip(self._documents.locations(rows), rows, strict=True)
            if place.start_line <= int(line) <= place.end_line
        ]
        return [min(spans)[1]] if spans else []

    @cached_property
    def _names(self) -> dict[str, list[int]]:
        """Qualified name, or a suffix of it -> rows."""
        rows_of: dict[str, list[int]] = {}
        names = list(self._documents.names())
        for row in self._documents.rows().tolist():
            parts = names[row][1].split(".")
            for start in range(len(parts)):
                rows_of.setdefault(".".join(parts[start:]), []).append(row)
        return rows_of
