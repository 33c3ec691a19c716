"""A user's judgments: queries with functions that answer them or do not, as lines or as TREC qrels and queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ncs.errors import BadInput
from ncs.storage.documents import Documents

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

    path: lines of a query, a tab, and its function: an id, path:line or a qualified name; further tabs, further
    functions. With qrels (TREC: query id, 0, document, grade; grades over 0 count), lines of a query id, a tab and
    the query. Lines of `# down`, a tab, and a line as above name functions that do not answer it, and so do grades
    of 0; a later judgment of the same function replaces an earlier one. Other comments and empty lines are skipped,
    and so are negative judgments of functions that no longer exist. Raises BadInput, with file and line, for invalid
    lines and unknown functions.
    """
    find = _Finder(documents)
    judged = _judged(qrels, find) if qrels else None
    judgments: dict[str, dict[int, bool]] = {}
    for where, line in _lines(path):
        if line.startswith("#"):
            for text, row in _down(line, find) if judged is None else ():
                judgments.setdefault(text, {})[row] = False
            continue
        first, tab, rest = line.partition("\t")
        if not (tab and first.strip() and rest.strip()):
            expected = "a query id, a tab, the query" if qrels else "a query, a tab, the id of its function"
            raise BadInput(f"{where}: not {expected}; separate them with one tab")
        text = rest.strip() if qrels else first.strip()
        if judged is None:
            targets = [target.strip() for target in rest.split("\t") if target.strip()]
            rows = {row: True for target in targets for row in find(target, where)}
        else:
            rows = judged.get(first.strip(), {})
        if rows:
            judgments.setdefault(text, {}).update(rows)
    return [Feedback(text, _which(rows, True), _which(rows, False)) for text, rows in judgments.items()]


def _which(rows: Mapping[int, bool], right: bool) -> tuple[int, ...]:
    return tuple(row for row, is_right in rows.items() if is_right is right)


def _down(line: str, find: _Finder) -> Iterator[tuple[str, int]]:
    """(Query, row) of a thumb down; nothing for other comments and unknown functions."""
    before, _, rest = line.partition("\t")
    text, _, target = rest.partition("\t")
    if before == DOWN and text.strip() and target.strip():
        with suppress(BadInput):
            yield from ((text.strip(), row) for row in find(target.strip(), line))


def _judged(path: Path, find: _Finder) -> Mapping[str, dict[int, bool]]:
    """Query id -> row -> whether its grade is over 0; unknown functions with grade 0 are skipped."""
    judged: dict[str, dict[int, bool]] = {}
    for where, line in _lines(path):
        if line.startswith("#"):
            continue
        parts = line.split()
        if len(parts) != 4 or not parts[3].lstrip("-").isdigit():
            raise BadInput(f"{where}: not a line of TREC qrels; write: query-id 0 document-id grade")
        right = int(parts[3]) > 0
        with nullcontext() if right else suppress(BadInput):
            judged.setdefault(parts[0], {}).update(dict.fromkeys(find(parts[2], where), right))
    return judged


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
        self._names: dict[str, list[int]] | None = None

    def __call__(self, target: str, where: str) -> list[int]:
        """Rows of an id, of path:line (the path may be a suffix), or of a qualified name (or its suffix)."""
        row = self._documents.row_of(target)
        rows = [row] if row is not None else self._at(target) or self._by_name(target)
        if not rows:
            raise BadInput(
                f"{where}: this index has no function {target!r}; write an id, path:line or a qualified name"
                " as ncs query shows them"
            )
        return rows

    def _at(self, target: str) -> list[int]:
        path, _, line = target.rpartition(":")
        if not (path and line.isdigit()):
            return []
        file, places = self._documents.files()
        numbers = [
            number
            for number, place in enumerate(map("/".join, places))
            if place == path or place.endswith(f"/{path.lstrip('/')}")
        ]
        rows = np.flatnonzero(np.isin(file, numbers)).tolist()
        spans = [
            (place.end_line - place.start_line, row)
            for place, row in zip(self._documents.locations(rows), rows, strict=True)
            if place.start_line <= int(line) <= place.end_line
        ]
        return [min(spans)[1]] if spans else []

    def _by_name(self, target: str) -> list[int]:
        if self._names is None:
            self._names = {}
            names = list(self._documents.names())
            for row in self._documents.rows().tolist():
                parts = names[row][1].split(".")
                for start in range(len(parts)):
                    self._names.setdefault(".".join(parts[start:]), []).append(row)
        return self._names.get(target.replace("::", ".").replace("#", "."), [])
