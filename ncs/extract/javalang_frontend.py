"""The second Java front end: javalang, a strict parser in Python, a cross-check of tree-sitter.

It reads Java up to version 8 and rejects a file at its first error. Its tree has neither ends of functions (they come
from matching braces among the tokens) nor comments (they come from a pattern), and within a field words stand in the
order of the tree, which puts the arguments of a call before its receiver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import javalang
from javalang import tree
from javalang.ast import Node
from javalang.tree import (
    ClassCreator,
    ConstructorDeclaration,
    EnumConstantDeclaration,
    InnerClassCreator,
    MemberReference,
    MethodDeclaration,
    TypeDeclaration,
)

from ncs.errors import SourceError
from ncs.extract.comments import Comments, unquote
from ncs.extract.documents import File, Function, documents_of, with_distinct_ids
from ncs.extract.languages import Language
from ncs.extract.source_bytes import Span, as_utf8
from ncs.types import Document, Field, Tokens

_COMMENT_OR_TEXT = re.compile(
    rb"""(?P<comment>//[^\n]*|/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


def read(source: bytes, language: Language, repository: str, path: str) -> tuple[list[Document], bool]:
    """Documents of a Java file in source order; never with syntax errors.

    Raises SourceError where javalang cannot read the file: newer Java, an error, nesting beyond its recursion.
    """
    source = as_utf8(source)
    text = source.decode("utf-8", "replace")
    try:
        tokens = list(javalang.tokenizer.tokenize(text))
        unit = javalang.parser.Parser(tokens).parse()
    except (javalang.parser.JavaParserBaseException, javalang.tokenizer.LexerError, RecursionError) as error:
        raise SourceError(f"javalang cannot read {path or 'the file'} ({type(error).__name__})") from error
    except (StopIteration, TypeError, AttributeError, IndexError) as error:  # its own bugs
        raise SourceError(f"javalang fails on {path or 'the file'} ({type(error).__name__})") from error
    positions = _Positions(text, tokens)
    functions = sorted(_functions(unit, positions), key=lambda function: (function.start, -function.end))
    spans = [match.span() for match in _COMMENT_OR_TEXT.finditer(source) if match["comment"]]
    file = File(source, Comments(source, spans, [], language), language, repository, path)
    return with_distinct_ids(documents_of(file, functions)), False


def _walk(top: Any) -> Iterator[Any]:
    """A node and all nodes below it, the enclosing before the enclosed."""
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, Node):
            yield node
            stack += reversed(node.children)
        elif isinstance(node, (list, tuple)):
            stack += reversed(node)


def _functions(unit: Any, positions: _Positions) -> Iterator[Function]:
    stack: list[tuple[Any, Tokens]] = [(unit, ())]
    while stack:
        node, scope = stack.pop()
        if isinstance(node, (list, tuple)):
            stack += [(child, scope) for child in node]
        if not isinstance(node, Node):
            continue
        name = _scope_name(node)
        inside = (*scope, name) if name else scope
        if isinstance(node, (MethodDeclaration, ConstructorDeclaration)) and node.body is not None:
            kind = "method" if isinstance(node, MethodDeclaration) else "constructor"
            if span := positions.function(node.position, node.name):
                yield Function(*span, kind, node.name, scope, _words(_walk(node)))
        if isinstance(node, TypeDeclaration):
            body = node.body if isinstance(node.body, list) else getattr(node.body, "declarations", None)
            for block in body or ():
                starts = isinstance(block, list) and block and isinstance(block[0], Node)
                if starts and (span := positions.initializer(block[0].position)):
                    yield Function(*span, "initializer", "initializer", inside, _words(_walk(block)))
        stack += [(child, inside) for child in node.children]


def _scope_name(node: Any) -> str | None:
    if isinstance(node, (TypeDeclaration, MethodDeclaration, ConstructorDeclaration)):
        return str(node.name)
    if isinstance(node, (ClassCreator, InnerClassCreator)) and node.body is not None:
        return str(_last_part(node.type).name)
    if isinstance(node, EnumConstantDeclaration) and node.body:
        return str(node.name)
    return None


def _last_part(type_: Any) -> Any:
    """`B` of `A.B`."""
    while getattr(type_, "sub_type", None) is not None:
        type_ = type_.sub_type
    return type_


def _words(nodes: Iterator[Any]) -> dict[Field, Tokens]:
    words: dict[Field, list[str]] = {}
    parts: set[int] = set()  # ids of nodes whose name came with one above; nodes live as long as the tree
    for node in nodes:
        if id(node) not in parts:
            for field, name in _names(node, parts):
                words.setdefault(field, []).append(name)
    return {field: tuple(names) for field, names in words.items()}


def _names(node: Any, parts: set[int]) -> Iterator[tuple[Field, str]]:
    """The names that a node itself holds, by field."""
    if isinstance(node, (ClassCreator, InnerClassCreator)):
        created = _last_part(node.type)
        parts.add(id(created))
        yield "calls", str(created.name)
    elif isinstance(node, tree.MethodReference):
        parts.add(id(node.method))
        yield "calls", node.method.member
    elif isinstance(node, tree.LambdaExpression):
        for parameter in node.parameters:
            if isinstance(parameter, MemberReference):  # x -> ...; a declared one is a FormalParameter
                parts.add(id(parameter))
                yield "parameters", parameter.member
    elif isinstance(node, tree.Literal):
        if node.value.startswith('"') and (text := unquote(node.value)):
            yield "literals", text
    elif isinstance(node, (tree.FormalParameter, tree.InferredFormalParameter)):
        yield "parameters", node.name
    elif isinstance(node, (tree.MethodInvocation, tree.SuperMethodInvocation)):
        yield from _by_case(node.qualifier)
        yield "calls", node.member
    elif isinstance(node, MemberReference):
        yield from _by_case(node.qualifier)
        yield from _by_case(node.member)
    elif isinstance(node, tree.SuperMemberReference):
        yield from _by_case(node.member)
    elif isinstance(node, tree.ReferenceType):
        yield "types", node.name
    elif isinstance(node, (MethodDeclaration, ConstructorDeclaration)):
        for name in node.throws or ():
            yield from _by_case(name)
    elif isinstance(node, tree.CatchClauseParameter):
        yield from _by_case(node.name)
        for name in node.types or ():
            yield "types", name.rpartition(".")[2]
    elif isinstance(node, (tree.Annotation, tree.ElementValuePair, tree.TypeParameter, tree.VariableDeclarator)):
        yield from _by_case(node.name)


def _by_case(names: str | None) -> Iterator[tuple[Field, str]]:
    """Names with dots between them: CONSTANT, Type, variable."""
    for name in filter(None, (names or "").split(".")):
        yield "enums" if name.isupper() else "types" if name[0].isupper() else "identifiers", name


class _Positions:
    """Byte offsets of tokens, which javalang places by line and column."""

    def __init__(self, text: str, tokens: Sequence[Any]) -> None:
        self._values = [token.value for token in tokens]
        self._numbers = {tuple(token.position): number for number, token in enumerate(tokens)}
        self._starts = []
        lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        end = 0
        for token in tokens:
            start = lines[min(token.position[0], len(lines)) - 1] + token.position[1] - 1
            if not text.startswith(token.value, start):  # escapes like \u0041 shift what follows them
                start = max(end, text.find(token.value, end))
            self._starts.append(start)
            end = start + len(token.value)
        self._partners: dict[int, int] = {}
        """The number of a bracket -> that of the one that closes or opens it."""
        opened = []
        for number, value in enumerate(self._values):
            if value in ("(", "[", "{"):
                opened.append(number)
            elif value in (")", "]", "}"):
                opening = opened.pop()
                self._partners |= {opening: number, number: opening}
        self._bytes = None if text.isascii() else [0, *accumulate(len(c.encode("utf-8", "replace")) for c in text)]

    def function(self, position: Any, name: str) -> Span | None:
        """Byte range of the method or constructor whose type or name stands there: modifiers to closing brace."""
        values = self._values
        at = self._number(position)
        while at < len(values) and not (values[at] == name and values[at + 1 : at + 2] == ["("]):
            at += 1
        if at == len(values):
            return None
        brace = values.index("{", self._partners[at + 1])
        return self._span(self._first(at), self._partners[brace])

    def initializer(self, position: Any) -> Span | None:
        """Byte range of the static block whose first statement stands there; None where there is none."""
        at = self._number(position)
        if self._values[max(at - 2, 0) : at] != ["static", "{"]:
            return None
        return self._span(at - 2, self._partners[at - 1])

    def _number(self, position: Any) -> int:
        """The number of the token at a (line, column); behind the last where there is none."""
        return self._numbers.get(tuple(position or ()), len(self._values))

    def _span(self, first: int, last: int) -> Span:
        start, end = self._starts[first], self._starts[last] + len(self._values[last])
        if self._bytes is None:
            return start, end
        return self._bytes[start], self._bytes[min(end, len(self._bytes) - 1)]

    def _first(self, at: int) -> int:
        """Back over the type, modifiers and annotations to where the declaration starts."""
        while at and self._values[at - 1] not in (";", "{", "}"):
            at -= 1
            if self._values[at] in (")", "]"):
                at = self._partners[at]
        return at
