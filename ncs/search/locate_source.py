"""Where the source of a hit lies on this machine, and at which line its function stands there today."""

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

MOST_BYTES = 16 << 20
"""Larger files are not searched for a function that has moved."""


@dataclass(frozen=True, slots=True)
class Stand:
    """A function in its file: the 1-based line, what is written from there on to its end, and whether the file still
    holds it as it was indexed."""

    path: Path
    line: int
    lines: tuple[str, ...]
    as_indexed: bool


@lru_cache(maxsize=8)
def originals_of(data: Path) -> Originals:
    """Of the generation in `data`, opened once."""
    return Originals(data)


class Originals:
    """The files that an index was made of. Those in archives and bare repositories are no files of this machine."""

    def __init__(self, data: Path) -> None:
        """data: the folder of the index's generation; it is read when the first hit is asked for."""
        self._data = data

    @cached_property
    def _table(self) -> tuple[Vocabulary, list[NDArray[Any]]] | None:
        room = self._data / ROOM
        return load_arrays(room, ("repository", "path", "place")) if room.is_dir() else None

    @cached_property
    def _late(self) -> Sequence[FileEntry]:
        """Of those that came or changed since the index was built."""
        room = room_of(self._data)
        table = FileTable.of_folder(room) if room else None
        return tuple(table.entries) if table else ()

    def path(self, hit: Mapping[str, Any]) -> Path | None:
        """The file of a hit; None where there is none, or none any more."""
        return self.of(hit["repository"], hit["path"])

    def of(self, repository: str, path: str) -> Path | None:
        """The file of this name in the index; None where there is none, or none any more."""
        if self._table is None:
            return None
        for entry in self._late:
            if (entry.repository, entry.path) == (repository, path):
                return _file(entry.place)
        texts, (repositories, paths, places) = self._table
        owner, name = texts.id(json.dumps(repository)), texts.id(json.dumps(path))
        if owner is None or name is None:
            return None
        at = np.flatnonzero((paths == name) & (repositories == owner))
        return _file(json.loads(texts.word(int(places[at[0]])))) if len(at) else None

    def name_of(self, file: Path) -> str | None:
        """repository/path of a file of this machine; None where the index does not hold it."""
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

    def stand(self, hit: Mapping[str, Any]) -> Stand | None:
        """Where the function of a hit stands in its file now; None where there is no file that can be read."""
        path = self.path(hit)
        try:
            if path is None or path.stat().st_size > MOST_BYTES:
                return None
            lines = path.read_text("utf-8", "replace").split("\n")
        except OSError:
            return None
        code = hit["code"]
        found = standing(lines, code.split("\n"), hit["start_line"]) if code else None
        line = min(found or hit["start_line"], len(lines))
        end = line + hit["end_line"] - hit["start_line"]
        return Stand(path, line, tuple(lines[line - 1 : end]), found is not None or not code)


def _file(place: str) -> Path | None:
    path = Path(place)
    return path if path.is_absolute() and path.is_file() else None


def standing(lines: list[str], code: list[str], wanted: int) -> int | None:
    """The 1-based line at which the code begins, whatever its indentation; the one nearest to the line wanted.

    Code whose lines do not follow each other in the file, as in outlines, is found by its first line.

    >>> standing(["x", "  def f():", "    pass", "def f():", "  pass"], ["def f():", "  pass"], 3)
    2
    """
    stripped, sought = [line.strip() for line in lines], [line.strip() for line in code]
    while sought and not sought[-1]:
        sought.pop()
    if not sought:
        return None
    starts = [i for i, line in enumerate(stripped) if line == sought[0]]
    whole = [i for i in starts if stripped[i : i + len(sought)] == sought]
    if not whole and wanted - 1 in starts:
        whole = [wanted - 1]
    return min(whole, key=lambda i: abs(i + 1 - wanted)) + 1 if whole else None
