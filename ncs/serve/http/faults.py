"""Whatever goes wrong inside a route, as the one shape of errors."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ncs.errors import NcsError
from ncs.serve.http.refusals import Refusal, of_error, of_validation
from ncs.serve.http.service import Service

log = logging.getLogger("ncs.serve.http")


def handle(api: FastAPI) -> None:
    """Every kind of error of this application gets its handler."""
    handlers: dict[Any, Any] = {
        Refusal: _refused, NcsError: _failed, RequestValidationError: _invalid, HTTPException: _no_route,
        Exception: _broken,
    }  # fmt: skip
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _of(refusal: Refusal) -> Response:
    return Response(refusal.body(), refusal.status, refusal.headers, "application/json")


async def _refused(request: Request, error: Refusal) -> Response:
    return _of(error)


async def _failed(request: Request, error: NcsError) -> Response:
    service: Service = request.app.state.service
    refusal = of_error(error, service.hidden())
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
