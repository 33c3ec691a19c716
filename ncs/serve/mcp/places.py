"""Places as agents write them, path:line relative to the project, and the functions that stand there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ncs.build.request import roots_of
from ncs.errors import BadInput, NcsError
from ncs.index import Index
from ncs.search.locate_source import SourceFiles
from ncs.search.similar import function_at, parse_place
from ncs.serve.mcp.project import Project
from ncs.storage.file_roles import OUTLINES
from ncs.types import Document, Location


def shown(project: Project, index: Index | None, at: Document | Location) -> str:
    """The path of a document, relative to the project; repository/path where it is no file there."""
    found = _file(project, index, at)
    if found is not None and found.is_relative_to(project.root):
        return found.relative_to(project.root).as_posix()
    return f"{at.repository}/{at.path}"


def _file(project: Project, index: Index | None, at: Document | Location) -> Path | None:
    """Where it lies on this machine; of a project that is not indexed yet, below its root."""
    if index is not None:
        return SourceFiles(index.snapshot).find(at.repository, at.path)
    file = project.root / at.path
    return file if file.is_file() else None


def filters(project: Project, index: Index, path: str | None) -> tuple[str | None, str | None]:
    """A path of the project as repository and path of its index: repositories in it are folders to who asks."""
    asked = (path or "").removeprefix("./").strip("/")
    names: Iterable[str] = index.store.counts.get("repositories", ())
    for name in sorted(names, key=len, reverse=True):
        if name != project.root.name and (asked == name or asked.startswith(f"{name}/")):
            return f"/{name}", asked[len(name) :] or None
    return None, path


def document_at(project: Project, index: Index | None, place: str) -> Document:
    """The function at path:line; of the index where it has one that begins there, else of the file.

    Raises BadInput for a place outside the project, and for one where nothing stands.
    """
    path, line = parse_place(place)
    if index is not None and (known := _indexed(project, index, path, line)) is not None:
        return known
    file = inside(project, index, path)
    try:
        found = function_at(file, line)
    except BadInput as error:
        around = _around(project, index, path, line) if index else None
        if around is None:
            raise BadInput(str(error).replace(str(file), path.as_posix())) from None
        return around
    within, name = file.relative_to(project.root.resolve()).as_posix(), project.root.name
    return replace(found, id=f"{name}/{within}:{found.start_line}", repository=name, path=within)


def inside(project: Project, index: Index | None, path: Path) -> Path:
    """The file of a path, which must lie in the project and in what is indexed of it."""
    roots = roots_of(index.manifest) if index and not project.own else (project.root,)
    whole = (project.root / path).resolve()
    if not any(whole.is_relative_to(root.resolve()) for root in roots):
        raise BadInput(f"{path} is outside the project; name a path:line that search_code showed")
    if not whole.is_file():
        raise BadInput(f"{path} is no file of the project; name a path:line that search_code showed")
    return whole


def whole_code(project: Project, index: Index | None, document: Document) -> str:
    """All lines of a document; from its file where the index keeps no code, or an outline that leaves lines out."""
    found = _file(project, index, document)
    if found is None or (document.code and document.kind not in OUTLINES):
        return document.code
    try:
        lines = inside(project, index, found).read_text("utf-8", "replace").split("\n")
    except (OSError, NcsError):
        return document.code
    return "\n".join(lines[document.start_line - 1 : document.end_line])


def _indexed(project: Project, index: Index, path: Path, line: int) -> Document | None:
    """The document that begins at a line."""
    for name in _names(project, index, path):
        row = index.store.row_of(f"{name}:{line}")
        if row is not None:
            return index.store.document(row)
    return None


def _around(project: Project, index: Index, path: Path, line: int) -> Document | None:
    """The innermost class or piece of top-level code of the index that holds a line."""
    names = set(_names(project, index, path))
    files, places = index.store.files()
    wanted = [number for number, (repository, of) in enumerate(places) if f"{repository}/{of}" in names]
    documents = index.store.documents(np.flatnonzero(np.isin(files, wanted)).tolist())
    around = [document for document in documents if document.start_line <= line <= document.end_line]
    return max(around, key=lambda document: (document.start_line, -document.end_line), default=None)


def _names(project: Project, index: Index, path: Path) -> list[str]:
    """What a path may be called in the index, repository included, whichever folder it is written from."""
    within = (path.relative_to(project.root) if path.is_relative_to(project.root) else path).as_posix()
    known = SourceFiles(index.snapshot).name_of((project.root / path).resolve())
    roots = [project.root, *roots_of(index.manifest)]
    return list(dict.fromkeys([*([known] if known else []), within, *(f"{root.name}/{within}" for root in roots)]))
