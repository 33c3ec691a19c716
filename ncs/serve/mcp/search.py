"""The tools that look for code by what it does: search_code and find_similar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncs.answer import ask, hit_as_dict, not_ready, similar_to
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.search.rankers import DEFAULT_RANKER
from ncs.search.similar import function_in
from ncs.serve.mcp.asked import FindSimilar, SearchCode
from ncs.serve.mcp.bounded import Page, Row
from ncs.serve.mcp.clean import short
from ncs.serve.mcp.hits import row
from ncs.serve.mcp.pages import NOTE, page, wanted
from ncs.serve.mcp.places import document_at, filters
from ncs.serve.mcp.project import BUILDING, Project
from ncs.serve.mcp.scan import scan
from ncs.types import Document


def search_code(projects: Sequence[Project], asked: SearchCode) -> Page:
    """The best functions; of several projects the likeliest first."""
    several, notes, unknown = len(projects) > 1, list[str](), dict[str, list[str]]()
    rows: list[tuple[float, int, int, Row]] = []
    said: dict[str, object] = {"query": short(asked.query, NOTE), "ranker": DEFAULT_RANKER}
    for number, project in enumerate(projects):
        with project.ready() as (index, told):
            answer = _asked(project, index, asked)
            notes += [*told, *answer["notes"]]
            unknown |= answer["unknown_words"]
            said |= {"kind": answer["kind"]} if "kind" in answer else {}
            for hit in answer["hits"]:
                shown = row(project, index, hit, asked.query, several)
                rows.append((-(hit["confidence"] or 0.0) if several else 0.0, hit["rank"], number, shown))
    rows.sort(key=lambda each: each[:3])
    said["unknown_words"] = {short(word, NOTE): near for word, near in list(unknown.items())[:5]}
    return page([shown for *_, shown in rows], notes, said, asked, projects)


def _asked(project: Project, index: Index | None, asked: SearchCode) -> Mapping[str, Any]:
    """What ncs.answer says, or, where there is no index yet, the files themselves."""
    if index is None:
        hits = [hit_as_dict(hit, asked.query) for hit in scan(project.root, asked.query, wanted(asked))]
        return {"hits": hits, "notes": [], "unknown_words": {}}
    repository, path = filters(project, index, asked.path)
    return ask(
        index, asked.query, wanted(asked), ranker=DEFAULT_RANKER,
        language=asked.language, repository=repository, path=path, functions_only=asked.functions_only,
    )  # fmt: skip


def find_similar(projects: Sequence[Project], asked: FindSimilar) -> Page:
    """Functions like the one at a place, or like code that is sent; of several projects the most alike first."""
    if (asked.place is None) == (asked.code is None):
        raise BadInput("give either place (path:line) or code (a whole function)")
    function = function_at_place(projects, asked.place)[1] if asked.place else None
    notes, rows = list[str](), list[tuple[float, int, int, Row]]()
    for number, project in enumerate(projects):
        with project.ready() as (index, told):
            if index is None:
                when = "it is being built, ask again in some seconds" if BUILDING in told else "; ".join(told)
                raise BadInput(f"find_similar needs the index: {when}; search_code answers meanwhile")
            function = function or _sent(index, asked)
            called = short(asked.place or "the code", NOTE)
            repository, path = filters(project, index, asked.path)
            answer = similar_to(
                index, function, called, wanted(asked), language=asked.language, repository=repository, path=path
            )
            notes += [*told, *not_ready(index), *answer["notes"]]
            for hit in answer["hits"]:
                shown = row(project, index, hit, answer["marked"], len(projects) > 1)
                rows.append((-hit["score"], hit["rank"], number, shown))
    rows.sort(key=lambda each: each[:3])
    said = {"query": short(asked.place or "the code", NOTE), "ranker": "similar"}
    return page([shown for *_, shown in rows], notes, said, asked, projects)


def function_at_place(projects: Sequence[Project], place: str) -> tuple[Project, Document]:
    """The function at path:line, of the first project that has it; raises what `document_at` raises of the first."""
    wrong: list[BadInput] = []
    for project in projects:
        with project.ready() as (index, _):
            try:
                return project, document_at(project, index, place)
            except BadInput as error:
                wrong.append(error)
    raise wrong[0]


def _sent(index: Index, asked: FindSimilar) -> Document:
    """The first function of the code that was sent."""
    source = (asked.code or "").encode("utf-8", "replace")
    known: Mapping[str, int] = index.store.counts.get("languages", {})
    language = (asked.code_language or max(known, key=lambda name: known[name], default="python")).lower()
    first = next((each.start_line for each in extract(source, language)), 1)
    return function_in(source, language, first, path="", called=f"the code, read as {language}")
