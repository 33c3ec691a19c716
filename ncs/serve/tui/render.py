"""Hits, code and explanations for the terminal, from the dictionaries of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.highlight import highlight

from ncs.console import visible
from ncs.search.explain_table import query_lines, reasons_lines
from ncs.search.highlight import has_file_lines, marks, name_marks
from ncs.serve.terminal import NAME_MARK, TAB, copies_line, explained_names, heading, place

MARK = "bold underline $text-warning"
MAX_LINES, MAX_COLUMNS = 400, 400
"""Of code that is shown: a megabyte in one line must not block the keys."""
_SPACES = re.compile(r"[^\S\n ]")


def row(hit: Mapping[str, Any]) -> Content:
    """One hit in one line: confidence, name, place."""
    confidence = "    " if hit["confidence"] is None else f"{hit['confidence']:.2f}"
    return Content.assemble((confidence, "$text-muted"), " ", (heading(hit), "bold"), "  ", (place(hit), "$text-muted"))


def about(hit: Mapping[str, Any]) -> Content:
    """The lines above the code: its place, the words matched, its copies."""
    matched = f"matched: {', '.join(hit['matched'])}" if hit["matched"] else ""
    more = "; ".join(filter(None, (matched, copies_line(hit))))
    return Content.assemble((place(hit), "$text-success"), ("  " + visible(more) if more else "", "$text-muted"))


def code(hit: Mapping[str, Any], query: str) -> Content:
    """The code with line numbers and highlighting, the words of the query marked."""
    if not hit["code"]:
        return Content("the index stores no code; build it without --no-store-code")
    text, hidden = _truncate(visible(hit["code"].rstrip("\n")).expandtabs(TAB))
    highlighted = highlight(text, language=hit["language"], tab_size=TAB)
    for style, places in ((NAME_MARK, name_marks(text, explained_names(hit))), (MARK, marks(text, query))):
        for start, end in places:
            highlighted = highlighted.stylize(style, start, end)
    lines = highlighted.split("\n", allow_blank=True)
    width = len(str(hit["start_line"] + len(lines)))
    numbers = [str(hit["start_line"] + i) if has_file_lines(hit) else "" for i in range(len(lines))]
    rows = [
        Content.assemble((f"{number:>{width}} ", "$text-muted"), line)
        for number, line in zip(numbers, lines, strict=True)
    ]
    return Content("\n").join([*rows, Content.styled(f"... {hidden} more lines", "$text-muted")] if hidden else rows)


def _truncate(text: str) -> tuple[str, int]:
    """The first lines, each cut where it is far wider than a terminal; and how many lines are left out.

    Only newlines end lines: other separators (form feeds, U+2028) become spaces, one for one.
    """
    lines = text.split("\n")
    kept = [line if len(line) <= MAX_COLUMNS else line[: MAX_COLUMNS - 1] + "…" for line in lines[:MAX_LINES]]
    return _SPACES.sub(" ", "\n".join(kept)), len(lines) - len(kept)


def explanation(answer: Mapping[str, Any], hit: Mapping[str, Any], width: int) -> Content:
    """How the query was understood, and why this hit has its score."""
    lines = [*query_lines(answer, width), "", *reasons_lines(hit["explanation"], width, 0)]
    return Content(visible("\n".join(lines)))
