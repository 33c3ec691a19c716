"""`ncs tui`, `ncs serve` and `ncs mcp`: search as you type, answers over HTTP, and the tools of coding agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ncs.cli.options import IndexOption, Store, TokenFile, index_folder, without_none
from ncs.console import show_table
from ncs.errors import BadInput, needing
from ncs.exit_status import INTERRUPTED


def tui(
    index: IndexOption = None,
    print_place: Annotated[
        bool, Option("--print", help="Enter prints path:line on stdout and ends it, for pipes and $(ncs --print).")
    ] = False,
) -> None:
    """Search as you type; so does ncs alone in a terminal.

    Example: ncs tui --print
    """
    drawn_on = (sys.stdin, sys.stderr) if print_place else (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in drawn_on):
        raise BadInput("ncs tui needs a terminal; without one: ncs query 'what the function does'")
    with needing("ncs tui", "tui"):
        from ncs.serve.tui import app
    folder = index_folder(index)
    if not print_place:
        app.run(folder, app.SearchApp)
        return
    with _stdout_on_terminal():
        chosen = app.run(folder, app.ChooseApp)
    if chosen is None:
        raise typer.Exit(INTERRUPTED)
    typer.echo(chosen)


@contextmanager
def _stdout_on_terminal() -> Iterator[None]:
    """Inside the block stdout is the terminal of stderr, as the real stdout may be a pipe."""
    stdout = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        yield
    finally:
        os.dup2(stdout, sys.stdout.fileno())
        os.close(stdout)


def serve(
    index: Annotated[
        list[str] | None, Option("-i", "--index", help="Index folder, or name=FOLDER; repeatable.", show_default=".ncs")
    ] = None,
    host: Annotated[
        str, Option(help="Address to listen on; any but loopback lets others read your code.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0: any free port.")] = 8765,
    allow_host: Annotated[
        list[str] | None, Option(help="Further host name of the server, behind a proxy; repeatable.")
    ] = None,
    token_file: TokenFile = None,
    feedback: Annotated[
        list[str] | None, Option(help="FILE for votes, for `ncs tune`; name=FILE for further indexes; repeatable.")
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, max=64, help="Search processes.", show_default="one per core, at most 4")
    ] = None,
    time_limit: Annotated[
        float | None, Option(min=0.05, max=600, help="Seconds a request may take.", show_default="10")
    ] = None,
    store: Store = None,
    quiet: Annotated[bool, Option("-q", "--quiet", help="No line per request.")] = False,
) -> None:
    """Answer searches over HTTP, on this machine only unless --host says otherwise.

    Example: ncs serve -i .ncs --port 8765
    """
    from ncs.serve.http.settings import Settings, default_workers, feedback_files, named_indexes, read_token

    folders = named_indexes(index or [str(index_folder(None))])
    if store and len(folders) > 1:
        raise BadInput("--store goes with one index; start a server for each")
    settings = Settings(
        folders, feedback_files(feedback or [], list(folders)), host, port, tuple(allow_host or ()),
        workers=default_workers() if workers is None else workers, quiet=quiet, store=store or "",
        **without_none(seconds=time_limit),
    )  # fmt: skip
    token = read_token(token_file, os.environ)
    with needing("ncs serve", "server"):
        from ncs.serve.http import app
    app.serve(settings, token)


def mcp(
    client: Annotated[str | None, Argument(help="With --install: whose settings, e.g. claude-code.")] = None,
    root: Annotated[
        list[Path] | None,
        Option(
            help="Project folder; repeatable. It is indexed in its .ncs.",
            show_default="those of the client, else of this folder",
        ),
    ] = None,
    index: Annotated[list[Path] | None, Option("-i", "--index", help="An index elsewhere; repeatable.")] = None,
    http: Annotated[bool, Option("--http", help="Over HTTP instead of stdio, for this machine only.")] = False,
    port: Annotated[int, Option(min=0, max=65535, help="With --http; 0: any free port.")] = 8767,
    token_file: TokenFile = None,
    wait: Annotated[
        float | None, Option(min=0, max=60, help="Seconds an answer waits for a build or update.", show_default="5")
    ] = None,
    store: Store = None,
    install: Annotated[
        bool, Option("--install", help="Add ncs to the settings of CLIENT; without CLIENT, list the clients.")
    ] = False,
    uninstall: Annotated[bool, Option("--uninstall", help="Take it out of the settings of CLIENT.")] = False,
    dry: Annotated[bool, Option("--print", help="With --install: show what it adds, and write nothing.")] = False,
) -> None:
    """Let coding agents search: an MCP server. It builds missing indexes, and keeps indexes up to date.

    Example: ncs mcp --install claude-code; the client starts it, as: ncs mcp
    """
    from ncs.serve.http.settings import read_token
    from ncs.serve.mcp.install import change_settings, known_clients
    from ncs.serve.mcp.projects import Settings

    folders, indexes = tuple(root or ()), tuple(index or ())
    if uninstall and (install or dry):
        raise BadInput("--uninstall goes with neither --install nor --print; give one")
    if (install or uninstall) and client in (None, "list"):
        show_table("", known_clients(), ("client", "program", "file"))
        return
    if install or uninstall:
        options = [text for folder in folders for text in ("--root", str(folder.resolve()))]
        options += [text for folder in indexes for text in ("-i", str(folder.resolve()))]
        options += ["--store", store] if store else []
        change_settings(str(client), options, remove=uninstall, dry=dry)
        return
    if client or dry:
        raise BadInput(f"{client or '--print'} goes with --install; the clients: ncs mcp --install")
    if not (folders or indexes) and (environment_index := os.environ.get("NCS_INDEX")):
        indexes = (Path(environment_index),)
    if token_file is not None and not http:
        raise BadInput("--token-file needs --http; over stdio only the client that started the server can use it")
    if store and (folders or len(indexes) != 1):
        raise BadInput("--store goes with one index; name its folder with -i")
    settings = Settings(folders, indexes, client_roots=not http, **without_none(wait=wait, store=store))
    token = read_token(token_file, os.environ) if http else None
    with needing("ncs mcp", "mcp"):
        from ncs.serve.mcp import server
    if http:
        server.serve_http(settings, port, token)
    else:
        server.serve_stdio(settings)
