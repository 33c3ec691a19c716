"""The application: routes, errors and edge put together, indexes opened when it starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from ncs import __version__
from ncs.serve.http.edge import Edge
from ncs.serve.http.faults import handle
from ncs.serve.http.guard import Guard
from ncs.serve.http.metrics import Metrics
from ncs.serve.http.routes import router
from ncs.serve.http.service import Service
from ncs.serve.http.settings import Settings
from ncs.serve.http.work import settle


def create_app(settings: Settings, token: str | None = None) -> Edge:
    """The ASGI application; its indexes are opened when it starts."""
    api = FastAPI(
        title="ncs", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Search code by what it does. Errors are all of one shape; x-request-id finds them in the log.",
    )  # fmt: skip
    api.include_router(router)
    handle(api)
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
