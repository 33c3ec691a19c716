"""A source file as the walk yields it: its content, where it lies, and a stamp that shows whether it has changed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple

LONGEST_PATH = 4096
"""Bytes; no folder of Linux can hold a longer one."""


class Origin(NamedTuple):
    """The place of a content on disk, and a stamp that differs after a change.

    place: the file's path; of what a git repository or an archive holds, its path followed by the path in it.
    stamp: the object's name in git, else size and times of the file, or of the archive that holds it.
    """

    place: str
    stamp: str = ""

    @classmethod
    def within(cls, repository: PurePath, path: str, stamp: str) -> Origin:
        """The origin of what a git repository or an archive holds at a path."""
        return cls(f"{repository}{os.sep}{path.replace('/', os.sep)}", stamp)


class RawFile(NamedTuple):
    """A file of one repository. path: relative to the repository, as the system has it. size: in bytes.

    data: empty where the file is `unchanged`.
    """

    path: str
    size: int
    data: bytes
    origin: Origin | None = None
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of source code: `path` is posix and relative to its repository.

    data: as on disk, but without a byte order mark and, where one marked UTF-16, in UTF-8; empty where the caller of
    the walk said that the file is `unchanged`.
    """

    repository: str
    path: str
    data: bytes
    origin: Origin | None = field(default=None, compare=False)
    unchanged: bool = False

    @classmethod
    def of(cls, repository: str, file: RawFile) -> SourceFile:
        """A file of the repository with this name."""
        return cls(repository, printable(file.path), file.data, file.origin, file.unchanged)


def file_origin(path: str, status: os.stat_result) -> Origin:
    """The origin of a file on disk, stamped with its size and both times: tools can set mtime back, but not ctime."""
    return Origin(path, f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}")


def printable(path: str) -> str:
    r"""A path as text that every encoder takes: bytes that are no UTF-8 become \xNN."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
