"""Where a file's content comes from, and how to see that it has not changed without reading it."""

from __future__ import annotations

import os
from typing import NamedTuple


class Origin(NamedTuple):
    """Where on disk a content lies, and a stamp that is another one when it changes.

    stamp: the object's name in git, else size and times; "" where only reading can tell (archives).
    """

    place: str
    stamp: str = ""


class Read(NamedTuple):
    """A file: its path relative to the repository, its size in bytes, its content.

    data: empty when only listing, and where `unchanged`: the caller knows it from its origin.
    """

    path: str
    size: int
    data: bytes
    origin: Origin | None = None
    unchanged: bool = False


def origin_of(path: str, status: os.stat_result) -> Origin:
    """Of a file on disk: its times are those of its content and of its entry, which tools cannot set back."""
    return Origin(path, f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}")
