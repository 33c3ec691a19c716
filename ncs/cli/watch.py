"""`ncs watch`: the index follows edits."""

from __future__ import annotations

import typer

from ncs.cli import output
from ncs.cli.options import IndexOption, Quiet, index_folder

INTERRUPTED = 130


def watch(index: IndexOption = None, quiet: Quiet = False) -> None:
    """Keep the index up to date while files are edited, until ctrl-c.

    Example: ncs watch; from then on ncs query finds what was saved a moment ago
    """
    from ncs.build.watch import watch as follow

    try:
        follow(index_folder(index), (lambda line: None) if quiet else output.say)
    except KeyboardInterrupt:  # the parser would end without a word
        output.say("stopped watching")
        raise typer.Exit(INTERRUPTED) from None
