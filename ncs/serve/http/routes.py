"""The routes: each passes its request to a function of ncs.serve.http.answers, in the pool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from ncs.serve.http import answers
from ncs.serve.http.errors import HttpError, to_json
from ncs.serve.http.pool import Handler
from ncs.serve.http.schemas import (
    DocumentRequest,
    ExplainRequest,
    IndexRequest,
    PointsRequest,
    SearchRequest,
    SimilarRequest,
    SimilarToRequest,
    Vote,
    WordsRequest,
    responses,
)
from ncs.serve.http.security import content_security_policy
from ncs.serve.http.service import Service

PAGE = Path(__file__).parent / "web" / "index.html"
router = APIRouter()


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


async def _answer(request: Request, name: str | None, handler: Handler, *arguments: object) -> Response:
    service = _service(request)
    return _json(await service.pool.run(handler, service.index(name), *arguments))


@router.get("/api/search", responses=responses("search"), tags=["search"])
async def search(request: Request, query: Annotated[SearchRequest, Query()]) -> Response:
    """Functions that do what the query says, best first: the JSON of `ncs query --json`."""
    return await _answer(request, query.index, answers.search, query, query.explain)


@router.post("/api/search", responses=responses("search"), tags=["search"])
async def post_search(request: Request, query: SearchRequest) -> Response:
    """The same, for long queries."""
    return await search(request, query)


@router.get("/api/explain", responses=responses("search"), tags=["search"])
async def explain(request: Request, query: Annotated[ExplainRequest, Query()]) -> Response:
    """Search with an explanation of every hit: `ncs query --json --explain`."""
    return await _answer(request, query.index, answers.search, query, True)


@router.post("/api/explain", responses=responses("search"), tags=["search"])
async def post_explain(request: Request, query: ExplainRequest) -> Response:
    """The same, for long queries."""
    return await explain(request, query)


@router.get("/api/similar", responses=responses("similar"), tags=["search"])
async def similar(request: Request, query: Annotated[SimilarToRequest, Query()]) -> Response:
    """Functions like a document of the index; the document itself is left out."""
    return await post_similar(request, SimilarRequest(**query.model_dump()))


@router.post("/api/similar", responses=responses("similar"), tags=["search"])
async def post_similar(request: Request, query: SimilarRequest) -> Response:
    """Functions like a document of the index, or like one in the code of the request. No file is read."""
    return await _answer(request, query.index, answers.similar, query)


@router.get("/api/document", responses=responses("document"), tags=["index"])
async def document(request: Request, query: Annotated[DocumentRequest, Query()]) -> Response:
    """One document by its id."""
    return await _answer(request, query.index, answers.document, query)


@router.get("/api/words", responses=responses("words"), tags=["index"])
async def words(request: Request, query: Annotated[WordsRequest, Query()]) -> Response:
    """Words that the index has learned to use like this one."""
    return await _answer(request, query.index, answers.words, query)


@router.get("/api/map", responses=responses("map"), tags=["index"])
async def map_points(request: Request, query: Annotated[IndexRequest, Query()]) -> Response:
    """The documents as points of a plane, similar ones close together, where the index has a map."""
    return await _answer(request, query.index, answers.map_points, query)


@router.post("/api/map/places", responses=responses("points"), tags=["index"])
async def map_places(request: Request, query: PointsRequest) -> Response:
    """Where documents are on the map; those that are not points of it, among the most similar points."""
    return await _answer(request, query.index, answers.map_places, query)


@router.get("/api/info", responses=responses("info"), tags=["index"])
async def info(request: Request, query: Annotated[IndexRequest, Query()]) -> Response:
    """What an index contains: counts, repositories, languages, sizes, versions."""
    return await _answer(request, query.index, answers.info, query)


@router.get("/api/indexes", responses=responses("indexes"), tags=["index"])
async def indexes(request: Request) -> Response:
    """Every served index and its state."""
    service = _service(request)
    return _json(answers.indexes(list(service.indexes.values()), service.settings.feedback))


@router.post("/api/feedback", responses=responses("feedback"), tags=["index"])
async def feedback(request: Request, vote: Vote) -> Response:
    """Whether a document answers a query: a line of the file that `ncs tune` reads, on disk when this returns."""
    service = _service(request)
    live = service.index(vote.index)
    file = service.settings.feedback.get(live.name)
    if file is None:
        raise HttpError(
            404, "no_feedback", "this server takes no feedback", "the operator may start it with --feedback"
        )
    line = answers.feedback_line(vote.query, vote.id, vote.vote)
    body = await service.pool.run(answers.check_id, live, vote.id)
    await asyncio.to_thread(answers.append_feedback, file, line)
    return _json(body)


@router.get("/health", tags=["operation"])
async def health() -> Response:
    """Whether the process answers; no index is searched."""
    return _json(b'{"status":"ok"}')


@router.get("/ready", tags=["operation"])
async def ready(request: Request) -> Response:
    """Whether searches are answered: indexes are open, and the queue is not full."""
    service = _service(request)
    if service.pool.full:
        raise HttpError(503, "busy", "too many requests", "try again in a second", Retry_After="1")
    return _json(to_json({"status": "ready", "indexes": len(service.indexes)}))


@router.get("/metrics", tags=["operation"])
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    service = _service(request)
    service.metrics.collect(service.indexes.values(), service.pool.pending)
    return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/", include_in_schema=False)
async def home() -> Response:
    """The page."""
    try:
        html = PAGE.read_bytes()
    except OSError:
        raise HttpError(404, "no_page", "this installation has no page", "see /openapi.json") from None
    headers = {"content-security-policy": content_security_policy(html.decode("utf-8"))}
    return Response(html, media_type="text/html", headers=headers)
