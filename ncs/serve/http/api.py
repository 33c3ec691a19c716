"""The requests of the HTTP API with their limits, and the functions that answer them, run in the search processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ncs.answer import (
    Answer,
    ask,
    definitions_of,
    describe,
    document_as_dict,
    references_to,
    similar_to,
    similar_words,
)
from ncs.build.map import SIDE, VECTORS, Map
from ncs.errors import BadInput
from ncs.files import append_file
from ncs.index import Index
from ncs.messages import NO_DOCUMENT
from ncs.search.highlight import marks
from ncs.search.question import MAX_QUERY
from ncs.search.rankers import DEFAULT_RANKER
from ncs.search.regexp import MAX_REGEXP
from ncs.search.similar import function_in
from ncs.serve.http.errors import HttpError, to_json
from ncs.serve.http.settings import MAX_BODY, MAX_K, MAX_SOURCE
from ncs.serve.live_index import LiveIndex
from ncs.storage.filters import Filters
from ncs.storage.vectors import Vectors
from ncs.types import Document

INFO = ("format", "trusted", "created", "documents", "copies", "files", "source_bytes", "broken", "failed", "skipped",
        "repositories", "languages", "kinds", "words", "embeddings", "bytes", "versions")  # fmt: skip
"""What `info` shows; everything else may contain paths of this machine."""
MAX_FEEDBACK = 64 << 20
"""Bytes of a file of votes."""

MAX_NAMES = 20
"""Languages or globs of a request."""


def _as_list(value: object) -> object:
    """One name is a list of one."""
    return [value] if isinstance(value, str) else value


Name = Annotated[str, Field(max_length=64)]
Pattern = Annotated[str, Field(max_length=300)]
Id = Annotated[str, Field(max_length=4_096, description="The id of a document, as in hits.")]
QueryText = Annotated[str, Field(max_length=MAX_QUERY)]
Names = Annotated[list[Name], BeforeValidator(_as_list), Field(max_length=MAX_NAMES)]
Patterns = Annotated[list[Pattern], BeforeValidator(_as_list), Field(max_length=MAX_NAMES)]


class IndexRequest(BaseModel):
    """A request to an index."""

    model_config = ConfigDict(extra="forbid")
    index: Name | None = Field(None, description="Which index; by default the first.")


class _Filtered(IndexRequest):
    k: int = Field(10, ge=1, le=MAX_K, description="How many hits.")
    language: Names | None = Field(None, description="Only these languages, by name or alias.", examples=[["java"]])
    language_not: Names | None = Field(None, description="Not these languages.", examples=[["js"]])
    repository: Pattern | None = Field(None, description="Only repositories that match this glob.")
    path: Pattern | None = Field(None, description="Only paths that match this glob.", examples=["src/main"])
    glob: Patterns | None = Field(None, description="Only such files, or with ! not.", examples=[["*.py", "!docs/"]])
    kind: Name | None = Field(None, description="Only this kind of document.", examples=["method"])
    no_tests: bool = Field(False, description="No tests.")
    regexp: str | None = Field(None, max_length=MAX_REGEXP, description="What code or name must match; alone, too.")
    code: bool = Field(True, description="Whether hits include their code.")
    marks: bool = Field(False, description="Include where the words of the query are in the code: [start, end] each.")


class SearchRequest(_Filtered):
    """A query: what a function does, or its name."""

    query: QueryText = Field("", description="What it does, or its name.", examples=["hide soft keyboard"])
    ranker: Name = Field(DEFAULT_RANKER, description="bm25, ncs ...; some only where the build fitted them.")
    functions_only: bool = Field(False, description="No classes, no top-level code, no documents.")
    content: Literal["all", "code", "docs"] | None = Field(None, description="Code, documents by section, or both.")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Leave out hits less likely to be right.")
    unfold: bool = Field(False, description="Near duplicates as hits of their own.")
    explain: bool = Field(False, description="Explain each hit.")


class ExplainRequest(SearchRequest):
    """A query whose hits are explained."""

    explain: bool = Field(True, description="Explain each hit.")


class SimilarRequest(_Filtered):
    """A document of the index, or code."""

    id: Id | None = None
    source: str | None = Field(None, min_length=1, max_length=MAX_SOURCE, description="Code that contains a function.")
    source_language: Name | None = Field(None, description="The language of the code.", examples=["python"])
    line: int | None = Field(None, ge=1, le=MAX_BODY, description="A line of the function; by default the first's.")


class DocumentRequest(IndexRequest):
    """One document."""

    id: Id
    code: bool = Field(True, description="Whether to include its code.")


class PointsRequest(IndexRequest):
    """Documents to find on the map."""

    ids: list[Id] = Field(max_length=MAX_K, description="Ids of documents, as in hits.")


class DefinitionsRequest(IndexRequest):
    """A name in code."""

    name: str = Field(max_length=500, description="NAME, Owner.NAME or FILE::NAME.", examples=["View.pad"])
    path: str | None = Field(None, min_length=1, max_length=4_096, description="The file that defines it, as in hits.")
    k: int = Field(10, ge=1, le=MAX_K, description="How many.")
    code: bool = Field(True, description="Whether hits include their code.")


class ReferencesRequest(DefinitionsRequest):
    """A name in code, of which the uses are wanted."""

    k: int = Field(50, ge=1, le=MAX_K, description="How many.")


class WordsRequest(IndexRequest):
    """A word."""

    word: str = Field(max_length=100, examples=["keyboard"])
    n: int = Field(10, ge=1, le=MAX_K, description="How many.")


class Vote(IndexRequest):
    """A user's judgment whether a document answers a query."""

    query: QueryText
    id: Id
    vote: Literal["up", "down"]


def search(live: LiveIndex, request: SearchRequest) -> bytes:
    """Functions that do what the query says, best first: the JSON of `ncs query --json`."""
    with live.acquire() as index:
        answer = ask(index, request.query, **request.model_dump(exclude={"index", "query", "marks"}))
    return _hits(live, answer, marked=request.marks)


def similar(live: LiveIndex, request: SimilarRequest) -> bytes:
    """Functions like a document of the index, which is left out, or like one in the code of the request."""
    filters = request.model_dump(include=set(_Filtered.model_fields) - {"index", "k", "marks"})
    with live.acquire() as index:
        function, name = _function(index, request)
        answer = similar_to(index, function, name, request.k, **filters)
    return _hits(live, answer, marked=request.marks)


def _hits(live: LiveIndex, answer: Answer, *, marked: bool) -> bytes:
    """marked: whether to say where words are marked in the code of every hit, in characters."""
    if marked:
        for hit in answer["hits"]:
            hit["marks"] = marks(hit["code"] or "", hit["marked"])
    return to_json({**answer, "index": live.name})


def _function(index: Index, request: SimilarRequest) -> tuple[Document, str]:
    if (request.id is None) == (request.source is None):
        raise BadInput("send either id or source; source needs source_language, too")
    if request.id is not None:
        return _document(index, request.id), request.id
    if request.source_language is None:
        raise BadInput("source needs source_language, such as python")
    source = (request.source or "").encode("utf-8", "replace")
    if len(source) > MAX_SOURCE:
        raise HttpError(413, "too_large", f"source is larger than {MAX_SOURCE:,} bytes", "send one function")
    function = function_in(source, request.source_language, request.line, called="the source")
    return function, f"source, line {request.line or function.start_line}"


def document(live: LiveIndex, request: DocumentRequest) -> bytes:
    """One document by its id."""
    with live.acquire() as index:
        return to_json(document_as_dict(_document(index, request.id), code=request.code))


def _document(index: Index, id: str) -> Document:
    row = index.documents.row_of(id)
    if row is None:
        raise HttpError(404, "no_document", NO_DOCUMENT.format(id=id))
    return index.documents.document(row)


def definitions(live: LiveIndex, request: DefinitionsRequest) -> bytes:
    """Where a name is defined: the JSON of `ncs def --json`."""
    with live.acquire() as index:
        answer = definitions_of(index, request.name, request.k, file=request.path, code=request.code)
    return to_json({**answer, "index": live.name})


def references(live: LiveIndex, request: ReferencesRequest) -> bytes:
    """The functions that use a name: the JSON of `ncs refs --json`."""
    with live.acquire() as index:
        answer = references_to(index, request.name, request.k, file=request.path, code=request.code)
    return to_json({**answer, "index": live.name})


def words(live: LiveIndex, request: WordsRequest) -> bytes:
    """Words that the index has learned to use like this one."""
    with live.acquire() as index:
        answer = similar_words(index, request.word, request.n)
    if answer["words"] is None:
        raise HttpError(404, "no_word", f"{answer['notes'][0]}; try another word")
    return to_json({name: answer[name] for name in ("word", "words", "notes")})


def info(live: LiveIndex, request: IndexRequest) -> bytes:
    """The contents of an index: counts, repositories, languages, sizes, versions."""
    with live.acquire() as index:
        described, snapshot = describe(index), index.description.number
    public = {name: described[name] for name in INFO if name in described}
    return to_json({"index": live.name, "snapshot": snapshot, **public})


def indexes(live_indexes: Iterable[LiveIndex], feedback: Mapping[str, Path]) -> bytes:
    """Every index with its state."""
    states: list[dict[str, Any]] = []
    for live in live_indexes:
        with live.acquire() as index:
            states.append({
                "name": live.name, "documents": len(index), "snapshot": index.description.number,
                "created": index.description.created, "trusted": not index.snapshot.distrust,
                "problem": "a newer snapshot cannot be opened; see the server's log" if live.error else None,
                "feedback": live.name in feedback,
            })  # fmt: skip
    return to_json({"indexes": states})


def map_points(live: LiveIndex, request: IndexRequest) -> bytes:
    """The documents as points of a plane, similar ones close together: columns, x and y from 0 to `side`."""
    with live.acquire() as index:
        project_map, documents = _map(index, live.name), index.documents
        rows = project_map.rows.tolist()
        locations = documents.locations(rows)
        row_languages = np.full(len(rows), "", object)
        for name in index.description.counts["languages"]:
            mask = documents.mask(Filters(language=name))
            row_languages[mask[rows] if mask is not None else []] = name
        languages, language = _by_frequency(row_languages.tolist())
        repositories, repository = _by_frequency([location.repository for location in locations])
        return to_json({
            "index": live.name, "documents": len(index), "points": len(rows),
            "method": str(project_map.config.get("method", "")), "side": SIDE,
            "languages": languages, "language": language, "repositories": repositories, "repository": repository,
            "x": project_map.places[:, 0].tolist(), "y": project_map.places[:, 1].tolist(),
            "ids": documents.ids(rows), "names": [location.qualified_name for location in locations],
        })  # fmt: skip


def map_places(live: LiveIndex, request: PointsRequest) -> bytes:
    """The places of documents on the map: those that are not points of it among the most similar points.

    Unknown ids, and documents without a vector, are left out.
    """
    with live.acquire() as index:
        project_map, vectors = _map(index, live.name), Vectors.open(index.snapshot, VECTORS)
        row_of_id = {id: row for id in request.ids if (row := index.documents.row_of(id)) is not None}
        has_vectors = np.isin(list(row_of_id.values()), vectors.nonzero_rows())
        rows = {id: row for (id, row), has_vector in zip(row_of_id.items(), has_vectors, strict=True) if has_vector}
        points = project_map.where(vectors, list(rows.values()))
    places = [{"id": id, "x": x, "y": y} for id, (x, y) in zip(rows, points, strict=True)]
    return to_json({"index": live.name, "places": places})


def _map(index: Index, name: str) -> Map:
    project_map = Map.load(index.snapshot)
    if project_map is None:
        raise HttpError(404, "no_map", "this index has no map", f"the operator makes one: ncs map -i {name}")
    return project_map


def _by_frequency(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """The distinct names, the most frequent first, and the number of each name among them.

    >>> _by_frequency(["java", "python", "python"])
    (['python', 'java'], [1, 0, 0])
    """
    distinct = [name for name, _ in Counter(names).most_common()]
    number = {name: at for at, name in enumerate(distinct)}
    return distinct, [number[name] for name in names]


def vote(live: LiveIndex, request: Vote, file: Path) -> bytes:
    """Append a vote to a file of the server, on disk when this returns; HttpError where it cannot be written."""
    line = feedback_line(request.query, request.id, request.vote)
    with live.acquire() as index:
        _document(index, request.id)
    try:
        append(file, line)
    except OSError as error:
        text = f"the feedback cannot be written ({error.strerror})"
        raise HttpError(507, "feedback_lost", text, "the operator should check the disk") from error
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
    if not query or id.splitlines() != [id] or "\t" in id or id != id.strip():
        raise HttpError(422, "no_line", "the vote cannot be written as a line", "send a query of words and an id")
    start = "# down\t" if vote == "down" else " " if query.startswith("#") else ""
    return f"{start}{query}\t{id}\n".encode()


def append(path: Path, line: bytes) -> None:
    """Append a line and sync it; one write, so that several processes may append. Raises OSError for a link.

    A last line that a crash cut off is ended first.
    """
    with append_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size + len(line) > MAX_FEEDBACK:
            raise HttpError(507, "feedback_full", "the feedback file is full", "the operator may move it away")
        torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        line = b"\n" + line if torn else line
        if os.write(file.fileno(), line) != len(line):
            raise OSError(0, "the disk is full")
        os.fsync(file.fileno())
