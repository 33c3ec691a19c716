"""What answers look like: schemas and examples for OpenAPI. Answers are not made of these; a test compares them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """Of an answer."""

    model_config = ConfigDict(extra="allow")


class PlaceShape(Shape):
    """Where a copy stands."""

    repository: str
    path: str
    start_line: int
    end_line: int


class DocumentShape(Shape):
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
    copies: list[PlaceShape]
    code: str | None


class HitShape(DocumentShape):
    """A document at its place in a ranking."""

    rank: int
    score: float
    confidence: float | None
    matched: list[str]
    near_copies: list[PlaceShape]


class AnswerShape(Shape):
    """Hits, and what a reader needs to judge them."""

    query: str
    ranker: str
    index: str
    kind: str | None = None
    unknown_words: dict[str, list[str]]
    notes: list[str]
    hits: list[HitShape]


class WordShape(Shape):
    """A word and the cosine of its vector."""

    word: str
    similarity: float


class WordsShape(Shape):
    """Words used like a word."""

    word: str
    words: list[WordShape]


class MapShape(Shape):
    """The map of an index, a column an entry; language and repository are numbers of the lists of names."""

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


class PointShape(Shape):
    """A document on the map."""

    id: str
    x: int
    y: int


class PlacesShape(Shape):
    """Several."""

    places: list[PointShape]


class IndexShape(Shape):
    """An index that is served; problem: why a newer generation of it is not."""

    name: str
    documents: int
    generation: int
    created: str
    problem: str | None
    feedback: bool


class IndexesShape(Shape):
    """All of them, the first one is asked where none is named."""

    indexes: list[IndexShape]


class ErrorBody(Shape):
    """What went wrong."""

    code: str
    message: str
    remedy: str


class ErrorShape(Shape):
    """Every error."""

    error: ErrorBody


DOCUMENT: dict[str, Any] = {
    "id": "app/src/Keyboards.java:12",
    "repository": "app",
    "path": "src/Keyboards.java",
    "start_line": 12,
    "end_line": 15,
    "language": "java",
    "kind": "method",
    "name": "hideKeyboard",
    "qualified_name": "Keyboards.hideKeyboard",
    "copies": [],
    "code": "void hideKeyboard(View view) {\n    manager.hideSoftInputFromWindow(view.getWindowToken(), 0);\n}",
}
HIT: dict[str, Any] = {
    "rank": 1,
    "score": 2.318461,
    "confidence": 0.91,
    **DOCUMENT,
    "matched": ["hide", "soft", "keyboard"],
    "near_copies": [],
}
ANSWER: dict[str, Any] = {
    "query": "hide soft keyboard",
    "ranker": "hybrid",
    "index": "app",
    "kind": "how-to",
    "unknown_words": {},
    "notes": [],
    "hits": [HIT],
}
SIMILAR: dict[str, Any] = {
    **{key: value for key, value in ANSWER.items() if key != "kind"},
    "query": "app/src/Keyboards.java:12",
    "ranker": "similar",
    "hits": [{**HIT, "confidence": None, "reverse": 0.8, "exact_copy": False}],
}
WORDS: dict[str, Any] = {"word": "keyboard", "words": [{"word": "soft", "similarity": 0.83}]}
MAP: dict[str, Any] = {
    "index": "app",
    "documents": 1234,
    "points": 1,
    "method": "PCA and t-SNE",
    "side": 65535,
    "languages": ["java"],
    "language": [0],
    "repositories": ["app"],
    "repository": [0],
    "x": [30817],
    "y": [41220],
    "ids": ["app/src/Keyboards.java:12"],
    "names": ["Keyboards.hideKeyboard"],
}
PLACES: dict[str, Any] = {"index": "app", "places": [{"id": "app/src/Keyboards.java:12", "x": 30817, "y": 41220}]}
INDEXES: dict[str, Any] = {
    "indexes": [
        {
            "name": "app",
            "documents": 1234,
            "generation": 3,
            "created": "2026-11-21T20:00:00+00:00",
            "problem": None,
            "feedback": False,
        }
    ]
}
ERROR: dict[str, Any] = {
    "error": {
        "code": "bad_request",
        "message": "k: Input should be less than or equal to 100",
        "remedy": "the parameters and their bounds are in /openapi.json",
    }
}
STATUSES = {
    401: "the token is missing or wrong",
    403: "another site asks, or the server is not called that",
    404: "no such index, document or word",
    413: "the body is too large",
    422: "a parameter is wrong",
    503: "too many requests wait, or the index cannot be read",
    504: "it took too long",
}


def responses(model: type[BaseModel], example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a route: its answer with an example, and its errors."""
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorShape, "description": said, "content": {"application/json": {"example": ERROR}}}
        for status, said in STATUSES.items()
    }
    return {200: {"model": model, "content": {"application/json": {"example": example}}}, **errors}
