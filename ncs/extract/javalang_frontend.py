"""The second Java front end: javalang, a strict parser in Python, a cross-check of tree-sitter.

It reads Java up to version 8 and rejects a file at its first error. Its tree has neither ends of functions (they come
from matching braces among the tokens) nor comments (they come from a pattern), and within a field words stand in the
order of the tree, which puts the arguments of a call before its receiver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import javalang
from javalang.tree import (
    ClassCreator,
    ConstructorDeclaration,
    EnumConstantDeclaration,
    FormalParameter,
    InferredFormalParameter,
    InnerClassCreator,
    LambdaExpression,
    Literal,
    MemberReference,
    MethodDeclaration,
    MethodReference,
    TypeDeclaration,
)

from ncs.errors import SourceError
from ncs.extract.comments import Comments, unquote
from ncs.extract.documents import Function, documents_of
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
        tree = javalang.parser.Parser(tokens).parse()
    except (javalang.parser.JavaParserBaseException, javalang.tokenizer.LexerError, RecursionError) as error:
        raise SourceError(f"javalang cannot read {path or 'the file'} ({type(error).__name__})") from error
    except (StopIteration, TypeError, AttributeError, IndexError) as error:  # its own bugs
        raise SourceError(f"javalang fails on {path or 'the file'} ({type(error).__name__})") from error
    positions = _Positions(text, tokens)
    functions = sorted(_functions(tree, positions), key=lambda function: (function.start, -function.end))
    spans = [match.span() for match in _COMMENT_OR_TEXT.finditer(source) if match["comment"]]
    return documents_of(source, functions, Comments(source, spans, [], language), language, repository, path), False


def _children(node: Any) -> Iterator[Any]:
    """Nodes right below a node, through lists."""
    waiting = [iter(node.children)]
    while waiting:
        for child in waiting[-1]:
            if isinstance(child, javalang.ast.Node):
                yield child
            elif isinstance(child, (list, tuple)):
                waiting.append(iter(child))
                break
        else:
            waiting.pop()


def _below(node: Any) -> Iterator[Any]:
    """All nodes below a node, the enclosing before the enclosed."""
    stack = [*reversed(list(_children(node)))]
    while stack:
        child = stack.pop()
        yield child
        stack += reversed(list(_children(child)))


def _functions(tree: Any, positions: _Positions) -> Iterator[Function]:
    stack: list[tuple[Any, Tokens]] = [(tree, ())]
    while stack:
        node, scope = stack.pop()
        name = _scope_name(node)
        if isinstance(node, (MethodDeclaration, ConstructorDeclaration)) and node.body is not None:
            kind = "method" if isinstance(node, MethodDeclaration) else "constructor"
            at = positions.of(node.position)
            span = positions.function(at, node.name) if at is not None else None
            if span:
                yield Function(*span, kind, node.name, scope, _words(chain((node,), _below(node))))
        inside = (*scope, name) if name else scope
        if isinstance(node, TypeDeclaration):
            yield from _initializers(node, inside, positions)
        stack += [(child, inside) for child in _children(node)]


def _scope_name(node: Any) -> str | None:
    if isinstance(node, (TypeDeclaration, MethodDeclaration, ConstructorDeclaration)):
        return str(node.name)
    if isinstance(node, (ClassCreator, InnerClassCreator)) and node.body is not None:
        return _last_name(node.type)
    if isinstance(node, EnumConstantDeclaration) and node.body:
        return str(node.name)
    return None


def _initializers(declaration: Any, scope: Tokens, positions: _Positions) -> Iterator[Function]:
    body = declaration.body if isinstance(declaration.body, list) else getattr(declaration.body, "declarations", None)
    for member in body or ():
        if isinstance(member, list) and member and isinstance(member[0], javalang.ast.Node):
            at = positions.of(member[0].position)
            span = positions.initializer(at) if at is not None else None
            if span:
                nodes = (node for statement in member for node in (statement, *_below(statement)))
                yield Function(*span, "initializer", "initializer", scope, _words(nodes))


def _last_name(type_: Any) -> str:
    while getattr(type_, "sub_type", None) is not None:
        type_ = type_.sub_type
    return str(type_.name)


_NAMED = (
    javalang.tree.Annotation,
    javalang.tree.ElementValuePair,
    javalang.tree.TypeParameter,
    javalang.tree.VariableDeclarator,
)


def _words(nodes: Iterator[Any]) -> dict[Field, Tokens]:
    words: dict[Field, list[str]] = {}

    def add(field: Field, word: str) -> None:
        words.setdefault(field, []).append(word)

    def add_by_case(names: str) -> None:
        """By case where the grammar does not tell: CONSTANT, Type, variable."""
        for name in filter(None, names.split(".")):
            add("enums" if name.isupper() else "types" if name[0].isupper() else "identifiers", name)

    created: set[int] = set()  # ids of nodes counted already; nodes live as long as the tree
    for node in nodes:
        if isinstance(node, (ClassCreator, InnerClassCreator)):
            add("calls", _last_name(node.type))
            last = node.type
            while getattr(last, "sub_type", None) is not None:
                last = last.sub_type
            created.add(id(last))
        elif isinstance(node, MethodReference):
            add("calls", node.method.member)
            created.add(id(node.method))
        elif isinstance(node, LambdaExpression):
            for parameter in node.parameters:
                if isinstance(parameter, MemberReference):  # x -> ...; a declared one is a FormalParameter
                    add("parameters", parameter.member)
                    created.add(id(parameter))
        elif isinstance(node, Literal):
            if node.value.startswith('"') and (text := unquote(node.value)):
                add("literals", text)
        elif isinstance(node, (FormalParameter, InferredFormalParameter)):
            add("parameters", node.name)
        elif id(node) not in created:
            _add_names(node, add, add_by_case)
    return {field: tuple(some) for field, some in words.items()}


def _add_names(node: Any, add: Any, add_by_case: Any) -> None:
    """Add the names of a node of any other kind."""
    if isinstance(node, (javalang.tree.MethodInvocation, javalang.tree.SuperMethodInvocation)):
        add_by_case(node.qualifier or "")
        add("calls", node.member)
    elif isinstance(node, MemberReference):
        add_by_case(node.qualifier or "")
        add_by_case(node.member)
    elif isinstance(node, javalang.tree.SuperMemberReference):
        add_by_case(node.member)
    elif isinstance(node, javalang.tree.ReferenceType):
        add("types", node.name)
    elif isinstance(node, (MethodDeclaration, ConstructorDeclaration)):
        for name in node.throws or ():
            add_by_case(name)
    elif isinstance(node, javalang.tree.CatchClauseParameter):
        add_by_case(node.name)
        for name in node.types or ():
            add("types", name.rpartition(".")[2])
    elif isinstance(node, _NAMED):
        add_by_case(node.name)


_OPEN, _CLOSE = {")": "(", "]": "[", "}": "{"}, {"(": ")", "{": "}"}


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
        self._bytes = None if text.isascii() else [0, *accumulate(len(c.encode("utf-8", "replace")) for c in text)]

    def of(self, position: Any) -> int | None:
        """The number of the token at a (line, column); None where there is none."""
        return self._numbers.get(tuple(position)) if position else None

    def function(self, at: int, name: str) -> Span | None:
        """Byte range of the method or constructor whose type or name is token `at`: modifiers to closing brace."""
        values = self._values
        while at < len(values) and not (values[at] == name and values[at + 1 : at + 2] == ["("]):
            at += 1
        if at == len(values):
            return None
        brace = self._matching(at + 1)
        while brace < len(values) and values[brace] != "{":
            brace += 1
        return self._span(self._first(at), self._matching(brace))

    def initializer(self, at: int) -> Span | None:
        """Byte range of the static block whose first statement is token `at`; None where there is none."""
        if self._values[max(at - 2, 0) : at] != ["static", "{"]:
            return None
        return self._span(at - 2, self._matching(at - 1))

    def _span(self, first: int, last: int) -> Span:
        start, end = self._starts[first], self._starts[last] + len(self._values[last])
        return (
            (start, end) if self._bytes is None else (self._bytes[start], self._bytes[min(end, len(self._bytes) - 1)])
        )

    def _matching(self, at: int) -> int:
        opening, closing = self._values[at], _CLOSE[self._values[at]]
        depth = 0
        for number in range(at, len(self._values)):
            depth += (self._values[number] == opening) - (self._values[number] == closing)
            if not depth:
                return number
        return len(self._values) - 1

    def _first(self, at: int) -> int:
        """Back over the type, modifiers and annotations to where the declaration starts."""
        values = self._values
        while at and values[at - 1] not in (";", "{", "}"):
            at -= 1
            if values[at] in (")", "]"):
                opening, depth = _OPEN[values[at]], 1
                closing = values[at]
                while at and depth:
                    at -= 1
                    depth += (values[at] == closing) - (values[at] == opening)
        return at
