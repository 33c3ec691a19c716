"""`ncs mcp`: the tools of coding agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output as console
from ncs.cli.commands.options import Store, given


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
    token_file: Annotated[
        Path | None, typer.Option(help="Of --http: file with the token that requests must bear; else $NCS_TOKEN.")
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(min=0, max=60, help="Seconds an answer waits for a build or update.", show_default="5"),
    ] = None,
    store: Store = None,
    install: Annotated[
        bool, typer.Option("--install", help="Print the configuration of the usual clients; nothing is written.")
    ] = False,
) -> None:
    """Let coding agents search: an MCP server. It builds what has no index, and keeps indexes up to date.

    Example: ncs mcp --install; the client starts it, as: ncs mcp
    """
    from ncs.errors import BadInput, MissingExtra
    from ncs.serve.http.settings import read_token
    from ncs.serve.mcp.install import instructions
    from ncs.serve.mcp.settings import Settings

    folders, indexes = tuple(root or ()), tuple(index or ())
    if install:
        options = [text for at in folders for text in ("--root", str(at.resolve()))]
        options += [text for at in indexes for text in ("-i", str(at.resolve()))]
        options += ["--store", store] if store else []
        typer.echo(instructions(options), nl=False)
        return
    if not (folders or indexes) and (named := os.environ.get("NCS_INDEX")):
        indexes = (Path(named),)
    if token_file is not None and not http:
        raise BadInput("--token-file goes with --http; over stdio only the client that started the server can ask")
    if store and (folders or len(indexes) != 1):
        raise BadInput("a store holds one index; name its folder with -i, and nothing else")
    settings = Settings(folders, indexes, client_roots=not http, **given(wait=wait, store=store))
    token = read_token(token_file, os.environ) if http else None
    try:
        from ncs.serve.mcp import server
    except ImportError as error:
        raise MissingExtra(f"ncs mcp needs {error.name}; pip install 'neural-code-search[mcp]'") from error
    if http:
        server.serve_http(settings, port, token, console.say)
    else:
        server.serve_stdio(settings)
