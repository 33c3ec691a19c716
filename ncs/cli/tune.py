"""`ncs tune`: the ranking fitted to the user's own queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ncs.cli.options import FOUND, NOTHING_FOUND, IndexOption, Json, open_index
from ncs.console import say, show_json
from ncs.errors import BadInput


def tune(
    from_feedback: Annotated[
        Path | None, Option(help="Lines of a query, a tab, and the id, path:line or name of its function.")
    ] = None,
    qrels: Annotated[
        Path | None, Option(help="TREC qrels; then --from-feedback has lines of a query id, a tab, a query.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Use the weights even if they are not better.")] = False,
    reset: Annotated[bool, Option("--reset", help="Go back to the default weights.")] = False,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """Fit the ranking to your own queries. Exit status: 0 done, 1 not used because it is not better, 2 error.

    Example: ncs tune --from-feedback queries.tsv
    """
    from dataclasses import asdict

    from ncs.build import tune as tuning
    from ncs.search.feedback import read_feedback

    if reset == (from_feedback is not None):
        raise BadInput("name a file with --from-feedback, or go back with --reset")
    with open_index(index) as opened_index:
        if from_feedback is None:
            removed = tuning.reset(opened_index.snapshot)
            say("removed the tuned weights" if removed else "there are no tuned weights")
            return
        feedback = read_feedback(from_feedback, opened_index.documents, qrels=qrels)
        tuned = tuning.tune(opened_index.snapshot, feedback, force=force)
    if as_json:
        show_json(asdict(tuned))
    else:
        typer.echo(tuning.summary(tuned))
    raise typer.Exit(FOUND if tuned.written else NOTHING_FOUND)
