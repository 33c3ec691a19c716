"""`ncs eval`: an index judged by the user's own queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import IndexOption, Json, complete_ranker, open_index
from ncs.errors import BadInput


def eval_queries(
    queries: Annotated[
        Path,
        typer.Argument(help="Lines of a query, a tab, and the id, path:line or name of its function.",
                       show_default=False),
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
        Path | None, typer.Option(help="TREC qrels; then QUERIES has lines of a query id, a tab, a query.")
    ] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Judge your index by your own queries with known answers: Answered@1/5/10, MRR, and the misses.

    The file is what `ncs tune --from-feedback` reads. For questions whose answers are code from Stack Overflow instead
    of functions of the index, use `ncs evaluate`.

    Example: ncs eval queries.tsv --ranker hybrid --ranker bm25
    """
    from dataclasses import asdict

    from evaluation import user_queries
    from ncs.search.feedback import read_feedback
    from ncs.search.rankers import DEFAULT_RANKER

    if queries.suffix == ".json":
        raise BadInput(f"{queries} is JSON, with code as answers; use ncs evaluate instead")
    with open_index(index) as opened_index:
        feedback = [one for one in read_feedback(queries, opened_index.documents, qrels=qrels) if one.rows]
        judgments = user_queries.judge(opened_index, feedback, ranker or [DEFAULT_RANKER])
    if as_json:
        output.show_json({"questions": len(judgments[0].ranks), "rankers": [asdict(one) for one in judgments]})
    else:
        typer.echo(user_queries.report(judgments))
