"""What a walk has seen beside the files it gave: folders, ignore files, files it left. While these stay the same, so
does the list of files, and none of it need be walked over again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.sources.repositories import common_dir

if TYPE_CHECKING:
    from ncs.sources.repositories import Repository

RACY = 2_000_000_000
"""Nanoseconds before a walk began in which a file may have changed again without its times showing it (FAT: 2 s)."""
NOWHERE = (-1, -1, -1)
SMALL = 1 << 16
"""Bytes up to which a file that decides which files there are is known by its content, whatever its times."""
Stamp = tuple[int, int, int]
"""Size and the times of content and entry, in nanoseconds; NOWHERE for what is not there. Of a folder size counts 0."""


def stamp_of(path: str) -> Stamp:
    """Of what lies at a path; links are not followed."""
    try:
        status = os.lstat(path)
    except OSError:
        return NOWHERE
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def digest_of(path: str) -> str:
    """Of the content of a small file; "" for what is large, no file, or not there."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (a Path a file is slow)
            content = file.read(SMALL + 1)
    except OSError:
        return ""
    return blake2b(content, digest_size=8).hexdigest() if len(content) <= SMALL else ""


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
    files that were read, or would be; archives; of bare repositories, what changes when their commit does; with their
    stamps and digests. left: files that were not given for what they hold. apart: whether there were archives or bare
    repositories; odd: whether there was anything else than these and folders."""

    folders: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    guards: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    left: dict[str, Stamp] = field(default_factory=dict)
    apart: bool = False
    odd: bool = False

    def place(self, place: Repository) -> None:
        """A place that is walked over now."""
        if place.subfolder:
            self.odd = True
        elif place.kind == "archive":
            self.apart = True
            self.guard(place.path)
        elif place.kind == "blobs":
            self.apart = True
            for path in _deciding(place.git_dir or place.path):
                self.guard(path)

    def guard(self, path: Path) -> None:
        """A file, or a folder, that decides which files there are."""
        self.guards[str(path)] = (stamp_of(str(path)), digest_of(str(path)))


def _deciding(git_dir: Path) -> Iterator[Path]:
    """What tells that the commit at HEAD is the same, and its objects: HEAD, all references, packs, settings."""
    common = common_dir(git_dir)
    yield git_dir / "HEAD"
    yield from (common / name for name in ("packed-refs", "config", "shallow", "reftable/tables.list", "objects/pack"))
    for folder, _, files in os.walk(common / "refs"):
        yield Path(folder)
        yield from (Path(folder, name) for name in files)
