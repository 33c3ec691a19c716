"""The source file of a hit on this machine, and the current line of its function."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput
from ncs.files import read_regular
from ncs.storage.files import FileTable, full_place, home_of, stored_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot

COLUMNS = ("repository", "path", "place")
MAX_BYTES, MAX_COMPARED = 16 << 20, 100
"""Most bytes of a file, and places with the same first line that are compared as a whole."""


@dataclass(frozen=True, slots=True)
class CurrentSource:
    """A function in its file: first line (1-based), lines, and whether they equal those of the index."""

    path: Path
    line: int
    lines: tuple[str, ...]
    unchanged: bool


class SourceLocator:
    """Finds the source files of an index; archives and bare repositories have none.

    roots: no file outside of them is opened; for an untrusted index only the folder that holds it.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._home = home_of(snapshot.folder)
        self.roots = (Path(self._home),) if snapshot.distrust else snapshot.roots

    @cached_property
    def _tables(self) -> list[tuple[FileTable, NDArray[np.int64]]]:
        """The files of each segment, and the numbers of dead ones; read on first use."""
        return [(FileTable.of_segment(segment.path), segment.dead_files) for segment in self._snapshot.segments]

    def path_of(self, repository: str, path: str) -> Path | None:
        """The file of a repository and path in the index; None if it does not exist below the roots."""
        row = self._find({"repository": repository, "path": path})
        if row is None or not (file := Path(full_place(row[2], self._home))).is_absolute() or not file.is_file():
            return None
        real = file.resolve()
        return file if any(real.is_relative_to(root) for root in self.roots) else None

    def name_of(self, file: Path) -> str | None:
        """repository/path of a file on this machine; None if it is not indexed."""
        row = self._find({"place": stored_place(str(file), self._home)})
        return f"{row[0]}/{row[1]}" if row else None

    def within(self, path: Path) -> list[tuple[str, str]]:
        """(repository, path in it; "" for all of it) of the indexed files at and below a path on this machine."""
        found: dict[tuple[str, str], None] = {}
        for table, dead in self._tables:
            live = np.ones(len(table.path), np.bool_)
            live[dead] = False
            for file in {owner: file for file, owner in enumerate(table.repository.tolist())}.values():
                repository, name, place = _texts(table, file)
                folder = Path(full_place(place, self._home).replace(os.sep, "/").removesuffix(f"/{name}"))
                if folder.is_relative_to(path):
                    found[repository, ""] = None
                elif path.is_relative_to(folder):
                    inside = path.relative_to(folder).as_posix()
                    spelled = json.dumps(inside)
                    itself, below = table.texts.id(spelled), table.texts.starting(f"{spelled[:-1]}/")
                    paths = table.path[live & (table.repository == table.repository[file])]
                    if np.any((paths == itself) | ((paths >= below.start) & (paths < below.stop))):
                        found[repository, inside] = None
        return list(found)

    def _find(self, values: Mapping[str, str]) -> list[str] | None:
        """Repository, path and place of the first file with these values."""
        for table, dead in self._tables:
            ids = {name: table.texts.id(json.dumps(value)) for name, value in values.items()}
            if None in ids.values():
                continue
            matching = np.logical_and.reduce([getattr(table, name) == id for name, id in ids.items()])
            matching[dead] = False
            if matching.any():
                return _texts(table, int(matching.argmax()))
        return None

    def locate(self, hit: Mapping[str, Any]) -> CurrentSource | None:
        """The current place of a hit's function; None if there is no readable file."""
        path = self.path_of(hit["repository"], hit["path"])
        try:
            if path is None:
                return None
            text = read_regular(path, MAX_BYTES).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
            lines = text.split("\n")
        except OSError:
            return None
        code = hit["code"]
        line_now = find_lines(lines, code.split("\n"), hit["start_line"]) if code else None
        line = min(line_now or hit["start_line"], len(lines))
        end = line + hit["end_line"] - hit["start_line"]
        return CurrentSource(path, line, tuple(lines[line - 1 : end]), line_now is not None or not code)


def _texts(table: FileTable, file: int) -> list[str]:
    """Repository, path and place of a file."""
    return [json.loads(table.texts.word(int(getattr(table, name)[file]))) for name in COLUMNS]


def line_offset(hit: Mapping[str, Any]) -> int:
    """The 0-based line of a hit at which it is opened: a match, or its frame in a stack trace."""
    return int(hit.get("line", hit["start_line"]) - hit["start_line"])


locator_of = lru_cache(maxsize=8)(SourceLocator)
"""The locator of a snapshot."""


def places_in(snapshot: Snapshot, names: Sequence[str]) -> list[tuple[str, str]]:
    """(repository, path in it) of files and folders on this machine; raises BadInput for one without indexed files."""
    locator, places = locator_of(snapshot), list[tuple[str, str]]()
    for name in names:
        path = Path(name).resolve()
        if not path.exists():
            raise BadInput(f"no such file or folder: {name}; name one to search in")
        if not (found := locator.within(path)):
            if any(path.is_relative_to(root) or root.is_relative_to(path) for root in locator.roots):
                raise BadInput(
                    f"nothing of {name} is indexed; if it is new: ncs update, if it was left out: ncs doctor"
                )
            sources = shlex.join([*map(str, locator.roots), str(path)])
            raise BadInput(
                f"{name} is outside of what is indexed; index it, too: ncs build {sources} -i {snapshot.folder}"
            )
        places += found
    return places


def find_lines(lines: list[str], code: list[str], expected: int) -> int | None:
    """The 1-based line nearest to `expected` at which code begins, ignoring indentation; only the first line must agree
    if the code is not contiguous in the file, as in outlines.

    >>> find_lines(["x", "  def f():", "    pass", "def f():", "  pass"], ["def f():", "  pass"], 3)
    2
    """
    stripped, target = [line.strip() for line in lines], [line.strip() for line in code]
    while target and not target[-1]:
        target.pop()
    if not target:
        return None
    starts = [i for i, line in enumerate(stripped) if line == target[0]]
    nearest = sorted(starts, key=lambda i: abs(i + 1 - expected))
    whole = (i for i in nearest[:MAX_COMPARED] if stripped[i : i + len(target)] == target)
    start = next(whole, expected - 1 if expected - 1 in starts else None)
    return None if start is None else start + 1
