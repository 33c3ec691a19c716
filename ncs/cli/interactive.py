"""`ncs` alone, in a terminal: the interactive search."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec


def is_available() -> bool:
    """Whether all three streams are a capable terminal, and textual is installed."""
    terminals = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return terminals and os.environ.get("TERM", "dumb") != "dumb" and find_spec("textual") is not None


def search() -> None:
    """Search the nearest index; raises IndexNotFound and what Index.load raises."""
    from ncs.cli.options import index_folder

    folder = index_folder(None)
    from ncs.serve.tui.app import run

    run(folder)
