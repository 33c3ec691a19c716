"""The tools for code that is known by place or name: get_function and find_definition."""

from __future__ import annotations

from collections.abc import Sequence

from ncs.answer import document_as_dict, not_ready
from ncs.errors import BadInput
from ncs.index import Index
from ncs.serve.mcp.asked import FindDefinition, GetFunction
from ncs.serve.mcp.bounded import GAP, SPARE, Page, Row, json_size, size
from ncs.serve.mcp.clean import lines_of, short
from ncs.serve.mcp.hits import row
from ncs.serve.mcp.pages import NOTE, page, short_notes, wanted
from ncs.serve.mcp.places import filters, whole_code
from ncs.serve.mcp.project import Project
from ncs.serve.mcp.scan import scan
from ncs.serve.mcp.search import function_at_place
from ncs.serve.mcp.settings import TOKEN_BYTES
from ncs.storage.definitions import Symbol, Symbols, asked_symbols, folded
from ncs.types import Document

SCANNED = 100
"""Functions that are looked at for a name where there is no index yet."""


def get_function(projects: Sequence[Project], asked: GetFunction) -> Page:
    """All lines of a function, in pages."""
    project, document = function_at_place(projects, asked.place)
    with project.ready() as (index, notes):
        shown = row(project, index, document_as_dict(document, code=False), "", len(projects) > 1)
        lines = lines_of(whole_code(project, index, document))
    return _lines(shown, lines, short_notes(notes), asked, document.start_line)


def _lines(shown: Row, lines: Sequence[str], notes: list[str], asked: GetFunction, first: int) -> Page:
    start, bound = int(asked.cursor or 0), asked.max_tokens * TOKEN_BYTES
    head = [shown.header, *(f"note: {note}" for note in notes)]
    envelope = {**shown.found, "notes": notes}
    text, wire, end = size("\n".join(head)) + SPARE, json_size(envelope) + SPARE, start
    for line in lines[start:]:
        text, wire = text + size(line) + 1, wire + json_size(line)
        if max(text, wire) > bound:
            break
        end += 1
    if end == start:
        raise BadInput(f"cursor: it has {len(lines)} lines" if start >= len(lines) else "max_tokens: ask for more")
    before = [f"{GAP} from line {first + start}]"] if start else []
    left = len(lines) - end
    after = [f'{GAP} {left} of {len(lines)} lines follow: the same call with cursor "{end}"]'] if left else []
    code = lines[start:end]
    structured = {**envelope, "code": "\n".join(code), "next_cursor": str(end) if left else None}
    return Page("\n".join([*head, *before, *code, *after]), structured)


def find_definition(projects: Sequence[Project], asked: FindDefinition) -> Page:
    """Where a name is defined: spelled so first, then otherwise spelled; names that begin so where there is none."""
    symbol = _symbol(asked.name)
    notes, rows = list[str](), list[tuple[float, int, int, Row]]()
    for number, project in enumerate(projects):
        with project.ready() as (index, told):
            notes += [*told, *(not_ready(index) if index else [])]
            found = _defined(project, index, symbol, asked) if index else _scanned(project, symbol)
            for place, (weight, document) in enumerate(found):
                hit = {**document_as_dict(document), "match": _match(document, symbol)}
                rows.append((-weight, number, place, row(project, index, hit, "", len(projects) > 1)))
    rows.sort(key=lambda each: each[:3])
    if not rows:
        notes.append(f"nothing here defines {short(asked.name, 60)}; search_code finds code by what it does")
    return page([shown for *_, shown in rows], notes, {"query": short(asked.name, NOTE)}, asked, projects)


def _symbol(name: str) -> Symbol:
    """As it is asked for, with its owners; a plain word is a name here."""
    word = name.strip().removesuffix("()")
    found = asked_symbols(word)
    return found[0] if len(found) == 1 else Symbol(word)


def _defined(project: Project, index: Index, symbol: Symbol, asked: FindDefinition) -> list[tuple[float, Document]]:
    allowed = index.store.mask(asked.language, *filters(project, index, asked.path))
    rows, weights = Symbols.load(index.data).match(symbol, allowed=allowed)
    best = sorted(zip((-weights).tolist(), rows.tolist(), strict=True))[: wanted(asked)]
    documents = index.store.documents([row for _, row in best])
    return [(-weight, document) for (weight, _), document in zip(best, documents, strict=True)]


def _scanned(project: Project, symbol: Symbol) -> list[tuple[float, Document]]:
    hits = scan(project.root, symbol.name, SCANNED)
    return [(1.0, hit.document) for hit in hits if folded(hit.document.name) == folded(symbol.name)]


def _match(document: Document, symbol: Symbol) -> str:
    """How well a definition is what was asked for."""
    if document.name == symbol.name:
        return "exact"
    return "other spelling" if folded(document.name) == folded(symbol.name) else "begins so"
