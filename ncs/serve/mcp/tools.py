"""The tools by name: a call is checked, its projects are chosen, and it is answered as text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ncs.answer import not_ready
from ncs.errors import BadInput
from ncs.index import Index
from ncs.serve.mcp.asked import TOOLS, IndexStatus, read
from ncs.serve.mcp.bounded import Page
from ncs.serve.mcp.clean import short
from ncs.serve.mcp.definitions import find_definition, get_function
from ncs.serve.mcp.pages import short_notes
from ncs.serve.mcp.project import Project
from ncs.serve.mcp.projects import Projects
from ncs.serve.mcp.search import find_similar, search_code

LANGUAGES = 8
"""Languages that a status names."""


def answer(projects: Projects, uris: Sequence[str] | None, tool: str, arguments: Mapping[str, object]) -> Page:
    """Answer one call; uris: the client's roots. Raises NcsError, with the remedy, for what cannot be answered."""
    if tool not in TOOLS:
        raise BadInput(f"there is no tool {short(tool, 60)}; there are: {', '.join(TOOLS)}")
    asked = read(tool, arguments)
    return _ANSWERS[tool](projects.chosen(projects.of(uris), asked.project), asked)


def index_status(projects: Sequence[Project], asked: IndexStatus) -> Page:
    """Every project with the state of its index."""
    found, lines = [], list[str]()
    for project in projects:
        with project.ready() as (index, notes):
            state = _state(project, index, notes)
        found.append(state)
        languages = ", ".join(f"{name} {count:,}" for name, count in state["languages"].items())
        what = f"{state['documents']:,} documents ({languages}), built {state['created']}" if index else "no index yet"
        fresh = {True: "up to date", False: "files changed since", None: "not known whether up to date"}
        lines += [f"{state['project']} at {state['root']}: {what}; {fresh[state['up_to_date']]}"]
        lines += [f"  {note}" for note in state["notes"]]
    return Page("\n".join(lines), {"projects": found})


def _state(project: Project, index: Index | None, notes: Sequence[str]) -> dict[str, Any]:
    counts = index.store.counts.get("languages", {}) if index else {}
    languages = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:LANGUAGES]
    return {
        "project": short(project.name), "root": short(str(project.root)), "documents": len(index) if index else 0,
        "languages": dict(languages), "created": index.manifest.created if index else None, "running": project.job,
        "up_to_date": project.current, "notes": short_notes([*notes, *(not_ready(index) if index else [])]),
    }  # fmt: skip


_ANSWERS: Mapping[str, Callable[[Sequence[Project], Any], Page]] = {
    "search_code": search_code,
    "find_similar": find_similar,
    "get_function": get_function,
    "find_definition": find_definition,
    "index_status": index_status,
}
