"""Around the application: every request gets an id, is checked, bounded, timed and logged."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ncs.serve.http.guard import Guard
from ncs.serve.http.metrics import Metrics
from ncs.serve.http.refusals import Refusal, respond
from ncs.serve.http.settings import MOST_BODY

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("ncs.serve.http")
HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
"""Of every answer, where the application has not set them itself."""


class Edge:
    """The ASGI application that the server runs; app: what answers what may be answered."""

    def __init__(self, app: App, guard: Guard, metrics: Metrics, *, seconds: float) -> None:
        self._app, self._guard, self._metrics, self._seconds = app, guard, metrics, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _Exchange(scope, send).run(self._answer, receive, self._metrics)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Refusal."""
        target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        self._guard.check(scope["method"], scope["path"], target, scope["headers"])
        if scope["method"] == "POST":
            receive = _replayed(await self._body(scope, receive), receive)
        await self._app(scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of it; who sends too much or too slowly is refused before it is read."""
        too_large = Refusal(413, "too_large", f"the body is over {MOST_BODY:,} bytes", "send less", Connection="close")
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length[:12]) > MOST_BODY:
            raise too_large
        try:
            body = await asyncio.wait_for(_read(receive), self._seconds)
        except asyncio.TimeoutError:
            said = f"the body did not arrive within {self._seconds:g} s"
            raise Refusal(408, "too_slow", said, "send it again", Connection="close") from None
        if len(body) > MOST_BODY:
            raise too_large
        return body


async def _read(receive: Receive) -> bytes:
    """The body, or what arrived when it grew too large or who sends it left."""
    body = bytearray()
    while len(body) <= MOST_BODY and (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body that was read already, then what follows it."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._id, self._start = secrets.token_hex(6), time.perf_counter()
        self._status, self._bytes = 0, 0

    async def run(self, answer: App, receive: Receive, metrics: Metrics) -> None:
        metrics.in_flight.inc()
        try:
            await answer(self._scope, receive, self._sent)
        except Refusal as refusal:
            await self._refuse(refusal)
        except Exception:  # whatever it is, who asks gets one line, and the log the rest
            log.exception("%s failed", self._id)
            if not self._status:
                said, remedy = "the server failed", f"ask who runs it: its log has more under {self._id}"
                await self._refuse(Refusal(500, "failed", said, remedy))
        finally:
            metrics.in_flight.dec()
            self._told(metrics)

    def _told(self, metrics: Metrics) -> None:
        """A line of the log; questions are not in it."""
        seconds = time.perf_counter() - self._start
        path = self._scope["path"]
        metrics.observe(path, self._status, seconds)
        client = (self._scope.get("client") or ("-",))[0]
        shown = ascii(path[:100])[1:-1].replace(" ", "%20")
        method, status = self._scope["method"], self._status
        log.info("%s %s %s %s %d %.1fms %dB", self._id, client, method, shown, status, 1000 * seconds, self._bytes)

    async def _refuse(self, refusal: Refusal) -> None:
        await respond(self._sent, refusal)

    async def _sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = list(message.get("headers", ()))
            given = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in HEADERS.items() if name not in given]
            message = {**message, "headers": [*headers, (b"x-request-id", self._id.encode())]}
        else:
            self._bytes += len(message.get("body", b""))
        await self._send(message)
