"""The HTTP server of `ncs serve`: the application behind its guards, metrics, the socket, signals, the log."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ncs import __version__
from ncs.console import count, say
from ncs.errors import BadInput, NcsError
from ncs.serve.http.errors import HttpError, from_validation_error, to_http_error
from ncs.serve.http.routes import add_routes
from ncs.serve.http.security import HEADERS, IDLE_SECONDS, Guard, PoliteProtocol, read_body
from ncs.serve.http.service import Service
from ncs.serve.http.settings import Settings
from ncs.serve.live_index import share_heap

log = logging.getLogger("ncs.serve.http")
GRACE_SECONDS = 6
"""What running requests may take after the server was told to stop."""
STOP_SECONDS = 10
"""The time from then to the end of the process, whatever runs."""
MAX_HEAD = 32 << 10
"""Bytes of a request's first line and headers."""
MAX_CONNECTIONS = 600
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def create_app(settings: Settings, token: str | None = None) -> Gateway:
    """The ASGI application; raises what `LiveIndex` raises."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        await service.start()
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
    api.state.service = service
    add_routes(api, service)
    gateway = Gateway(api, settings, token, service.aliases())

    @api.get("/metrics")
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        return gateway.metrics.response(service)

    return gateway


class Metrics:
    """Metrics for Prometheus: requests, their seconds, and the state of each index."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("ncs_requests", "Requests.", ("path", "status"), registry=registry)
        self._seconds = Histogram(
            "ncs_request_seconds", "From head to end of an answer.", ("path",), buckets=BUCKETS, registry=registry
        )
        self.in_flight = Gauge("ncs_in_flight", "Requests being answered.", registry=registry)
        self._pending = Gauge("ncs_searches_pending", "Searches that run or wait.", registry=registry)
        index_gauge = partial(Gauge, labelnames=("index",), registry=registry)
        self._snapshot = index_gauge("ncs_index_snapshot", "Number of the snapshot that answers.")
        self._documents = index_gauge("ncs_index_documents", "Documents of the snapshot that answers.")
        self._problem = index_gauge("ncs_index_problem", "1: a newer snapshot cannot be opened.")

    def observe(self, path: str, status: int, seconds: float) -> None:
        """One request was answered."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def response(self, service: Service) -> Response:
        """All metrics, in Prometheus's text format."""
        self._pending.set(service.pending)
        for live in service.indexes.values():
            self._snapshot.labels(live.name).set(live.description.number)
            self._documents.labels(live.name).set(live.documents)
            self._problem.labels(live.name).set(bool(live.error))
        return Response(generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})


class Gateway:
    """An application behind the guards: every request gets an id, is checked, limited, measured and logged.

    Every kind of error is answered in the one shape.
    """

    def __init__(self, app: FastAPI, settings: Settings, token: str | None, aliases: Mapping[str, str]) -> None:
        """aliases: as in `to_http_error`."""
        self.app, self.metrics = app, Metrics()
        self._guard = Guard(settings, token)

        async def answer_error(request: Request, error: Exception) -> Response:
            if isinstance(error, RequestValidationError):
                return from_validation_error(error.errors()).response()
            converted = to_http_error(error, aliases)
            if converted.status_code >= 500 and isinstance(error, NcsError):
                log.error("%s", error)
            return converted.response()

        for kind in (HTTPException, NcsError, RequestValidationError):
            app.add_exception_handler(kind, answer_error)

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

        self.metrics.in_flight.inc()
        try:
            self._guard.check(scope)
            body = await read_body(scope, receive) if scope["method"] == "POST" else receive
            # HEAD is answered as GET is; uvicorn, which has the scope that it gave, leaves out the body
            await self.app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, body, send_with_headers)
        except HttpError as refusal:
            await refusal.response()(scope, receive, send_with_headers)
        except Exception:  # whatever it is, the client gets one line, and the log the rest
            log.exception("%s failed", id)
            if not status:
                error = HttpError(500, "failed", "internal error", f"ask the operator: the log has more under {id}")
                await error.response()(scope, receive, send_with_headers)
        finally:
            self.metrics.in_flight.dec()
            seconds = time.perf_counter() - start
            self.metrics.observe(self._label(scope["path"]), status, seconds)
            client, path = (scope.get("client") or ("-",))[0], ascii(scope["path"][:100])[1:-1].replace(" ", "%20")
            log.info("%s %s %s %s %d %.1fms %dB", id, client, scope["method"], path, status, 1000 * seconds, size)

    def _label(self, path: str) -> str:
        """The path in metrics: "other" for unknown ones, so that nobody can invent labels."""
        return path if any(path == getattr(route, "path", None) for route in self.app.routes) else "other"


def serve(settings: Settings, token: str | None) -> None:
    """Serve until SIGTERM or SIGINT; running requests are answered first.

    Raises what `LiveIndex` raises, and BadInput where the address is not available.
    """
    app = create_app(settings, token)
    sizes = {live.name: live.documents for live in app.app.state.service.indexes.values()}
    with closing(listen(settings.host, settings.port)) as listening:
        for line in start_messages(settings, sizes, listening.getsockname()[1], token):
            say(line)
        run(app, listening, quiet=settings.quiet)
    say("ncs: stopped")


def start_messages(settings: Settings, sizes: Mapping[str, int], port: int, token: str | None) -> Iterable[str]:
    """The messages at the start: indexes, address, and what an address beyond loopback means."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    indexes = ", ".join(f"{name} ({count(size, 'document')})" for name, size in sizes.items())
    yield f"ncs: serving {indexes} at http://{host}:{port}"
    if not settings.loopback:
        readers = "who has the token" if token else "who reaches this machine"
        remedy = "put a TLS proxy in front" + ("" if token else " and require a token: --token-file")
        yield f"ncs: warning: everyone {readers} can read all indexed code, unencrypted; {remedy}"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises BadInput where the address is not available."""
    # The protocol is named, as asyncio sets TCP_NODELAY only then: without it a body may wait 40 ms for its head's ACK.
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, proto=socket.IPPROTO_TCP)
    try:
        if os.name != "nt":  # there it would share the port of a server that runs
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise BadInput(f"cannot listen on {host} port {port} ({reason}); choose another --port") from None
    return listening


class _Server(uvicorn.Server):
    """uvicorn's server, which here ends STOP_SECONDS after the first signal, and at the second one at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _end(sig)
        super().handle_exit(sig, frame)
        timer = threading.Timer(STOP_SECONDS, _end, (sig,))
        timer.daemon = True
        timer.start()


def _end(number: int, frame: FrameType | None = None) -> None:
    """End this process now, and those that it started."""
    for process in multiprocessing.active_children():
        process.kill()
    os._exit(128 + number)


def run(app: ASGIApp, listening: socket.socket, *, quiet: bool = False, grace: int = GRACE_SECONDS) -> None:
    """Run an application until SIGTERM or SIGINT, with a line per request on stderr unless quiet.

    grace: seconds that running requests may take then. Raises NcsError where it does not start.
    """
    share_heap()
    form, date = "%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=form, datefmt=date)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises again what stopped it: by then all is done
        signal.signal(number, lambda *_: None)
    server = _Server(uvicorn.Config(
        app, http=PoliteProtocol, h11_max_incomplete_event_size=MAX_HEAD, limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=grace, loop="asyncio", ws="none", lifespan="on",
        access_log=False, server_header=False, proxy_headers=False, log_config=None,
    ))  # fmt: skip
    server.run(sockets=[listening])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    if not server.started:
        raise NcsError("the server did not start; see the messages above")
