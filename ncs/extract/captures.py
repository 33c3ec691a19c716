"""What a query captures of a tree, as byte ranges by capture."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from tree_sitter import Language as Grammar
from tree_sitter import Query, QueryCursor

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.extract.languages import Language

Found = dict[str, list[tuple[int, int]]]
"""Capture -> its byte ranges, sorted."""
Captures = Callable[[bytes, "Node"], Found]
"""A source and the root of its tree -> what is captured."""


def captures_of(row: Language, grammar: Grammar) -> Captures:
    """The captures of a language's queries; tree-sitter gives nodes in no order."""
    cursor = QueryCursor(Query(grammar, query_of(row)))

    def captures(_source: bytes, root: Node) -> Found:
        found = cursor.captures(root)
        return {what: sorted([node.byte_range for node in nodes]) for what, nodes in found.items() if what[0] != "_"}

    return captures


def query_of(row: Language) -> str:
    """The query of a language, whole."""
    return "\n".join(files("ncs.extract").joinpath(f"{name}.scm").read_text("utf-8") for name in row.queries)
