"""The HTTP server of `ncs serve`: the application behind its guards, the socket, signals, the log."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ncs import __version__
from ncs.errors import BadInput, NcsError
from ncs.serve.http.errors import HttpError, from_ncs_error, from_validation_error
from ncs.serve.http.pool import freeze
from ncs.serve.http.routes import router
from ncs.serve.http.security import HEADERS, Guard, HeadTimeoutProtocol, limit_body
from ncs.serve.http.service import Metrics, Service
from ncs.serve.http.settings import Settings
from ncs.serve.live_index import open_index

log = logging.getLogger("ncs.serve.http")
GRACE_SECONDS = 15
"""What running requests may take after the server was told to stop."""
MAX_HEAD = 32 << 10
"""Bytes of a request's first line and headers."""
MAX_CONNECTIONS = 1_000
_ROUTING = {
    400: (422, "bad_json", "the body is not valid JSON"),
    404: (404, "no_path", "no such path"),
    405: (405, "no_method", "method not allowed"),
}


def create_app(settings: Settings, token: str | None = None) -> Gateway:
    """The ASGI application; its indexes are opened when it starts."""
    metrics = Metrics([*(route.path for route in router.routes if hasattr(route, "path")), "/openapi.json"])

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        service = api.state.service = Service(settings, metrics)
        await service.pool.warm_up()
        freeze()
        watching = asyncio.create_task(service.watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        service.close()

    api = FastAPI(
        title="ncs", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan,
        description="Search code by what it does. All errors have one shape; x-request-id finds them in the log.",
    )  # fmt: skip
    api.include_router(router)
    add_error_handlers(api, lambda: api.state.service.aliases())
    return Gateway(api, Guard.of(settings, token), metrics, seconds=settings.seconds)


def add_error_handlers(api: FastAPI, aliases: Callable[[], Mapping[str, str]]) -> None:
    """Answer every kind of error in the one shape; aliases: as in `from_ncs_error`."""

    async def http_error(request: Request, error: HTTPException) -> Response:
        if not isinstance(error, HttpError):
            unknown = (error.status_code, "refused", "the request was refused")
            error = HttpError(*_ROUTING.get(error.status_code, unknown), "see /openapi.json")
        return error.response()

    async def ncs_error(request: Request, error: NcsError) -> Response:
        converted = from_ncs_error(error, aliases())
        if converted.status_code >= 500:
            log.error("%s", error)
        return converted.response()

    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return from_validation_error(error.errors()).response()

    handlers: dict[Any, Any] = {HTTPException: http_error, NcsError: ncs_error, RequestValidationError: invalid}
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


class Gateway:
    """An application behind the guards: every request gets an id, is checked, limited, measured and logged."""

    def __init__(self, app: ASGIApp, guard: Guard, metrics: Metrics, *, seconds: float) -> None:
        """seconds: what a request's body may take to arrive."""
        self.app = app
        self._guard, self._metrics, self._seconds = guard, metrics, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        id, start, status, size = secrets.token_hex(6), time.perf_counter(), 0, 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=list(message.get("headers", ())))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["x-request-id"] = id
                message = {**message, "headers": headers.raw}
            else:
                size += len(message.get("body", b""))
            await send(message)

        self._metrics.in_flight.inc()
        try:
            await self._answer(scope, receive, send_with_headers)
        except Exception:  # whatever it is, the client gets one line, and the log the rest
            log.exception("%s failed", id)
            if not status:
                error = HttpError(500, "failed", "internal error", f"ask the operator: the log has more under {id}")
                await error.response()(scope, receive, send_with_headers)
        finally:
            self._metrics.in_flight.dec()
            seconds = time.perf_counter() - start
            self._metrics.observe(scope["path"], status, seconds)
            client, path = (scope.get("client") or ("-",))[0], ascii(scope["path"][:100])[1:-1].replace(" ", "%20")
            log.info("%s %s %s %s %d %.1fms %dB", id, client, scope["method"], path, status, 1000 * seconds, size)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._guard.check(scope)
        except HttpError as error:
            await error.response()(scope, receive, send)
            return
        if scope["method"] == "POST":
            receive = limit_body(scope, receive, self._seconds)
        await self.app(scope, receive, send)


def serve(settings: Settings, token: str | None, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; running requests are answered first.

    Raises what `open_index` raises, and BadInput where the address is not available.
    """
    sizes = {}
    for name, folder in settings.folders.items():
        with open_index(folder, settings.store) as index:
            sizes[name] = len(index)
    with closing(listen(settings.host, settings.port)) as listening:
        for line in start_messages(settings, sizes, listening.getsockname()[1], token):
            say(line)
        run(create_app(settings, token), listening, quiet=settings.quiet)
    say("ncs: stopped")


def start_messages(settings: Settings, sizes: Mapping[str, int], port: int, token: str | None) -> list[str]:
    """What to say at the start: indexes, address, and what an address beyond loopback means."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    indexes = ", ".join(f"{name} ({count:,} document{'' if count == 1 else 's'})" for name, count in sizes.items())
    lines = [f"ncs: serving {indexes} at http://{host}:{port}"]
    if not settings.loopback:
        readers = "who has the token" if token else "who reaches this machine"
        remedy = "put a TLS proxy in front" + ("" if token else " and require a token: --token-file")
        lines.append(f"ncs: warning: everyone {readers} can read all indexed code, unencrypted; {remedy}")
    return lines


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises BadInput where the address is not available."""
    # The protocol is named, as asyncio sets TCP_NODELAY only then: without it a body may wait 40 ms for its head's ACK.
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, proto=socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise BadInput(f"cannot listen on {host} port {port} ({reason}); choose another --port") from None
    return listening


def run(app: ASGIApp, listening: socket.socket, *, quiet: bool = False, **options: Any) -> None:
    """Run an application until SIGTERM or SIGINT; options: of uvicorn. Raises NcsError where it does not start."""
    for signal_number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises again what stopped it: by then all is done
        signal.signal(signal_number, lambda *_: None)
    server = uvicorn.Server(uvicorn.Config(app, **{
        "http": HeadTimeoutProtocol, "h11_max_incomplete_event_size": MAX_HEAD, "limit_concurrency": MAX_CONNECTIONS,
        "timeout_keep_alive": 30, "timeout_graceful_shutdown": GRACE_SECONDS, "loop": "asyncio", "ws": "none",
        "lifespan": "on", "access_log": False, "server_header": False, "proxy_headers": False,
        "log_config": _log_config("WARNING" if quiet else "INFO"), **options,
    }))  # fmt: skip
    server.run(sockets=[listening])
    if not server.started:
        raise NcsError("the server did not start; see the messages above")


def _log_config(level: str) -> dict[str, object]:
    """A line per request and what goes wrong, on stderr; with WARNING the latter only."""
    handler = {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
    line = {"format": "%(asctime)s %(message)s", "datefmt": "%Y-%m-%dT%H:%M:%S%z"}
    levels = {"ncs.serve.http": level, "uvicorn.error": "WARNING"}
    return {
        "version": 1, "disable_existing_loggers": False, "formatters": {"line": line}, "handlers": {"stderr": handler},
        "loggers": {name: {"level": each, "handlers": ["stderr"], "propagate": False} for name, each in levels.items()},
    }  # fmt: skip
