"""The routes: which function of ncs.serve.http.api answers which path, and an example of each answer for OpenAPI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response

from ncs.serve.http import api
from ncs.serve.http.errors import HttpError, to_json
from ncs.serve.http.security import page
from ncs.serve.http.service import Handler, Service

PAGE = Path(__file__).parent / "web" / "index.html"

_DOCUMENT: dict[str, Any] = {
    "id": "app/src/Keyboards.java:12", "repository": "app", "path": "src/Keyboards.java", "start_line": 12,
    "end_line": 15, "language": "java", "kind": "method", "name": "hideKeyboard",
    "qualified_name": "Keyboards.hideKeyboard", "copies": [],
    "code": "void hideKeyboard(View view) {\n    manager.hideSoftInputFromWindow(view.getWindowToken(), 0);\n}",
    "excerpt": [[0, 3]], "marked": ["hide", "keyboard", "soft"],
}  # fmt: skip
_HIT: dict[str, Any] = {
    "rank": 1, "score": 2.318461, "confidence": 0.91, "likelihood": "strong", **_DOCUMENT,
    "matched": ["hide", "soft", "keyboard"], "near_copies": [],
}  # fmt: skip
_SEARCH: dict[str, Any] = {
    "query": "hide soft keyboard", "ranker": "hybrid", "kind": "how-to", "index": "app", "unknown_words": {},
    "notes": [], "hits": [_HIT],
}  # fmt: skip
_NAMED: dict[str, Any] = {**_HIT, "score": 1.0, "confidence": None, "likelihood": "", "matched": []}
EXAMPLES: dict[str, dict[str, Any]] = {
    "/api/search": _SEARCH,
    "/api/explain": _SEARCH,
    "/api/similar": {
        "query": _DOCUMENT["id"], "ranker": "similar", "index": "app", "unknown_words": {}, "notes": [],
        "hits": [{**_HIT, "confidence": None, "likelihood": "", "reverse": 0.8, "exact_copy": False}],
    },
    "/api/document": _DOCUMENT,
    "/api/definitions": {
        "name": "hideKeyboard", "index": "app", "notes": [], "definitions": [{**_NAMED, "match": "exact"}],
    },
    "/api/references": {
        "name": "hideSoftInputFromWindow", "index": "app", "spelled": ["hideSoftInputFromWindow"], "total": 1,
        "notes": [], "references": [{
            **_NAMED, "lines": [13], "group": "uses",
            "texts": ["    manager.hideSoftInputFromWindow(view.getWindowToken(), 0);"],
        }],
    },
    "/api/words": {"word": "keyboard", "words": [{"word": "soft", "similarity": 0.83}], "notes": []},
    "/api/map": {
        "index": "app", "documents": 1234, "points": 1, "method": "PCA and t-SNE", "side": 65535, "languages": ["java"],
        "language": [0], "repositories": ["app"], "repository": [0], "x": [30817], "y": [41220],
        "ids": [_DOCUMENT["id"]], "names": ["Keyboards.hideKeyboard"],
    },
    "/api/map/places": {"index": "app", "places": [{"id": _DOCUMENT["id"], "x": 30817, "y": 41220}]},
    "/api/info": {"index": "app", "documents": 1234},
    "/api/indexes": {"indexes": [{
        "name": "app", "documents": 1234, "snapshot": 3, "created": "2026-11-21T20:00:00+00:00", "trusted": True,
        "problem": None, "feedback": False,
    }]},
    "/api/feedback": {"written": True},
}  # fmt: skip
_ERROR = {"error": {"code": "bad_request", "message": "k is 101", "remedy": "it must be at most 100"}}
STATUSES = {
    401: "the token is missing or wrong",
    403: "cross-site request, or unknown host name",
    404: "no such index, document or word",
    413: "the body is too large",
    422: "a parameter is wrong",
    503: "too many requests, or the index cannot be read",
    504: "the time limit was exceeded",
}


def add_routes(app: FastAPI, service: Service) -> None:
    """Add every route of a service."""
    for path, handler, model, methods in (
        ("/api/search", api.search, api.SearchRequest, "GET POST"),
        ("/api/explain", api.search, api.ExplainRequest, "GET POST"),
        ("/api/similar", api.similar, api.SimilarRequest, "GET POST"),
        ("/api/document", api.document, api.DocumentRequest, "GET"),
        ("/api/definitions", api.definitions, api.DefinitionsRequest, "GET"),
        ("/api/references", api.references, api.ReferencesRequest, "GET"),
        ("/api/words", api.words, api.WordsRequest, "GET"),
        ("/api/map", api.map_points, api.IndexRequest, "GET"),
        ("/api/map/places", api.map_places, api.PointsRequest, "POST"),
        ("/api/info", api.info, api.IndexRequest, "GET"),
    ):
        for method in methods.split():
            _add_search(app, service, method, path, handler, model)

    @app.get("/api/indexes", responses=_responses("/api/indexes"))
    async def indexes() -> Response:
        """Every served index and its state."""
        return _json(api.indexes(service.indexes.values(), service.settings.feedback))

    @app.post("/api/feedback", responses=_responses("/api/feedback"))
    async def feedback(vote: api.Vote) -> Response:
        """Whether a document answers a query: a line of the file that `ncs tune` reads, on disk when this returns."""
        file = service.settings.feedback.get(service.index(vote.index).name)
        if file is None:
            remedy = "the operator may start it with --feedback"
            raise HttpError(404, "no_feedback", "this server takes no feedback", remedy)
        return _json(await service.run(api.vote, vote.index, vote, file))

    @app.get("/health")
    async def health() -> Response:
        """Whether the process answers; no index is searched."""
        return _json(b'{"status":"ok"}')

    @app.get("/ready")
    async def ready() -> Response:
        """Whether searches are answered: indexes are open, and the queue is not full."""
        service.check_queue()
        return _json(to_json({"status": "ready", "indexes": len(service.indexes)}))

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return page(PAGE)


def _add_search(
    app: FastAPI, service: Service, method: str, path: str, handler: Handler, model: type[api.IndexRequest]
) -> None:
    """A route that the search processes answer; GET has the fields of the model as parameters, POST as its body."""

    async def respond(query: api.IndexRequest) -> Response:
        return _json(await service.run(handler, query.index, query, parses=handler is api.similar))

    respond.__annotations__["query"] = Annotated[model, Query()] if method == "GET" else model
    name, text = path.removeprefix("/api/").replace("/", "_"), handler.__doc__
    app.add_api_route(path, respond, methods=[method], name=name, description=text, responses=_responses(path))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _responses(path: str) -> dict[int | str, dict[str, Any]]:
    errors: dict[int | str, dict[str, Any]] = {
        status: {"description": text, **_example(_ERROR)} for status, text in STATUSES.items()
    }
    return {200: _example(EXAMPLES[path]), **errors}


def _example(value: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"example": value}}}
