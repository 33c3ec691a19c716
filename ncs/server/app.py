"""The routes: each hands its request to a function of ncs.server.answers, in the pool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from ncs import __version__
from ncs.errors import NcsError
from ncs.server import answers, examples
from ncs.server.asked import DocumentWanted, Question, Search, SimilarCode, SimilarTo, Vote, WordsWanted
from ncs.server.edge import Edge
from ncs.server.examples import responses
from ncs.server.guard import Guard
from ncs.server.metrics import Metrics
from ncs.server.page import page
from ncs.server.refusals import Refusal, of_error, of_validation, to_json
from ncs.server.settings import Settings
from ncs.server.shelf import Shelf
from ncs.server.votes import append, line_of
from ncs.server.work import Work, settle

log = logging.getLogger("ncs.server")


class Service:
    """What the routes work with."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        """Opens every index; raises what Index.load raises."""
        self.settings, self.metrics = settings, metrics
        self.shelves = {name: Shelf(name, folder) for name, folder in settings.folders.items()}
        self.work = Work(settings)

    def shelf(self, name: str | None) -> Shelf:
        """An index by name, the first where none is named; Refusal for an unknown one."""
        found = self.shelves.get(name or next(iter(self.shelves)))
        if found is None:
            raise Refusal(404, "no_index", "no index is called that", f"there are: {', '.join(self.shelves)}")
        return found

    async def answer(self, name: str | None, make: Callable[..., bytes], *asked: object) -> Response:
        """What `make(shelf, *asked)` says, worked out in the pool."""
        return _json(await self.work(make, self.shelf(name), *asked))

    async def watch(self) -> None:
        """Look at the folders for ever; what changed is opened beside the searches, never instead of one."""
        while True:
            await asyncio.sleep(self.settings.poll)
            for shelf in self.shelves.values():
                if shelf.changed():
                    await asyncio.to_thread(self._refresh, shelf)

    def _refresh(self, shelf: Shelf) -> None:
        before, told = shelf.generation, shelf.problem
        shelf.refresh()
        if not shelf.problem:
            log.info("index %s: generation %d answers, before it %d", shelf.name, shelf.generation, before)
        elif shelf.problem != told:
            log.error("index %s: generation %d goes on answering: %s", shelf.name, before, shelf.problem)

    def hidden(self) -> Mapping[str, str]:
        """Paths of the machine, and what they are called in answers."""
        return {
            str(path): name for name, folder in self.settings.folders.items() for path in (folder, folder.resolve())
        }

    def close(self) -> None:
        """Let go of everything."""
        self.work.close()
        for shelf in self.shelves.values():
            shelf.close()


def create_app(settings: Settings, token: str | None = None) -> Edge:
    """The ASGI application; its indexes are opened when it starts."""
    api = FastAPI(
        title="ncs", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Search code by what it does. Errors are all of one shape; x-request-id finds them in the log.",
    )  # fmt: skip
    api.include_router(router)
    handlers: dict[Any, Any] = {
        Refusal: _refused, NcsError: _failed, RequestValidationError: _invalid, HTTPException: _no_route,
        Exception: _broken,
    }  # fmt: skip
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)
    paths = [route.path for route in router.routes if hasattr(route, "path")]
    metrics = Metrics([*paths, "/openapi.json"])
    api.state.settings, api.state.metrics = settings, metrics
    return Edge(api, Guard.of(settings, token), metrics, seconds=settings.seconds)


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    service = api.state.service = Service(api.state.settings, api.state.metrics)
    await service.work.begin()
    settle()
    watching = asyncio.create_task(service.watch())
    yield
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    service.close()


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _of(refusal: Refusal) -> Response:
    return Response(refusal.body(), refusal.status, refusal.headers, "application/json")


async def _refused(request: Request, error: Refusal) -> Response:
    return _of(error)


async def _failed(request: Request, error: NcsError) -> Response:
    refusal = of_error(error, _service(request).hidden())
    if refusal.status >= 500:
        log.error("%s", error)
    return _of(refusal)


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    return _of(of_validation(error.errors()))


async def _no_route(request: Request, error: HTTPException) -> Response:
    status, code, said = _ROUTING.get(error.status_code, (error.status_code, "refused", "this cannot be asked"))
    return _of(Refusal(status, code, said, "what there is: /openapi.json"))


_ROUTING = {
    400: (422, "bad_json", "the body is no JSON"),
    404: (404, "no_path", "there is nothing here"),
    405: (405, "no_method", "this cannot be asked so"),
}


async def _broken(request: Request, error: Exception) -> Response:
    remedy = "ask who runs it: its log has more under this answer's x-request-id"
    return _of(Refusal(500, "failed", "the server failed", remedy))


router = APIRouter()
ANSWER = responses(examples.AnswerShape, examples.ANSWER)
LIKE = responses(examples.AnswerShape, examples.SIMILAR)


@router.get("/api/search", responses=ANSWER, tags=["search"])
async def search(request: Request, asked: Annotated[Question, Query()]) -> Response:
    """Functions that do what the question says, best first: the JSON of `ncs query --json`."""
    return await _service(request).answer(asked.index, answers.search, asked, asked.explain)


@router.post("/api/search", responses=ANSWER, tags=["search"])
async def search_by_post(request: Request, asked: Question) -> Response:
    """The same, for long questions."""
    return await search(request, asked)


@router.get("/api/explain", responses=ANSWER, tags=["search"])
async def explain(request: Request, asked: Annotated[Search, Query()]) -> Response:
    """Search with the reasons of every hit: `ncs query --json --explain`."""
    return await _service(request).answer(asked.index, answers.search, asked, True)


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
    return await _service(request).answer(asked.index, answers.similar, asked)


@router.get("/api/document", responses=responses(examples.DocumentShape, examples.DOCUMENT), tags=["index"])
async def document(request: Request, asked: Annotated[DocumentWanted, Query()]) -> Response:
    """One document by its id."""
    return await _service(request).answer(asked.index, answers.document, asked)


@router.get("/api/words", responses=responses(examples.WordsShape, examples.WORDS), tags=["index"])
async def words(request: Request, asked: Annotated[WordsWanted, Query()]) -> Response:
    """Words that the index has learnt to use like this one."""
    return await _service(request).answer(asked.index, answers.words, asked)


@router.get("/api/info", responses=responses(examples.Shape, {"index": "app", "documents": 1234}), tags=["index"])
async def info(request: Request, index: str | None = None) -> Response:
    """What is in an index: counts, repositories, languages, sizes, versions."""
    return await _service(request).answer(index, answers.info)


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
