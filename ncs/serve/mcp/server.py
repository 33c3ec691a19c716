"""The MCP server on the official SDK: its tools listed and called, over stdio or over streamable HTTP."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

from ncs import __version__
from ncs.console import say
from ncs.errors import NcsError
from ncs.messages import NOTHING_FOUND
from ncs.serve.live_index import share_heap
from ncs.serve.mcp.pages import Page, escape
from ncs.serve.mcp.projects import Projects, Settings
from ncs.serve.mcp.tools import DATA, INSTRUCTIONS, TOOLS, answer, input_schema
from ncs.workers import take_stdin

log = logging.getLogger("ncs.serve.mcp")
ROOTS = "roots"
ROOTS_SECONDS = 5.0
"""How long a client may take to name its roots."""
LOOPBACK = "127.0.0.1"
PATH = "/mcp"
MAX_MESSAGE = 1 << 20
"""Bytes of a message over stdio."""
GRACE_SECONDS = 2
Context = ServerRequestContext[Any, Any]


def create_server(projects: Projects) -> Server[Any]:
    """A server whose tools search these projects."""

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools())

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        uris = await _roots(context, params) if projects.uses_client_roots else None
        if isinstance(uris, types.InputRequiredResult):
            return uris
        work = partial(_call, projects, uris, params.name, params.arguments or {})
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    return Server("ncs", version=__version__, title="Neural Code Search", instructions=INSTRUCTIONS,
                  on_list_tools=list_tools, on_call_tool=call_tool)  # fmt: skip


def tools() -> list[types.Tool]:
    """The tools as clients list them. They change nothing in the project: the index is ours, and git ignores it."""
    return [
        types.Tool(
            name=name, title=tool.title, description=" ".join([*(tool.arguments.__doc__ or "").split(), DATA]),
            input_schema=input_schema(name),
            annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        )
        for name, tool in TOOLS.items()
    ]  # fmt: skip


async def _roots(
    context: Context, params: types.CallToolRequestParams
) -> Sequence[str] | types.InputRequiredResult | None:
    """The client's roots, requested at every call, since they change; None where it names none.

    Clients of 2026-07-28 on learn of the request from a result that requires input, older ones from a message.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return None
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        reply = (params.input_responses or {}).get(ROOTS)
        if reply is None:
            return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})
    else:
        try:
            reply = await context.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=ROOTS_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=context.request_id),
            )  # fmt: skip
        except (MCPError, TimeoutError) as error:
            log.warning("the client does not list its roots: %s", error)
            return None
    return [str(root.uri) for root in reply.roots] if isinstance(reply, types.ListRootsResult) else None


def _call(projects: Projects, uris: Sequence[str] | None, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """The answer of a tool; an error is an answer, too, with its remedy, and the server goes on."""
    try:
        return _result(answer(projects, uris, tool, arguments))
    except NcsError as error:
        return _result(Page(escape(str(error))), error=True)
    except Exception:
        log.exception("%s failed", tool)
        return _result(Page(f"internal error in {tool}; see the log of ncs mcp. Try another query"), error=True)


def _result(page: Page, *, error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=page.text or NOTHING_FOUND)]
    return types.CallToolResult(content=content, structured_content=page.structured or None, is_error=error)


def serve_stdio(settings: Settings) -> None:
    """Serve one client over stdin and stdout until stdin ends. stdout carries the protocol only, logs are on stderr.

    On SIGINT and SIGTERM jobs end and so does the process, at once: the thread that reads stdin cannot be woken.
    """
    _log_to_stderr()
    share_heap()
    projects = Projects(settings)

    def stop(number: int, frame: object) -> None:
        projects.close()
        os._exit(128 + number)

    async def run() -> None:
        server = create_server(projects)
        requests = _Lines(io.BufferedReader(io.FileIO(take_stdin())))
        async with stdio_server(anyio.AsyncFile(requests)) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with closing(projects):
        anyio.run(run)


class _Lines(io.StringIO):
    """Lines of at most MAX_MESSAGE bytes; of longer ones only the beginning, which is no JSON."""

    def __init__(self, lines: BinaryIO) -> None:
        super().__init__()
        self._lines = lines

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = part = self._lines.readline(MAX_MESSAGE)
        while len(part) == MAX_MESSAGE and not part.endswith(b"\n"):
            part = self._lines.readline(MAX_MESSAGE)
        return line.decode("utf-8", "replace")


def serve_http(settings: Settings, port: int, token: str | None) -> None:
    """Serve clients of this machine at http://127.0.0.1:port/mcp until SIGINT or SIGTERM; token: None for none.

    Raises BadInput where the port is not available.
    """
    from ncs.serve.http.app import listen, run

    _log_to_stderr()
    with closing(listen(LOOPBACK, port)) as listening, closing(Projects(settings)) as projects:
        port = listening.getsockname()[1]
        app = create_server(projects).streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,  # nothing stays open or is kept for a client
        )
        say(f"ncs: MCP at http://{LOOPBACK}:{port}{PATH}")
        run(_guard(app, token), listening, grace=GRACE_SECONDS)
    say("ncs: stopped")


def _guard(app: ASGIApp, token: str | None) -> ASGIApp:
    """An application behind the guards of `ncs serve`: hosts, origins, the token, and limits of what a client sends."""
    from ncs.serve.http.errors import HttpError
    from ncs.serve.http.security import Guard, read_body
    from ncs.serve.http.settings import Settings as HttpSettings

    guard = Guard(HttpSettings({}), token)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "http":
                guard.check(scope)
                if scope["method"] != "POST":  # a stream for messages of the server, which sends none
                    raise HttpError(405, "no_method", "method not allowed", "send a POST", {"Allow": "POST"})
                receive = await read_body(scope, receive)
        except HttpError as error:
            await error.response()(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guarded


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="ncs mcp: %(message)s")
