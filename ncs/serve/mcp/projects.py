"""Which projects there are: those that the command line names, else those of the client, else the working directory."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ncs.build.request import roots_of
from ncs.errors import BadInput, SourceError
from ncs.index import Index
from ncs.serve.mcp.project import Project
from ncs.serve.mcp.settings import MOST_PROJECTS, Settings
from ncs.sources.roots import check_roots


class Projects:
    """All projects asked for so far, each opened once."""

    def __init__(self, settings: Settings) -> None:
        """Raises BadInput for a root that is no folder, and what Index.load raises for the indexes."""
        self._settings = settings
        self._lock = threading.Lock()
        self._open: dict[Path, Project] = {}
        self._fixed: list[Project] = []
        self._fixed += [self._at(_folder(root)) for root in settings.roots]
        self._fixed += [self._indexed(folder) for folder in settings.indexes]

    @property
    def asks_client(self) -> bool:
        """Whether the client's roots count."""
        return self._settings.client_roots and not self._settings.fixed

    def of(self, uris: Sequence[str] | None) -> list[Project]:
        """The projects of a request; uris: the roots of the client, None where it names none."""
        if self._fixed:
            return self._fixed
        folders = [path for uri in uris or () if (path := path_of(uri)) is not None and path.is_dir()]
        return [self._at(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders or [Path.cwd()])]

    def chosen(self, projects: Sequence[Project], name: str | None) -> list[Project]:
        """All, or the one called so, by its name or its folder; BadInput for none."""
        if name is None:
            return list(projects)
        found = [project for project in projects if name in (project.name, str(project.root))]
        if not found:
            raise BadInput(f"no project {name!r}; leave it away or name one of: {', '.join(p.name for p in projects)}")
        return found

    def close(self) -> None:
        """Stop all builds, and close all indexes."""
        with self._lock:
            for project in self._open.values():
                project.close()
            self._open.clear()

    def _at(self, root: Path) -> Project:
        with self._lock:
            if root not in self._open:
                _not_too_much(root)
                self._open[root] = Project.at(self._name(root), root, self._settings)
                self._room()
            return self._open[root]

    def _indexed(self, folder: Path) -> Project:
        with Index.load(folder) as index:
            roots = roots_of(index.manifest)
        root = Path(os.path.commonpath(roots)) if roots else folder.absolute().parent
        with self._lock:
            project = Project(self._name(root), root, folder.absolute(), self._settings, own=False)
            return self._open.setdefault(folder.absolute(), project)

    def _name(self, root: Path) -> str:
        """The folder's name; where it is taken, numbered."""
        taken = {project.name for project in self._open.values()}
        name = root.name or "root"
        return next(each for n in range(1, len(taken) + 2) if (each := name if n == 1 else f"{name}~{n}") not in taken)

    def _room(self) -> None:
        """Close the project that was opened first where there are more than are kept open."""
        if len(self._open) > MOST_PROJECTS + len(self._settings.roots):
            fixed = {project.root for project in self._fixed}
            oldest = next(root for root in self._open if root not in fixed)
            self._open.pop(oldest).close()


def _folder(root: Path) -> Path:
    if not root.is_dir():
        raise BadInput(f"{root} is no folder; name the project's folder with --root")
    return root.resolve()


def _not_too_much(root: Path) -> None:
    """Raise BadInput for a home folder or a drive's root: there a client starts us that knows no project."""
    try:
        check_roots([root], force=False)
    except SourceError as error:
        raise BadInput(f"{str(error).rpartition(';')[0]}; start ncs mcp in a project, or with --root PROJECT") from None


def path_of(uri: str) -> Path | None:
    """The path of a file URI; None for another kind, or another machine.

    >>> path_of("file:///home/me/my%20project"), path_of("https://example.org/"), path_of("file://other/x")
    (PosixPath('/home/me/my project'), None, None)
    """
    found = urlsplit(uri)
    if found.scheme != "file" or found.netloc not in ("", "localhost"):
        return None
    if os.name == "nt":
        from urllib.request import url2pathname

        return Path(url2pathname(found.path))
    return Path(unquote(found.path))
