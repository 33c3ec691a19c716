"""Stamps of many paths at once: an update asks for those of every file and folder, mostly to see nothing new."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ncs.sources.seen import folder_stamp, stamp_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    look = folder_stamp if folders else stamp_of
    return np.array([look(path) for path in parted(paths)], np.int64).reshape(-1, 3)
