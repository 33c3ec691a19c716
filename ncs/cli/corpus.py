"""`ncs corpus`: data sets to learn from and to evaluate on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import Json, Quiet, without_none

app = typer.Typer(
    name="corpus",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Make data sets to learn from and to evaluate on.\n\nExample: ncs corpus codesearchnet ./repos ./corpus",
)


@app.callback()
def _corpus() -> None:
    pass


@app.command()
def codesearchnet(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders of repositories (bare ones too), archives, site-packages.", show_default=False),
    ],
    out: Annotated[Path, typer.Argument(help="Folder of the corpus; an interrupted run resumes.", show_default=False)],
    language: Annotated[
        list[str] | None, typer.Option(help="Only this language; repeatable.", show_default="all")
    ] = None,
    license: Annotated[
        list[str] | None,
        typer.Option("--license", "--licence", help="Allowed SPDX id; repeatable.",
                     show_default="those that permit redistribution of parts"),
    ] = None,
    any_license: Annotated[
        bool, typer.Option("--any-license", "--any-licence", help="Repositories without an allowed license, too.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of the split by repository.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one per core")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Extract pairs of function and documentation in CodeSearchNet's shape, with its filters, from repositories.

    Example: ncs corpus codesearchnet ./repos ./corpus
    """
    from corpora.codesearchnet import commands

    statistics = commands.make(
        sources, out, workers=workers, track=output.tracker(quiet),
        **without_none(language=language, licence=license, any_licence=any_license or None, seed=seed),
    )  # fmt: skip
    if as_json:
        output.show_json(statistics)
    else:
        commands.show(statistics)
