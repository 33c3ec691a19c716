"""The file of a hit on this machine, and the line at which its function is there today."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.build.delta import room_of
from ncs.storage.arrays import load_arrays
from ncs.storage.files import ROOM, FileEntry, FileTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.text.vocabulary import Vocabulary

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
def locator_of(data: Path) -> SourceLocator:
    """Of the snapshot in `data`, opened once."""
    return SourceLocator(data)


class SourceLocator:
    """The files that an index was built from. What is in archives and bare repositories is not a file."""

    def __init__(self, data: Path) -> None:
        """data: the folder of a snapshot; its file table is read on first use."""
        self._data = data

    @cached_property
    def _table(self) -> tuple[Vocabulary, list[NDArray[Any]]] | None:
        folder = self._data / ROOM
        return load_arrays(folder, ("repository", "path", "place")) if folder.is_dir() else None

    @cached_property
    def _late(self) -> Sequence[FileEntry]:
        """Of files that are new or changed since the last build."""
        folder = room_of(self._data)
        table = FileTable.of_folder(folder) if folder else None
        return tuple(table.entries) if table else ()

    def path(self, hit: Mapping[str, Any]) -> Path | None:
        """The file of a hit; None where there is none (any more)."""
        return self.path_of(hit["repository"], hit["path"])

    def path_of(self, repository: str, path: str) -> Path | None:
        """The file of this name in the index; None where there is none (any more)."""
        if self._table is None:
            return None
        for entry in self._late:
            if (entry.repository, entry.path) == (repository, path):
                return _existing(entry.place)
        texts, (repositories, paths, places) = self._table
        owner, name = texts.id(json.dumps(repository)), texts.id(json.dumps(path))
        if owner is None or name is None:
            return None
        at = np.flatnonzero((paths == name) & (repositories == owner))
        return _existing(json.loads(texts.word(int(places[at[0]])))) if len(at) else None

    def name_of(self, file: Path) -> str | None:
        """repository/path of a file of this machine; None where it is not indexed."""
        if self._table is None:
            return None
        for entry in self._late:
            if entry.place == str(file):
                return f"{entry.repository}/{entry.path}"
        texts, (repositories, paths, places) = self._table
        place = texts.id(json.dumps(str(file)))
        if place is None or not len(at := np.flatnonzero(places == place)):
            return None
        return "/".join(json.loads(texts.word(int(column[at[0]]))) for column in (repositories, paths))

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


def _existing(place: str) -> Path | None:
    path = Path(place)
    return path if path.is_absolute() and path.is_file() else None


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
