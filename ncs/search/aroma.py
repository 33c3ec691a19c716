"""Aroma's structural features of code, and the similarity of two feature multisets.

Luan et al., "Aroma: code recommendation via structural code search" (OOPSLA 2019), section 3.1, written from the
paper. A simplified parse tree has lists as nodes; a list's label joins its keyword tokens and a `#` for each part
that is no keyword. Every other token n (a name, a literal) gives these features:

    n                                    local variables become #VAR, literals their class (#STR, #NUM)
    (n, i, label)                        for parent, grandparent and great-grandparent; i is the part that has n
    (n, next token)                      what follows in source order
    (use, next use)                      for a variable: its place here and at its next use, as (i, label)

A local variable is a name that the piece declares, as a local or a parameter. A name that it only uses may be a field
or a variable of code outside, and keeps its spelling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ncs.search.aroma_syntax import Parsed, Syntax, declares, is_a, never_variable, parse, readable

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Feature", "Features", "cached_features", "features", "readable", "similarity"]

Feature = tuple[object, ...]
Features = Mapping[Feature, int]
"""A multiset: feature -> count."""

CACHED = 20_000
"""Pieces of code whose features are cached."""


def features(code: str | bytes, language: str) -> Features:
    """The multiset of features of statements, members or a whole file, whatever parses with fewest errors.

    Invalid code has few features but never raises. Raises BadInput for a language without a grammar.
    """
    parsed = parse(code.encode(errors="replace") if isinstance(code, str) else code, language)
    tokens, scopes = tokens_of(parsed)
    declared = [scopes.owner(token) for token in tokens]
    texts = ["#VAR" if owner is not None else token.text for token, owner in zip(tokens, declared, strict=True)]
    counts: Counter[Feature] = Counter()
    counts.update((text,) for text in texts)
    counts.update((text, *step) for token, text in zip(tokens, texts, strict=True) for step in token.above)
    counts.update((text, "->", after) for text, after in pairwise(texts))
    counts.update(_uses(tokens, declared))
    return counts


@lru_cache(maxsize=CACHED)
def cached_features(code: str, language: str) -> Features:
    """`features`, cached by content."""
    return features(code, language)


def similarity(function: Features, answer: Features) -> float:
    """The share of the answer's features that the function has, as multisets; 0 for an answer without features.

    >>> similarity(features("a.close(); b.open();", "java"), features("a.close();", "java"))
    1.0
    """
    total = sum(answer.values())
    shared = sum(min(count, function.get(feature, 0)) for feature, count in answer.items())
    return shared / total if total else 0.0


def _uses(tokens: Sequence[Token], declared: Iterable[int | None]) -> Iterator[Feature]:
    """Pairs of consecutive uses of a variable."""
    last: dict[tuple[int, str], Step] = {}
    for token, owner in zip(tokens, declared, strict=True):
        if owner is None or not token.above:
            continue
        use, variable = token.above[0], (owner, token.text)
        if variable in last:
            yield "use", last[variable], use
        last[variable] = use


Step = tuple[int, str]
"""Position in a list, and the list's label."""
_SELECTORS = frozenset({".", "->", "::", "?.", "?->", "&.", "!!."})
"""Member-access operators; `->` of a lambda does not count."""
_WITHIN = frozenset({None, "name", "pattern", "left", "declarator", "bound_identifier"})
"""Fields whose names are declared if the enclosing part is."""


class Token(NamedTuple):
    """A token that is not a keyword."""

    text: str
    variable: bool
    """Whether its position allows a local variable's name."""
    scope: int
    above: tuple[Step, ...]


class _Place(NamedTuple):
    """A node to visit, and its position."""

    node: Node
    above: tuple[Step, ...]
    scope: int
    """Number of the function it is in."""
    local: bool
    """Whether what is declared here is a local variable, not a field."""
    declaring: bool
    no_variable: bool


class Scopes:
    """Nested functions and the local variables of each; scope 0 is the whole piece."""

    def __init__(self) -> None:
        self._outer: list[int] = [-1]
        self._names: list[set[str]] = [set()]

    def enter(self, outer: int) -> int:
        """A new function inside another one."""
        self._outer.append(outer)
        self._names.append(set())
        return len(self._outer) - 1

    def declare(self, scope: int, name: str) -> None:
        """A local variable of a function."""
        self._names[scope].add(name)

    def owner(self, token: Token) -> int | None:
        """The scope that declares the variable a token names; None where it names none."""
        scope = token.scope if token.variable else -1
        while scope >= 0:
            if token.text in self._names[scope]:
                return scope
            scope = self._outer[scope]
        return None


def tokens_of(parsed: Parsed) -> tuple[list[Token], Scopes]:
    """Tokens in source order. The tree is walked with a stack: code nests deeper than Python recurses."""
    tokens: list[Token] = []
    scopes = Scopes()
    root = parsed.root
    stack = [_Place(root, (), 0, not any(is_a("function", child.type) for child in root.children), False, True)]
    while stack:
        place = stack.pop()
        node = place.node
        if node.child_count == 0 or (is_a("string", node.type) and not _interpolates(node)):
            if (text := _text(node)) is not None:
                variable = is_a("name", node.type) and (place.declaring or not place.no_variable)
                if variable and place.declaring and place.local:
                    scopes.declare(place.scope, text)
                tokens.append(Token(text, variable, place.scope, place.above))
        else:
            stack.extend(reversed(_parts(place, parsed, scopes)))
    return tokens, scopes


def _interpolates(node: Node) -> bool:
    return any(is_a("interpolation", child.type) for child in node.children)


def _text(node: Node) -> str | None:
    """The text of a token, or the class of a literal; None for a missing token."""
    if is_a("string", node.type):
        return "#STR"
    if is_a("number", node.type):
        return "#NUM"
    return (node.text or b"").decode(errors="replace") or None  # a missing token has no text


def _parts(place: _Place, parsed: Parsed, scopes: Scopes) -> list[_Place]:
    """The parts of a node that are not keywords, with their positions; wrappers are left out."""
    node, scope, local = place.node, place.scope, place.local
    children = [(child, field) for child, field in _children(node) if parsed.includes(child)]
    function, broken = is_a("function", node.type), node.type == "ERROR"
    if function:
        scope, local = scopes.enter(scope), True
    elif is_a("class", node.type):
        local = False
    label = "".join("#" if _is_part(child) else _keyword(child) for child, _ in children)
    plain = len(children) == 1 or broken  # a list of one is replaced by its element
    parts: list[_Place] = []
    number, before = 0, ""
    for child, field in children:
        if _is_part(child):
            if not (broken and child.child_count == 0):  # words of prose, not code
                step = place.above if plain else ((number, label), *place.above)[:3]
                declaring = _declaring(place, field, parsed.syntax)
                selected = (before in _SELECTORS and not function) or never_variable(node.type, field)
                parts.append(_Place(child, step, scope, local, declaring, selected))
            number += 1
        before = child.type
    return parts


def _declaring(place: _Place, field: str | None, syntax: Syntax) -> bool:
    """Whether names directly in this part of a node are declared: `i, j` of `for i, j in pairs`."""
    type = place.node.type
    if declares(syntax, type, field):
        return True
    return place.declaring and field in _WITHIN and not is_a("selection", type)


def _children(node: Node) -> Iterator[tuple[Node, str | None]]:
    """Children with the names of their fields; comments, docstrings and quotes are left out."""
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more:
        child = cursor.node
        if child is not None and (child.type == "ERROR" or not (child.is_extra or _is_ignored(child))):
            yield child, cursor.field_name
        more = cursor.goto_next_sibling()


def _is_ignored(node: Node) -> bool:
    """Whether a node is a quote, or a string statement (documentation)."""
    if node.type == "expression_statement" and node.child_count == 1:
        return is_a("string", node.children[0].type)
    return is_a("nothing", node.type)


def _is_part(node: Node) -> bool:
    return node.is_named and not (node.child_count == 0 and is_a("keyword", node.type))


def _keyword(node: Node) -> str:
    return (node.text or b"").decode(errors="replace") if node.is_named else node.type
