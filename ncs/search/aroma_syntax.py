"""Syntax for structural features: parsing of code fragments, and the roles of tree-sitter nodes by language.

tree-sitter grammars use similar names, so one set of patterns fits most; a language that differs, or whose fragments
parse only inside a wrapper, has a row in SYNTAX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from ncs.errors import BadInput

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Role = str
"""Of a leaf: "string", "number", "keyword", "name" or "other"; of what has parts: "string", "function", "class", ..."""

DECLARES = r"""
    (variable_declarator|variable_declaration|var_spec|const_spec|short_var_declaration|init_declarator
        |declaration|let_declaration|let_condition|val_definition|var_definition|property_declaration|variable_list
        |variable_assignment|assignment|named_expression|as_pattern|resource) \.(name|left|pattern|declarator|alias)
    |variable_declaration\. |assignment_statement\.variable
    |.*param.*\.(name|pattern|declarator|parameter)?
    |.*(lambda|arrow|closure).*\.parameters?
    |(.*_)?(for|foreach|range)(_.*)?\.(name|left|pattern|item|variable|declarator)
    |(.*_)?(catch|exception|rescue)(_.*)?\.(name|parameter|variable)? |payload\.
    |instanceof_expression\.name |.*\.patterns?
"""
"""`type.field` of the parents in which a name declares a local variable or a parameter; no field: `type.`."""

_ROLES: Mapping[Role, str] = {
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
    declares: str = DECLARES
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
    "php": Syntax((_CLASS,), "<?php\n", DECLARES + r"|variable_name\.", markup=True),
    "kotlin": Syntax((("fun x() {\n", "\n}"), _CLASS)),
    "rust": Syntax((("fn x() {\n", "\n}"), ("impl X {\n", "\n}"))),
    "scala": Syntax((("object X {\n", "\n}"),)),
    "swift": Syntax((_CLASS,)),
    "zig": Syntax((("fn x() void {\n", "\n}"),)),
}


def syntax_of(language: str) -> Syntax:
    """The row of a language, or the defaults."""
    return SYNTAX.get(language, Syntax())


@lru_cache(maxsize=8192)
def is_a(role: Role, type: str) -> bool:
    """Whether nodes of this type have a role.

    >>> is_a("number", "decimal_integer_literal"), is_a("function", "method_declaration"), is_a("name", "identifier")
    (True, True, True)
    >>> is_a("function", "method_invocation"), is_a("name", "type_identifier")
    (False, False)
    """
    return _ROLE[role].fullmatch(type) is not None


@lru_cache(maxsize=64)
def _declares(syntax: Syntax) -> re.Pattern[str]:
    return re.compile(syntax.declares, re.VERBOSE)


@lru_cache(maxsize=32768)
def declares(syntax: Syntax, type: str, field: str | None) -> bool:
    """Whether a name in this field of a node of this type is declared there.

    >>> [declares(Syntax(), *position) for position in (("variable_declarator", "name"), ("binary_expression", "left"))]
    [True, False]
    """
    return _declares(syntax).fullmatch(f"{type}.{field or ''}") is not None


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
    """A syntax tree, and the byte range of the code without its wrapper."""

    root: Node
    start: int
    end: int
    syntax: Syntax

    def includes(self, node: Node) -> bool:
        """Whether a node is part of the piece or around it."""
        if node.start_byte == node.end_byte:
            return self.start <= node.start_byte <= self.end
        return node.start_byte < self.end and node.end_byte > self.start


def parse(code: bytes, language: str) -> Parsed:
    """The parse with fewest errors, of the code alone and inside each of its language's wrappers; ties go to the first.

    Removes an ellipsis in place of code, XML tags where they are not syntax, and the common indent where it is.
    Raises BadInput for an unknown language, MissingExtra for one whose grammar is not installed.
    """
    parser, syntax = _parser(language), syntax_of(language)
    code = _cleaned(code, syntax)
    trees: list[tuple[int, Parsed]] = []
    opening = "" if syntax.opening.strip().encode() in code else syntax.opening
    for before, after in (("", ""), *syntax.wrappers):
        before = opening + before
        start = len(before.encode())
        root = parser.parse(b"".join((before.encode(), code, after.encode()))).root_node
        trees.append((_errors(root), Parsed(root, start, start + len(code), syntax)))
        if trees[-1][0] == 0:
            break
    return min(trees, key=itemgetter(0))[1]


def _cleaned(code: bytes, syntax: Syntax) -> bytes:
    if not syntax.markup:
        code = _TAG.sub(b"", code)
    if syntax.indented:
        return dedent(code.decode(errors="replace")).encode()
    return _ELLIPSIS.sub(b"", code)


def _errors(root: Node) -> int:
    """The size of errors: bytes that do not parse, plus one per missing token or error node."""
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
    """Whether a language has an installed grammar."""
    from ncs.extract.languages import LANGUAGES, installed

    return language in LANGUAGES and installed(language)


@lru_cache(maxsize=64)
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    from ncs.extract.languages import LANGUAGES

    if language not in LANGUAGES:
        raise BadInput(f"no language called {language!r}; there are: {', '.join(LANGUAGES)}")
    return Parser(Language(LANGUAGES[language].load()))
