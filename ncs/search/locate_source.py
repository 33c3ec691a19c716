"""The file of a hit on this machine, and the line at which its function is there today."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.storage.arrays import load_arrays
from ncs.storage.files import FOLDER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.text.vocabulary import Vocabulary

COLUMNS = ("repository", "path", "place")
MAX_BYTES = 16 << 20
"""Larger files are not searched for a function that has moved."""


@dataclass(frozen=True, slots=True)
class CurrentSource:
    """A function in its file: the 1-based line, its lines as they are now, and whether they are those of the index."""

    path: Path
    line: int
    lines: tuple[str, ...]
    unchanged: bool


@lru_cache(maxsize=8)
def locator_of(snapshot: Snapshot) -> SourceLocator:
    """Of a snapshot, made once."""
    return SourceLocator(snapshot)


class SourceLocator:
    """The files that an index was built from. What is in archives and bare repositories is not a file."""

    def __init__(self, snapshot: Snapshot) -> None:
        """The file tables are read on first use."""
        self._snapshot = snapshot

    @cached_property
    def _tables(self) -> list[tuple[Vocabulary, list[NDArray[Any]], NDArray[np.int64]]]:
        """Of each segment: texts, their numbers by column (repository, path, place), and the files that are gone."""
        tables = []
        for segment in self._snapshot.segments:
            if (segment.path / FOLDER).is_dir():
                texts, columns = load_arrays(segment.path / FOLDER, COLUMNS)
                tables.append((texts, columns, segment.dead_files))
        return tables

    def path(self, hit: Mapping[str, Any]) -> Path | None:
        """The file of a hit; None where there is none (any more)."""
        return self.path_of(hit["repository"], hit["path"])

    def path_of(self, repository: str, path: str) -> Path | None:
        """The file of this name in the index; None where there is none (any more)."""
        row = self._find({"repository": repository, "path": path})
        file = Path(row[2]) if row else None
        return file if file is not None and file.is_absolute() and file.is_file() else None

    def name_of(self, file: Path) -> str | None:
        """repository/path of a file of this machine; None where it is not indexed."""
        row = self._find({"place": str(file)})
        return f"{row[0]}/{row[1]}" if row else None

    def _find(self, values: Mapping[str, str]) -> list[str] | None:
        """Repository, path and place of the first file with these values."""
        for texts, columns, dead in self._tables:
            ids = {name: texts.id(json.dumps(value)) for name, value in values.items()}
            if None in ids.values():
                continue
            matching = [columns[COLUMNS.index(name)] == id for name, id in ids.items()]
            files = np.setdiff1d(np.flatnonzero(np.logical_and.reduce(matching)), dead)
            if len(files):
                return [json.loads(texts.word(int(column[files[0]]))) for column in columns]
        return None

    def locate(self, hit: Mapping[str, Any]) -> CurrentSource | None:
        """Where the function of a hit is in its file now; None where there is no readable file."""
        path = self.path(hit)
        try:
            if path is None or path.stat().st_size > MAX_BYTES:
                return None
            lines = path.read_text("utf-8", "replace").split("\n")
        except OSError:
            return None
        code = hit["code"]
        found = find_lines(lines, code.split("\n"), hit["start_line"]) if code else None
        line = min(found or hit["start_line"], len(lines))
        end = line + hit["end_line"] - hit["start_line"]
        return CurrentSource(path, line, tuple(lines[line - 1 : end]), found is not None or not code)


def find_lines(lines: list[str], code: list[str], near: int) -> int | None:
    """The 1-based line at which code begins, whatever its indentation; of several the one nearest to `near`.

    Code whose lines are not contiguous in the file, as in outlines, is found by its first line.

    >>> find_lines(["x", "  def f():", "    pass", "def f():", "  pass"], ["def f():", "  pass"], 3)
    2
    """
    stripped, wanted = [line.strip() for line in lines], [line.strip() for line in code]
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return None
    starts = [i for i, line in enumerate(stripped) if line == wanted[0]]
    whole = [i for i in starts if stripped[i : i + len(wanted)] == wanted]
    if not whole and near - 1 in starts:
        whole = [near - 1]
    return min(whole, key=lambda i: abs(i + 1 - near)) + 1 if whole else None
