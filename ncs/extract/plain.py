"""Files without syntax errors read by their tokens: the query looks at declarations only, not into their bodies.

The walk of a query over all nodes costs .4 of parsing them. Where the parser found no error, a compiled reader of
tokens (_java.c) tells comments, literals and names as the query would, and where the bodies of classes are; the query
is asked about the members of each. What tokens alone do not tell (records, `switch` with arrows, some generics of one
letter) is left to the query.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tree_sitter import Language as Grammar
from tree_sitter import Query, QueryCursor

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.extract.languages import Language

try:
    from ncs.extract import _java
except ImportError:  # not compiled: the query reads every file
    _java = None  # type: ignore[assignment]

Found = dict[str, list[Any]]
"""Capture -> nodes; of tokens, sorted byte ranges of comments and literals, and where tagged names end."""
_SCOPES = {"class", "class.name", "scope", "scope.name"}
_DEPTHS = 2, 3
"""How far below a class its members are, and below an enumeration."""
_MANY = 1_000
"""Bodies: each is looked up from the root, so the time of more would grow with the square."""


def plain(source: bytes, root: Node, row: Language) -> Found | None:
    """What the query captures of a file without errors, but only those types that their case does not tell.

    None where the tokens do not tell everything, or their reader was not compiled.
    """
    read = None if _java is None else _java.tokens(source)
    if read is None or len(read[1]) > _MANY:
        return None
    found: Found = {**read[0]}
    scopes: dict[str, dict[tuple[int, int], Node]] = {}
    cursors = _declarations(row)
    for start, end, deep in read[1]:
        body = root.descendant_for_byte_range(start, end)
        for what, nodes in cursors[deep].captures(body).items() if body else ():
            if what in _SCOPES:  # a class within a class is met twice
                scopes.setdefault(what, {}).update([(node.byte_range, node) for node in nodes])
            elif what in found:
                found[what] += nodes
            else:
                found[what] = nodes
    for what, by_range in scopes.items():
        found[what] = [*by_range.values()]
    return found


@lru_cache
def _declarations(row: Language) -> tuple[QueryCursor, QueryCursor]:
    """Cursors for the members of classes and of enumerations."""
    text = files("ncs.extract").joinpath(f"{row.queries[0]}.scm").read_text("utf-8")
    query = Query(Grammar(row.load()), text)
    cursors = QueryCursor(query), QueryCursor(query)
    for cursor, depth in zip(cursors, _DEPTHS, strict=True):
        cursor.set_max_start_depth(depth)
    return cursors
