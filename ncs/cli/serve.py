"""`ncs serve`: answers over HTTP."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import Store, TokenFile, index_folder, without_none
from ncs.errors import BadInput, MissingExtra


def serve(
    index: Annotated[
        list[str] | None,
        typer.Option("-i", "--index", help="Index folder, or name=FOLDER; repeatable.", show_default=".ncs"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback lets others read your code.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Further host name of the server, behind a proxy; repeatable.")
    ] = None,
    token_file: TokenFile = None,
    feedback: Annotated[
        list[str] | None,
        typer.Option(help="FILE for votes, for `ncs tune`; name=FILE for further indexes; repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, max=64, help="Search processes.", show_default="one per core, at most 4")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0.05, max=600, help="Seconds a request may take.", show_default="10")
    ] = None,
    store: Store = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No line per request.")] = False,
) -> None:
    """Answer searches over HTTP, on this machine only unless --host says otherwise.

    Example: ncs serve -i .ncs --port 8765
    """
    from ncs.serve.http.settings import Settings, default_workers, feedback_files, named_indexes, read_token

    folders = named_indexes(index or [os.environ.get("NCS_INDEX") or str(index_folder(None))])
    if store and len(folders) > 1:
        raise BadInput("--store goes with one index; start a server for each")
    settings = Settings(
        folders, feedback_files(feedback or [], list(folders)), host, port, tuple(allow_host or ()),
        workers=default_workers() if workers is None else workers, quiet=quiet, store=store or "",
        **without_none(seconds=time_limit),
    )  # fmt: skip
    token = read_token(token_file, os.environ)
    try:
        from ncs.serve.http import app
    except ImportError as error:
        raise MissingExtra(f"ncs serve needs {error.name}; pip install 'neural-code-search[server]'") from error
    app.serve(settings, token, output.say)
