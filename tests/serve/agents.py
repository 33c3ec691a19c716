"""`ncs mcp` in a process of its own, with the SDK's own client, for tests."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters

from ncs.serve.mcp.install import START
from tests.waiting import LONG

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


def command(*options: str | Path) -> list[str]:
    """What starts a server."""
    return [sys.executable, "-c", START, "mcp", *map(str, options)]


def agent(*options: str | Path, cwd: Path, roots: Sequence[Path] | None = None, mode: str = "auto") -> Client:
    """A client of a server that it starts in `cwd`."""
    program, *arguments = command(*options)
    server = StdioServerParameters(command=program, args=arguments, cwd=cwd, env=dict(os.environ))
    return client_of(server, roots, mode)


def client_of(server: str | StdioServerParameters, roots: Sequence[Path] | None, mode: str) -> Client:
    """A client that names these roots, None: that cannot name any."""

    async def list_roots(context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=root.as_uri()) for root in roots or ()])  # type: ignore[arg-type]

    return Client(server, list_roots_callback=None if roots is None else list_roots, mode=mode)


class Reply:
    """The answer of a tool: its text, its JSON, whether it is an error."""

    def __init__(self, result: Any) -> None:
        self.text = "".join(part.text for part in result.content)
        self.json: dict[str, Any] = result.structured_content or {}
        self.error = bool(result.is_error)

    @property
    def places(self) -> list[str]:
        """path:line of its hits, in order."""
        return [hit["place"] for hit in self.json["hits"]]

    @property
    def bytes(self) -> int:
        """Of the larger of its two forms, as they are sent."""
        return max(len(self.text.encode()), len(json.dumps(self.json, ensure_ascii=False).encode()))


async def call(client: Client, tool: str, **arguments: object) -> Reply:
    """Call a tool."""
    return Reply(await client.call_tool(tool, arguments))


async def until(request: Callable[[], Awaitable[Reply]], true: Callable[[Reply], bool]) -> Reply:
    """Repeat a call until its reply is so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LONG
    while not true(reply := await request()):
        assert loop.time() < end, reply.text
        await asyncio.sleep(0.1)
    return reply
