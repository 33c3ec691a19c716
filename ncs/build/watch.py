"""`ncs watch`: an index is updated whenever files of its sources are saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event
from types import ModuleType

from ncs.build.request import Changes, roots_of
from ncs.build.update import update
from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexBusy, MissingExtra, NcsError
from ncs.learn.embeddings import retraining_advice
from ncs.storage.snapshot import DEFAULT_NAME, read_description

Say = Callable[[str], None]
Place = tuple[str, int, int]
"""A path that is watched, and which folder or file that was: one that was made anew must be watched anew."""

QUIET, MOST = 100, 800
"""Milliseconds without an edit after which a series of them is over, and after which it is looked at all the same."""
LOOK = 500
"""Milliseconds between looks at whether a root was made anew."""
AGAIN, LONGEST = 2.0, 300.0
"""Seconds after which a failed update is tried again; twice as many each time, up to LONGEST."""


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
    """The state of `watch` between edits: which paths wait for an update, when it is due, and what was said already."""

    def __init__(self, folder: Path, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._say, self._clock = folder, say, clock
        self._own = f"{folder.resolve()}/"
        self._description = read_description(folder)
        self._edited: set[Path] | None = None
        """Paths to look at; None: all files."""
        self._due: float | None = clock()
        self._not_before = clock()
        self._failures, self._last_failure, self._advised = 0, "", False

    def greeting(self) -> str:
        """What is watched."""
        roots = list(map(str, roots_of(self._description)))
        if not roots:
            raise BadInput(f"{self._folder} does not say which files it was made of; make it with: ncs build")
        return f"watching {', '.join(roots)}: {self._description.counts['documents']:,} documents; stop with ctrl-c"

    def places(self) -> tuple[Place, ...]:
        """What is to be watched: the roots that are there now; of a root that is a file its folder."""
        found: dict[str, Place] = {}
        for root in roots_of(self._description):
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
        paths = {Path(path) for path in edited if self._matters(path)}
        if paths:
            if self._edited is not None:
                self._edited |= paths
            self._due = now
        if self._due is not None and now >= max(self._due, self._not_before):
            self._update(now)

    def _matters(self, path: str) -> bool:
        """Neither what a build writes, nor what git notes for itself; the update decides about all else."""
        if path.startswith(self._own) or path + "/" == self._own or f"/{DEFAULT_NAME}/" in path:
            return False
        return "/.git/" not in path or bool(BuildConfig.of(self._description).revision)

    def _update(self, began: float) -> None:
        paths, self._edited, self._due = self._edited, set(), None
        try:
            changes = update(self._folder, paths=None if paths is None else sorted(paths))
            self._description = read_description(self._folder)
        except (NcsError, OSError, ValueError, RuntimeError) as error:
            self._edited = None
            self._fail(error, began)
            return
        self._failures, self._last_failure = 0, ""
        seconds = self._clock() - began
        if changes:
            self._say(f"{describe(changes)}; {self._description.counts['documents']:,} documents, {seconds:.1f} s")
        else:  # files that no index holds are written all the time somewhere: half of the time is theirs at most
            self._not_before = self._clock() + seconds
        advice = retraining_advice(self._description)
        if advice and not self._advised:
            self._say(f"note: {advice}")
        self._advised = advice is not None

    def _fail(self, error: Exception, began: float) -> None:
        """One line, once while it stays the same; then again later, and later still."""
        line = " ".join(str(error).split()) or type(error).__name__
        if line != self._last_failure:
            self._say(f"not updated: {line}")
        self._last_failure = line
        wait = AGAIN if isinstance(error, IndexBusy) else min(AGAIN * 2**self._failures, LONGEST)
        self._failures += 1
        self._due = self._not_before = self._clock() + max(wait, self._clock() - began)


def describe(changes: Changes) -> str:
    """Which files changed: by name where it is one, else how many.

    >>> describe(Changes(("r/a.py",), (), (), 3)), describe(Changes((), ("r/a.py", "r/b.py"), ("r/c.py",), 0))
    ('new: r/a.py', '2 changed, 1 removed')
    """
    kinds = {"new": changes.added, "changed": changes.changed, "removed": changes.removed}
    if sum(map(len, kinds.values())) == 1:
        return "".join(f"{kind}: {path}" for kind, paths in kinds.items() for path in paths)
    return ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths)
