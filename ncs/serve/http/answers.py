"""What each request is answered with, as JSON: the dictionaries of ncs.answer, with the index called by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncs.answer import Answer, ask, describe, document_as_dict, similar_to, words_like
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.highlight import marks
from ncs.search.similar import function_in
from ncs.serve.http.asked import Asked, DocumentWanted, PlacesWanted, Search, SimilarCode, WordsWanted
from ncs.serve.http.points import map_as_dict, places_of
from ncs.serve.http.refusals import Refusal, to_json
from ncs.serve.http.shelf import Shelf
from ncs.storage.map_files import Map
from ncs.types import Document

FILTERS = ("language", "repository", "path", "kind", "code")
MARKED = 100_000
"""Characters of a document's code in which words are marked."""


def search(shelf: Shelf, asked: Search, explain: bool) -> bytes:
    """What `ncs query --json` prints."""
    options = asked.model_dump(exclude={"index", "query", "explain", "marks"})
    with shelf.lent() as index:
        answer = ask(index, asked.query, explain=explain, **options)
    if asked.marks:
        _mark(answer, asked.query)
    return to_json({**answer, "index": shelf.name})


def _mark(answer: Answer, text: str) -> None:
    """Where words of a text stand, in characters of the code, as one more key of every hit."""
    for hit in answer["hits"]:
        hit["marks"] = marks((hit["code"] or "")[:MARKED], text)


def similar(shelf: Shelf, asked: SimilarCode) -> bytes:
    """What `ncs similar --json` prints, of a document of the index or of code that was sent."""
    with shelf.lent() as index:
        function, called = _function(index, asked)
        filters = asked.model_dump(include=set(FILTERS))
        answer = similar_to(index, function, called, asked.k, **filters)
    if asked.marks:
        _mark(answer, answer["marked"])
    return to_json({**answer, "index": shelf.name})


def _function(index: Index, asked: SimilarCode) -> tuple[Document, str]:
    if (asked.id is None) == (asked.source is None):
        raise BadInput("send either an id or source, not both; source needs its source_language, too")
    if asked.id is not None:
        return _document(index, asked.id), asked.id
    source = (asked.source or "").encode("utf-8", "replace")
    if asked.source_language is None:
        raise BadInput("source has no source_language; name it, as python")
    language = asked.source_language.lower()
    line = asked.line or _first_line(source, language)
    return function_in(source, language, line, path="", called="the source"), f"source, line {line}"


def _first_line(source: bytes, language: str) -> int:
    from ncs.extract import extract

    return next((function.start_line for function in extract(source, language)), 1)


def document(shelf: Shelf, asked: DocumentWanted) -> bytes:
    """One document."""
    with shelf.lent() as index:
        return to_json(document_as_dict(_document(index, asked.id), code=asked.code))


def _document(index: Index, id: str) -> Document:
    row = index.store.row_of(id)
    if row is None:
        raise Refusal(404, "no_document", "the index has no document with this id", "ids are in the hits of a search")
    return index.store.document(row)


def words(shelf: Shelf, asked: WordsWanted) -> bytes:
    """What `ncs words --json` prints."""
    with shelf.lent() as index:
        found = words_like(index, asked.word, asked.n)
    if found["words"] is None:
        near = f"near it in spelling: {', '.join(found['near'])}" if found["near"] else "ask for another word"
        raise Refusal(404, "no_word", f"the index does not know the word {asked.word!r}", near)
    return to_json({"word": found["word"], "words": found["words"]})


def drawn(shelf: Shelf, asked: Asked) -> bytes:
    """The map of an index."""
    with shelf.lent() as index:
        return to_json({"index": shelf.name, **map_as_dict(index, _map(index))})


def places(shelf: Shelf, asked: PlacesWanted) -> bytes:
    """Where documents stand on it."""
    with shelf.lent() as index:
        return to_json({"index": shelf.name, "places": places_of(index, _map(index), asked.ids)})


def _map(index: Index) -> Map:
    found = Map.load(index.data)
    if found is None:
        raise Refusal(404, "no_map", "this index has no map", "the operator makes one with: ncs map -i INDEX")
    return found


TOLD: tuple[str, ...] = (
    "format",
    "created",
    "documents",
    "copies",
    "files",
    "source_bytes",
    "broken",
    "failed",
    "skipped",
)
TOLD += ("repositories", "languages", "kinds", "words", "embeddings", "bytes", "versions")
"""What `info` tells; everything else may hold paths of the machine, or is nobody else's."""


def info(shelf: Shelf) -> bytes:
    """What `ncs info --json` prints, without what tells of the machine."""
    with shelf.lent() as index:
        described = describe(index)
        generation = int(index.manifest.generation.removeprefix("data-"))
    shown = {name: described[name] for name in TOLD if name in described}
    return to_json({"index": shelf.name, "generation": generation, **shown})


def indexes(shelves: Sequence[Shelf], feedback: Mapping[str, Any]) -> bytes:
    """Every index with its state."""
    return to_json({"indexes": [_state(shelf, shelf.name in feedback) for shelf in shelves]})


def _state(shelf: Shelf, feedback: bool) -> dict[str, Any]:
    with shelf.lent() as index:
        generation, documents = index.manifest.generation, len(index)
        return {
            "name": shelf.name,
            "documents": documents,
            "generation": int(generation.removeprefix("data-")),
            "created": index.manifest.created,
            "problem": "a newer generation cannot be opened: the server's log says why" if shelf.problem else None,
            "feedback": feedback,
        }


def known(shelf: Shelf, id: str) -> bytes:
    """That a vote for this document is written, when it will be; raises Refusal for an id that the index has not."""
    with shelf.lent() as index:
        if index.store.row_of(id) is None:
            raise Refusal(404, "no_document", "the index has no document with this id", "ids are in a search's hits")
    return to_json({"written": True})
