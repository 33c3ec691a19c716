"""Requests with their limits, which check GET parameters and POST bodies alike, and the shapes of the answers.

Answers are not made of their models (that costs time); a test compares the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.http.settings import MAX_BODY, MAX_K, MAX_QUERY

Name = Annotated[str, Field(min_length=1, max_length=64)]
Pattern = Annotated[str, Field(min_length=1, max_length=300)]
Id = Annotated[str, Field(min_length=1, max_length=4_096, description="The id of a document, as in hits.")]
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]


class IndexRequest(BaseModel):
    """A request to an index."""

    model_config = ConfigDict(extra="forbid")
    index: Name | None = Field(None, description="Which index; by default the first.")


class _Filtered(IndexRequest):
    k: int = Field(10, ge=1, le=MAX_K, description="How many hits.")
    language: Name | None = Field(None, description="Only this language.", examples=["java"])
    repository: Pattern | None = Field(None, description="Only repositories that match this glob.")
    path: Pattern | None = Field(None, description="Only paths that match this glob.", examples=["src/main"])
    kind: Name | None = Field(None, description="Only this kind of document.", examples=["method"])
    code: bool = Field(True, description="Whether hits include their code.")
    marks: bool = Field(False, description="Include where the words of the query are in the code: [start, end] each.")


class ExplainRequest(_Filtered):
    """A query: what a function does, or its name."""

    query: QueryText = Field(description="What the function does, or its name.", examples=["hide soft keyboard"])
    ranker: Name = Field(DEFAULT_RANKER, description="bm25, ncs ...; some only where the build fitted them.")
    functions_only: bool = Field(False, description="No classes, no top-level code.")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Leave out hits less likely to be right.")
    unfold: bool = Field(False, description="Near duplicates as hits of their own.")


class SearchRequest(ExplainRequest):
    """A query whose answer may explain its hits."""

    explain: bool = Field(False, description="Explain each hit.")


class SimilarToRequest(_Filtered):
    """A document of the index."""

    id: Id


class SimilarRequest(_Filtered):
    """A document of the index, or code."""

    id: Id | None = None
    source: str | None = Field(None, min_length=1, max_length=MAX_BODY, description="Code that contains a function.")
    source_language: Name | None = Field(None, description="The language of the code.", examples=["python"])
    line: int | None = Field(None, ge=1, le=MAX_BODY, description="A line of the function; by default the first's.")


class DocumentRequest(IndexRequest):
    """One document."""

    id: Id
    code: bool = Field(True, description="Whether to include its code.")


class PointsRequest(IndexRequest):
    """Documents to find on the map."""

    ids: list[Id] = Field(max_length=MAX_K, description="Ids of documents, as in hits.")


class WordsRequest(IndexRequest):
    """A word."""

    word: str = Field(min_length=1, max_length=100, examples=["keyboard"])
    n: int = Field(10, ge=1, le=MAX_K, description="How many.")


class Vote(IndexRequest):
    """Whether a document answers a query."""

    query: QueryText
    id: Id
    vote: Literal["up", "down"]


class Response(BaseModel):
    """An answer, a JSON object."""

    model_config = ConfigDict(extra="allow")


class PlaceResponse(Response):
    """The location of a copy."""

    repository: str
    path: str
    start_line: int
    end_line: int


class DocumentResponse(Response):
    """A function, a class or top-level code."""

    id: str
    repository: str
    path: str
    start_line: int
    end_line: int
    language: str
    kind: str
    name: str
    qualified_name: str
    copies: list[PlaceResponse]
    code: str | None


class HitResponse(DocumentResponse):
    """A document at its rank."""

    rank: int
    score: float
    confidence: float | None
    matched: list[str]
    near_copies: list[PlaceResponse]


class HitsResponse(Response):
    """Hits, and how the query was understood."""

    query: str
    ranker: str
    index: str
    kind: str | None = None
    unknown_words: dict[str, list[str]]
    notes: list[str]
    hits: list[HitResponse]


class WordResponse(Response):
    """A word and the cosine of its vector."""

    word: str
    similarity: float


class WordsResponse(Response):
    """Words used alike."""

    word: str
    words: list[WordResponse]


class MapResponse(Response):
    """The map, a column per field; `language` and `repository` index the lists of names."""

    documents: int
    points: int
    method: str
    side: int
    languages: list[str]
    language: list[int]
    repositories: list[str]
    repository: list[int]
    x: list[int]
    y: list[int]
    ids: list[str]
    names: list[str]


class PointResponse(Response):
    """A document on the map."""

    id: str
    x: int
    y: int


class PointsResponse(Response):
    """Documents on the map."""

    places: list[PointResponse]


class IndexResponse(Response):
    """A served index; problem: why a newer snapshot of it is not."""

    name: str
    documents: int
    snapshot: int
    created: str
    problem: str | None
    feedback: bool


class IndexesResponse(Response):
    """All served indexes, the default first."""

    indexes: list[IndexResponse]


class ErrorDetail(Response):
    """What went wrong."""

    code: str
    message: str
    remedy: str


class ErrorResponse(Response):
    """Every error."""

    error: ErrorDetail


_DOCUMENT: dict[str, Any] = {
    "id": "app/src/Keyboards.java:12", "repository": "app", "path": "src/Keyboards.java", "start_line": 12,
    "end_line": 15, "language": "java", "kind": "method", "name": "hideKeyboard",
    "qualified_name": "Keyboards.hideKeyboard", "copies": [],
    "code": "void hideKeyboard(View view) {\n    manager.hideSoftInputFromWindow(view.getWindowToken(), 0);\n}",
}  # fmt: skip
_HIT: dict[str, Any] = {
    "rank": 1, "score": 2.318461, "confidence": 0.91, **_DOCUMENT, "matched": ["hide", "soft", "keyboard"],
    "near_copies": [],
}  # fmt: skip
_SIMILAR: dict[str, Any] = {
    "query": _DOCUMENT["id"], "ranker": "similar", "index": "app", "unknown_words": {}, "notes": [],
    "hits": [{**_HIT, "confidence": None, "reverse": 0.8, "exact_copy": False}],
}  # fmt: skip
EXAMPLES: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "search": (HitsResponse, {**_SIMILAR, "query": "hide soft keyboard", "ranker": "hybrid", "kind": "how-to",
                              "hits": [_HIT]}),
    "similar": (HitsResponse, _SIMILAR),
    "document": (DocumentResponse, _DOCUMENT),
    "words": (WordsResponse, {"word": "keyboard", "words": [{"word": "soft", "similarity": 0.83}]}),
    "map": (MapResponse, {
        "index": "app", "documents": 1234, "points": 1, "method": "PCA and t-SNE", "side": 65535, "languages": ["java"],
        "language": [0], "repositories": ["app"], "repository": [0], "x": [30817], "y": [41220],
        "ids": [_DOCUMENT["id"]], "names": ["Keyboards.hideKeyboard"],
    }),
    "points": (PointsResponse, {"index": "app", "places": [{"id": _DOCUMENT["id"], "x": 30817, "y": 41220}]}),
    "info": (Response, {"index": "app", "documents": 1234}),
    "indexes": (IndexesResponse, {"indexes": [{
        "name": "app", "documents": 1234, "snapshot": 3, "created": "2026-11-21T20:00:00+00:00", "problem": None,
        "feedback": False,
    }]}),
    "feedback": (Response, {"written": True}),
}  # fmt: skip
_ERROR: dict[str, Any] = {"error": {
    "code": "bad_request", "message": "k: Input should be less than or equal to 100",
    "remedy": "see /openapi.json for parameters and limits",
}}  # fmt: skip
STATUSES = {
    401: "the token is missing or wrong",
    403: "cross-site request, or unknown host name",
    404: "no such index, document or word",
    413: "the body is too large",
    422: "a parameter is wrong",
    503: "too many requests, or the index cannot be read",
    504: "the time limit was exceeded",
}


def responses(name: str) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of the answers of a route: a model with an example, and the errors."""
    model, example = EXAMPLES[name]
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorResponse, "description": text, "content": {"application/json": {"example": _ERROR}}}
        for status, text in STATUSES.items()
    }
    return {200: {"model": model, "content": {"application/json": {"example": example}}}, **errors}
