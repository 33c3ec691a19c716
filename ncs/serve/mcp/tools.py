"""The five tools: a call is validated, its projects are chosen, and it is answered as text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ncs.answer import ask, document_as_dict, hit_as_dict, not_ready, similar_to
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.search.rankers import DEFAULT_RANKER
from ncs.search.similar import function_in
from ncs.serve.mcp.pages import (
    GAP,
    SPARE,
    Page,
    Row,
    hits_needed,
    json_size,
    lines_of,
    page,
    row_of,
    short_notes,
    shorten,
    size,
)
from ncs.serve.mcp.places import document_at, filters, full_code, scan, shown_path
from ncs.serve.mcp.projects import BUILDING, Project, Projects, choose
from ncs.serve.mcp.schemas import TOOLS, FindDefinition, FindSimilar, GetFunction, IndexStatus, SearchCode, parse
from ncs.serve.mcp.settings import TOKEN_BYTES
from ncs.storage.definitions import Symbol, folded, query_symbols
from ncs.types import Document, Location

SCANNED = 100
"""Functions that are searched for a name where there is no index yet."""
MAX_LANGUAGES = 8
"""Languages that a status names."""
Ranked = tuple[float, int, int, Row]
"""Sorted by the first three: minus the score, the rank in its project, the project's number."""


def answer(projects: Projects, uris: Sequence[str] | None, tool: str, arguments: Mapping[str, object]) -> Page:
    """Answer one call; uris: the client's roots. Raises NcsError, with the remedy, for what cannot be answered."""
    if tool not in TOOLS:
        raise BadInput(f"no tool named {shorten(tool, 60)}; choose from {', '.join(TOOLS)}")
    parsed = parse(tool, arguments)
    return _ANSWERS[tool](choose(projects.of(uris), parsed.project), parsed)


def search_code(projects: Sequence[Project], arguments: SearchCode) -> Page:
    """The best functions; of several projects the most probable first."""
    several, notes, unknown = len(projects) > 1, list[str](), dict[str, list[str]]()
    rows: list[Ranked] = []
    data: dict[str, object] = {"query": shorten(arguments.query), "ranker": DEFAULT_RANKER}
    for number, project in enumerate(projects):
        with project.open_index() as (index, index_notes):
            result = _search(project, index, arguments)
            notes += [*index_notes, *result["notes"]]
            unknown |= result["unknown_words"]
            data |= {"kind": result["kind"]} if "kind" in result else {}
            for hit in result["hits"]:
                row = _row(project, index, hit, arguments.query, several)
                rows.append((-(hit["confidence"] or 0.0) if several else 0.0, hit["rank"], number, row))
    data["unknown_words"] = {shorten(word): suggestions for word, suggestions in list(unknown.items())[:5]}
    return page(_sorted(rows), notes, data, arguments, [project.name for project in projects])


def _search(project: Project, index: Index | None, arguments: SearchCode) -> Mapping[str, Any]:
    """The answer of the index, or of a scan of the files where there is none yet."""
    if index is None:
        hits = scan(project.root, arguments.query, hits_needed(arguments))
        return {"hits": [hit_as_dict(hit, arguments.query) for hit in hits], "notes": [], "unknown_words": {}}
    repository, path = filters(project, index, arguments.path)
    return ask(
        index, arguments.query, hits_needed(arguments), ranker=DEFAULT_RANKER, language=arguments.language,
        repository=repository, path=path, functions_only=arguments.functions_only,
    )  # fmt: skip


def find_similar(projects: Sequence[Project], arguments: FindSimilar) -> Page:
    """Functions like the one at a place, or like code; of several projects the most similar first."""
    if (arguments.place is None) == (arguments.code is None):
        raise BadInput("give either place (path:line) or code (a whole function)")
    function = _function_at(projects, arguments.place)[1] if arguments.place else None
    name = shorten(arguments.place or "the code")
    notes, rows = list[str](), list[Ranked]()
    for number, project in enumerate(projects):
        with project.open_index() as (index, index_notes):
            if index is None:
                reason = "it is being built" if BUILDING in index_notes else "; ".join(index_notes)
                raise BadInput(f"find_similar needs the index: {reason}; use search_code meanwhile")
            function = function or _function_in(index, arguments)
            repository, path = filters(project, index, arguments.path)
            result = similar_to(
                index, function, name, hits_needed(arguments), language=arguments.language, repository=repository,
                path=path,
            )  # fmt: skip
            notes += [*index_notes, *not_ready(index), *result["notes"]]
            for hit in result["hits"]:
                row = _row(project, index, hit, result["marked"], len(projects) > 1)
                rows.append((-hit["score"], hit["rank"], number, row))
    return page(_sorted(rows), notes, {"query": name, "ranker": "similar"}, arguments, [each.name for each in projects])


def _function_at(projects: Sequence[Project], place: str) -> tuple[Project, Document]:
    """The function at path:line, of the first project that has it; raises what `document_at` raises of the first."""
    errors: list[BadInput] = []
    for project in projects:
        with project.open_index() as (index, _):
            try:
                return project, document_at(project, index, place)
            except BadInput as error:
                errors.append(error)
    raise errors[0]


def _function_in(index: Index, arguments: FindSimilar) -> Document:
    """The first function of the code in the request."""
    source = (arguments.code or "").encode("utf-8", "replace")
    counts: Mapping[str, int] = index.documents.counts.get("languages", {})
    language = (arguments.code_language or max(counts, key=lambda name: counts[name], default="python")).lower()
    first = next((each.start_line for each in extract(source, language)), 1)
    return function_in(source, language, first, path="", called=f"the code, read as {language}")


def get_function(projects: Sequence[Project], arguments: GetFunction) -> Page:
    """All lines of a function, in pages."""
    project, document = _function_at(projects, arguments.place)
    with project.open_index() as (index, index_notes):
        row = _row(project, index, document_as_dict(document, code=False), "", len(projects) > 1)
        lines = lines_of(full_code(project, index, document))
    start, limit, notes = int(arguments.cursor or 0), arguments.max_tokens * TOKEN_BYTES, short_notes(index_notes)
    head, data = [row.header, *(f"note: {note}" for note in notes)], {**row.data, "notes": notes}
    text, wire, end = size("\n".join(head)) + SPARE, json_size(data) + SPARE, start
    for line in lines[start:]:
        text, wire = text + size(line) + 1, wire + json_size(line)
        if max(text, wire) > limit:
            break
        end += 1
    if end == start:
        raise BadInput(f"cursor: it has {len(lines)} lines" if start >= len(lines) else "max_tokens: ask for more")
    before = [f"{GAP} from line {document.start_line + start}]"] if start else []
    remaining = len(lines) - end
    after = [f'{GAP} {remaining} of {len(lines)} lines follow: the same call with cursor "{end}"]'] if remaining else []
    structured = {**data, "code": "\n".join(lines[start:end]), "next_cursor": str(end) if remaining else None}
    return Page("\n".join([*head, *before, *lines[start:end], *after]), structured)


def find_definition(projects: Sequence[Project], arguments: FindDefinition) -> Page:
    """Where a name is defined: as spelled, in another style, or as the beginning of a name."""
    word = arguments.name.strip().removesuffix("()")
    symbols = query_symbols(word)
    symbol = symbols[0] if len(symbols) == 1 else Symbol(word)
    notes, rows = list[str](), list[Ranked]()
    for number, project in enumerate(projects):
        with project.open_index() as (index, index_notes):
            notes += [*index_notes, *(not_ready(index) if index else [])]
            if index is None:
                hits = scan(project.root, symbol.name, SCANNED)
                matches = [(1.0, hit.document) for hit in hits if folded(hit.document.name) == folded(symbol.name)]
            else:
                matches = _definitions(project, index, symbol, arguments)
            for rank, (weight, document) in enumerate(matches):
                hit = {**document_as_dict(document), "match": _match(document, symbol)}
                rows.append((-weight, number, rank, _row(project, index, hit, "", len(projects) > 1)))
    if not rows:
        notes.append(f"no definition of {shorten(arguments.name, 60)}; search_code finds code by what it does")
    data = {"query": shorten(arguments.name)}
    return page(_sorted(rows), notes, data, arguments, [project.name for project in projects])


def _definitions(
    project: Project, index: Index, symbol: Symbol, arguments: FindDefinition
) -> list[tuple[float, Document]]:
    allowed = index.documents.mask(arguments.language, *filters(project, index, arguments.path))
    rows, weights = index.facts.definitions.match(symbol, allowed=allowed)
    best = sorted(zip((-weights).tolist(), rows.tolist(), strict=True))[: hits_needed(arguments)]
    documents = index.documents.documents([row for _, row in best])
    return [(-weight, document) for (weight, _), document in zip(best, documents, strict=True)]


def _match(document: Document, symbol: Symbol) -> str:
    if document.name == symbol.name:
        return "exact"
    return "other spelling" if folded(document.name) == folded(symbol.name) else "prefix"


def index_status(projects: Sequence[Project], arguments: IndexStatus) -> Page:
    """Every project with the state of its index."""
    states, lines = [], list[str]()
    for project in projects:
        with project.open_index() as (index, notes):
            state = _state(project, index, notes)
        states.append(state)
        languages = ", ".join(f"{name} {count:,}" for name, count in state["languages"].items())
        summary = (
            f"{state['documents']:,} documents ({languages}), built {state['created']}" if index else "no index yet"
        )
        freshness = {True: "up to date", False: "out of date", None: "not known whether up to date"}
        lines.append(f"{state['project']} at {state['root']}: {summary}; {freshness[state['up_to_date']]}")
        lines += [f"  {note}" for note in state["notes"]]
    return Page("\n".join(lines), {"projects": states})


def _state(project: Project, index: Index | None, notes: Sequence[str]) -> dict[str, Any]:
    counts = index.documents.counts.get("languages", {}) if index else {}
    languages = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_LANGUAGES]
    return {
        "project": shorten(project.name), "root": shorten(str(project.root)), "documents": len(index) if index else 0,
        "languages": dict(languages), "created": index.description.created if index else None, "running": project.job,
        "up_to_date": project.current, "notes": short_notes([*notes, *(not_ready(index) if index else [])]),
    }  # fmt: skip


def _row(project: Project, index: Index | None, hit: Mapping[str, Any], query: str, several: bool) -> Row:
    at = Location(hit["repository"], hit["path"], hit["start_line"], hit["end_line"], hit["qualified_name"])
    return row_of(hit, shown_path(project, index, at), project.name, query, several=several)


def _sorted(rows: list[Ranked]) -> list[Row]:
    return [row for *_, row in sorted(rows, key=lambda each: each[:3])]


_ANSWERS: Mapping[str, Callable[[Sequence[Project], Any], Page]] = {
    "search_code": search_code,
    "find_similar": find_similar,
    "get_function": get_function,
    "find_definition": find_definition,
    "index_status": index_status,
}
