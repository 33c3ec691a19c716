"""One project: a folder, its index, and the upkeep of that index, so that answers speak of the files as they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ncs.build.ingest import Changes
from ncs.build.request import roots_of
from ncs.errors import BadInput, IndexDamaged, IndexNotFound, IndexVersion
from ncs.index import Index
from ncs.serve.http.shelf import Shelf
from ncs.serve.mcp.freshness import TooSlowError, named, stale
from ncs.serve.mcp.job import Job, Kind
from ncs.serve.mcp.settings import Settings
from ncs.storage.folder import DEFAULT_NAME
from ncs.storage.manifest import NAME

AGAIN, BUSY_AGAIN = 30.0, 2.0
"""Seconds after which what failed is tried again, and what another process was doing."""
BUILDING = "the index of this project is being built; until it is there, words are looked for in the files themselves"
NO_INDEX = "this project has no index: words were looked for in the files themselves"


class Project:
    """root: where paths begin. own: its index is the root's `.ncs`, which is built where there is none.

    changed: what the last look found; current: whether the index says what the files say, None where nobody knows.
    problem: why the index is not as it should be, "" where it is.
    """

    def __init__(self, name: str, root: Path, folder: Path, settings: Settings, *, own: bool = True) -> None:
        if own and not folder.resolve().is_relative_to(root.resolve()):
            raise BadInput(f"{folder} leads out of its project; remove that link, or name an index with -i")
        self.name, self.root, self.folder, self.own = name, root, folder, own
        self.problem = ""
        self.changed: Changes | None = None
        self.current: bool | None = None
        self._settings = settings
        self._shelf: Shelf | None = None
        self._job: Job | None = None
        self._looked = self._again = float("-inf")
        self._lock = threading.Lock()

    @classmethod
    def at(cls, name: str, root: Path, settings: Settings) -> Project:
        """A folder with an index of its own, which need not be there yet."""
        return cls(name, root, root / DEFAULT_NAME, settings)

    @property
    def job(self) -> Kind | None:
        """What runs now."""
        job = self._job
        return job.kind if job and job.running else None

    @contextmanager
    def ready(self) -> Iterator[tuple[Index | None, list[str]]]:
        """The index, brought up to date first where that is quick, None while there is none; and what to say of it.

        Raises what Index.load raises for an index that is not its own.
        """
        with self._lock:
            notes = self._kept_up()
            shelf = self._shelf
        if shelf is None:
            yield None, [*notes, BUILDING if self.job else NO_INDEX]
            return
        with shelf.lent() as index:
            yield index, notes

    def close(self) -> None:
        """Stop what runs, and close the index."""
        if self._job:
            self._job.stop()
        if self._shelf:
            self._shelf.close()

    def _kept_up(self) -> list[str]:
        """Open, build or update; notes for who asks."""
        notes = self._ended()
        if self._shelf is None:
            self._open()
        elif self._shelf.changed():
            self._shelf.refresh(verify=False)
        if self._shelf is None:
            self._run("build", enough=lambda: (self.folder / NAME).is_file())
            self._open()
            notes += self._ended()
        elif self.job is None and time.monotonic() - self._looked >= self._settings.look:
            self._look(self._shelf)
            notes += self._ended()
        if self.job == "update":
            what = f" ({named(self.changed)})" if self.changed else ""
            notes.append(f"files changed{what}: the index is being updated, this answer is from before")
        return [*notes, *([self.problem] if self.problem else [])]

    def _open(self) -> None:
        try:
            self._shelf = Shelf(self.name, self.folder, self._settings.store)
        except (IndexNotFound, IndexDamaged, IndexVersion):
            if not self.own:
                raise

    def _run(self, kind: Kind, enough: Callable[[], bool] = lambda: False) -> None:
        """Start a job, unless one runs or failed just now; wait for it for as long as an answer may."""
        if self.job is None and time.monotonic() >= self._again:
            self._job = Job(kind, self.folder, [self.root] if kind == "build" else [])
        if self._job:
            self._job.wait(self._settings.wait - self._job.seconds, enough)

    def _ended(self) -> list[str]:
        """Take note of a job that has ended."""
        if self._job is None or self._job.running:
            return []
        job, self._job = self._job, None
        outcome = job.outcome()
        if outcome.error:
            self._again = time.monotonic() + (BUSY_AGAIN if outcome.busy else AGAIN)
            done = "built" if job.kind == "build" else "updated"
            why = "another process is writing it" if outcome.busy else outcome.error
            self.problem, self.current = f"the index could not be {done}: {why}", None
            return []
        self.problem, self.changed, self.current = "", None, True
        if self._shelf is not None:
            self._shelf.refresh(verify=False)
        if job.kind == "build":
            return ["the index of this project was built just now"]
        return [f"files had changed: the index was updated first (files: {outcome.changed})"] if outcome.changed else []

    def _look(self, shelf: Shelf) -> None:
        """See whether files changed since the index was made, and update it where they did."""
        with shelf.lent() as index:
            if not self._may_keep_up(index):
                return
            unfinished = self.own and bool(index.manifest.counts.get("pending"))  # its build was ended before its time
            try:
                self.changed = None if unfinished else stale(index, self._settings.look)
                found = bool(self.changed)
                self.current = None if self.changed is None else not found
            except TooSlowError:
                found, self.current = True, None
        self._looked = time.monotonic()
        if unfinished or found:
            self._run("build" if unfinished else "update")

    def _may_keep_up(self, index: Index) -> bool:
        """Whether its files may be read: the `.ncs` of a project may have come with it, and name any folder."""
        if self._settings.store:
            return False
        roots = roots_of(index.manifest)
        inside = not self.own or all(root.resolve().is_relative_to(self.root.resolve()) for root in roots)
        if roots and not inside:
            self.problem = "the index was made of folders outside this project, so it is not kept up to date"
        return bool(roots) and inside and all(root.exists() for root in roots)
