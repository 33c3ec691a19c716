"""Places as agents write them, path:line relative to the project, and what is there, with or without an index."""

from __future__ import annotations

import heapq
import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ncs.errors import BadInput, NcsError
from ncs.extract.readers import read, readable_functions
from ncs.files import read_regular
from ncs.index import Index
from ncs.search.highlight import query_stems
from ncs.search.locate_source import MAX_BYTES, locator_of
from ncs.search.similar import function_at, parse_place
from ncs.serve.mcp.projects import Project
from ncs.sources import SourceFile, walk
from ncs.storage.file_roles import OUTLINES
from ncs.types import Document, Hit
from ncs.workers import run_limited

SCAN_SECONDS = 3.0
SCAN_FILES = 30
"""Files that hold most of the words; their functions are read."""


def shown_path(project: Project, index: Index | None, repository: str, path: str) -> str:
    """A path of the index, relative to the project; repository/path where it is not a file there."""
    file = _file(project, index, repository, path)
    return file.relative_to(project.root).as_posix() if file else f"{repository}/{path}"


def _file(project: Project, index: Index | None, repository: str, path: str) -> Path | None:
    """Its file below the project's root, also where there is no index yet."""
    file = locator_of(index.snapshot).path_of(repository, path) if index is not None else project.root / path
    return file if file and file.is_file() and file.is_relative_to(project.root) else None


def filters(project: Project, index: Index, path: str | None) -> tuple[str | None, str | None]:
    """A path glob of the project as repository and path filters of its index: its repositories look like folders."""
    path = (path or "").replace(os.sep, "/")
    if (given := project.root / path).is_relative_to(project.root) and not path.startswith("."):  # "./" anchors
        path = "/".join(given.relative_to(project.root).parts)  # on Windows in whatever case it is written
    prefix = path.removeprefix("./").strip("/")
    for name in sorted(index.description.counts.get("repositories", ()), key=len, reverse=True):
        if name != project.root.name and (prefix == name or prefix.startswith(f"{name}/")):
            return f"/{name}", prefix[len(name) :] or None
    return None, path or None


def document_at(project: Project, index: Index | None, place: str) -> Document:
    """The function at path:line: of the index where one begins there, else of the file; else what the index has there.

    Raises BadInput for a place outside the project, and where there is nothing.
    """
    path, line = parse_place(place)
    names = [] if index is None else _indexed_names(project, index, path)
    if index is not None:
        rows = (index.documents.row_of(f"{name}:{line}") for name in names)
        if (row := next((row for row in rows if row is not None), None)) is not None:
            return index.documents.document(row)
    try:
        file = inside(project, index, path)
        function = run_limited(function_at, file, line, path.as_posix())
    except BadInput:
        if index is not None and (enclosing := _enclosing_document(index, names, line)) is not None:
            return enclosing
        raise
    relative, name = file.relative_to(project.root.resolve()).as_posix(), project.root.name
    return replace(function, id=f"{name}/{relative}:{function.start_line}", repository=name, path=relative)


def _indexed_names(project: Project, index: Index, path: Path) -> list[str]:
    """Names that a path may have in the index; it is relative to the project or to a root of the index."""
    within = (path.relative_to(project.root) if path.is_relative_to(project.root) else path).as_posix()
    indexed_name = locator_of(index.snapshot).name_of((project.root / path).resolve())
    roots = [project.root, *index.snapshot.roots]
    return [*([indexed_name] if indexed_name else []), within, *(f"{root.name}/{within}" for root in roots)]


def _enclosing_document(index: Index, names: Sequence[str], line: int) -> Document | None:
    """The innermost document around a line of a file."""
    files, places = index.documents.files()
    numbers = [number for number, (repository, of) in enumerate(places) if f"{repository}/{of}" in names]
    documents = index.documents.documents(np.flatnonzero(np.isin(files, numbers)).tolist())
    around = [document for document in documents if document.start_line <= line <= document.end_line]
    return max(around, key=lambda document: (document.start_line, -document.end_line), default=None)


def inside(project: Project, index: Index | None, path: Path) -> Path:
    """The file of a path, which must be in the project and in what is indexed of it."""
    roots = locator_of(index.snapshot).roots if index and not project.own else (project.root,)
    file = (project.root / path).resolve()
    if not any(file.is_relative_to(root.resolve()) for root in roots):
        raise BadInput(f"{path} is outside the project; name a path:line that search_code showed")
    if not file.is_file():
        raise BadInput(f"{path} is not a file of the project; name a path:line that search_code showed")
    return file


def full_code(project: Project, index: Index | None, document: Document) -> str:
    """All lines of a document; from its file where the index has no code, or an outline that leaves lines out.

    An index that is not trusted does not say which lines of which file are shown.
    """
    file = _file(project, index, document.repository, document.path)
    whole = document.code and document.kind not in OUTLINES
    if file is None or whole or (index is not None and index.snapshot.distrust):
        return document.code
    try:
        source = read_regular(inside(project, index, file), MAX_BYTES)
        lines = source.decode("utf-8", "replace").split("\n")
    except (OSError, NcsError):
        return document.code
    return "\n".join(lines[document.start_line - 1 : document.end_line])


def scan(root: Path, text: str, k: int) -> list[Hit]:
    """Without an index: functions with most of a query's words, rare ones counting more, in files read in time.

    Raises SourceError for a root that must not be read.
    """
    words, frequency = list(query_stems(text)), Counter[str]()
    end = time.monotonic() + SCAN_SECONDS

    def matching_files() -> Iterator[tuple[int, SourceFile]]:
        for file in walk([root], readable=readable_functions):
            if time.monotonic() > end:
                return
            matches = _words_in(words, file.data.decode("utf-8", "replace"))
            frequency.update(matches)
            if matches:
                yield len(matches), file

    best = heapq.nlargest(SCAN_FILES, matching_files(), key=lambda each: each[0])
    weights = {word: 1 / math.log(2 + frequency[word]) for word in words}
    scores: list[tuple[float, Document]] = []
    for document in _documents(file for _, file in best):
        matches = _words_in(words, f"{document.path} {document.qualified_name} {document.code}")
        name = _words_in(words, document.qualified_name)
        length = math.log(20 + document.code.count("\n"))
        scores.append((sum(weights[word] * (1 + (word in name)) for word in matches) / length, document))
    hits = heapq.nlargest(k, scores, key=lambda each: each[0])
    return [Hit(rank, score, document) for rank, (score, document) in enumerate(hits, 1) if score]


def _documents(files: Iterable[SourceFile]) -> Iterator[Document]:
    for file in files:
        try:
            documents, _ = read(file.data, file.repository, file.path)
        except NcsError:
            continue
        yield from documents


def _words_in(words: list[str], text: str) -> set[str]:
    lower = text.lower()
    return {word for word in words if word in lower}
