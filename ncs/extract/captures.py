"""What a query captures of a tree: told by a compiled reader where it knows how trees lie, else by tree-sitter.

tree-sitter's own walk and an object for each captured node cost .4 to .85 of parsing; the reader (_tree.c) .11 to .39.
It reads trees where the parser left them, of which only the pointer to the root is public. So it is used with versions
of tree-sitter whose trees were looked at, and checks each root against what tree-sitter says of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from tree_sitter import Language as Grammar
from tree_sitter import Query, QueryCursor

from ncs.extract.patterns import compiled

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.extract.languages import Language

try:
    from ncs.extract import _tree
except ImportError:  # not compiled: tree-sitter tells
    _tree = None  # type: ignore[assignment]

Found = dict[str, list[tuple[int, int]]]
"""Capture -> its byte ranges, sorted."""
Captures = Callable[[bytes, "Node"], Found]
"""A source and the root of its tree -> what is captured."""

KNOWN = "0.25.", "0.26."
"""Versions of tree-sitter whose trees _tree.c reads."""


def captures_of(row: Language, grammar: Grammar) -> Captures:
    """The captures of a language's queries, the quickest way there is."""
    by_query = captures_by_query(row, grammar)
    if _tree is None or not _known():
        return by_query
    names, patterns = compiled(query_of(row), grammar)
    read = _tree.Reader(row.load(), grammar.node_kind_count, grammar.field_count, names, patterns)

    def captures(source: bytes, root: Node) -> Found:
        found = read(source, root.id, root.start_byte, root.end_byte, root.descendant_count)
        return by_query(source, root) if found is None else found

    return captures


def captures_by_query(row: Language, grammar: Grammar) -> Captures:
    """The same told by tree-sitter, which gives nodes in no order."""
    cursor = QueryCursor(Query(grammar, query_of(row)))

    def captures(_source: bytes, root: Node) -> Found:
        found = cursor.captures(root)
        return {what: sorted([node.byte_range for node in nodes]) for what, nodes in found.items() if what[0] != "_"}

    return captures


def query_of(row: Language) -> str:
    """The query of a language, whole."""
    return "\n".join(files("ncs.extract").joinpath(f"{name}.scm").read_text("utf-8") for name in row.queries)


def _known() -> bool:
    return (
        os.name == "posix"
        and sys.byteorder == "little"
        and sys.maxsize > 2**32
        and version("tree-sitter").startswith(KNOWN)
    )
