"""The simplified parse tree of a piece of code, read off as its tokens, and which of these are local variables.

Luan et al. 2019, section 3.1: keyword tokens only shape the labels of the lists they stand in; every other token
(a name, a literal) knows below which part of which lists it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ncs.search.aroma.parse import Parsed
from ncs.search.aroma.syntax import Syntax, declares, is_a, never_variable

if TYPE_CHECKING:
    from tree_sitter import Node

Step = tuple[int, str]
"""Below which part of a list, and the list's label."""
_SELECTORS = frozenset({".", "->", "::", "?.", "?->", "&.", "!!."})
"""What a name may follow that is selected from something; `->` of a lambda is none."""
_WITHIN = frozenset({None, "name", "pattern", "left", "declarator", "bound_identifier"})
"""Fields in which what a part declares goes on."""


class Token(NamedTuple):
    """A token that is no keyword."""

    text: str
    variable: bool
    """Whether it may be a local variable's name, by where it stands."""
    scope: int
    above: tuple[Step, ...]


class _Place(NamedTuple):
    """A node that is still to be walked, and where it stands."""

    node: Node
    above: tuple[Step, ...]
    scope: int
    """Number of the function it is in."""
    local: bool
    """Whether what is declared here is a local variable, not a field."""
    declaring: bool
    no_variable: bool


class Scopes:
    """Functions within functions, and which local variables each declares; scope 0 is the whole piece."""

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
    """What a token counts as; None for what is none."""
    if is_a("string", node.type):
        return "#STR"
    if is_a("number", node.type):
        return "#NUM"
    return (node.text or b"").decode(errors="replace") or None  # a missing token has no text


def _parts(place: _Place, parsed: Parsed, scopes: Scopes) -> list[_Place]:
    """The parts of a node that are no keywords, each with its step; what wraps the piece leaves no trace."""
    node, scope, local = place.node, place.scope, place.local
    children = [(child, field) for child, field in _children(node) if parsed.holds(child)]
    function, broken = is_a("function", node.type), node.type == "ERROR"
    if function:
        scope, local = scopes.enter(scope), True
    elif is_a("class", node.type):
        local = False
    label = "".join("#" if _is_part(child) else _keyword(child) for child, _ in children)
    plain = len(children) == 1 or broken  # a list of one is what is in it
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
        if child is not None and (child.type == "ERROR" or not (child.is_extra or _says_nothing(child))):
            yield child, cursor.field_name
        more = cursor.goto_next_sibling()


def _says_nothing(node: Node) -> bool:
    """Quotes; and a string that is a statement, which is documentation."""
    if node.type == "expression_statement" and node.child_count == 1:
        return is_a("string", node.children[0].type)
    return is_a("nothing", node.type)


def _is_part(node: Node) -> bool:
    return node.is_named and not (node.child_count == 0 and is_a("keyword", node.type))


def _keyword(node: Node) -> str:
    return (node.text or b"").decode(errors="replace") if node.is_named else node.type
