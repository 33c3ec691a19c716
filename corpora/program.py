"""A program of any shape (a function, members, bare statements, a whole file) as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ncs.extract import LANGUAGES, extract
from ncs.types import FIELDS, Document, Field, Tokens

_NAME = "__program__"  # of the wrapper around a program; it never becomes a word
_UNWRAPPED = ("", "", "")
_CLASS, _PHP = (f"class {_NAME} {{\n", "", "\n}"), "<?php\n"
_SHAPES: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "java": (_CLASS, (f"class {_NAME} {{ void {_NAME}() {{\n", "", "\n} }")),
    "python": ((f"def {_NAME}():\n", "    ", "\n"),),
    "php": ((_PHP, "", "\n"), (f"{_PHP}class {_NAME} {{\n", "", "\n}"), (f"{_PHP}function {_NAME}() {{\n", "", "\n}")),
    **dict.fromkeys(("javascript", "typescript", "tsx"), (_CLASS, (f"function {_NAME}() {{\n", "", "\n}"))),
    "csharp": (_CLASS,),
}
"""language -> (before, indentation of each line, after): around members of a class, around statements."""


def read_program(code: str, language: str, *, id: str, title: str = "") -> Document:
    """The words of all outermost functions in `code`, under the caller's id.

    Stack Overflow's answers are often bare members or statements. Where functions outside of classes
    are less than half of the code, it is also parsed inside a class or function, and the shape with
    most words wins. Code without functions and other text become the `doc` field. `code` is stored
    unchanged; the digest is empty, so that programs are never merged.
    """
    functions: list[Document] = []
    if language in LANGUAGES:
        functions = _functions(code, language, _UNWRAPPED)
        if not _is_whole(functions, code):
            shapes = [_UNWRAPPED, *_SHAPES.get(language, ())]
            functions = max((_functions(code, language, shape) for shape in shapes), key=_size)
    words = _merge(functions) or {"doc": (f"{title} {code}".strip(),)}
    name = title or (functions[0].name if len(functions) == 1 and functions[0].name != _NAME else "")
    qualified = title or (functions[0].qualified_name if name else "")
    return Document(
        id=id,
        repository="",
        path="",
        start_line=1,
        end_line=code.count("\n") + 1,
        language=language,
        kind="program",
        name=name,
        qualified_name=qualified,
        words=words,
        code=code,
    )


def _functions(code: str, language: str, shape: tuple[str, str, str]) -> list[Document]:
    before, indentation, after = shape
    lines = "\n".join(indentation + line for line in code.split("\n")) if indentation else code
    source = (before + lines + after).encode("utf-8", "replace")
    return list(_outermost(extract(source, language)))


def _outermost(documents: Iterable[Document]) -> Iterator[Document]:
    """Functions that are not nested in another one."""
    end = 0
    for document in sorted(documents, key=lambda d: (d.start_line, -d.end_line)):
        if document.end_line > end:
            yield document
            end = document.end_line


def _is_whole(functions: Sequence[Document], code: str) -> bool:
    """Whether the code needs no wrapper: a function is in a class, or functions are half of the lines."""
    lines = sum(function.end_line - function.start_line + 1 for function in functions)
    return 2 * lines > len(code.strip().split("\n")) or any("scope" in function.words for function in functions)


def _size(documents: Iterable[Document]) -> int:
    return sum(len(words) for words in _merge(documents).values())


def _merge(documents: Iterable[Document]) -> dict[Field, Tokens]:
    """Words of several functions field by field; the names around them count once."""
    merged: dict[Field, list[str]] = {field: [] for field in FIELDS}
    for document in documents:
        for field, words in document.words.items():
            merged[field] += [word for word in words if word and word != _NAME]
    merged["scope"] = list(dict.fromkeys(merged["scope"]))
    return {field: tuple(words) for field, words in merged.items() if words}
