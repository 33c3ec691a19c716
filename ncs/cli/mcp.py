"""`ncs mcp`: the tools of coding agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import Store, TokenFile, without_none
from ncs.errors import BadInput, MissingExtra


def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(
            help="Project folder; repeatable. It is indexed in its .ncs.",
            show_default="those of the client, else this folder",
        ),
    ] = None,
    index: Annotated[list[Path] | None, typer.Option("-i", "--index", help="An index elsewhere; repeatable.")] = None,
    http: Annotated[bool, typer.Option("--http", help="Over HTTP instead of stdio, for this machine only.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http; 0: any free port.")] = 8767,
    token_file: TokenFile = None,
    wait: Annotated[
        float | None,
        typer.Option(min=0, max=60, help="Seconds an answer waits for a build or update.", show_default="5"),
    ] = None,
    store: Store = None,
    install: Annotated[
        bool, typer.Option("--install", help="Print the configuration of the usual clients; nothing is written.")
    ] = False,
) -> None:
    """Let coding agents search: an MCP server. It builds missing indexes, and keeps indexes up to date.

    Example: ncs mcp --install; the client starts it, as: ncs mcp
    """
    from ncs.serve.http.settings import read_token
    from ncs.serve.mcp.install import instructions
    from ncs.serve.mcp.settings import Settings

    folders, indexes = tuple(root or ()), tuple(index or ())
    if install:
        options = [text for folder in folders for text in ("--root", str(folder.resolve()))]
        options += [text for folder in indexes for text in ("-i", str(folder.resolve()))]
        options += ["--store", store] if store else []
        typer.echo(instructions(options), nl=False)
        return
    if not (folders or indexes) and (environment_index := os.environ.get("NCS_INDEX")):
        indexes = (Path(environment_index),)
    if token_file is not None and not http:
        raise BadInput("--token-file needs --http; over stdio only the client that started the server can use it")
    if store and (folders or len(indexes) != 1):
        raise BadInput("--store goes with one index; name its folder with -i")
    settings = Settings(folders, indexes, client_roots=not http, **without_none(wait=wait, store=store))
    token = read_token(token_file, os.environ) if http else None
    try:
        from ncs.serve.mcp import server
    except ImportError as error:
        raise MissingExtra(f"ncs mcp needs {error.name}; pip install 'neural-code-search[mcp]'") from error
    if http:
        server.serve_http(settings, port, token, output.say)
    else:
        server.serve_stdio(settings)
