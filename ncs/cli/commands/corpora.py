"""`ncs corpus`: data sets to learn from and to evaluate on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output as console
from ncs.cli.commands.options import Json, Quiet, given


def codesearchnet(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders of repositories (bare ones too), archives, site-packages.", show_default=False),
    ],
    out: Annotated[Path, typer.Argument(help="Folder of the corpus; a stopped run goes on.", show_default=False)],
    language: Annotated[
        list[str] | None, typer.Option(help="Only this language; repeatable.", show_default="all")
    ] = None,
    licence: Annotated[
        list[str] | None,
        typer.Option(help="Allowed SPDX id; repeatable.", show_default="those that permit to pass on parts"),
    ] = None,
    any_licence: Annotated[
        bool, typer.Option("--any-licence", help="Repositories without an allowed licence too.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of the split by repository.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one a core")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pairs of function and documentation in CodeSearchNet's shape, with its filters, from repositories.

    Example: ncs corpus codesearchnet ./repos ./corpus
    """
    from corpora.codesearchnet import commands

    made = commands.make(
        sources, out, workers=workers, track=console.tracker(quiet),
        **given(language=language, licence=licence, any_licence=any_licence or None, seed=seed),
    )  # fmt: skip
    if as_json:
        console.show_json(made)
    else:
        commands.show(made)
