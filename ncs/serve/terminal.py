"""Hits as text for a terminal: their name, place and copies, and the lines of their code that are shown."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ncs.console import count, one_line, visible
from ncs.search.explain import NAMES
from ncs.search.highlight import around, has_file_lines, marked_lines, marks, name_marks, text_marks, whole
from ncs.search.locate_source import locator_of
from ncs.storage.file_roles import OUTLINES

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.storage.snapshot import Snapshot

MAX_COPIES = 3
MARK = "bold underline"
"""The style of words of the query."""
NAME_MARK = "bold"
"""The style of names that an explanation mentions."""
TAB = 4
LISTS = ("copies", "near_copies")
"""Keys of a hit with more places."""
LIGHT = ("7", "15")
"""Background colors of $COLORFGBG that are light."""


def light_background() -> bool:
    """Whether the terminal says that it is light; most say nothing, and are dark."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT


def from_here(path: PurePath, here: PurePath | None = None) -> str:
    """An absolute path relative to the working directory; as it is where they have only the root in common."""
    here = here or Path.cwd()
    apart = path.drive.lower() != here.drive.lower() or path.parts[1:2] != here.parts[1:2]
    return str(path) if apart else os.path.relpath(path, here)


def with_files(answer: Answer, snapshot: Snapshot, key: str) -> Answer:
    """The answer with `file` beside each `path` of its hits: the file from here, None where it is not on disk.

    key: of the hits.
    """
    locator = locator_of(snapshot)

    def located(place: Mapping[str, Any]) -> dict[str, Any]:
        file = locator.path_of(place["repository"], place["path"])
        with_file: dict[str, Any] = {}
        for name, value in place.items():
            with_file[name] = [located(each) for each in value] if name in LISTS else value
            if name == "path":
                with_file["file"] = from_here(file) if file else None
        return with_file

    return {**answer, key: [located(hit) for hit in answer[key]]}


def place(hit: Mapping[str, Any]) -> str:
    """path:line; the path opens from the working directory where `with_files` found its file, else it is
    repository/path.
    """
    path = hit.get("file") or f"{hit['repository']}/{hit['path']}"
    return one_line(f"{path}:{hit.get('line', hit['start_line'])}")


def heading(hit: Mapping[str, Any]) -> str:
    """The name of a hit; for anything but a function its kind, too."""
    name: str = hit["qualified_name"]
    return one_line(f"{hit['kind']} {name}" if hit["kind"] in OUTLINES else name)


def copies_line(hit: Mapping[str, Any]) -> str | None:
    """A line with the places of a hit's copies, and whether it is a copy of the function in the query."""
    exact = ["exact copy"] if hit.get("exact_copy") else []
    near_copies = _places("nearly the same at", hit.get("near_copies", ()))
    return "; ".join([*exact, *_places("also at", hit["copies"]), *near_copies]) or None


def reason_lines(hit: Mapping[str, Any]) -> list[str]:
    """Lines with the reasons of a file of `ncs locate`, and its other good functions; none for other hits."""
    lines = ["; ".join(hit.get("reasons", ()))]
    others = [f"{heading(other)}:{other.get('line', other['start_line'])}" for other in hit.get("more", ())]
    return [one_line(line) for line in (*lines, f"also {', '.join(others)}" if others else "") if line]


def _places(label: str, copies: Sequence[Mapping[str, Any]]) -> list[str]:
    more = f" and {len(copies) - MAX_COPIES} more" if len(copies) > MAX_COPIES else ""
    return [f"{label} " + ", ".join(place(copy) for copy in copies[:MAX_COPIES]) + more] if copies else []


class Excerpt:
    """The lines of a hit's code that are shown."""

    def __init__(
        self, hit: Mapping[str, Any], code: str, all_lines: bool, context: tuple[int, int] | None = None
    ) -> None:
        """context: lines before and after each marked one of the excerpt; of a regexp only its own are."""
        self.code = code
        self.words = marks(code, hit["marked"])
        explained = [used["name"] for used in hit.get("explanation", {}).get("names", ())[:NAMES]]
        texts = hit.get("regexp_matches", ())
        self.names = [*name_marks(code, explained), *text_marks(code, map(visible, texts))]
        lines = code.count("\n") + 1
        ranges = whole(code) if all_lines else hit["excerpt"]
        if context and not all_lines:
            shown = {at for start, end in ranges for at in range(start, end)}
            matching = marked_lines(hit["code"], text_marks(hit["code"], texts))
            marked = [at for at in matching or marked_lines(code, [*self.words, *self.names]) if at in shown]
            ranges = around(marked, lines, *context) if marked else ranges
        numbered = has_file_lines(hit)
        self.runs = [
            [(str(hit["start_line"] + at) if numbered else "", at) for at in range(first, end)] for first, end in ranges
        ]
        """Adjacent lines with their number in the file."""
        remaining = lines - ranges[-1][1]
        self.rest = count(remaining, "more line") if remaining else ""
