"""`ncs update`: an index brought up to date with its sources."""

from __future__ import annotations

from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import IndexOption, Quiet, Store, Workers, index_folder
from ncs.cli.publish import Publisher


def update(
    index: IndexOption = None,
    retrain: Annotated[bool, typer.Option("--retrain", help="Learn word vectors again, too.")] = False,
    compact: Annotated[
        bool, typer.Option("--compact", help="Write one segment with new statistics, as a build does.")
    ] = False,
    workers: Workers = None,
    store: Store = None,
    quiet: Quiet = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="List new, changed and removed files.")] = False,
) -> None:
    """Bring an index up to date with its sources; only files that changed are read.

    Example: ncs update
    """
    from ncs.index import Index

    folder = index_folder(index)
    publisher = Publisher(folder, store, quiet=quiet)
    updated, changes = Index.update(
        folder,
        retrain=retrain,
        compact=compact,
        workers=workers,
        track=output.tracker(quiet),
        before_commit=publisher.before_commit,
    )
    with updated:
        if not quiet:
            output.say_updated(updated.description, changes, verbose)
    publisher.finish()
