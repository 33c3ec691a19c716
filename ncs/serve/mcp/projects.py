"""Projects: folders with an index each, which is built where there is none and kept up to date before answers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ncs.answer import not_ready
from ncs.build.request import Changes, changes_since
from ncs.console import count
from ncs.errors import BadInput, IndexDamaged, IndexNotFound, IndexVersion, NcsError, SourceError, unknown
from ncs.index import Index
from ncs.messages import BEHIND, NO_INDEX
from ncs.serve.live_index import LiveIndex
from ncs.serve.mcp.jobs import Job, Kind
from ncs.sources.roots import check_roots
from ncs.storage.snapshot import DEFAULT_NAME, SNAPSHOT, find_index, read_description, work_tree
from ncs.storage.trust import check_place, roots_of

MAX_PROJECTS = 16
RETRY = 30.0
"""Seconds before a failed job is tried again."""
QUICK = 0.2
"""Seconds of a check for changed files that every answer can wait for."""
MAX_NAMED = 3
"""Changed files that a note names."""
FILES = "the files themselves are searched, by words and without filters"
BUILT = "the index of this project was built just now"
BUILDING = NO_INDEX.format(where="of this project yet", remedy=f"it is being built, and until then {FILES}")


@dataclass(frozen=True, slots=True)
class Settings:
    """roots: project folders; () for the projects of those that the client names, else of the working directory.

    indexes: index folders elsewhere than in the `.ncs` of a root. wait: seconds that an answer waits for a build or
    update. check: seconds that a check for changed files may take, and that lie between two that take over QUICK.
    """

    roots: tuple[Path, ...] = ()
    indexes: tuple[Path, ...] = ()
    wait: float = 5.0
    check: float = 2.0
    client_roots: bool = True
    """Whether the client may name folders; not over HTTP, where any process of the machine may be the client."""
    store: str = ""
    """A Milvus that finds the candidates of the only index; whoever fills it keeps it up to date."""


class Project:
    """root: where paths begin. own: its index is the root's `.ncs`, which is built where there is none.

    changes: of the last check; current: whether the index is up to date, None where that is not known.
    problem: what is wrong with the index, "" where nothing is.
    """

    def __init__(self, name: str, root: Path, settings: Settings, folder: Path | None = None) -> None:
        """folder: of an index elsewhere."""
        self.name, self.root, self.own = name, root, folder is None
        self.folder = folder or root / DEFAULT_NAME
        if self.own:
            check_place(self.folder)
        self.problem = ""
        self.changes: Changes | None = None
        self.current: bool | None = None
        self._settings = settings
        self._live: LiveIndex | None = None
        self._job: Job | None = None
        self._next_check = self._retry = float("-inf")
        self._lock = threading.Lock()

    @property
    def job(self) -> Kind | None:
        """The running job."""
        job = self._job
        return job.kind if job and job.running else None

    @contextmanager
    def open_index(self) -> Iterator[tuple[Index | None, list[str]]]:
        """The index, updated first where that is quick, None while there is none; and notes about it.

        Raises what Index.load raises for an index that is not its own.
        """
        with self._lock:
            notes = self._maintain()
            live = self._live
        if live is None:
            yield None, [*notes, BUILDING if self.job else NO_INDEX.format(where="of this project", remedy=FILES)]
            return
        with live.acquire() as index:
            yield index, notes

    def close(self) -> None:
        """Stop what runs, and close the index."""
        if self._job:
            self._job.stop()
        if self._live:
            self._live.close()

    def _maintain(self) -> list[str]:
        """Open, build or update the index; notes about that."""
        notes = self._finish()
        if self._live is None:
            self._open()
        else:
            self._live.refresh()
        if self._live is None:
            self._run("build", self.folder / SNAPSHOT)
            self._open()
            notes += self._finish()
        elif self.job is None and time.monotonic() >= self._next_check:
            self._check(self._live)
            notes += self._finish()
        if self.job == "update":
            changed = f"{_summary(self.changes)} changed" if self.changes else "files changed"
            notes.append(BEHIND.format(changed=changed, remedy="it is being updated, and this answer is from before"))
        return [*notes, *([self.problem] if self.problem else [])]

    def _open(self) -> None:
        try:
            self._live = LiveIndex(self.name, self.folder, self._settings.store)
        except (IndexNotFound, IndexDamaged, IndexVersion):
            if not self.own:
                raise

    def _run(self, kind: Kind, file: Path | None = None) -> None:
        """Start a job, unless one runs or has just failed; wait for it, or for a file, as long as an answer may."""
        if self.job is None and time.monotonic() >= self._retry:
            self._job = Job(kind, self.folder, self.root)
        if self._job:
            self._job.wait(self._settings.wait, file)

    def _finish(self) -> list[str]:
        """Take note of a job that has ended."""
        if self._job is None or self._job.running:
            return []
        job, self._job = self._job, None
        outcome = job.outcome()
        if outcome.error:
            self._retry = time.monotonic() + RETRY
            verb = "built" if job.kind == "build" else "updated"
            self.problem, self.current = f"the index could not be {verb}: {outcome.error}", None
            return []
        self.problem, self.changes, self.current = "", None, True
        if self._live is not None:
            self._live.refresh()
        if job.kind == "build":
            return [BUILT]
        return [f"{count(outcome.changed, 'file')} changed; the index was updated first"] if outcome.changed else []

    def _check(self, live: LiveIndex) -> None:
        """Look for changed files, and update the index where there are any."""
        began = time.monotonic()
        with live.acquire() as index:
            roots = index.snapshot.roots  # none of an index that is not trusted
            if self._settings.store or not roots or not all(root.exists() for root in roots):
                return
            unfinished = self.own and bool(not_ready(index))  # its build was killed
            difference = None
            if not unfinished:
                with suppress(NcsError, OSError):  # its files cannot be read
                    difference = changes_since(index.snapshot, self._settings.check)
        self.changes = self.current = None
        ended = time.monotonic()
        self._next_check = ended + (self._settings.check if ended - began > QUICK else 0.0)
        if unfinished:
            self._run("build")
        elif difference:
            self.changes = difference.changes
            self.current = not difference.changes if difference.complete else None
            if self.current:  # whatever went wrong before
                self.problem = ""
            else:
                self._run("update")


def _summary(changes: Changes) -> str:
    """The changed files, the first of them by name.

    >>> _summary(Changes(("a/new.py",), ("a/b.py", "a/c.py"), ("a/old.py",), 7))
    'a/b.py, a/c.py, a/new.py and 1 more'
    """
    names = (*changes.changed, *changes.added, *(f"{name} (removed)" for name in changes.removed))
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


class Projects:
    """The projects of the command line, else of the client, else of the working directory; each opened once."""

    def __init__(self, settings: Settings) -> None:
        """Raises BadInput for a root that is not a folder, and what Index.load raises for the indexes."""
        self._settings = settings
        self._lock = threading.Lock()
        self._open: dict[Path, Project] = {}
        self._fixed: list[Project] = []
        for root in settings.roots:
            if not root.is_dir():
                raise BadInput(f"{root} is not a folder; name the project's folder with --root")
            self._fixed.append(self._at(root.resolve()))
        self._fixed += [self._of_index(folder.absolute()) for folder in settings.indexes]

    @property
    def uses_client_roots(self) -> bool:
        """Whether the client's roots count."""
        return self._settings.client_roots and not self._fixed

    def of(self, uris: Sequence[str] | None, name: str | None = None) -> list[Project]:
        """The projects of a request, only the one with this name or folder if one is given; BadInput for none.

        uris: the roots of the client, None where it names none.
        """
        projects = self._fixed
        if not projects:
            folders = [path.resolve() for uri in uris or () if (path := path_of(uri)) is not None and path.is_dir()]
            projects = [self._at(root) for root in dict.fromkeys(map(_project_of, folders or [Path.cwd().resolve()]))]
        matches = [project for project in projects if name in (None, project.name, str(project.root))]
        if not matches:
            raise unknown("project", name, [project.name for project in projects])
        return matches

    def close(self) -> None:
        """Stop all jobs, and close all indexes."""
        with self._lock:
            for project in self._open.values():
                project.close()
            self._open.clear()

    def _at(self, root: Path) -> Project:
        with self._lock:
            if root not in self._open:
                if not (root / DEFAULT_NAME / SNAPSHOT).is_file():
                    _check_root(root)
                self._open[root] = Project(self._name(root), root, self._settings)
                self._close_oldest()
            return self._open[root]

    def _of_index(self, folder: Path) -> Project:
        with Index.load(folder) as index:
            roots = index.snapshot.roots
        try:
            root = Path(os.path.commonpath(roots))
        except ValueError:  # there is none, or they are on two drives
            root = folder.parent
        return self._open.setdefault(folder, Project(self._name(root), root, self._settings, folder))

    def _name(self, root: Path) -> str:
        """The folder's name; where it is taken, numbered."""
        names = {project.name for project in self._open.values()}
        name, number = root.name or "root", 1
        while (numbered := name if number == 1 else f"{name}~{number}") in names:
            number += 1
        return numbered

    def _close_oldest(self) -> None:
        if len(self._open) > MAX_PROJECTS + len(self._settings.roots):
            fixed = {project.root for project in self._fixed}
            oldest = next(root for root in self._open if root not in fixed)
            self._open.pop(oldest).close()


def _project_of(folder: Path) -> Path:
    """Where the index is that holds a folder, as `ncs query` finds it; else the git work tree around it, unless that is
    a home; else the folder itself."""
    with suppress(IndexNotFound):
        index = find_index(folder)
        roots = [folder] if index.parent == folder else roots_of(index, read_description(index))
        if any(folder.is_relative_to(root) or root.is_relative_to(folder) for root in roots):
            return index.parent
    with suppress(SourceError):
        return check_roots([work_tree(folder)], force=False)[0]
    return folder


def _check_root(root: Path) -> None:
    """Raise BadInput for a home folder or a drive's root: there clients start servers that know no project."""
    try:
        check_roots([root], force=False)
    except SourceError as error:
        raise BadInput(f"{str(error).rpartition(';')[0]}; start ncs mcp in a project, or with --root PROJECT") from None


def path_of(uri: str) -> Path | None:
    """The path of a file URI; None for another kind, or another machine.

    >>> path_of("file:///home/me/my%20project"), path_of("https://example.org/"), path_of("file://other/x")
    (PosixPath('/home/me/my project'), None, None)
    """
    url = urlsplit(uri)
    path = url.path.replace("%3A", ":")  # after the drive in URIs of VS Code, where url2pathname does not know it
    return Path(url2pathname(path)) if url.scheme == "file" and url.netloc in ("", "localhost") else None
