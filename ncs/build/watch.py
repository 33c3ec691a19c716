"""`ncs watch`: an index is updated whenever files of its sources are saved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event
from types import ModuleType

from ncs.build.request import Changes, request_of
from ncs.build.update import update
from ncs.config import BuildConfig
from ncs.console import count
from ncs.errors import IndexBusy, NcsError, needing
from ncs.learn.embeddings import retraining_advice
from ncs.storage.snapshot import DEFAULT_NAME, read_description

Say = Callable[[str], None]
Place = tuple[str, int, int]
"""A watched path with its device and inode; a replaced path must be watched again."""

QUIET, MAX_SERIES, INTERVAL = 100, 800, 500
"""Milliseconds: without an edit until a series ends, of the longest series, between checks for replaced roots."""
RETRY, MAX_RETRY = 2.0, 300.0
"""Seconds until a failed update is retried, doubled each time up to MAX_RETRY."""


def watch(folder: Path, say: Say, *, stop: Event | None = None) -> None:
    """Keep the index in `folder` up to date with its sources until `stop` is set, or KeyboardInterrupt; failed updates
    are retried. say: gets a line for every update with changes and every failure. Raises MissingExtra, what Index.load
    raises, and NcsError if the system cannot watch more folders."""
    with needing("ncs watch", "watch"):
        import watchfiles
    stop, follower = stop or Event(), Follower(folder, say)
    say(follower.greeting())
    while not stop.is_set():
        places = follower.places()
        for edited in _edits(watchfiles, places, stop):
            follower.step(edited)
            if follower.places() != places:
                break
        else:  # no root exists now; an update may still be due
            follower.step(())
            stop.wait(INTERVAL / 1000)


def _edits(watchfiles: ModuleType, places: Iterable[Place], stop: Event) -> Iterator[list[str]]:
    """The paths of each series of edits; an empty list after an INTERVAL without any. Ends when a path is removed."""
    paths = [path for path, _, _ in places]
    if not paths:
        return
    try:
        for changes in watchfiles.watch(
            *paths,
            watch_filter=None,
            debounce=MAX_SERIES,
            step=QUIET,
            rust_timeout=INTERVAL,
            yield_on_timeout=True,
            stop_event=stop,
            recursive=any(Path(path).is_dir() for path in paths),
            ignore_permission_denied=True,
        ):
            yield [path for _, path in changes]
    except FileNotFoundError:
        return
    except OSError as error:
        raise NcsError(
            f"cannot watch {paths[0]} ({error}); allow more (sysctl fs.inotify.max_user_watches=524288),"
            " or poll: WATCHFILES_FORCE_POLLING=1"
        ) from error


class Follower:
    """The state of `watch` between edits: paths to update, when the update is due, and messages already shown."""

    def __init__(self, folder: Path, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._say, self._clock = folder, say, clock
        self._own = f"{folder.resolve().as_posix()}/"
        self._read()
        self._edited: set[Path] | None = None
        """Paths to check; None: all files."""
        self._due: float | None = clock()
        self._not_before = clock()
        self._failures, self._last_failure, self._advised = 0, "", False

    def _read(self) -> None:
        self._description = read_description(self._folder)
        self._roots = request_of(self._description, self._folder).roots

    def greeting(self) -> str:
        """The first message: what is watched."""
        return f"watching {', '.join(map(str, self._roots))}: {self._size()}; stop with ctrl-c"

    def _size(self) -> str:
        return count(self._description.counts["documents"], "document")

    def places(self) -> tuple[Place, ...]:
        """The paths to watch: existing roots; for a root that is a file, its folder."""
        places_by_path: dict[str, Place] = {}
        for root in self._roots:
            folder = root.parent if root.is_file() else root
            try:
                status = folder.stat()
            except OSError:
                continue
            places_by_path[str(folder)] = str(folder), status.st_dev, status.st_ino
        return tuple(places_by_path.values())

    def step(self, edited: Iterable[str]) -> None:
        """Record edits of these paths, and update if an update is due."""
        now = self._clock()
        paths = {Path(path) for path in edited if self._is_relevant(path)}
        if paths:
            if self._edited is not None:
                self._edited |= paths
            self._due = now
        if self._due is not None and now >= max(self._due, self._not_before):
            self._update(now)

    def _is_relevant(self, path: str) -> bool:
        """Whether a path is neither of an index nor, without a revision, of git."""
        path = path.replace(os.sep, "/")
        if path.startswith(self._own) or path + "/" == self._own or f"/{DEFAULT_NAME}/" in path:
            return False
        return "/.git/" not in path or bool(BuildConfig.of(self._description).revision)

    def _update(self, began: float) -> None:
        paths, self._edited, self._due = self._edited, set(), None
        try:
            changes = update(self._folder, paths=None if paths is None else sorted(paths))
            self._read()
        except (NcsError, OSError, ValueError, RuntimeError) as error:
            self._edited = None
            self._fail(error, began)
            return
        self._failures, self._last_failure = 0, ""
        seconds = self._clock() - began
        if changes:
            self._say(f"{describe(changes)}; {self._size()}, {seconds:.1f} s")
        else:  # edits of files that are not indexed: spend at most half of the time on them
            self._not_before = self._clock() + seconds
        advice = retraining_advice(self._description)
        if advice and not self._advised:
            self._say(f"note: {advice}")
        self._advised = advice is not None

    def _fail(self, error: Exception, began: float) -> None:
        """Report a failure unless it repeats the last one, and schedule a retry with backoff."""
        line = " ".join(str(error).split()) or type(error).__name__
        if line != self._last_failure:
            self._say(f"not updated: {line}")
        self._last_failure = line
        wait = RETRY if isinstance(error, IndexBusy) else min(RETRY * 2**self._failures, MAX_RETRY)
        self._failures += 1
        self._due = self._not_before = self._clock() + max(wait, self._clock() - began)


def describe(changes: Changes) -> str:
    """The files that changed: a single one by name, several by their number.

    >>> describe(Changes(("r/a.py",), (), (), 3)), describe(Changes((), ("r/a.py", "r/b.py"), ("r/c.py",), 0))
    ('new: r/a.py', '2 changed, 1 removed')
    """
    lines = [f"{kind}: {path}" for kind, paths in changes.kinds.items() for path in paths]
    return lines[0] if len(lines) == 1 else str(changes)
