"""`ncs eval`, `ncs evaluate` and `ncs annotate`: rankers judged by known answers, by similarity, and by people."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ncs.cli.options import IndexOption, Json, Quiet, TokenFile, complete_ranker, index_folder, open_index
from ncs.console import say, show_json, show_text, tracker
from ncs.errors import BadInput


def eval_queries(
    queries: Annotated[
        Path,
        Argument(help="Lines of a query, a tab, and the id, path:line or name of its function.", show_default=False),
    ],
    index: IndexOption = None,
    ranker: Annotated[
        list[str] | None,
        Option(
            help="Ranker to judge; repeatable, the first is compared with the others.",
            show_default="hybrid",
            autocompletion=complete_ranker,
        ),
    ] = None,
    qrels: Annotated[
        Path | None, Option(help="TREC qrels; then QUERIES has lines of a query id, a tab, a query.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge your index by your own queries with known answers: Answered@1/5/10, MRR, and the misses.

    The file is what `ncs tune --from-feedback` reads. For questions whose answers are code from Stack Overflow instead
    of functions of the index, use `ncs evaluate`.

    Example: ncs eval queries.tsv --ranker hybrid --ranker bm25
    """
    from evaluation import user_queries
    from ncs.search.feedback import read_feedback
    from ncs.search.rankers import DEFAULT_RANKER

    if queries.suffix == ".json":
        raise BadInput(f"{queries} is JSON, with code as answers; use ncs evaluate instead")
    with open_index(index) as opened_index:
        feedback = [one for one in read_feedback(queries, opened_index.documents, qrels=qrels) if one.rows]
        judgments = user_queries.judge(opened_index, feedback, ranker or [DEFAULT_RANKER])
    if as_json:
        show_json({"questions": len(judgments[0].ranks), "rankers": [asdict(one) for one in judgments]})
    else:
        show_text(user_queries.report(judgments))


def evaluate(
    questions: Annotated[Path, Argument(help="JSON file: stackoverflow_id, question, answer.", show_default=False)],
    index: Annotated[
        list[Path] | None,
        Option("-i", "--index", help="Index folder; repeatable.", show_default=".ncs, here or in a parent"),
    ] = None,
    ranker: Annotated[
        list[str] | None,
        Option(
            help="Ranker, compared with bm25; repeatable.", show_default="all there are", autocompletion=complete_ranker
        ),
    ] = None,
    k: Annotated[int, Option("-k", min=1, help="Hits per question to judge.")] = 10,
    as_json: Json = False,
    out: Annotated[Path | None, Option(help="Write everything as JSON; an interrupted run resumes from it.")] = None,
    csv: Annotated[Path | None, Option(help="Write a line per ranker.")] = None,
    sheet: Annotated[Path | None, Option(help="Write the rank of the first correct hit of every question.")] = None,
    html: Annotated[Path | None, Option(help="Write a page with tables and plots.")] = None,
    quiet: Quiet = False,
) -> None:
    """Judge rankers by questions whose answers are code (Stack Overflow), by similarity: Answered@k and MRR.

    For your own queries with known functions of the index, use `ncs eval`.

    Example: ncs evaluate questions.json --html report.html
    """
    from evaluation import reports, stackoverflow

    files = {"json": out, "csv": csv, "sheet": sheet, "html": html}
    folders = index or [index_folder(None)]
    results = stackoverflow.evaluate(questions, folders, files=files, rankers=ranker or (), k=k, quiet=quiet)
    if as_json:
        show_json(asdict(results))
    else:
        show_text(reports.report(results))


def annotate(
    index: Annotated[Path, Argument(help="Index folder.", show_default=False)],
    queries: Annotated[
        Path, Argument(help="One query a line, .tsv (id, text), .jsonl, or queries.csv.", show_default=False)
    ],
    rankers: Annotated[
        str | None, Option(help="Whose hits to judge.", metavar="R,R,...", show_default="bm25,ncs,hybrid")
    ] = None,
    k: Annotated[int | None, Option("-k", min=1, help="Hits per query and ranker.", show_default="10")] = None,
    language: Annotated[
        list[str] | None, Option(help="Hits in this language; repeatable, k in each.", show_default="any")
    ] = None,
    seed: Annotated[int | None, Option(help="Of the order that people see.", show_default="0")] = None,
    database: Annotated[
        Path | None, Option(help="File of the judgments.", show_default="QUERIES.judgments.sqlite")
    ] = None,
    export: Annotated[
        Path | None, Option(help="Write the judgments: .csv as annotationStore, a folder as BEIR, else TREC qrels.")
    ] = None,
    runs: Annotated[Path | None, Option(help="Write the rankers' hits as TREC runs into this folder.")] = None,
    agreement: Annotated[bool, Option("--agreement", help="Print Cohen's kappa of each pair of people.")] = False,
    port: Annotated[int | None, Option(min=0, max=65535, help="0: any free port.", show_default="8766")] = None,
    token_file: TokenFile = None,
    quiet: Annotated[bool, Option("-q", "--quiet", help="No line per request, no progress.")] = False,
) -> None:
    """Judge hits from 0 to 3 on a local page, as CodeSearchNet's experts did. Only this machine can reach it.

    Example: ncs annotate .ncs queries.txt; then: ncs annotate .ncs queries.txt --export judged.qrels
    """
    from evaluation.annotation import command
    from ncs.serve.http.settings import read_token

    names = command.ranker_names(rankers) if rankers is not None else None
    request = command.Request(index, queries, database, names, k, tuple(language) if language else None, seed)
    if export is not None or runs is not None:
        command.write(request, say, to=export, runs=runs)
    if agreement:
        show_text(command.agreement_report(request))
    if export is None and runs is None and not agreement:
        token = read_token(token_file, os.environ)
        track = tracker(quiet)
        command.serve(request, say, port=command.PORT if port is None else port, token=token, quiet=quiet, track=track)
