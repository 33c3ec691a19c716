"""`ncs eval`, `evaluate` and `tune`: how good the answers are, and made better by your own questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output as console
from ncs.cli.commands.options import (
    FOUND,
    NOTHING_FOUND,
    IndexOption,
    Json,
    Quiet,
    complete_ranker,
    folder_of,
    open_index,
)
from ncs.errors import BadInput


def eval_questions(
    questions: Annotated[
        Path,
        typer.Argument(
            help="Lines of a question, a tab, and the id, path:line or name of its function.", show_default=False
        ),
    ],
    index: IndexOption = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            help="Ranker to judge; repeatable, the first is compared with the others.",
            show_default="hybrid",
            autocompletion=complete_ranker,
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC qrels; the lines of QUESTIONS then are: query id, tab, question.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge your index by your own questions with right functions: Answered@1/5/10, MRR, and what was missed.

    The file is what `ncs tune --from-feedback` reads. Where answers are code from Stack Overflow instead of functions
    of the index, use `ncs evaluate`.

    Example: ncs eval questions.tsv --ranker hybrid --ranker bm25
    """
    from dataclasses import asdict

    from evaluation import user_queries
    from ncs.search.feedback import read_feedback
    from ncs.search.rankers import DEFAULT_RANKER

    if questions.suffix == ".json":
        raise BadInput(f"{questions} is JSON, as of questions whose answers are code; judge by it with: ncs evaluate")
    with open_index(index) as opened:
        feedback = [one for one in read_feedback(questions, opened.store, qrels=qrels) if one.rows]
        judged = user_queries.judge(opened, feedback, ranker or [DEFAULT_RANKER])
    if as_json:
        console.show_json({"questions": len(judged[0].ranks), "rankers": [asdict(one) for one in judged]})
    else:
        typer.echo(user_queries.report(judged))


def evaluate(
    questions: Annotated[
        Path, typer.Argument(help="JSON file: stackoverflow_id, question, answer.", show_default=False)
    ],
    index: Annotated[
        list[Path] | None,
        typer.Option("-i", "--index", help="Index folder; repeatable.", show_default=".ncs, here or above"),
    ] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            help="Ranker, bm25 beside it; repeatable.", show_default="all there are", autocompletion=complete_ranker
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Hits a question that are judged.")] = 10,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="Write everything as JSON; a stopped run goes on from beside it.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a line a ranker.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Write the rank of the first correct hit of every question.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page with tables and plots.")] = None,
    quiet: Quiet = False,
) -> None:
    """Judge the rankers by questions whose answers are code (Stack Overflow), by likeness: Answered@k and MRR.

    For your own questions with right functions of the index, use `ncs eval`.

    Example: ncs evaluate questions.json --html report.html
    """
    from dataclasses import asdict

    from evaluation import stackoverflow

    files = {"json": out, "csv": csv, "sheet": sheet, "html": html}
    request = stackoverflow.Request(questions, index or [folder_of(None)], ranker or (), k, files, quiet=quiet)
    found = stackoverflow.evaluate(request)
    if as_json:
        console.show_json(asdict(found))
    else:
        typer.echo(stackoverflow.shown(found), nl=False)


def tune(
    from_feedback: Annotated[
        Path | None, typer.Option(help="Lines of a question, a tab, and the id, path:line or name of its function.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC qrels; the lines of --from-feedback then are: query id, tab, question.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Use the weights even if they do not win.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Go back to the weights of the build.")] = False,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """Fit the ranking to your own questions. Exit status: 0 done, 1 not used because it does not win, 2 error.

    Example: ncs tune --from-feedback questions.tsv
    """
    from dataclasses import asdict

    from ncs.build import tune as tuning
    from ncs.search.feedback import read_feedback

    if reset == (from_feedback is not None):
        raise BadInput("name a file with --from-feedback, or take back what was tuned with --reset")
    with open_index(index) as opened:
        if from_feedback is None:
            console.say("back at the weights of the build" if tuning.reset(opened.snapshot) else "nothing was tuned")
            return
        tuned = tuning.tune(opened.snapshot, read_feedback(from_feedback, opened.documents, qrels=qrels), force=force)
        if as_json:
            console.show_json(asdict(tuned))
        else:
            typer.echo(tuning.summary(tuned))
    raise typer.Exit(FOUND if tuned.written else NOTHING_FOUND)
