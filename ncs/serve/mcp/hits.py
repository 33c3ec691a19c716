"""Hits as agents see them: a line that says where and what, the lines of code that matter, and the usual JSON."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ncs.index import Index
from ncs.search.highlight import excerpt, marks
from ncs.serve.mcp.bounded import GAP, Row
from ncs.serve.mcp.clean import clean, lines_of, short
from ncs.serve.mcp.places import shown
from ncs.serve.mcp.project import Project
from ncs.types import Location

EXCERPT = 14
"""Lines of a hit that are shown, about."""
PLACES = 2
"""Other places of a hit that are named."""
TEXT = 300
"""Characters of a path or name that are shown."""
CODE = 1 << 20
"""Characters of code in which lines that matter are looked for."""


def row(project: Project, index: Index | None, hit: Mapping[str, Any], marked: str, several: bool) -> Row:
    """A hit of ncs.answer as a row; `marked`: the text whose words make lines matter; several: name the project."""
    at = Location(hit["repository"], hit["path"], hit["start_line"], hit["end_line"], hit["qualified_name"])
    path = short(shown(project, index, at), TEXT)
    place = f"{path}:{hit['start_line']}"
    found = _cleaned({name: value for name, value in hit.items() if name not in ("code", "copies", "near_copies")})
    for name in ("copies", "near_copies"):
        if name in hit:
            found[name] = [_cleaned(other) for other in hit[name][:PLACES]]
    found |= {"place": place, "project": project.name}
    code: str = hit.get("code") or ""
    lines = excerpted(code, marked) if code else []
    header = _header(hit, path, clean(project.name) if several else "")
    return Row(header, found, lines, code.count("\n") + 1 if code else 0, place)


def _header(hit: Mapping[str, Any], path: str, project: str) -> str:
    where = f"{path}:{hit['start_line']}-{hit['end_line']}"
    sure = f", {hit['confidence']:.2f}" if hit.get("confidence") is not None else ""
    alike = f", {hit['score']:.0%} alike" if "reverse" in hit else ""
    more = len(hit.get("copies", ())) + len(hit.get("near_copies", ()))
    copies = f", {more} more like it" if more else ""
    what = f"{short(hit['qualified_name'], TEXT)} ({hit['kind']}{sure}{alike}{copies})"
    return f"{f'[{project}] ' if project else ''}{where} {what}"


def excerpted(code: str, text: str, most: int = EXCERPT) -> list[str]:
    """The lines of code that matter to a text; where some are left out, a line says how many."""
    lines = lines_of(code)
    starts = [0, *accumulate(len(line) + 1 for line in code.split("\n"))]
    found = sorted({bisect_right(starts, start) - 1 for start, _ in marks(code[:CODE], text)})
    said: list[str] = []
    before = 0
    for first, end in excerpt(len(lines), found, most):
        if first > before:
            said.append(f"{GAP} {first - before} lines]")
        said += lines[first:end]
        before = end
    return said


def _cleaned(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _clean_value(value) for name, value in found.items()}


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return short(value, TEXT)
    if isinstance(value, Sequence):
        return [_clean_value(each) for each in value[:20]]
    return value
