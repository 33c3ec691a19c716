"""Hits as path:line:column:text, which editors read into their lists of places."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.cli.output.streams import say, visible

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.search.locate_source import SourceLocator


HEAD = 12
"""Lines in which the name of a function is looked for."""
BEFORE = ("@", "#", "[", "//", "/*", "*", "--")
"""How lines start that stand before what they describe."""


def show_vimgrep(answer: Answer, locator: SourceLocator, *, quiet: bool = False) -> int:
    """A line a hit whose file is there; how many. The others are counted on stderr, once."""
    lines = [vimgrep(hit, locator) for hit in answer["hits"]]
    found = [line for line in lines if line is not None]
    for line in found:
        print(line)
    if (left := len(lines) - len(found)) and not quiet:
        which = "1 hit is" if left == 1 else f"{left} hits are"
        say(f"ncs: {which} left out, as no file to open (moved, or in an archive or bare repository): --format plain")
    return len(found)


def vimgrep(hit: Mapping[str, Any], locator: SourceLocator) -> str | None:
    """path:line:column:text of a hit's name; the path opens from the working folder, the column counts bytes from 1.

    None where there is no file, and where its name would break the line.
    """
    stand = locator.locate(hit)
    if stand is None or "\n" in str(stand.path):
        return None
    path = Path(os.path.relpath(stand.path)) if stand.path.is_relative_to(Path.cwd()) else stand.path
    below, at = named_at(stand.lines, hit["name"])
    text = stand.lines[below]
    return f"{path}:{stand.line + below}:{len(text[:at].encode()) + 1}:{visible(text.rstrip())}"


def named_at(lines: Sequence[str], name: str) -> tuple[int, int]:
    """Line and column, from 0, at which code names itself: not in a decorator or comment before it; else its start.

    >>> named_at(['@of("dock")', "  def dock():"], "dock")
    (1, 6)
    >>> named_at(["  {"], "")
    (0, 2)
    """
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for number, line in enumerate(lines[:HEAD] if name else ()):
        if not line.lstrip().startswith(BEFORE) and (found := word.search(line)):
            return number, found.start()
    return 0, len(lines[0]) - len(lines[0].lstrip())
