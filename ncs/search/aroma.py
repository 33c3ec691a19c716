"""Aroma's structural features of code, and the similarity of two feature multisets.

Luan et al., "Aroma: code recommendation via structural code search" (OOPSLA 2019), section 3.1, written from the
paper. A simplified parse tree has lists as nodes; a list's label joins its keyword tokens and a `#` for each part
that is no keyword. Every other token n (a name, a literal) gives these features:

    n                                    local variables become #VAR, literals their class (#STR, #NUM)
    (n, i, label)                        for parent, grandparent and great-grandparent; i is the part that has n
    (n, next token)                      what follows in source order
    (use, next use)                      for a variable: its place here and at its next use, as (i, label)

A local variable is a local or parameter that the piece declares; other names keep their spelling.

tree-sitter grammars use similar names, so one set of patterns fits most; a language whose fragments need a wrapper or
other treatment has a row in SYNTAX.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from ncs.text.quotes import blank_openings

if TYPE_CHECKING:
    from tree_sitter import Node

Feature = tuple[object, ...]
Features = Mapping[Feature, int]
"""A multiset: feature -> count."""


def features(code: str | bytes, language: str) -> Features:
    """The multiset of features of statements, members or a whole file, whichever parses with fewest errors; few for
    invalid code. Raises BadInput for a language without a grammar."""
    parsed = parse(code.encode(errors="replace") if isinstance(code, str) else code, language)
    tokens = _tokens(parsed)
    owners = [token.owner() for token in tokens]
    texts = ["#VAR" if owner else token.text for token, owner in zip(tokens, owners, strict=True)]
    counts: Counter[Feature] = Counter()
    counts.update((text,) for text in texts)
    counts.update((text, *step) for token, text in zip(tokens, texts, strict=True) for step in token.above)
    counts.update((text, "->", after) for text, after in pairwise(texts))
    counts.update(_uses(tokens, owners))
    return counts


cached_features = lru_cache(maxsize=20_000)(features)


def similarity(function: Features, answer: Features) -> float:
    """The share of the answer's features that the function has, as multisets; 0 for an answer without features.

    >>> similarity(features("a.close(); b.open();", "java"), features("a.close();", "java"))
    1.0
    """
    total = sum(answer.values())
    shared = sum(min(count, function.get(feature, 0)) for feature, count in answer.items())
    return shared / total if total else 0.0


def resemblance(one: Features, other: Features) -> float:
    """The Jaccard similarity of two multisets; 0 if both are empty.

    >>> resemblance(features("a.close(); b.open();", "java"), features("a.close();", "java"))
    0.3684210526315789
    """
    shared = sum(min(count, other.get(feature, 0)) for feature, count in one.items())
    either = sum(one.values()) + sum(other.values()) - shared
    return shared / either if either else 0.0


def _uses(tokens: Sequence[Token], owners: Sequence[Scope | None]) -> Iterator[Feature]:
    """Pairs of consecutive uses of a variable."""
    last: dict[tuple[Scope, str], Step] = {}
    for token, owner in zip(tokens, owners, strict=True):
        if owner and token.above:
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
MAX_SCOPES = 64
"""Scopes around a name in which its declaration is searched."""


class Scope:
    """A function, or the whole piece: the names of its local variables, and the scope around it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: set[str] = set()
        self.outer = outer


class Token(NamedTuple):
    """A token that is not a keyword."""

    text: str
    variable: bool
    """Whether its position allows a local variable's name."""
    scope: Scope
    above: tuple[Step, ...]

    def owner(self) -> Scope | None:
        """The scope that declares the variable it names; None if it names none."""
        scope = self.scope if self.variable else None
        for _ in range(MAX_SCOPES):
            if scope is None or self.text in scope.names:
                return scope
            scope = scope.outer
        return None


class _Place(NamedTuple):
    """A node to visit, and its position."""

    node: Node
    above: tuple[Step, ...]
    scope: Scope
    local: bool
    """Whether what is declared here is a local variable, not a field."""
    declaring: bool
    no_variable: bool


def _tokens(parsed: Parsed) -> list[Token]:
    """Tokens in source order. The tree is walked with a stack: code nests deeper than Python recurses."""
    tokens: list[Token] = []
    root = parsed.root
    is_statements = not any(is_a("function", child.type) for child in root.children)
    stack = [_Place(root, (), Scope(), is_statements, False, True)]
    while stack:
        place = stack.pop()
        node = place.node
        if node.child_count == 0 or (is_a("string", node.type) and not _interpolates(node)):
            if (text := _text(node)) is not None:
                variable = is_a("name", node.type) and (place.declaring or not place.no_variable)
                if variable and place.declaring and place.local:
                    place.scope.names.add(text)
                tokens.append(Token(text, variable, place.scope, place.above))
        else:
            stack.extend(reversed(_parts(place, parsed)))
    return tokens


def _interpolates(node: Node) -> bool:
    return any(is_a("interpolation", child.type) for child in node.children)


def _text(node: Node) -> str | None:
    """The text of a token, or the class of a literal; None for a missing token."""
    if is_a("string", node.type):
        return "#STR"
    if is_a("number", node.type):
        return "#NUM"
    return (node.text or b"").decode(errors="replace") or None  # a missing token has no text


def _parts(place: _Place, parsed: Parsed) -> list[_Place]:
    """The parts of a node that are not keywords, with their positions; wrappers are left out."""
    node, scope, local = place.node, place.scope, place.local
    children = [(child, field) for child, field in _children(node) if parsed.includes(child)]
    function, broken = is_a("function", node.type), node.type == "ERROR"
    if function:
        scope, local = Scope(scope), True
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
                declaring = declares(node.type, field) or (
                    # `i, j` of `for i, j in pairs`
                    place.declaring and field in _WITHIN and not is_a("selection", node.type)
                )
                selected = (before in _SELECTORS and not function) or never_variable(node.type, field)
                parts.append(_Place(child, step, scope, local, declaring, selected))
            number += 1
        before = child.type
    return parts


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
    """Whether a node is a quote or a docstring."""
    if node.type == "expression_statement" and node.child_count == 1:
        return is_a("string", node.children[0].type)
    return is_a("nothing", node.type)


def _is_part(node: Node) -> bool:
    return node.is_named and not (node.child_count == 0 and is_a("keyword", node.type))


def _keyword(node: Node) -> str:
    return (node.text or b"").decode(errors="replace") if node.is_named else node.type


_DECLARES = re.compile(
    r"""
    (variable_declarator|variable_declaration|var_spec|const_spec|short_var_declaration|init_declarator
        |declaration|let_declaration|let_condition|val_definition|var_definition|property_declaration|variable_list
        |variable_assignment|assignment|named_expression|as_pattern|resource) \.(name|left|pattern|declarator|alias)
    |variable_declaration\. |assignment_statement\.variable
    |.*param.*\.(name|pattern|declarator|parameter)?
    |.*(lambda|arrow|closure).*\.parameters?
    |(.*_)?(for|foreach|range)(_.*)?\.(name|left|pattern|item|variable|declarator)
    |(.*_)?(catch|exception|rescue)(_.*)?\.(name|parameter|variable)? |payload\.
    |instanceof_expression\.name |.*\.patterns?
    |variable_name\. # in PHP every variable is local
    """,
    re.VERBOSE,
)
"""`type.field` of the parents in which a name declares a local variable or a parameter; no field: `type.`."""

_ROLES: Mapping[str, str] = {
    "string": r"(.*_)?(string|char|character|rune|heredoc|heredoc_body|text_block)(_literal|_lit|_fragment|_content)?",
    "number": r"(.*_)?(integer|float|floating_point|number|decimal|int|imaginary|real|long)(_literal|_lit)?",
    "keyword": r"this|super|base|self|auto|mutable_specifier|.*_type",
    "nothing": r".*(string|interpolation)_(start|end|brace)|.*quote|ellipsis|php_tag",
    "name": r"(?!(type|field|property|statement|label|package|module|instance|class|global)_)"
    r"(.*_)?(identifier|identifier_pattern|name|word|variable)|implicit_parameter",
    "function": r"(.*_)?(function|method|constructor|lambda|closure|func|init)"
    r"(_(definition|declaration|item|expression|literal))?|static_initializer",
    "class": r"(.*_)?(class|interface|struct|enum|object|impl|trait|record|union|protocol|extension)"
    r"(_(body|declaration|definition|item|specifier))?",
    # an assignment to a member or outer name, not a declaration
    "selection": r"(.*_)?(access|attribute|subscript|member|selector|index|navigation|call|invocation|annotation"
    r"|modifiers|decorator|function_declarator|scoped|types?)(_.*)?|field_.*",
    "interpolation": r"(.*_)?(interpolation|interpolated|substitution|expansion|embedded)(_.*)?",
}
_ROLE = {role: re.compile(pattern) for role, pattern in _ROLES.items()}
_NO_VARIABLE = re.compile(
    r".*invocation.*\.name|(call|.*_call.*)\.(method|name)|.*(definition|declaration|item|annotation|argument|pair).*"
    r"\.(name|key|label)|.*(label|import|package).*\..*|(dotted_name|scoped_.*)\..*"
)


@dataclass(frozen=True, slots=True)
class Syntax:
    """A row of SYNTAX; its defaults are for a language that has none."""

    wrappers: tuple[tuple[str, str], ...] = ()
    """Prefixes and suffixes for a fragment that does not parse alone; the one with the fewest errors is used."""
    opening: str = ""
    """A header that the grammar needs before the code."""
    indented: bool = False
    """Whether indentation is syntax; the fragment's common indent is removed then."""
    markup: bool = False
    """Whether <tags> are part of the language; otherwise they are removed from a fragment."""


_CLASS = ("class X {\n", "\n}")
SYNTAX: Mapping[str, Syntax] = {
    "java": Syntax((_CLASS, ("class X { void x() {\n", "\n}}"), ("class X { void x() { switch (x) {\n", "\n}}}"))),
    "python": Syntax(indented=True),
    "c": Syntax((("void x() {\n", "\n}"),)),
    "cpp": Syntax((("void x() {\n", "\n}"), ("class X {\n", "\n};"))),
    "csharp": Syntax((_CLASS, ("class X { void x() {\n", "\n}}"))),
    "go": Syntax((("package x\nfunc x() {\n", "\n}"), ("package x\n", "\n"))),
    "javascript": Syntax((_CLASS, ("function x() {\n", "\n}")), markup=True),
    "typescript": Syntax((_CLASS, ("function x() {\n", "\n}")), markup=True),
    "tsx": Syntax((_CLASS, ("function x() {\n", "\n}")), markup=True),
    "php": Syntax((_CLASS,), "<?php\n", markup=True),
    "kotlin": Syntax((("fun x() {\n", "\n}"), _CLASS)),
    "rust": Syntax((("fn x() {\n", "\n}"), ("impl X {\n", "\n}"))),
    "scala": Syntax((("object X {\n", "\n}"),)),
    "swift": Syntax((_CLASS,)),
    "zig": Syntax((("fn x() void {\n", "\n}"),)),
}


@lru_cache(maxsize=8192)
def is_a(role: str, type: str) -> bool:
    """Whether nodes of this type have a role.

    >>> is_a("number", "decimal_integer_literal"), is_a("function", "method_declaration"), is_a("name", "identifier")
    (True, True, True)
    >>> is_a("function", "method_invocation"), is_a("name", "type_identifier")
    (False, False)
    """
    return _ROLE[role].fullmatch(type) is not None


@lru_cache(maxsize=32768)
def declares(type: str, field: str | None) -> bool:
    """Whether a name in this field of a node of this type is declared there.

    >>> declares("variable_declarator", "name"), declares("binary_expression", "left")
    (True, False)
    """
    return _DECLARES.fullmatch(f"{type}.{field or ''}") is not None


@lru_cache(maxsize=32768)
def never_variable(type: str, field: str | None) -> bool:
    """Whether a name in this field is never a variable: of a called method, a definition, a named argument."""
    return _NO_VARIABLE.fullmatch(f"{type}.{field or ''}") is not None


_ELLIPSIS = re.compile(rb"(?<![^\s{};(])(?:\.{3,}|\xe2\x80\xa6)(?![^\s{};)])")
"""An ellipsis in place of omitted code: not that of `String... names`."""
_TAG = re.compile(
    rb'<\?xml[^>]*>|<!--.*?-->|<[A-Za-z][\w.:-]*(?:\s+[\w.:-]+\s*=\s*"[^"]*")+\s*/?>|</[A-Za-z][\w.:-]*>', re.S
)


class Parsed(NamedTuple):
    """A syntax tree, and the byte range of the code inside its wrapper."""

    root: Node
    start: int
    end: int

    def includes(self, node: Node) -> bool:
        """Whether a node is part of the piece or around it."""
        if node.start_byte == node.end_byte:
            return self.start <= node.start_byte <= self.end
        return node.start_byte < self.end and node.end_byte > self.start


def parse(code: bytes, language: str) -> Parsed:
    """The parse with fewest errors, of the code alone and inside each wrapper of its language; ties go to the first.

    Raises BadInput for an unknown language, MissingExtra for a missing grammar, SourceError for code that takes too
    long.
    """
    from ncs.extract import treesitter

    parser, syntax = treesitter.parser_of(language), SYNTAX.get(language, Syntax())
    code = _clean(code, syntax)
    trees: list[tuple[int, Parsed]] = []
    opening = "" if syntax.opening.strip().encode() in code else syntax.opening
    for before, after in (("", ""), *syntax.wrappers):
        before = opening + before
        start = len(before.encode())
        root = treesitter.parse(b"".join((before.encode(), code, after.encode())), parser)
        trees.append((_errors(root), Parsed(root, start, start + len(code))))
        if trees[-1][0] == 0:
            break
    return min(trees, key=itemgetter(0))[1]


def _clean(code: bytes, syntax: Syntax) -> bytes:
    """The code without ellipses in place of code, XML tags that are no syntax, and the common indent if it is."""
    if not syntax.markup:
        for opening, closing in ((b"<!--", b"-->"), (b"<?xml", b">")):
            code = blank_openings(code, opening, closing, b"<" + b" " * (len(opening) - 1))
        code = _TAG.sub(b"", code)
    if syntax.indented:
        return dedent(code.decode(errors="replace")).encode()
    return _ELLIPSIS.sub(b"", code)


def _errors(root: Node) -> int:
    """The number of bytes that do not parse, plus one per missing token or error node."""
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
