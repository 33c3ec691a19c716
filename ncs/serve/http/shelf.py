"""An index that is asked while its folder may be replaced: the old one answers until the new one can."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ncs.answer import ask
from ncs.errors import IndexDamaged, NcsError
from ncs.index import Index
from ncs.learn.confidence import TUNED
from ncs.scale.milvus.opening import open_index
from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.http.settings import Settings
from ncs.storage.manifest import NAME

Stamp = tuple[tuple[int, int, int] | None, ...]
AGAIN = 10
"""Looks at an unchanged folder after which a new generation that could not be opened is tried again."""


class _Lent:
    """An index with how many requests hold it; closed when it is retired and nobody does."""

    def __init__(self, index: Index) -> None:
        self.index, self.holders, self.retired = index, 0, False


class Shelf:
    """One index by name. problem: why the newest generation does not answer, "" where it does."""

    def __init__(self, name: str, folder: Path, store: str = "", seconds: float = 60) -> None:
        """store: what holds the index, too, and finds the candidates; seconds: how long a question may try it.

        Raises what `open_index` raises: a server does not begin with an index that cannot be read.
        """
        self._store, self._seconds = store, seconds
        self.name, self.folder, self.problem, self.reloads, self.failures = name, folder, "", 0, 0
        self._lock = threading.Lock()
        self._looks = 0
        self._seen = self._stamp(None)
        self._current = _Lent(self._loaded(verify=False))
        self._seen = self._stamp(self._current.index.manifest.generation)

    @property
    def generation(self) -> int:
        """The number of the generation that answers."""
        return int(self._current.index.manifest.generation.removeprefix("data-"))

    @property
    def documents(self) -> int:
        """How many documents answer."""
        return len(self._current.index)

    @contextmanager
    def lent(self) -> Iterator[Index]:
        """The index that answers now; it stays open until it is given back, whatever replaces it."""
        with self._lock:
            held = self._current
            held.holders += 1
        try:
            yield held.index
        finally:
            with self._lock:
                held.holders -= 1
                last = held.retired and not held.holders
            if last:
                held.index.close()

    def changed(self) -> bool:
        """Whether the folder is another than at the last look, or could not be opened some looks ago; a few stats."""
        stamp = self._stamp(self._current.index.manifest.generation)
        self._looks += 1
        if stamp != self._seen:
            self._seen = stamp
            return True
        return bool(self.problem) and self._looks % AGAIN == 0

    def refresh(self, *, verify: bool = True) -> None:
        """Open what is in the folder now, and let it answer; where it cannot, `problem` says why. verify: all of it."""
        try:
            fresh = self._loaded(verify=verify)
        except NcsError as error:
            self.problem = str(error)
            self.failures += 1
            return
        with self._lock:
            old, self._current = self._current, _Lent(fresh)
            old.retired = True
            unused = not old.holders
            self._seen = (self._seen[0], *self._stamp(fresh.manifest.generation)[1:])
        self.problem = ""
        self.reloads += 1
        if unused:
            old.index.close()

    def close(self) -> None:
        """Close the index once nobody holds it."""
        with self._lock:
            self._current.retired = True
            unused = not self._current.holders
        if unused:
            self._current.index.close()

    def _loaded(self, *, verify: bool) -> Index:
        """Opened and asked once: files that are read on first use are open, and fit."""
        index = open_index(self.folder, self._store, verify=verify, seconds=self._seconds)
        try:
            ask(index, next(iter(index.words().vocabulary), "a"), 1, ranker=DEFAULT_RANKER)
        except (OSError, ValueError, RuntimeError, IndexError) as error:
            index.close()
            raise IndexDamaged(f"{self.folder} cannot be asked ({error}); build it again") from error
        except NcsError:
            index.close()
            raise
        return index

    def _stamp(self, generation: str | None) -> Stamp:
        paths = [self.folder / NAME, *([self.folder / generation / TUNED] if generation else [])]
        return tuple(map(_stat, paths))


def shelves(settings: Settings) -> dict[str, Shelf]:
    """What a server is told to serve; raises what `Shelf` raises."""
    seconds = settings.seconds / 2  # of a request's time half is left to say why
    return {name: Shelf(name, folder, settings.store, seconds) for name, folder in settings.folders.items()}


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
