"""Hits, code and explanations as a terminal shows them, from the dictionaries that are in an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.highlight import highlight

from ncs.cli.output.hits import NAME_MARK, copies_line, heading, place
from ncs.cli.output.streams import visible
from ncs.search.explain_table import NAMES, reading_lines, reasons_lines
from ncs.search.highlight import marks, name_marks, numbered

MARK = "bold underline $text-warning"
TAB = 4
LINES, COLUMNS = 400, 400
"""Of code that is shown: a file of a megabyte in one line must not stop the keys."""
_SPACES = re.compile(r"[^\S\n ]")


def row(hit: Mapping[str, Any]) -> Content:
    """One hit in one line: how sure, its name, where it stands."""
    sure = "    " if hit["confidence"] is None else f"{hit['confidence']:.2f}"
    return Content.assemble((sure, "$text-muted"), " ", (heading(hit), "bold"), "  ", (place(hit), "$text-muted"))


def about(hit: Mapping[str, Any]) -> Content:
    """What stands above the code: where, what was matched, and where it stands too."""
    matched = f"matched: {', '.join(hit['matched'])}" if hit["matched"] else ""
    more = "; ".join(filter(None, (matched, copies_line(hit))))
    return Content.assemble((place(hit), "$text-success"), ("  " + visible(more) if more else "", "$text-muted"))


def code(hit: Mapping[str, Any], asked: str) -> Content:
    """The code with its line numbers, in colours, the words of the question marked."""
    if not hit["code"]:
        return Content("the index keeps no code; build it without --no-store-code")
    shown, left = _bounded(visible(hit["code"].rstrip("\n")).expandtabs(TAB))
    names = [used["name"] for used in hit.get("explanation", {}).get("names", ())[:NAMES]]
    coloured = highlight(shown, language=hit["language"], tab_size=TAB)
    for style, places in ((NAME_MARK, name_marks(shown, names)), (MARK, marks(shown, asked))):
        for start, end in places:
            coloured = coloured.stylize(style, start, end)
    lines = coloured.split("\n", allow_blank=True)
    width = len(str(hit["start_line"] + len(lines)))
    numbers = [str(hit["start_line"] + i) if numbered(hit) else "" for i in range(len(lines))]
    rows = [
        Content.assemble((f"{number:>{width}} ", "$text-muted"), line)
        for number, line in zip(numbers, lines, strict=True)
    ]
    return Content("\n").join([*rows, Content.styled(f"... {left} more lines", "$text-muted")] if left else rows)


def _bounded(text: str) -> tuple[str, int]:
    """The first lines, each cut where it is far wider than a terminal; and how many lines are left out.

    Only line ends end lines: what else is taken for one (form feeds, U+2028) becomes a space, one for one.
    """
    lines = text.split("\n")
    kept = [line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…" for line in lines[:LINES]]
    return _SPACES.sub(" ", "\n".join(kept)), len(lines) - len(kept)


def explanation(answer: Mapping[str, Any], hit: Mapping[str, Any], width: int) -> Content:
    """How the question was read, and why this hit has its score."""
    lines = [*reading_lines(answer, width), "", *reasons_lines(hit["explanation"], width, 0)]
    return Content(visible("\n".join(lines)))
