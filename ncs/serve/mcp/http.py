"""The tools over streamable HTTP, for clients of this machine: Host and Origin checked, and a token."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from ncs.errors import BadInput
from ncs.serve.http.guard import check_token
from ncs.serve.http.refusals import Refusal, respond
from ncs.serve.mcp.projects import Projects
from ncs.serve.mcp.server import create_server, log_to_stderr
from ncs.serve.mcp.settings import LOOPBACK, Settings

PATH = "/mcp"
GRACE = 2
"""Seconds that requests have to end when the server is told to."""
MOST_BODY = 1 << 20
"""Bytes of a request."""


class Bearer:
    """An ASGI application that answers only who sends the token, as `ncs serve` does; without a token, everybody."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"authorization"]
            try:
                check_token(self._token, given)
            except Refusal as refusal:
                await respond(send, refusal)
                return
        await self._app(scope, receive, send)


def serve_http(settings: Settings, port: int, token: str | None, say: Callable[[str], None]) -> None:
    """Serve clients of this machine at http://127.0.0.1:port/mcp until SIGINT or SIGTERM; token: None for none.

    Raises BadInput where the port cannot be listened on.
    """
    log_to_stderr()
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise BadInput(f"cannot listen on {LOOPBACK} port {port} ({error.strerror}); choose another --port") from None
    with listening, closing(Projects(settings)) as projects:
        bound = listening.getsockname()[1]
        app = create_server(projects).streamable_http_app(
            streamable_http_path=PATH, transport_security=allowed(bound), max_request_body_size=MOST_BODY
        )
        guarded = Bearer(app, token)
        config = uvicorn.Config(guarded, log_config=None, access_log=False, timeout_graceful_shutdown=GRACE, ws="none")
        say(f"ncs: MCP at http://{LOOPBACK}:{bound}{PATH}")
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises again what stopped it: by then all is done
            signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run(sockets=[listening])
    say("ncs: stopped")


def allowed(port: int) -> TransportSecuritySettings:
    """Requests that name this server as their host; of pages only its own, of which there are none."""
    hosts = [f"{name}:{port}" for name in (LOOPBACK, "localhost")]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
