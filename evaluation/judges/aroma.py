"""Aroma's structural features, and how much of an answer's snippet a function contains.

Luan et al., "Aroma: code recommendation via structural code search" (OOPSLA 2019), section 3.1, written from the
paper. A simplified parse tree has lists as nodes; a list's label joins its keyword tokens and a `#` for each part
that is no keyword. Every other token n (a name, a literal) gives these features:

    n                                    local variables become #VAR, literals their class
    (n, i, label)                        for parent, grandparent and great-grandparent; i is the child n stands below
    (n, next token)                      what follows in source order
    (use, next use)                      for a variable: where it stands now and where it stands next, as (i, label)

Which names are local variables is told from syntax alone, because an answer's snippet seldom declares what it uses:
a name with a small first letter that is not called, not a type, and not selected from something (`a` in a.b, not `b`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from ncs.errors import BadInput

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Features = Counter[tuple[object, ...]]

PAPER_THRESHOLD = 0.25
"""UNIF (Cambronero et al. 2019), section 4: a hit answers where its similarity is at least this."""
STRICT_THRESHOLD = 0.6

_STRINGS = frozenset(
    {"string_literal", "string", "character_literal", "text_block", "template_string", "interpreted_string_literal"}
)
_NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "property_identifier", "variable_name"})
# (parent type, field of the parent) in which a small-lettered name is no variable
_NOT_VARIABLE = frozenset(
    {
        ("method_invocation", "name"),
        ("field_access", "field"),
        ("method_declaration", "name"),
        ("constructor_declaration", "name"),
        ("class_declaration", "name"),
        ("marker_annotation", "name"),
        ("annotation", "name"),
        ("element_value_pair", "key"),
        ("labeled_statement", None),
        ("scoped_identifier", "name"),
        ("scoped_identifier", "scope"),
        ("package_declaration", None),
        ("import_declaration", None),
        ("call", "function"),
        ("attribute", "attribute"),
        ("keyword_argument", "name"),
        ("function_definition", "name"),
        ("class_definition", "name"),
        ("dotted_name", None),
    }
)


@dataclass(slots=True)
class _Token:
    """A token that is no keyword: its text for features, and the (child number, node) steps above it."""

    text: str
    variable: str | None
    above: tuple[tuple[int, str], ...]


def features(code: bytes, language: str) -> Features:
    """The multiset of features of any piece of code: statements, members or a whole file."""
    tokens = _tokens(code, _parser(language))
    found: Features = Counter()
    last_use: dict[str, tuple[int, str]] = {}
    for number, token in enumerate(tokens):
        found[(token.text,)] += 1
        found.update((token.text, *step) for step in token.above)
        if number + 1 < len(tokens):
            found[(token.text, "->", tokens[number + 1].text)] += 1
        if token.variable and token.above:
            use = token.above[0]
            if token.variable in last_use:
                found[("use", last_use[token.variable], use)] += 1
            last_use[token.variable] = use
    return found


def similarity(function: Features, answer: Features) -> float:
    """The share of the answer's features that the function has, as multisets; 0 for an answer without features.

    >>> similarity(features(b"a.close(); b.open();", "java"), features(b"x.close();", "java"))
    1.0
    """
    total = sum(answer.values())
    return sum((function & answer).values()) / total if total else 0.0


def judge(answer: str, language: str = "java") -> Callable[[str], float]:
    """A function from code to its similarity with this answer; what it was asked before it remembers."""
    wanted = cached_features(answer, language)
    return lambda code: similarity(cached_features(code, language), wanted)


@lru_cache(maxsize=100_000)
def cached_features(code: str, language: str) -> Features:
    """`features` of text, remembered by content."""
    return features(code.encode(), language)


@lru_cache(maxsize=16)
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    from ncs.extract.languages import LANGUAGES

    if language not in LANGUAGES:
        raise BadInput(f"no language called {language!r}; there are: {', '.join(LANGUAGES)}")
    return Parser(Language(import_module(LANGUAGES[language].grammar).language()))


def _tokens(code: bytes, parser: Parser) -> list[_Token]:
    """Tokens in source order. The tree is walked with a stack: code nests deeper than Python recurses."""
    tokens: list[_Token] = []
    stack: list[tuple[Node, str | None, tuple[tuple[int, str], ...]]] = [(parser.parse(code).root_node, None, ())]
    while stack:
        node, field, above = stack.pop()
        leaf = _leaf(node, field)
        if leaf is not None:
            tokens.append(_Token(leaf[0], leaf[1], above))
            continue
        children = [child for child in node.children if not child.is_extra]  # comments are extras
        parts = [child for child in children if child.is_named]
        if not parts:
            continue
        if len(children) > 1:  # a list of one is what is in it
            label = "".join("#" if child.is_named else child.type for child in children)
            steps = [((number, label), *above)[:3] for number in range(len(parts))]
        else:
            steps = [above]
        fields = _field_names(node)
        stack.extend((part, fields.get(part.id), step) for part, step in reversed(list(zip(parts, steps, strict=True))))
    return tokens


def _leaf(node: Node, field: str | None) -> tuple[str, str | None] | None:
    """(text, variable name) of a token, None for what has parts."""
    kind = node.type
    if kind in _STRINGS:
        return "#STR", None
    if node.child_count:
        return None
    text = (node.text or b"").decode(errors="replace")
    if "integer" in kind or "float" in kind or kind in {"number", "int"}:
        return "#NUM", None
    if kind == "identifier" and text[:1].islower() and node.parent is not None:
        parent = node.parent.type
        if (parent, field) not in _NOT_VARIABLE and (parent, None) not in _NOT_VARIABLE:
            return "#VAR", text
    return text, None


def _field_names(node: Node) -> dict[int, str | None]:
    """Node id of each child -> the name of the field it stands in."""
    return {child.id: node.field_name_for_child(number) for number, child in enumerate(node.children)}


def rates(
    answers: Sequence[str], listed: Sequence[Sequence[str]], others: Sequence[str], thresholds: Sequence[float]
) -> list[tuple[float, float, float]]:
    """(threshold, share of listed examples that pass, share of other functions that pass): calibration.

    listed[i] holds functions known to answer answers[i]; others are functions drawn from the corpus.
    """
    true = [judge(answer)(code) for answer, codes in zip(answers, listed, strict=True) for code in codes]
    false = [judge(answer)(code) for answer in answers for code in others]
    if not true or not false:
        raise BadInput("calibration needs listed examples and other functions; give at least one of each")
    return [(t, sum(s >= t for s in true) / len(true), sum(s >= t for s in false) / len(false)) for t in thresholds]
