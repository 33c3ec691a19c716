"""Places as agents write them, path:line relative to the project, and what is there, with or without an index."""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ncs.build.request import roots_of
from ncs.errors import BadInput, NcsError
from ncs.extract.readers import read, readable
from ncs.index import Index
from ncs.search.highlight import query_stems
from ncs.search.locate_source import locator_of
from ncs.search.similar import function_at, parse_place
from ncs.serve.mcp.projects import Project
from ncs.sources import SourceFile, walk
from ncs.storage.file_roles import OUTLINES
from ncs.types import Document, Hit, Location

SCAN_SECONDS = 3.0
SCAN_FILES = 30
"""Files that hold most of the words; their functions are read."""


def shown_path(project: Project, index: Index | None, at: Document | Location) -> str:
    """The path of a document, relative to the project; repository/path where it is not a file there."""
    file = _file(project, index, at)
    if file is not None and file.is_relative_to(project.root):
        return file.relative_to(project.root).as_posix()
    return f"{at.repository}/{at.path}"


def _file(project: Project, index: Index | None, at: Document | Location) -> Path | None:
    """Its file on this machine; below the project's root where there is no index yet."""
    if index is not None:
        return locator_of(index.snapshot).path_of(at.repository, at.path)
    file = project.root / at.path
    return file if file.is_file() else None


def filters(project: Project, index: Index, path: str | None) -> tuple[str | None, str | None]:
    """A path glob of the project as repository and path filters of its index: its repositories look like folders."""
    prefix = (path or "").removeprefix("./").strip("/")
    names: Iterable[str] = index.documents.counts.get("repositories", ())
    for name in sorted(names, key=len, reverse=True):
        if name != project.root.name and (prefix == name or prefix.startswith(f"{name}/")):
            return f"/{name}", prefix[len(name) :] or None
    return None, path


def document_at(project: Project, index: Index | None, place: str) -> Document:
    """The function at path:line; from the index where one begins there, else from the file.

    Raises BadInput for a place outside the project, and where there is nothing.
    """
    path, line = parse_place(place)
    if index is not None and (indexed := _document_starting_at(project, index, path, line)) is not None:
        return indexed
    file = inside(project, index, path)
    try:
        function = function_at(file, line)
    except BadInput as error:
        enclosing = _enclosing_document(project, index, path, line) if index else None
        if enclosing is None:
            raise BadInput(str(error).replace(str(file), path.as_posix())) from None
        return enclosing
    relative, name = file.relative_to(project.root.resolve()).as_posix(), project.root.name
    return replace(function, id=f"{name}/{relative}:{function.start_line}", repository=name, path=relative)


def inside(project: Project, index: Index | None, path: Path) -> Path:
    """The file of a path, which must be in the project and in what is indexed of it."""
    roots = roots_of(index.description) if index and not project.own else (project.root,)
    file = (project.root / path).resolve()
    if not any(file.is_relative_to(root.resolve()) for root in roots):
        raise BadInput(f"{path} is outside the project; name a path:line that search_code showed")
    if not file.is_file():
        raise BadInput(f"{path} is not a file of the project; name a path:line that search_code showed")
    return file


def full_code(project: Project, index: Index | None, document: Document) -> str:
    """All lines of a document; from its file where the index has no code, or an outline that leaves lines out."""
    file = _file(project, index, document)
    if file is None or (document.code and document.kind not in OUTLINES):
        return document.code
    try:
        lines = inside(project, index, file).read_text("utf-8", "replace").split("\n")
    except (OSError, NcsError):
        return document.code
    return "\n".join(lines[document.start_line - 1 : document.end_line])


def _document_starting_at(project: Project, index: Index, path: Path, line: int) -> Document | None:
    for name in _indexed_names(project, index, path):
        row = index.documents.row_of(f"{name}:{line}")
        if row is not None:
            return index.documents.document(row)
    return None


def _enclosing_document(project: Project, index: Index, path: Path, line: int) -> Document | None:
    """The innermost class or top-level code of the index around a line."""
    names = set(_indexed_names(project, index, path))
    files, places = index.documents.files()
    numbers = [number for number, (repository, of) in enumerate(places) if f"{repository}/{of}" in names]
    documents = index.documents.documents(np.flatnonzero(np.isin(files, numbers)).tolist())
    enclosing = [document for document in documents if document.start_line <= line <= document.end_line]
    return max(enclosing, key=lambda document: (document.start_line, -document.end_line), default=None)


def _indexed_names(project: Project, index: Index, path: Path) -> list[str]:
    """What a path may be called in the index, repository included, whichever folder it is relative to."""
    within = (path.relative_to(project.root) if path.is_relative_to(project.root) else path).as_posix()
    indexed_name = locator_of(index.snapshot).name_of((project.root / path).resolve())
    roots = [project.root, *roots_of(index.description)]
    return list(
        dict.fromkeys([*([indexed_name] if indexed_name else []), within, *(f"{root.name}/{within}" for root in roots)])
    )


def scan(root: Path, text: str, k: int, *, seconds: float = SCAN_SECONDS) -> list[Hit]:
    """Without an index: functions with most of a query's words, rare ones counting more, in files read in time.

    Raises SourceError for a root that must not be read.
    """
    words = list(query_stems(text))
    end = time.monotonic() + seconds
    best: list[tuple[int, int, SourceFile]] = []  # a heap of the files with most words
    frequency: Counter[str] = Counter()
    for number, file in enumerate(walk([root], wanted=readable)):
        if time.monotonic() > end:
            break
        contained = _words_in(words, file.data.decode("utf-8", "replace"))
        frequency.update(contained)
        if contained:
            heapq.heappush(best, (len(contained), -number, file))
            if len(best) > SCAN_FILES:
                heapq.heappop(best)
    weights = {word: 1 / math.log(2 + frequency[word]) for word in words}
    scored: list[tuple[float, int, Document]] = []
    for document in _documents(best):
        contained = _words_in(words, f"{document.path} {document.qualified_name} {document.code}")
        name = _words_in(words, document.qualified_name)
        length = math.log(20 + document.code.count("\n"))
        scored.append(
            (-sum(weights[word] * (1 + (word in name)) for word in contained) / length, len(scored), document)
        )
    scored = heapq.nsmallest(k, scored, key=lambda each: each[:2])
    return [Hit(rank, -score, document) for rank, (score, _, document) in enumerate(scored, 1) if score]


def _documents(files: list[tuple[int, int, SourceFile]]) -> Iterator[Document]:
    for _, _, file in sorted(files, key=lambda each: (-each[0], -each[1])):
        try:
            documents, _ = read(file.data, file.repository, file.path)
        except NcsError:
            continue
        yield from documents


def _words_in(words: list[str], text: str) -> set[str]:
    lower = text.lower()
    return {word for word in words if word in lower}
