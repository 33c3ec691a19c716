"""An index follows its sources: what somebody saves is found a moment later, as `ncs update` would have it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ncs.config import BuildConfig
from ncs.build.delta import WHOLE
from ncs.errors import BadInput, IndexBusy, MissingExtra, NcsError
from ncs.storage.folder import DEFAULT_NAME
from ncs.build.request import roots_of
from ncs.index import Index
from ncs.storage.manifest import read_manifest
from ncs.learn.word_vectors import retraining_advice

if TYPE_CHECKING:
    from ncs.build.ingest import Changes

Say = Callable[[str], None]
Place = tuple[str, int, int]
"""A path that is watched, and which folder or file that was: one that was made anew must be watched anew."""

QUIET, MOST = 100, 800
"""Milliseconds without an edit after which a series of them is over, and after which it is looked at all the same."""
LOOK = 500
"""Milliseconds between looks at whether a root was made anew."""
AGAIN, LONGEST = 2.0, 300.0
"""Seconds after which a failed update is tried again; twice as many each time, up to LONGEST."""
LONG = 5.0
"""Seconds from which on it is said in advance how long an update takes."""
LEARNING = ("extract", "embeddings")
"""Stages of a build that an update does not repeat, or for changed files only."""


def watch(folder: Path, say: Say, *, stop: Event | None = None) -> None:
    """Keep the index in `folder` up to date with its sources until `stop` is set, or KeyboardInterrupt.

    Before all it is brought up to date. Every update that changed something and every failure is one line for
    `say`; a failed update is tried again, by itself and with the next edit. Raises MissingExtra, what Index.load
    raises for an index that cannot be followed at all, and NcsError where the system watches no more folders.
    """
    watchfiles, stop = _watchfiles(), stop or Event()
    follower = Follower(folder, say)
    say(follower.greeting())
    while not stop.is_set():
        places = follower.places()
        for edited in _edits(watchfiles, places, stop):
            follower.step(edited)
            if follower.places() != places:
                break
        else:  # there is nothing to watch now; what is due, and that it fails, is so all the same
            follower.step(())
            stop.wait(LOOK / 1000)


def _watchfiles() -> ModuleType:
    try:
        import watchfiles
    except ModuleNotFoundError as error:
        raise MissingExtra(f"ncs watch needs {error.name}; pip install 'neural-code-search[watch]'") from error
    return watchfiles


def _edits(watchfiles: ModuleType, places: Iterable[Place], stop: Event) -> Iterator[list[str]]:
    """The paths of each series of edits; an empty list after every LOOK without any. Ends where a place is gone."""
    paths = [path for path, _, _ in places]
    if not paths:
        return
    try:
        for found in watchfiles.watch(
            *paths, watch_filter=None, debounce=MOST, step=QUIET, rust_timeout=LOOK, yield_on_timeout=True,
            stop_event=stop, recursive=any(map(_is_folder, paths)), ignore_permission_denied=True,
        ):  # fmt: skip
            yield [path for _, path in found]
    except FileNotFoundError:
        return
    except OSError as error:
        raise NcsError(
            f"cannot watch {paths[0]} ({error}); allow more (sysctl fs.inotify.max_user_watches=524288),"
            " or look at the files in turn: WATCHFILES_FORCE_POLLING=1"
        ) from error


def _is_folder(path: str) -> bool:
    return Path(path).is_dir()


class Follower:
    """What `watch` knows between edits: when the next update is due, and what was said already."""

    def __init__(self, folder: Path, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._say, self._clock = folder, say, clock
        self._own = f"{folder.resolve()}/"
        self._manifest = read_manifest(folder)
        self._due: float | None = clock()
        self._rested = clock()
        self._failures, self._said, self._advised = 0, "", False

    def greeting(self) -> str:
        """What is watched, and what an update costs where that is long."""
        counts: Mapping[str, Any] = self._manifest.counts
        roots = list(map(str, roots_of(self._manifest)))
        if not roots:
            raise BadInput(f"{self._folder} does not say which files it was made of; make it with: ncs build")
        line = f"watching {', '.join(roots)}: {counts['documents']:,} documents; stop with ctrl-c"
        quick = counts["documents"] >= WHOLE  # ncs.build.delta: only what changed is made
        seconds = 0.0 if quick else sum(took for stage, took in counts["seconds"].items() if stage not in LEARNING)
        cost = f" (all but the word vectors is made anew: {seconds:.0f} s or more an update)" if seconds > LONG else ""
        return line + cost

    def places(self) -> tuple[Place, ...]:
        """What is to be watched: the roots that are there now; of a root that is a file its folder."""
        found: dict[str, Place] = {}
        for root in roots_of(self._manifest):
            watched = root.parent if root.is_file() else root
            try:
                status = watched.stat()
            except OSError:
                continue
            found[str(watched)] = str(watched), status.st_dev, status.st_ino
        return tuple(found.values())

    def step(self, edited: Iterable[str]) -> None:
        """Note edits of these paths; and update, where that is due."""
        now = self._clock()
        if any(map(self._matters, edited)):
            self._due = now
        if self._due is not None and now >= max(self._due, self._rested):
            self._update(now)

    def _matters(self, path: str) -> bool:
        """Not what a build writes, nor what git notes for itself: the walk of the update decides about all else."""
        if path.startswith(self._own) or path + "/" == self._own or f"/{DEFAULT_NAME}/" in path:
            return False
        return "/.git/" not in path or bool(BuildConfig.of(self._manifest).revision)

    def _update(self, began: float) -> None:
        self._due = None
        try:
            updated, changes = Index.update(self._folder)
            with updated:
                self._manifest = updated.manifest
        except (NcsError, OSError, ValueError, RuntimeError) as error:
            self._failed(error, began)
            return
        self._failures, self._said = 0, ""
        took = self._clock() - began
        if changes:
            self._say(f"{told(changes)}; {self._manifest.counts['documents']:,} documents, {took:.1f} s")
        else:  # files that no index holds are written all the time somewhere: half of the time is theirs at most
            self._rested = self._clock() + took
        advice = retraining_advice(self._manifest)
        if advice and not self._advised:
            self._say(f"note: {advice}")
        self._advised = advice is not None

    def _failed(self, error: Exception, began: float) -> None:
        """One line, once while it stays the same; then again later, and later still."""
        line = " ".join(str(error).split()) or type(error).__name__
        if line != self._said:
            self._say(f"not updated: {line}")
        self._said = line
        wait = AGAIN if isinstance(error, IndexBusy) else min(AGAIN * 2**self._failures, LONGEST)
        self._failures += 1
        self._due = self._rested = self._clock() + max(wait, self._clock() - began)


def told(changes: Changes) -> str:
    """Which files changed: by name where it is one, else how many.

    >>> from ncs.build.ingest import Changes
    >>> told(Changes(("r/a.py",), (), (), 3)), told(Changes((), ("r/a.py", "r/b.py"), ("r/c.py",), 0))
    ('new: r/a.py', '2 changed, 1 removed')
    """
    kinds = {"new": changes.added, "changed": changes.changed, "removed": changes.removed}
    if sum(map(len, kinds.values())) == 1:
        return "".join(f"{kind}: {path}" for kind, paths in kinds.items() for path in paths)
    return ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths)
