"""What each request is answered with, as JSON: run in the search processes, on the dictionaries of ncs.answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.answer import Answer, ask, describe, document_as_dict, similar_to, words_like
from ncs.build.map import SIDE
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.search.highlight import marks
from ncs.search.similar import function_in
from ncs.serve.http.errors import HttpError, to_json
from ncs.serve.http.schemas import (
    DocumentRequest,
    ExplainRequest,
    IndexRequest,
    PointsRequest,
    SimilarRequest,
    WordsRequest,
)
from ncs.serve.live_index import LiveIndex
from ncs.storage.map_files import VECTORS, Map
from ncs.storage.vectors import Vectors
from ncs.types import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILTERS = {"language", "repository", "path", "kind", "code"}
MAX_MARKED = 100_000
"""Characters of a document's code in which words are marked."""
INFO = ("format", "created", "documents", "copies", "files", "source_bytes", "broken", "failed", "skipped",
        "repositories", "languages", "kinds", "words", "embeddings", "bytes", "versions")  # fmt: skip
"""What `info` shows; everything else may contain paths of this machine."""
MAX_FEEDBACK = 64 << 20
"""Bytes of a file of votes."""


def search(live: LiveIndex, request: ExplainRequest, explain: bool) -> bytes:
    """What `ncs query --json` prints."""
    options = request.model_dump(exclude={"index", "query", "explain", "marks"})
    with live.acquire() as index:
        answer = ask(index, request.query, explain=explain, **options)
    return _hits(live, answer, request.query if request.marks else None)


def similar(live: LiveIndex, request: SimilarRequest) -> bytes:
    """What `ncs similar --json` prints, of a document of the index or of code in the request."""
    with live.acquire() as index:
        function, name = _function(index, request)
        answer = similar_to(index, function, name, request.k, **request.model_dump(include=FILTERS))
    return _hits(live, answer, answer["marked"] if request.marks else None)


def _hits(live: LiveIndex, answer: Answer, marked: str | None) -> bytes:
    """marked: a text whose words are marked in the code of every hit, in characters."""
    if marked is not None:
        for hit in answer["hits"]:
            hit["marks"] = marks((hit["code"] or "")[:MAX_MARKED], marked)
    return to_json({**answer, "index": live.name})


def _function(index: Index, request: SimilarRequest) -> tuple[Document, str]:
    if (request.id is None) == (request.source is None):
        raise BadInput("send either id or source; source needs source_language, too")
    if request.id is not None:
        return _document(index, request.id), request.id
    source = (request.source or "").encode("utf-8", "replace")
    if request.source_language is None:
        raise BadInput("source needs source_language, such as python")
    language = request.source_language.lower()
    line = request.line or next((function.start_line for function in extract(source, language)), 1)
    return function_in(source, language, line, path="", called="the source"), f"source, line {line}"


def document(live: LiveIndex, request: DocumentRequest) -> bytes:
    """One document."""
    with live.acquire() as index:
        return to_json(document_as_dict(_document(index, request.id), code=request.code))


def _document(index: Index, id: str) -> Document:
    row = index.documents.row_of(id)
    if row is None:
        raise HttpError(404, "no_document", "no document has this id", "use the id of a hit")
    return index.documents.document(row)


def words(live: LiveIndex, request: WordsRequest) -> bytes:
    """What `ncs words --json` prints."""
    with live.acquire() as index:
        answer = words_like(index, request.word, request.n)
    if answer["words"] is None:
        remedy = f"similar words: {', '.join(answer['near'])}" if answer["near"] else "try another word"
        raise HttpError(404, "no_word", f"no match for {request.word!r}", remedy)
    return to_json({"word": answer["word"], "words": answer["words"]})


def info(live: LiveIndex, request: IndexRequest) -> bytes:
    """What `ncs info --json` prints, without what describes this machine."""
    with live.acquire() as index:
        described, snapshot = describe(index), index.description.number
    public = {name: described[name] for name in INFO if name in described}
    return to_json({"index": live.name, "snapshot": snapshot, **public})


def indexes(live_indexes: Sequence[LiveIndex], feedback: Mapping[str, Path]) -> bytes:
    """Every index with its state."""
    states = []
    for live in live_indexes:
        with live.acquire() as index:
            states.append({
                "name": live.name, "documents": len(index), "snapshot": index.description.number,
                "created": index.description.created,
                "problem": "a newer snapshot cannot be opened; see the server's log" if live.error else None,
                "feedback": live.name in feedback,
            })  # fmt: skip
    return to_json({"indexes": states})


def map_points(live: LiveIndex, request: IndexRequest) -> bytes:
    """The map of an index as columns, one entry a point: x and y from 0 to `side`."""
    with live.acquire() as index:
        project_map, counts = _map(index), index.documents.counts
        rows = project_map.rows.tolist()
        languages, language = _group_by_frequency(
            list(counts["languages"]), _languages(index, list(counts["languages"]), project_map)
        )
        repositories, repository = _group_by_frequency(list(counts["repositories"]), _repositories(index, project_map))
        return to_json({
            "index": live.name, "documents": len(index), "points": len(rows),
            "method": str(project_map.config.get("method", "")), "side": SIDE,
            "languages": languages, "language": language, "repositories": repositories, "repository": repository,
            "x": project_map.places[:, 0].tolist(), "y": project_map.places[:, 1].tolist(),
            "ids": index.documents.ids(rows),
            "names": [place.qualified_name for place in index.documents.locations(rows)],
        })  # fmt: skip


def map_places(live: LiveIndex, request: PointsRequest) -> bytes:
    """Where documents are on the map; unknown ids, and documents without a vector, are left out."""
    with live.acquire() as index:
        project_map, vectors = _map(index), Vectors.open(index.snapshot, VECTORS)
        row_of_id = {id: row for id in request.ids if (row := index.documents.row_of(id)) is not None}
        has_vectors = np.isin(list(row_of_id.values()), vectors.nonzero_rows())
        rows = {id: row for (id, row), has_vector in zip(row_of_id.items(), has_vectors, strict=True) if has_vector}
        points = project_map.where(vectors, list(rows.values()))
    places = [{"id": id, "x": x, "y": y} for id, (x, y) in zip(rows, points, strict=True)]
    return to_json({"index": live.name, "places": places})


def _map(index: Index) -> Map:
    project_map = Map.load(index.snapshot)
    if project_map is None:
        raise HttpError(404, "no_map", "this index has no map", "the operator makes one: ncs map -i INDEX")
    return project_map


def _repositories(index: Index, project_map: Map) -> NDArray[np.int64]:
    """The number of each point's repository in the counts."""
    number = {name: at for at, name in enumerate(index.documents.counts["repositories"])}
    file, places = index.documents.files()
    owner = np.array([number.get(repository, 0) for repository, _ in places], np.int64)  # unknown: copies only
    return owner[file[project_map.rows]]


def _languages(index: Index, names: Sequence[str], project_map: Map) -> NDArray[np.int64]:
    numbers = np.zeros(len(project_map.rows), np.int64)
    for at, name in enumerate(names):
        mask = index.documents.mask(language=name)
        numbers[mask[project_map.rows] if mask is not None else slice(0)] = at
    return numbers


def _group_by_frequency(names: Sequence[str], numbers: NDArray[np.int64]) -> tuple[list[str], list[int]]:
    """Names that have points, the most frequent first, and the new number of each point's."""
    counts = np.bincount(numbers, minlength=len(names))
    order = np.lexsort((np.arange(len(names)), -counts))
    order = order[counts[order] > 0]
    rank = np.zeros(len(names), np.int64)
    rank[order] = np.arange(len(order))
    return [names[at] for at in order], rank[numbers].tolist()


def check_id(live: LiveIndex, id: str) -> bytes:
    """The answer to a vote for this document, once it is written."""
    with live.acquire() as index:
        _document(index, id)
    return to_json({"written": True})


def feedback_line(query: str, id: str, vote: str) -> bytes:
    r"""A line for `ncs tune --from-feedback`: query, tab, id; votes down are comments, which `ncs tune` reads, too.

    Raises HttpError for an id that no line can contain.

    >>> feedback_line("hide\tkeyboard", "app/K.java:3", "up"), feedback_line("#x", "a:1", "up")
    (b'hide keyboard\tapp/K.java:3\n', b' #x\ta:1\n')
    >>> feedback_line("x", "a:1", "down")
    b'# down\tx\ta:1\n'
    """
    query = " ".join(query.split())
    try:
        line = f"{query}\t{id}\n".encode()
    except UnicodeEncodeError:
        line = b""
    if not query or not line or id.splitlines() != [id] or "\t" in id or id != id.strip():
        raise HttpError(422, "no_line", "the vote cannot be written as a line", "send a query of words and an id")
    return (b"# down\t" if vote == "down" else b" " if query.startswith("#") else b"") + line


def append_feedback(path: Path, line: bytes) -> None:
    """Append a line and sync it; one write, so that several processes may append. Raises HttpError for a full file.

    A last line that a crash cut off is ended first.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(file).st_size
            if size + len(line) > MAX_FEEDBACK:
                raise HttpError(507, "feedback_full", "the feedback file is full", "the operator may move it away")
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            line = b"\n" + line if torn else line
            if os.write(file, line) != len(line):
                raise OSError(0, "the disk is full")
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        text = f"the feedback cannot be written ({error.strerror})"
        raise HttpError(507, "feedback_lost", text, "the operator should check the disk") from error
