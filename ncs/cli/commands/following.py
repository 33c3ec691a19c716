"""`ncs watch`: the index follows edits."""

from __future__ import annotations

import typer

from ncs.cli import output as console
from ncs.cli.commands.options import IndexOption, Quiet, folder_of

STOPPED = 130


def watch(index: IndexOption = None, quiet: Quiet = False) -> None:
    """Keep the index up to date while files are edited, until ctrl-c.

    Example: ncs watch; from then on ncs query finds what was saved a moment ago
    """
    from ncs.build.watch import watch as follow

    say = (lambda line: None) if quiet else console.say
    try:
        follow(folder_of(index), say)
    except KeyboardInterrupt:  # the parser would end without a word
        say("stopped watching; the index is that of the last update")
        raise typer.Exit(STOPPED) from None
