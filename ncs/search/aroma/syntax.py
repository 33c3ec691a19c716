"""What structural features need to know of a language's grammar: names of node types, and how to wrap a fragment.

tree-sitter grammars name alike what is alike, so one set of patterns reads them all; a language that differs, or whose
fragments parse only inside something else, has a row in SYNTAX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

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
    # a part that only takes a name from elsewhere: what is assigned to is no declaration then
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
    """A row of SYNTAX; its defaults read a language that has none."""

    wrappers: tuple[tuple[str, str], ...] = ()
    """What may stand before and after a fragment that does not parse alone: tried in turn, fewest errors win."""
    opening: str = ""
    """What must stand somewhere before the code, and may be missing from a fragment."""
    declares: str = DECLARES
    indented: bool = False
    """Whether leading space is syntax: the fragment's common indent is removed then."""
    markup: bool = False
    """Whether <tags> are part of the language; else those mixed into a fragment are left out."""


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
    """Whether a name in this field is none of a variable: of a called method, a definition, a named argument."""
    return _NO_VARIABLE.fullmatch(f"{type}.{field or ''}") is not None
