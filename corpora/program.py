"""A program of any shape (a function, members, bare statements, a whole file) as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ncs.extract import LANGUAGES, extract
from ncs.types import FIELDS, Document, Field, Tokens

_NAME = "__program__"  # of what we wrap around a program; it never becomes a word of it
_SHAPES: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "java": (
        ("", "", ""),
        (f"class {_NAME} {{\n", "", "\n}"),
        (f"class {_NAME} {{ void {_NAME}() {{\n", "", "\n} }"),
    ),
    "python": (("", "", ""), (f"def {_NAME}():\n", "    ", "\n")),
}
"""language -> (before, indentation of each line, after): a file, members of a class, statements."""


def read_program(code: str, language: str, *, id: str, title: str = "") -> Document:
    """The words of all outermost functions in `code`, under the caller's id.

    Where it has functions only inside a class or function that is not there (Stack Overflow's
    answers are often bare members or statements), one is put around it; of the shapes tried, the
    one that gives most words is taken. Code without functions, and any other text, becomes the
    `doc` field, so every ranker reads it. `code` stays as given; the digest is empty, so no two
    programs are merged.
    """
    found: list[Document] = []
    if language in LANGUAGES:
        shapes = _SHAPES.get(language, (("", "", ""),))
        found = max((_functions(code, language, shape) for shape in shapes), key=_size)
    words = _merge(found) or {"doc": (f"{title} {code}".strip(),)}
    name = title or (found[0].name if len(found) == 1 and found[0].name != _NAME else "")
    qualified = title or (found[0].qualified_name if name else "")
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
    """Those that stand in no other one: a nested function is part of the program's function around it."""
    end = 0
    for document in sorted(documents, key=lambda d: (d.start_line, -d.end_line)):
        if document.end_line > end:
            yield document
            end = document.end_line


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
