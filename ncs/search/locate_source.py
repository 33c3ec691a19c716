"""Where the source of a hit lies on this machine, and at which line its function is there today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.storage.files import Entries, FileTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncs.storage.files import FileEntry
    from ncs.storage.snapshot import Snapshot

MAX_BYTES = 16 << 20
"""Larger files are not searched for a function that has moved."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A function in its file today: the 1-based line, the lines from there to its end, and whether the file still has
    it as it was indexed."""

    path: Path
    line: int
    lines: tuple[str, ...]
    as_indexed: bool


class SourceFiles:
    """The files that an index was made of. Those in archives and bare repositories are no files of this machine."""

    def __init__(self, snapshot: Snapshot) -> None:
        """The tables of files are read when the first file is looked for."""
        self._snapshot = snapshot

    @cached_property
    def _tables(self) -> list[tuple[Entries, frozenset[int]]]:
        """Of each segment, the latest first: its files, and which of them are gone."""
        tables = []
        for segment in reversed(self._snapshot.segments):
            table = FileTable.load(segment.path)
            if table is not None and isinstance(table.entries, Entries):
                tables.append((table.entries, frozenset(segment.dead_files.tolist())))
        return tables

    def path(self, hit: Mapping[str, Any]) -> Path | None:
        """The file of a hit; None where there is none, or none any more."""
        return self.find(hit["repository"], hit["path"])

    def find(self, repository: str, path: str) -> Path | None:
        """The file of this name in the index; None where there is none, or none any more."""
        for entries, dead in self._tables:
            for entry in _live(entries, entries.at(repository, path), dead):
                return _file(entry.place)
        return None

    def name_of(self, file: Path) -> str | None:
        """repository/path of a file of this machine; None where the index does not have it."""
        for entries, dead in self._tables:
            for entry in _live(entries, entries.at_place(str(file)), dead):
                return f"{entry.repository}/{entry.path}"
        return None

    def locate(self, hit: Mapping[str, Any]) -> SourceLocation | None:
        """Where the function of a hit is in its file now; None where there is no file that can be read."""
        path = self.path(hit)
        try:
            if path is None or path.stat().st_size > MAX_BYTES:
                return None
            lines = path.read_text("utf-8", "replace").split("\n")
        except OSError:
            return None
        code = hit["code"]
        start = find_lines(lines, code.split("\n"), hit["start_line"]) if code else None
        line = min(start or hit["start_line"], len(lines))
        end = line + hit["end_line"] - hit["start_line"]
        return SourceLocation(path, line, tuple(lines[line - 1 : end]), start is not None or not code)


def _live(entries: Entries, positions: NDArray[np.int64], dead: frozenset[int]) -> Iterator[FileEntry]:
    return (entries[at] for at in positions.tolist() if at not in dead)


def _file(place: str) -> Path | None:
    path = Path(place)
    return path if path.is_absolute() and path.is_file() else None


def find_lines(lines: list[str], code: list[str], near: int) -> int | None:
    """The 1-based line at which the code begins, whatever its indentation; the one nearest to the line `near`.

    Code whose lines do not follow each other in the file, as in outlines, is found by its first line.

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
