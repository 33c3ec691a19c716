"""`ncs mcp` in a process of its own, asked by the SDK's own client, for tests."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client, StdioServerParameters

from tests.waiting import LONG

T = TypeVar("T")
START = "import sys; sys.path.pop(0); from ncs.cli.main import main; main()"
"""As the `ncs` script starts: the folder it runs in is not where modules are looked for."""


def command(*options: str | Path) -> list[str]:
    """What starts a server."""
    return [sys.executable, "-c", START, "mcp", *map(str, options)]


@asynccontextmanager
async def agent(
    *options: str | Path, cwd: Path, roots: Sequence[Path] | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    """A client of a server that runs in `cwd`; roots: what the client answers when it is asked for them."""

    async def listed(context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=root.as_uri()) for root in roots or ()])  # type: ignore[arg-type]

    program, *arguments = command(*options)
    server = StdioServerParameters(command=program, args=arguments, cwd=cwd, env=dict(os.environ))
    async with Client(server, list_roots_callback=None if roots is None else listed, mode=mode) as client:
        yield client


class Said:
    """An answer: its text, its JSON, whether it is an error."""

    def __init__(self, result: Any) -> None:
        self.text = "".join(part.text for part in result.content)
        self.json: dict[str, Any] = result.structured_content or {}
        self.error = bool(result.is_error)

    @property
    def places(self) -> list[str]:
        """Where its hits stand, in order."""
        return [hit["place"] for hit in self.json["hits"]]

    @property
    def bytes(self) -> int:
        """Of the larger of its two forms, as they are sent."""
        return max(len(self.text.encode()), len(json.dumps(self.json, ensure_ascii=False).encode()))


async def ask(client: Client, tool: str, **arguments: object) -> Said:
    """Call a tool."""
    return Said(await client.call_tool(tool, arguments))


async def until(asked: Callable[[], Awaitable[Said]], true: Callable[[Said], bool]) -> Said:
    """Ask until the answer is so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LONG
    while not true(said := await asked()):
        assert loop.time() < end, said.text
        await asyncio.sleep(0.1)
    return said
