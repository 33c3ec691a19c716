"""`ncs` alone, in a terminal: the interactive search."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from ncs.cli.commands.options import folder_of


def possible() -> bool:
    """Whether somebody sits there who can use it: all three streams are a terminal that can do more than lines."""
    terminals = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return terminals and os.environ.get("TERM", "dumb") != "dumb" and find_spec("textual") is not None


def search() -> None:
    """Search the index that is meant; raises IndexNotFound and what Index.load raises."""
    folder = folder_of(None)
    from ncs.serve.tui.app import run

    run(folder)
