"""Stamps of many paths at once: an update asks for those of every file and folder, mostly to see nothing new."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ncs.sources.seen import folder_stamp, stamp_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

try:
    from ncs.sources import _stamps
except ImportError:  # not compiled: the same in Python
    _stamps = None  # type: ignore[assignment]


def joined(paths: Iterable[str]) -> bytes:
    """Paths as bytes, a NUL behind each: no path holds one.

    >>> joined(["a/b", "c"]), parted(joined(["a/b", "c"])), parted(b"")
    (b'a/b\\x00c\\x00', ['a/b', 'c'], [])
    """
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def parted(paths: bytes) -> list[str]:
    """The other way round."""
    return os.fsdecode(paths).split("\0")[:-1]


def stamps_of(paths: bytes, *, folders: bool = False) -> NDArray[np.int64]:
    """Of what lies at each path, as `stamp_of` or `folder_stamp` has it, [paths, 3]; paths as `joined` has them."""
    found = look_in_python(paths, folders) if _stamps is None else _stamps.look(paths, folders)
    return np.frombuffer(found, np.int64).reshape(-1, 3)


def look_in_python(paths: bytes, folders: bool) -> bytes:
    """The stamps as numbers of eight bytes, one behind the other."""
    look = folder_stamp if folders else stamp_of
    return np.array([look(path) for path in parted(paths)], np.int64).tobytes()
