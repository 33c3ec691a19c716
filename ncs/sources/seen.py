"""What a walk has seen beside the files it gave: folders, ignore files, files it left. While these stay the same, so
does the list of files, and none of it need be walked over again."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncs.sources.places import Place

RACY = 2_000_000_000
"""Nanoseconds before a walk began in which a file may have changed again without its times showing it (FAT: 2 s)."""
NOWHERE = (-1, -1, -1)
Stamp = tuple[int, int, int]
"""Size and the times of content and entry, in nanoseconds; NOWHERE for what is not there. Of a folder size counts 0."""


def stamp_of(path: str) -> Stamp:
    """Of what lies at a path; links are not followed."""
    try:
        status = os.lstat(path)
    except OSError:
        return NOWHERE
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def folder_stamp(path: str) -> Stamp:
    """Of a folder, which changes when a name comes or goes in it."""
    try:
        status = os.stat(path)  # noqa: PTH116  (a Path a folder is slow)
    except OSError:
        return NOWHERE
    return (0, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(slots=True)
class Seen:
    """folders: path -> its stamp and the place whose files it holds, "" where it is left to others. guards: ignore
    files that were read, or would be. left: files that were not given for what they hold. odd: whether there was
    anything else than folders: archives, revisions, single files."""

    folders: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    guards: dict[str, Stamp] = field(default_factory=dict)
    left: dict[str, Stamp] = field(default_factory=dict)
    odd: bool = False

    def place(self, place: Place) -> None:
        """A place that is walked over now."""
        self.odd = self.odd or place.kind not in ("folder", "work tree") or bool(place.inside)

    def guard(self, path: Path) -> None:
        """An ignore file."""
        self.guards[str(path)] = stamp_of(str(path))
