"""Any piece of code into a syntax tree: statements, members, whole files, and what people paste around them."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from ncs.errors import BadInput
from ncs.search.aroma.syntax import Syntax, syntax_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_ELLIPSIS = re.compile(rb"(?<![^\s{};(])(?:\.{3,}|\xe2\x80\xa6)(?![^\s{};)])")
"""Dots that stand for code left out: not those of `String... names`."""
_TAG = re.compile(
    rb'<\?xml[^>]*>|<!--.*?-->|<[A-Za-z][\w.:-]*(?:\s+[\w.:-]+\s*=\s*"[^"]*")+\s*/?>|</[A-Za-z][\w.:-]*>', re.S
)


class Parsed(NamedTuple):
    """A syntax tree, and which of its bytes are the piece of code, not what it was wrapped in."""

    root: Node
    start: int
    end: int
    syntax: Syntax

    def holds(self, node: Node) -> bool:
        """Whether a node is part of the piece or around it."""
        if node.start_byte == node.end_byte:
            return self.start <= node.start_byte <= self.end
        return node.start_byte < self.end and node.end_byte > self.start


def parse(code: bytes, language: str) -> Parsed:
    """The parse with fewest errors, of the code alone and inside each of its language's wrappers; ties go to the first.

    Left out: dots in the place of code, XML tags in a language without, the common indent where indent is syntax.
    Raises BadInput for an unknown language, MissingExtra for one whose grammar is not installed.
    """
    parser, syntax = _parser(language), syntax_of(language)
    code = _cleaned(code, syntax)
    tried: list[tuple[int, Parsed]] = []
    opening = "" if syntax.opening.strip().encode() in code else syntax.opening
    for before, after in (("", ""), *syntax.wrappers):
        before = opening + before
        start = len(before.encode())
        root = parser.parse(b"".join((before.encode(), code, after.encode()))).root_node
        tried.append((_errors(root), Parsed(root, start, start + len(code), syntax)))
        if tried[-1][0] == 0:
            break
    return min(tried, key=itemgetter(0))[1]


def _cleaned(code: bytes, syntax: Syntax) -> bytes:
    if not syntax.markup:
        code = _TAG.sub(b"", code)
    if syntax.indented:
        return dedent(code.decode(errors="replace")).encode()
    return _ELLIPSIS.sub(b"", code)


def _errors(root: Node) -> int:
    """Bytes that do not parse, and one for each token missing or node in error."""
    if not root.has_error:
        return 0
    errors, stack = 0, [root]
    while stack:
        node = stack.pop()
        if node.type == "ERROR":
            errors += 1 + node.end_byte - node.start_byte
        elif node.is_missing:
            errors += 1
        elif node.has_error:
            stack.extend(node.children)
    return errors


def readable(language: str) -> bool:
    """Whether there is a grammar for a language, and it is installed."""
    from ncs.extract.languages import LANGUAGES, installed

    return language in LANGUAGES and installed(language)


@lru_cache(maxsize=64)
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    from ncs.extract.languages import LANGUAGES

    if language not in LANGUAGES:
        raise BadInput(f"no language called {language!r}; there are: {', '.join(LANGUAGES)}")
    return Parser(Language(LANGUAGES[language].load()))
