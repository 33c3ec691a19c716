"""The routes: each hands its request to a function of ncs.serve.http.answers, in the pool."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from ncs.serve.http import answers, examples
from ncs.serve.http.asked import (
    Asked,
    DocumentWanted,
    PlacesWanted,
    Question,
    Search,
    SimilarCode,
    SimilarTo,
    Vote,
    WordsWanted,
)
from ncs.serve.http.examples import responses
from ncs.serve.http.page import page
from ncs.serve.http.refusals import Refusal, to_json
from ncs.serve.http.service import Service
from ncs.serve.http.votes import append, line_of
from ncs.serve.http.work import Make

router = APIRouter()


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


async def _answer(request: Request, name: str | None, make: Make, *asked: object) -> Response:
    return _json(await _service(request).answer(name, make, *asked))


ANSWER = responses(examples.AnswerShape, examples.ANSWER)
LIKE = responses(examples.AnswerShape, examples.SIMILAR)


@router.get("/api/search", responses=ANSWER, tags=["search"])
async def search(request: Request, asked: Annotated[Question, Query()]) -> Response:
    """Functions that do what the question says, best first: the JSON of `ncs query --json`."""
    return await _answer(request, asked.index, answers.search, asked, asked.explain)


@router.post("/api/search", responses=ANSWER, tags=["search"])
async def search_by_post(request: Request, asked: Question) -> Response:
    """The same, for long questions."""
    return await search(request, asked)


@router.get("/api/explain", responses=ANSWER, tags=["search"])
async def explain(request: Request, asked: Annotated[Search, Query()]) -> Response:
    """Search with the reasons of every hit: `ncs query --json --explain`."""
    return await _answer(request, asked.index, answers.search, asked, True)


@router.post("/api/explain", responses=ANSWER, tags=["search"])
async def explain_by_post(request: Request, asked: Search) -> Response:
    """The same, for long questions."""
    return await explain(request, asked)


@router.get("/api/similar", responses=LIKE, tags=["search"])
async def similar(request: Request, asked: Annotated[SimilarTo, Query()]) -> Response:
    """Functions like a document of the index; the document itself is left out."""
    return await similar_by_post(request, SimilarCode(**asked.model_dump()))


@router.post("/api/similar", responses=LIKE, tags=["search"])
async def similar_by_post(request: Request, asked: SimilarCode) -> Response:
    """Functions like a document of the index, or like one in code that is sent. No file of the machine is read."""
    return await _answer(request, asked.index, answers.similar, asked)


@router.get("/api/document", responses=responses(examples.DocumentShape, examples.DOCUMENT), tags=["index"])
async def document(request: Request, asked: Annotated[DocumentWanted, Query()]) -> Response:
    """One document by its id."""
    return await _answer(request, asked.index, answers.document, asked)


@router.get("/api/words", responses=responses(examples.WordsShape, examples.WORDS), tags=["index"])
async def words(request: Request, asked: Annotated[WordsWanted, Query()]) -> Response:
    """Words that the index has learnt to use like this one."""
    return await _answer(request, asked.index, answers.words, asked)


@router.get("/api/map", responses=responses(examples.MapShape, examples.MAP), tags=["index"])
async def whole_map(request: Request, asked: Annotated[Asked, Query()]) -> Response:
    """The documents as points of a plane, where the index has a map: near ones say alike things."""
    return await _answer(request, asked.index, answers.drawn, asked)


@router.post("/api/map/places", responses=responses(examples.PlacesShape, examples.PLACES), tags=["index"])
async def map_places(request: Request, asked: PlacesWanted) -> Response:
    """Where documents stand on the map; those that are not points of it, amid the points most like them."""
    return await _answer(request, asked.index, answers.places, asked)


@router.get("/api/info", responses=responses(examples.Shape, {"index": "app", "documents": 1234}), tags=["index"])
async def info(request: Request, asked: Annotated[Asked, Query()]) -> Response:
    """What is in an index: counts, repositories, languages, sizes, versions."""
    return await _answer(request, asked.index, answers.info)


@router.get("/api/indexes", responses=responses(examples.IndexesShape, examples.INDEXES), tags=["index"])
async def indexes(request: Request) -> Response:
    """Every index that is served, and its state."""
    service = _service(request)
    return _json(answers.indexes(list(service.shelves.values()), service.settings.feedback))


@router.post("/api/feedback", responses=responses(examples.Shape, {"written": True}), tags=["index"])
async def feedback(request: Request, asked: Vote) -> Response:
    """Whether a document answers a question: a line of the file that `ncs tune` reads, on the disk at the answer."""
    service = _service(request)
    shelf = service.shelf(asked.index)
    file = service.settings.feedback.get(shelf.name)
    if file is None:
        raise Refusal(404, "no_feedback", "this server takes no feedback", "the operator may start it with --feedback")
    line = line_of(asked.query, asked.id, asked.vote)
    written = await service.work(answers.known, shelf, asked.id)
    await asyncio.to_thread(append, file, line)
    return _json(written)


@router.get("/health", tags=["operation"])
async def health() -> Response:
    """Whether the process answers; no index is asked."""
    return _json(b'{"status":"ok"}')


@router.get("/ready", tags=["operation"])
async def ready(request: Request) -> Response:
    """Whether searches are answered: indexes are open, and the pool takes more."""
    service = _service(request)
    if service.work.full:
        raise Refusal(503, "busy", "too many requests wait already", "ask again in a second", Retry_After="1")
    return _json(to_json({"status": "ready", "indexes": len(service.shelves)}))


@router.get("/metrics", tags=["operation"])
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    service = _service(request)
    service.metrics.look(service.shelves.values(), service.work.held)
    return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/", include_in_schema=False)
async def home() -> Response:
    """The page."""
    html, allowed = page()
    return Response(html, media_type="text/html", headers={"content-security-policy": allowed})
