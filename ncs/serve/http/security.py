"""The guards that Starlette and uvicorn lack, each a few lines."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import h11
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from ncs.serve.http.errors import HttpError
from ncs.serve.http.settings import MAX_BODY, MAX_URL, Settings

PUBLIC = frozenset({"/", "/health", "/ready"})
"""Paths that need no token: they show nothing of an index."""
PORTS = {"http": 80, "https": 443}
IDLE_SECONDS = 15
"""How long a connection stays open without a request."""
MAX_IDLE = 200
"""Connections without a request that stay open."""
BODY_SECONDS = 5
"""The time limit of a request's body."""
READ_SECONDS = 30
"""How long a client may leave an answer unread."""
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer that does not set them itself."""
_INLINE = re.compile(r"<(script|style)[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)


class Guard:
    """Admits or refuses requests; token: None if none is required."""

    def __init__(self, settings: Settings, token: str | None) -> None:
        self._names = {name.lower() for name in (*settings.hosts, "localhost", settings.host)}
        self._any_address = not settings.loopback
        self._token = token

    def check(self, scope: Scope) -> None:
        """Raise HttpError for a request that must not be answered."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            raise HttpError(414, "too_long", f"the URL is longer than {MAX_URL:,} bytes", "use POST")
        self._check_host(headers.getlist("host"))
        check_origin(method, headers)
        if path not in PUBLIC:
            check_token(self._token, headers.getlist("authorization"))
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HttpError(415, "not_json", "the body is not application/json", "send Content-Type: application/json")

    def _check_host(self, hosts: Sequence[str]) -> None:
        """DNS rebinding: a page's own name may resolve to this server, but its Host header still says that name.

        Starlette's TrustedHostMiddleware knows names, but not "any IP address" or "any loopback address".
        """
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None:
            raise HttpError(400, "bad_host", "the request needs one valid Host header", "send one")
        try:
            address = ip_address(name)
            allowed = self._any_address or address.is_loopback
        except ValueError:
            allowed = False
        if not (allowed or name in self._names):
            raise HttpError(403, "bad_host", "unknown host name", "the operator adds names with --allow-host")


def host_name(header: str) -> str | None:
    """The name in a Host header, lowercase, without the port; None for an invalid header.

    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("a b"), host_name("user@a")
    ('localhost', '::1', None, None)
    """
    if not header.isprintable() or any(letter in " /?#@\\" for letter in header):
        return None
    try:
        url = urlsplit(f"//{header}")
        return url.hostname if url.port != 0 else None
    except ValueError:  # unbalanced brackets, a port that is not a number
        return None


def check_token(token: str | None, values: Sequence[str]) -> None:
    """Raise HttpError unless Authorization is Bearer with this token; None needs no token."""
    if token is None:
        return
    kind, _, value = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    equal = hmac.compare_digest(value.strip().encode("latin-1"), token.encode())
    if not (equal and kind.lower() == "bearer"):
        remedy = "send Authorization: Bearer TOKEN"
        raise HttpError(401, "no_token", "the token is missing or wrong", remedy, {"WWW-Authenticate": "Bearer"})


def check_origin(method: str, headers: Headers) -> None:
    """Raise HttpError for what another site's page requests; following a link from there to here is allowed.

    Browsers send Origin with forms and with the requests of scripts, and Sec-Fetch-Site with everything.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    link = method == "GET" and headers.get("sec-fetch-mode") == "navigate" and origin is None
    cross_site = site not in (None, "same-origin", "none") and not link
    if cross_site or (origin is not None and not _same_origin(origin, headers["host"])):
        raise HttpError(403, "bad_origin", "cross-site request refused", "open the server's own page")


def _same_origin(origin: str, host: str) -> bool:
    try:
        origin_url, host_url = urlsplit(origin), urlsplit(f"//{host}")
        port = PORTS[origin_url.scheme]
        return (origin_url.hostname, origin_url.port or port) == (host_url.hostname, host_url.port or port)
    except (KeyError, ValueError):
        return False


async def read_body(scope: Scope, receive: Receive) -> Receive:
    """A receive with the whole body. Raises HttpError for one that is too large, or not complete in time."""
    close = {"Connection": "close"}
    too_large = HttpError(413, "too_large", f"the body is larger than {MAX_BODY:,} bytes", "send less", close)
    if int(Headers(scope=scope).get("content-length", "0")) > MAX_BODY:
        raise too_large
    end, body, more = time.monotonic() + BODY_SECONDS, bytearray(), True
    while more:
        try:
            message = await asyncio.wait_for(receive(), end - time.monotonic())
        except asyncio.TimeoutError:
            text = f"the body did not arrive within {BODY_SECONDS} s"
            raise HttpError(408, "too_slow", text, "send it again", close) from None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            raise too_large
    messages: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def whole() -> Message:
        return messages.pop() if messages else await receive()

    return whole


class PoliteProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which here closes connections that wait: those without a request for IDLE_SECONDS (or for a
    part of one: slowloris), of more than MAX_IDLE the one that waits longest, and those whose answer nobody reads.
    """

    _idle: ClassVar[dict[PoliteProtocol, asyncio.TimerHandle]] = {}
    """Connections without a request, the one that waits longest first."""
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._note_state()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_state()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_state()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self.resume_writing()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None:  # an answer to what came before would be an error now
            self.cycle.disconnected = True
        with suppress(h11.LocalProtocolError):  # it was sent already
            super().send_400_response(msg)
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _note_state(self) -> None:
        if self.transport.is_closing() or self.conn.our_state not in (h11.IDLE, h11.DONE):
            self._leave()
        elif self not in self._idle:
            self._idle[self] = self.loop.call_later(IDLE_SECONDS, self.transport.close)
            if len(self._idle) > MAX_IDLE:
                longest = next(iter(self._idle))
                longest._leave()
                longest.transport.abort()

    def _leave(self) -> None:
        if (timer := self._idle.pop(self, None)) is not None:
            timer.cancel()


def page(file: Path) -> Response:
    """A page with a policy that runs its own scripts and nothing else."""
    html = file.read_bytes()
    headers = {"content-security-policy": content_security_policy(html.decode("utf-8"))}
    return Response(html, media_type="text/html", headers=headers)


def content_security_policy(html: str) -> str:
    """The policy of a page: its inline scripts and styles by their hash, requests to this server only.

    >>> content_security_policy("<style>a{}</style>").split("; ")[:2]
    ["default-src 'none'", "style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"]
    """
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for match in _INLINE.finditer(html):
        digest = b64encode(sha256(match[2].encode()).digest()).decode()
        hashes[match[1].lower()].append(f"'sha256-{digest}'")
    sources = [f"{kind}-src {' '.join(values)}" for kind, values in hashes.items() if values]
    rest = ["connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    return "; ".join(["default-src 'none'", *sources, *rest])
