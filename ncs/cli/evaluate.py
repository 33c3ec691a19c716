"""`ncs evaluate`: rankers judged by questions from Stack Overflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import Json, Quiet, complete_ranker, index_folder


def evaluate(
    questions: Annotated[
        Path, typer.Argument(help="JSON file: stackoverflow_id, question, answer.", show_default=False)
    ],
    index: Annotated[
        list[Path] | None,
        typer.Option("-i", "--index", help="Index folder; repeatable.", show_default=".ncs, here or in a parent"),
    ] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            help="Ranker, compared with bm25; repeatable.", show_default="all there are", autocompletion=complete_ranker
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Hits per question to judge.")] = 10,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="Write everything as JSON; an interrupted run resumes from it.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a line per ranker.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Write the rank of the first correct hit of every question.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with tables and plots.")] = None,
    quiet: Quiet = False,
) -> None:
    """Judge rankers by questions whose answers are code (Stack Overflow), by similarity: Answered@k and MRR.

    For your own queries with known functions of the index, use `ncs eval`.

    Example: ncs evaluate questions.json --html report.html
    """
    from dataclasses import asdict

    from evaluation import stackoverflow

    files = {"json": out, "csv": csv, "sheet": sheet, "html": html}
    request = stackoverflow.Request(questions, index or [index_folder(None)], ranker or (), k, files, quiet=quiet)
    results = stackoverflow.evaluate(request)
    if as_json:
        output.show_json(asdict(results))
    else:
        typer.echo(stackoverflow.format_result(results), nl=False)
