"""An index that stays open while its folder is written: the old snapshot answers until the new one is open."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ncs.answer import ask
from ncs.errors import NcsError, damaged
from ncs.index import Index
from ncs.learn.confidence import TUNED
from ncs.search.rankers import DEFAULT_RANKER
from ncs.storage.snapshot import SNAPSHOT, Description, open_snapshot

RETRY = 10.0
"""Seconds after which a snapshot that could not be opened is tried again."""


def share_heap() -> None:
    """Let all threads allocate from one heap: glibc gives each its own, and what snapshots leave in those adds up."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX


def open_index(folder: Path, store: str = "", seconds: float | None = None, held: Description | None = None) -> Index:
    """The index in a folder; store: a Milvus that finds the candidates; seconds: how long a query waits for it.

    held: as of `open_snapshot`. Raises what Index.load and Milvus raise.
    """
    if not store:
        return open_snapshot(folder, Index, held=held)
    from ncs.scale.milvus import TIMEOUT, MilvusIndex, Target

    return MilvusIndex.open(folder, replace(Target.of(store), seconds=min(seconds or TIMEOUT, TIMEOUT)), held)


class _Open:
    """An open index with its number of users, the LiveIndex included; the last one closes it."""

    def __init__(self, index: Index) -> None:
        self.index, self.users = index, 1


class LiveIndex:
    """One index by name; error: why the newest snapshot is not the one that answers, "" where it is."""

    def __init__(
        self, name: str, folder: Path, store: str = "", seconds: float | None = None, held: Description | None = None
    ) -> None:
        """store, seconds: as of `open_index`, which is what may be raised.

        held: a snapshot that another process has open; it answers where the newest cannot be opened.
        """
        self.name, self.folder, self.error = name, folder, ""
        self._store, self._seconds = store, seconds
        self._lock = threading.Lock()
        self._stamp = _stamp(folder)  # before it is opened: `refresh` sees what is committed meanwhile
        self._retry = 0.0
        try:
            index = self._load()
        except NcsError as error:
            if held is None:
                raise
            index = self._load(held)
            self.error, self._retry = str(error), time.monotonic() + RETRY
        self._open = _Open(index)

    @property
    def description(self) -> Description:
        """The snapshot that answers."""
        return self._open.index.description

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self._open.index)

    @contextmanager
    def acquire(self) -> Iterator[Index]:
        """The index that answers now; it stays open for the caller, whatever replaces it."""
        with self._lock:
            current = self._open
            current.users += 1
        try:
            yield current.index
        finally:
            self._release(current)

    def _release(self, opened: _Open) -> None:
        with self._lock:
            opened.users -= 1
            unused = not opened.users
        if unused:
            opened.index.close()

    def refresh(self) -> None:
        """Let a snapshot answer that was committed since the last call; where it cannot be opened, set `error`."""
        stamp, now = _stamp(self.folder), time.monotonic()
        if stamp == self._stamp and not (self.error and now >= self._retry):
            return
        self._stamp, self._retry = stamp, now + RETRY
        try:
            new = _Open(self._load())
        except NcsError as error:
            self.error = str(error)
            return
        with self._lock:
            old, self._open = self._open, new
        self.error = ""
        self._release(old)

    def close(self) -> None:
        """Close the index once no request uses it."""
        self._release(self._open)

    def _load(self, held: Description | None = None) -> Index:
        """Open the index and run one query, so that files that are opened on first use are open and fit."""
        index = open_index(self.folder, self._store, self._seconds, held)
        index.snapshot.keep_tombstones()  # for `held`
        try:
            ask(index, next(iter(index.words().vocabulary), "a"), 1, ranker=DEFAULT_RANKER)
        except (OSError, ValueError, RuntimeError, IndexError) as error:
            index.close()
            raise damaged(f"{self.folder} cannot be searched ({error})", self.folder) from error
        except NcsError:
            index.close()
            raise
        return index


def _stamp(folder: Path) -> list[tuple[str, int, int, int]]:
    """Changes with every commit, and with the weights of `ncs tune`."""
    stamp = []
    for name in (SNAPSHOT, TUNED):
        with suppress(OSError):
            status = (folder / name).stat()
            stamp.append((name, status.st_ino, status.st_mtime_ns, status.st_size))
    return stamp
