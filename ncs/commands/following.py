"""`ncs watch`: the index follows edits."""

from __future__ import annotations

from ncs import console
from ncs.commands.options import IndexOption, Quiet, folder_of


def watch(index: IndexOption = None, quiet: Quiet = False) -> None:
    """Keep the index up to date while files are edited, until ctrl-c.

    Example: ncs watch; from then on ncs query finds what was saved a moment ago
    """
    from ncs.watching import watch as follow

    follow(folder_of(index), console.say if not quiet else lambda line: None)
