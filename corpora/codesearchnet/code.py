"""A function's code as tree-sitter's leaves, and without comments and docstring: what is learnt from and compared."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tree_sitter import Language as Grammar
from tree_sitter import Parser

from ncs.extract import LANGUAGES
from ncs.extract.comments import unquote

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_CLASS = (b"class X {\n", b"\n}")
_AROUND: Mapping[tuple[str, str], tuple[bytes, bytes]] = {
    **{(language, "method"): _CLASS for language in ("java", "csharp", "javascript", "typescript", "tsx")},
    **{(language, "property"): _CLASS for language in ("csharp", "kotlin", "swift", "scala")},
    ("php", "method"): (b"<?php class X {\n", b"\n}"),
    ("php", "function"): (b"<?php\n", b""),
}
"""(language, kind) -> what a function needs around it to be a program."""
_STRINGS = (
    "string string_literal raw_string_literal interpreted_string_literal template_string char_literal "
    "character_literal encapsed_string string_value heredoc nowdoc line_string_literal multi_line_string_literal "
    "verbatim_string_literal rune_literal regex quoted_content"
)
_WHOLE = frozenset(_STRINGS.split())
"""Nodes that are one token, as in the published corpus: strings."""


class Code(NamedTuple):
    """tokens: of the code. text: the code without comments, docstring and empty lines. docstring: its raw text."""

    tokens: tuple[str, ...]
    text: str
    docstring: str


def read_code(function: str, language: str, kind: str = "function") -> Code:
    """A function taken apart. The docstring is Python's: the first expression of the outermost body.

    >>> code = read_code('def f(a):\\n    "Adds."\\n    # one\\n    return a + 1', "python")
    >>> code.tokens, code.docstring
    (('def', 'f', '(', 'a', ')', ':', 'return', 'a', '+', '1'), 'Adds.')
    >>> code.text
    'def f(a):\\n    return a + 1'
    """
    before, after = _AROUND.get((language, kind), (b"", b""))
    source = function.encode("utf-8", "replace")
    whole = before + source + after
    first, last = len(before), len(before) + len(source)
    spans: list[tuple[int, int]] = []
    dropped: set[tuple[int, int]] = set()
    docstring = ""
    for node in _nodes(_parser(language).parse(whole), dropped):
        if language == "python" and not docstring and node.type == "block":
            found = _docstring(node)
            language = ""  # the outermost body is this one
            if found is not None:
                dropped.add((found.start_byte, found.end_byte))
                docstring = _plain(whole[found.start_byte : found.end_byte].decode("utf-8", "replace"))
        elif _is_token(node) and first <= node.start_byte < node.end_byte <= last:
            spans.append((node.start_byte, node.end_byte))
    tokens = tuple(whole[start:end].decode("utf-8", "replace") for start, end in spans)
    return Code(tokens, _without(source, [(a - first, b - first) for a, b in dropped]), docstring)


def _is_token(node: Node) -> bool:
    return node.child_count == 0 or node.type in _WHOLE


def _nodes(tree: Tree, dropped: set[tuple[int, int]]) -> Iterator[Node]:
    """All nodes, the outer before the inner; comments are dropped, and nothing below a token or what was dropped."""
    cursor = tree.walk()
    while True:
        down = False
        node = cursor.node
        if node is not None:
            if "comment" in node.type:
                dropped.add((node.start_byte, node.end_byte))
            elif (node.start_byte, node.end_byte) not in dropped:
                yield node
                down = not _is_token(node)
        if down and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _docstring(block: Node) -> Node | None:
    for child in block.named_children:
        if "comment" in child.type:
            continue
        inner = child.named_children[0] if child.type == "expression_statement" and child.named_children else child
        return inner if inner.type in ("string", "concatenated_string") else None
    return None


def _plain(literal: str) -> str:
    return inspect.cleandoc(unquote(literal.lstrip("rRuUbBfF")))


def _without(source: bytes, spans: list[tuple[int, int]]) -> str:
    """The source without these ranges and without empty lines."""
    kept = []
    at = 0
    for start, end in sorted(spans):
        kept.append(source[at : max(at, start)])
        at = max(at, end)
    kept.append(source[at:])
    lines = b"".join(kept).decode("utf-8", "replace").split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())


@lru_cache
def _parser(language: str) -> Parser:
    return Parser(Grammar(LANGUAGES[language].load()))
