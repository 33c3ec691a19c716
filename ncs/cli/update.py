"""`ncs update` and `ncs watch`: an index brought up to date with its sources, once or as they are edited."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from ncs.cli.build import publishing
from ncs.cli.info import documents_text
from ncs.cli.options import IndexOption, Quiet, Store, Workers, index_folder
from ncs.console import count, say, tracker
from ncs.exit_status import INTERRUPTED


def update(
    index: IndexOption = None,
    retrain: Annotated[bool, Option("--retrain", help="Learn word vectors again, too.")] = False,
    compact: Annotated[
        bool, Option("--compact", help="Write one segment with new statistics, as a build does.")
    ] = False,
    workers: Workers = None,
    store: Store = None,
    quiet: Quiet = False,
    verbose: Annotated[bool, Option("-v", "--verbose", help="List new, changed and removed files.")] = False,
) -> None:
    """Bring an index up to date with its sources; only files that changed are read.

    Example: ncs update
    """
    from ncs.index import Index
    from ncs.learn.embeddings import retraining_advice

    folder = index_folder(index)
    with publishing(folder, store, quiet=quiet) as before_commit:
        updated, changes = Index.update(
            folder, retrain=retrain, compact=compact, workers=workers, track=tracker(quiet), before_commit=before_commit
        )
        updated.close()
        if quiet:
            return
        documents = documents_text(updated.description.counts)
        say(f"{changes}, {count(changes.unchanged, 'file')} unchanged; {documents}")
        if advice := retraining_advice(updated.description):
            say(f"note: {advice}")
        for kind, paths in changes.kinds.items() if verbose else ():
            for path in paths:
                say(f"{kind}: {path}")


def watch(index: IndexOption = None, quiet: Quiet = False) -> None:
    """Keep the index up to date while files are edited, until ctrl-c.

    Example: ncs watch; from then on ncs query finds what was saved a moment ago
    """
    from ncs.build.watch import watch as follow

    try:
        follow(index_folder(index), (lambda line: None) if quiet else say)
    except KeyboardInterrupt:
        say("stopped watching")
        raise typer.Exit(INTERRUPTED) from None
