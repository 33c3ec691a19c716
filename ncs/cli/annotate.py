"""`ncs annotate`: people judge the hits of rankers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import TokenFile


def annotate(
    index: Annotated[Path, typer.Argument(help="Index folder.", show_default=False)],
    queries: Annotated[
        Path, typer.Argument(help="One query a line, .tsv (id, text), .jsonl, or queries.csv.", show_default=False)
    ],
    rankers: Annotated[
        str | None, typer.Option(help="Whose hits to judge.", metavar="R,R,...", show_default="bm25,ncs,hybrid")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Hits per query and ranker.", show_default="10")] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Hits in this language; repeatable, k in each.", show_default="any")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the order that people see.", show_default="0")] = None,
    database: Annotated[
        Path | None, typer.Option(help="File of the judgments.", show_default="QUERIES.judgments.sqlite")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the judgments: .csv as annotationStore, a folder as BEIR, else TREC qrels."),
    ] = None,
    runs: Annotated[Path | None, typer.Option(help="Write the rankers' hits as TREC runs into this folder.")] = None,
    agreement: Annotated[bool, typer.Option("--agreement", help="Print Cohen's kappa of each pair of people.")] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0: any free port.", show_default="8766")
    ] = None,
    token_file: TokenFile = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No line per request, no progress.")] = False,
) -> None:  # fmt: skip
    """Judge hits from 0 to 3 on a local page, as CodeSearchNet's experts did. Only this machine can reach it.

    Example: ncs annotate .ncs queries.txt; then: ncs annotate .ncs queries.txt --export judged.qrels
    """
    from evaluation.annotation import command
    from ncs.serve.http.settings import read_token

    names = command.ranker_names(rankers) if rankers is not None else None
    request = command.Request(index, queries, database, names, k, tuple(language) if language else None, seed)
    if export is not None or runs is not None:
        command.write(request, output.say, to=export, runs=runs)
    if agreement:
        typer.echo(command.agreement_report(request))
    if export is None and runs is None and not agreement:
        token = read_token(token_file, os.environ)
        track = output.tracker(quiet)
        command.serve(
            request, output.say, port=command.PORT if port is None else port, token=token, quiet=quiet, track=track
        )
