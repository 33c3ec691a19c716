"""One page of rows: numbered, with notes, within the bound of who asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ncs.serve.mcp.bounded import Page, Row, fill
from ncs.serve.mcp.clean import short
from ncs.serve.mcp.project import Project

NOTES, NOTE = 6, 240
"""How many notes an answer has, and how long they are."""


class Paged(Protocol):
    """What is asked for in pages."""

    k: int
    max_tokens: int
    cursor: str | None


def start_of(asked: Paged) -> int:
    """The rows before this page."""
    return int(asked.cursor or 0)


def wanted(asked: Paged) -> int:
    """How many rows to look for: to the end of this page, and one that tells whether there are more."""
    return start_of(asked) + asked.k + 1


def short_notes(notes: Iterable[str]) -> list[str]:
    """Each note once, clean and short, and not too many of them."""
    return [short(note, NOTE) for note in dict.fromkeys(notes)][:NOTES]


def page(
    rows: Sequence[Row], notes: Sequence[str], said: Mapping[str, object], asked: Paged, projects: Sequence[Project]
) -> Page:
    """The rows of this page, those that fit; said: more keys of the JSON."""
    start, told = start_of(asked), short_notes(notes)
    numbered = [
        replace(row, header=f"{rank}. {row.header}", found={**row.found, "rank": rank})
        for rank, row in enumerate(rows[start : start + asked.k], start + 1)
    ]
    index = ", ".join(short(project.name, 60) for project in projects)
    head = [f"note: {note}" for note in told]
    envelope = {**said, "index": index, "notes": told}
    return fill(head, envelope, numbered, asked.max_tokens, start=start, more=len(rows) > start + asked.k)
