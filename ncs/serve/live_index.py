"""An index that stays open while its folder is written: the old snapshot answers until the new one is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ncs.answer import ask
from ncs.errors import IndexDamaged, NcsError
from ncs.index import Index
from ncs.learn.confidence import TUNED
from ncs.search.rankers import DEFAULT_RANKER
from ncs.storage.snapshot import SNAPSHOT

RETRY = 10
"""Checks of an unchanged folder after which a snapshot that could not be opened is tried again."""


def open_index(folder: Path, store: str = "", seconds: float | None = None) -> Index:
    """The index in a folder; with a store, candidates come from there. Raises what Index.load and Milvus raise."""
    if not store:
        return Index.load(folder)
    from ncs.scale.milvus.index import open_index as open_milvus

    return open_milvus(folder, store) if seconds is None else open_milvus(folder, store, seconds=seconds)


class _Open:
    """An open index with its number of users; it is closed when it is replaced and nobody uses it."""

    def __init__(self, index: Index) -> None:
        self.index, self.users, self.replaced = index, 0, False


class LiveIndex:
    """One index by name; error: why the newest snapshot is not the one that answers, "" where it is.

    reloads: how often a new snapshot has replaced another.
    """

    def __init__(self, name: str, folder: Path, store: str = "", seconds: float | None = None) -> None:
        """store: a Milvus that finds the candidates; seconds: how long a query waits for it. Raises as open_index."""
        self.name, self.folder, self.error, self.reloads = name, folder, "", 0
        self._store, self._seconds = store, seconds
        self._lock = threading.Lock()
        self._checks = 0
        self._stamp = _stamp(folder)  # before it is opened: `changed` sees what is committed meanwhile
        self._open = _Open(self._load())

    @property
    def snapshot(self) -> int:
        """The number of the snapshot that answers."""
        return self._open.index.description.number

    @property
    def documents(self) -> int:
        """How many documents it has."""
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
            with self._lock:
                current.users -= 1
                unused = current.replaced and not current.users
            if unused:
                current.index.close()

    def changed(self) -> bool:
        """Whether a snapshot was committed since the last check, or one that could not be opened is due again."""
        stamp = _stamp(self.folder)
        self._checks += 1
        if stamp != self._stamp:
            self._stamp = stamp
            return True
        return bool(self.error) and self._checks % RETRY == 0

    def refresh(self) -> None:
        """Open the newest snapshot and let it answer; where it cannot be opened, `error` says why."""
        try:
            new = _Open(self._load())
        except NcsError as error:
            self.error = str(error)
            return
        self._replace(new)
        self.error = ""
        self.reloads += 1

    def close(self) -> None:
        """Close the index once nobody uses it."""
        self._replace(None)

    def _replace(self, new: _Open | None) -> None:
        with self._lock:
            old = self._open
            self._open = new or old
            old.replaced = True
            unused = not old.users
        if unused:
            old.index.close()

    def _load(self) -> Index:
        """Open the index and run one query, so that files that are opened on first use are open and fit."""
        index = open_index(self.folder, self._store, self._seconds)
        try:
            ask(index, next(iter(index.words().vocabulary), "a"), 1, ranker=DEFAULT_RANKER)
        except (OSError, ValueError, RuntimeError, IndexError) as error:
            index.close()
            raise IndexDamaged(f"{self.folder} cannot be searched ({error}); build it again") from error
        except NcsError:
            index.close()
            raise
        return index


def _stamp(folder: Path) -> list[tuple[int, int, int] | None]:
    """Changes with every commit, and with the weights of `ncs tune`."""
    return [_stat(folder / name) for name in (SNAPSHOT, TUNED)]


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
