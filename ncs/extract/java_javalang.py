"""The second Java front end: javalang, a strict parser in Python. The cross-check of the first one.

It reads Java up to version 8 and refuses a file whole at its first error. Its tree has no ends of functions
(they come from matching braces among its tokens) and no comments (found by their own pattern), and within a
field words come in the order of its tree, which puts a call's arguments before what it is called on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
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
from ncs.extract.bytewise import as_utf8
from ncs.extract.comments import unquote
from ncs.extract.described import Comments
from ncs.extract.documents import Function, documents_of
from ncs.extract.javalang_places import Places
from ncs.extract.languages import Language
from ncs.types import Document, Field, Tokens

_COMMENT_OR_TEXT = re.compile(
    rb"""(?P<comment>//[^\n]*|/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


def read(source: bytes, row: Language, repository: str, path: str) -> tuple[list[Document], bool]:
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
    except (StopIteration, TypeError, AttributeError, IndexError) as error:  # what its bugs come as
        raise SourceError(f"javalang fails on {path or 'the file'} ({type(error).__name__})") from error
    places = Places(text, tokens)
    functions = sorted(_functions(tree, places), key=lambda function: (function.start, -function.end))
    spans = [match.span() for match in _COMMENT_OR_TEXT.finditer(source) if match["comment"]]
    return documents_of(source, functions, Comments(source, spans, [], row), row, repository, path), False


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
        found = stack.pop()
        yield found
        stack += reversed(list(_children(found)))


def _functions(tree: Any, places: Places) -> Iterator[Function]:
    stack: list[tuple[Any, Tokens]] = [(tree, ())]
    while stack:
        node, scope = stack.pop()
        name = _scope_name(node)
        if isinstance(node, (MethodDeclaration, ConstructorDeclaration)) and node.body is not None:
            kind = "method" if isinstance(node, MethodDeclaration) else "constructor"
            at = places.of(node.position)
            span = places.function(at, node.name) if at is not None else None
            if span:
                yield Function(*span, kind, node.name, scope, _words(chain((node,), _below(node))))
        inside = (*scope, name) if name else scope
        if isinstance(node, TypeDeclaration):
            yield from _initializers(node, inside, places)
        stack += [(child, inside) for child in _children(node)]


def _scope_name(node: Any) -> str | None:
    if isinstance(node, (TypeDeclaration, MethodDeclaration, ConstructorDeclaration)):
        return str(node.name)
    if isinstance(node, (ClassCreator, InnerClassCreator)) and node.body is not None:
        return _last_name(node.type)
    if isinstance(node, EnumConstantDeclaration) and node.body:
        return str(node.name)
    return None


def _initializers(declaration: Any, scope: Tokens, places: Places) -> Iterator[Function]:
    body = declaration.body if isinstance(declaration.body, list) else getattr(declaration.body, "declarations", None)
    for member in body or ():
        if isinstance(member, list) and member and isinstance(member[0], javalang.ast.Node):
            at = places.of(member[0].position)
            span = places.initializer(at) if at is not None else None
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
        """Names that the grammar leaves open: CONSTANT, Type, variable."""
        for name in filter(None, names.split(".")):
            add("enums" if name.isupper() else "types" if name[0].isupper() else "identifiers", name)

    created: set[int] = set()  # nodes counted already, by id: they live as long as the tree
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
    return {field: tuple(found) for field, found in words.items()}


def _add_names(node: Any, add: Any, add_by_case: Any) -> None:
    """What a node of any other kind names."""
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
