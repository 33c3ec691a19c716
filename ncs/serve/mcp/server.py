"""The MCP server itself, on the official SDK: its tools listed and called, and served over stdio."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ncs import __version__
from ncs.errors import NcsError
from ncs.serve.mcp.asked import INSTRUCTIONS
from ncs.serve.mcp.bounded import Page
from ncs.serve.mcp.listing import tools
from ncs.serve.mcp.projects import Projects
from ncs.serve.mcp.settings import Settings
from ncs.serve.mcp.tools import answer

log = logging.getLogger("ncs.serve.mcp")
ROOTS = "roots"
ROOTS_SECONDS = 5.0
"""How long a client has to name its roots."""
Context = ServerRequestContext[Any, Any]


def create_server(projects: Projects) -> Server[Any]:
    """A server whose tools ask these projects."""

    async def listed(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools())

    async def called(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        uris = await _roots(context, params) if projects.asks_client else None
        if isinstance(uris, types.InputRequiredResult):
            return uris
        work = partial(_result, projects, uris, params.name, params.arguments or {})
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    return Server("ncs", version=__version__, title="Neural Code Search", instructions=INSTRUCTIONS,
                  on_list_tools=listed, on_call_tool=called)  # fmt: skip


async def _roots(
    context: Context, params: types.CallToolRequestParams
) -> Sequence[str] | types.InputRequiredResult | None:
    """The client's roots, asked for at every call, since they change; None where it names none.

    Clients of 2026-07-28 on are asked by a result that wants input, older ones by a request of ours.
    """
    able = context.session.client_capabilities
    if able is None or able.roots is None:
        return None
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        given = (params.input_responses or {}).get(ROOTS)
        if given is None:
            return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})
        return [str(root.uri) for root in given.roots] if isinstance(given, types.ListRootsResult) else None
    try:
        found = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=ROOTS_SECONDS,
            metadata=ServerMessageMetadata(related_request_id=context.request_id),
        )  # fmt: skip
    except (MCPError, TimeoutError) as error:
        log.warning("the client does not tell its roots: %s", error)
        return None
    return [str(root.uri) for root in found.roots]


def _result(
    projects: Projects, uris: Sequence[str] | None, tool: str, arguments: dict[str, Any]
) -> types.CallToolResult:
    """The answer of a tool; whatever goes wrong is an answer, too, with its remedy, and the server goes on."""
    try:
        page = answer(projects, uris, tool, arguments)
    except NcsError as error:
        return _called(Page(str(error)), error=True)
    except Exception:
        log.exception("%s failed", tool)
        return _called(
            Page(f"{tool} failed inside ncs; its log says more. Ask otherwise, or go on without"), error=True
        )
    return _called(page)


def _called(page: Page, *, error: bool = False) -> types.CallToolResult:
    text = page.text or "nothing found; ask in other words"
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=page.structured or None, is_error=error)


@contextmanager
def _stopping(projects: Projects) -> Iterator[None]:
    """On SIGINT and SIGTERM builds end and so do we, at once: the thread that reads stdin cannot be woken."""

    def stop(number: int, frame: object) -> None:
        projects.close()
        os._exit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve_stdio(settings: Settings) -> None:
    """Serve one client over stdin and stdout until stdin ends. stdout carries the protocol only, logs are on stderr."""
    log_to_stderr()
    projects = Projects(settings)

    async def run() -> None:
        server = create_server(projects)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    with closing(projects), _stopping(projects):
        anyio.run(run)


def log_to_stderr() -> None:
    """What goes wrong, on stderr."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="ncs mcp: %(message)s")
