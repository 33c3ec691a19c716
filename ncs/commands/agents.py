"""`ncs mcp`: the tools of coding agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ncs import console
from ncs.commands.options import given


def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of a project; repeatable. It is indexed in its .ncs.",
            show_default="what the client names, else here",
        ),
    ] = None,
    index: Annotated[
        list[Path] | None, typer.Option("-i", "--index", help="An index that stands elsewhere; repeatable.")
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Over HTTP instead of stdio, for this machine only.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of --http; 0: any that is free.")] = 8767,
    wait: Annotated[
        float | None,
        typer.Option(min=0, max=60, help="Seconds an answer waits for a build or update.", show_default="5"),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Print the configuration of the usual clients; nothing is written.")
    ] = False,
) -> None:
    """Let coding agents search: an MCP server. It builds what has no index, and keeps indexes up to date.

    Example: ncs mcp --install; the client starts it, as: ncs mcp
    """
    from ncs.errors import MissingExtra
    from ncs.mcp.install import instructions
    from ncs.mcp.settings import Settings

    folders, indexes = tuple(root or ()), tuple(index or ())
    if install:
        options = [text for at in folders for text in ("--root", str(at.resolve()))]
        options += [text for at in indexes for text in ("-i", str(at.resolve()))]
        typer.echo(instructions(options), nl=False)
        return
    if not (folders or indexes) and (named := os.environ.get("NCS_INDEX")):
        indexes = (Path(named),)
    settings = Settings(folders, indexes, client_roots=not http, **given(wait=wait))
    try:
        from ncs.mcp import server
    except ImportError as error:
        raise MissingExtra(f"ncs mcp needs {error.name}; pip install 'neural-code-search[mcp]'") from error
    if http:
        server.serve_http(settings, port, console.say)
    else:
        server.serve_stdio(settings)
