"""The functions of a source file made into Documents: what every front end shares."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from ncs.extract.comments import Comments
from ncs.extract.languages import Language
from ncs.types import Document, Field, Tokens

_LAYOUT = b" \t\r\n\f\v\0"


class Function(NamedTuple):
    """A function in a source file."""

    start: int
    end: int
    kind: str
    name: str
    scope: Tokens
    words: dict[Field, Tokens]
    """Without name, scope, doc, comments and path, which `documents_of` adds."""
    docstring: int = -1
    """Where its docstring starts; -1 without."""


def documents_of(
    source: bytes,
    functions: Iterable[Function],
    comments: Comments,
    language: Language,
    repository: str,
    path: str,
    bare: bytes | bytearray = b"",
) -> list[Document]:
    """Documents of a file.

    functions: in source order, the enclosing before the enclosed. bare: of a language with `layout`, the source with
    comments and strings blanked out. The digest is over the code without comments and layout, unless layout is
    syntax; strings keep theirs.
    """
    code = mark_layout(bytes(comments.code), bare) if language.layout else comments.code
    documents: list[Document] = []
    place = f"{repository}/{path}:"
    before, line, at, twins = -1, 1, 0, 1
    last_line, end = 1, 0
    for start, stop, kind, name, scope, words, docstring in functions:
        if start >= end:  # not inside the function before: count lines from its end
            line, at = last_line, end
        line += source.count(b"\n", at, start)
        at, end = start, stop
        text = source[start:end]
        last_line = line + text.count(b"\n")
        words["path"] = (path,)
        if kind != "initializer":
            words["name"] = (name,)
        if scope:
            words["scope"] = scope
        if comments.spans:
            comments.describe(start, end, docstring, words)
        hashed = code[start:end].translate(None, _LAYOUT)
        if "literals" in words:
            hashed += "\0".join(words["literals"]).encode("utf-8", "replace")
        twins = twins + 1 if line == before else 1
        before = line
        documents.append(
            Document(
                id=f"{place}{line}" if twins == 1 else f"{place}{line}.{twins}",
                repository=repository,
                path=path,
                start_line=line,
                end_line=last_line - text.endswith(b"\n"),
                language=language.name,
                kind=kind,
                name=name,
                qualified_name=".".join((*scope, name)),
                words=words,
                code=_dedented(source, start, text).decode("utf-8", "replace"),
                digest=blake2b(hashed, digest_size=16).digest(),
            )
        )
    return documents


def layout_free_digest(code: bytes) -> bytes:
    """The digest of code whose layout does not matter."""
    return blake2b(code.translate(None, _LAYOUT), digest_size=16).digest()


def _dedented(source: bytes, start: int, code: bytes) -> bytes:
    """The code that starts there, with the indentation of its first line removed from the others."""
    indent = source[source.rfind(b"\n", 0, start) : start]
    return code.replace(indent, b"\n") if len(indent) > 1 and indent.isspace() else code


_SPACE = b" \t\r\f\v"
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_SAME, _DEEPER, _SHALLOWER = 0x0E, 0x0F, 0x10
"""Marks: control characters, no white space; _SHALLOWER and up for one level less and more."""
_MOST_LEVELS = 15


def mark_layout(code: bytes, bare: bytes | bytearray) -> bytes:
    r"""Code with a mark in place of every line end that ends a statement; it says how the indentation changes.

    code: comments and docstrings blanked out by NULs; bare: strings, too. Line ends in brackets, in strings, after a
    backslash and of blank lines get no mark. Indentation counts in levels, so its width does not matter.

    >>> mark_layout(code := b"if a:\n  b(\n  c)\nd", code)
    b'if a:\x0f  b(\n  c)\x10d'
    """
    marked = bytearray(code)
    depth = at = last = 0
    levels = [0]
    joined = True  # no line end before the first line
    for line in bare.split(b"\n"):
        if line.strip(_LAYOUT):
            if not depth and not joined:
                column = len(line) - len(line.lstrip(_SPACE))
                if 0x09 in line[:column]:
                    column = len(line[:column].expandtabs())
                marked[at - 1] = _SAME if column == last else _mark(levels, column)
                last = column
            if brackets := line.translate(None, _NO_BRACKETS):
                closing = brackets.count(b")") + brackets.count(b"]") + brackets.count(b"}")
                depth = max(0, depth + len(brackets) - 2 * closing)
        at += len(line) + 1
        joined = line.endswith(b"\\")
        if joined:
            marked[at - 2] = 0
    return bytes(marked)


def _mark(levels: list[int], column: int) -> int:
    """The mark of a line that starts at a column; levels: where the open blocks start."""
    depth = len(levels)
    while len(levels) > 1 and levels[-1] > column:
        levels.pop()
    left = depth - len(levels)
    if column > levels[-1]:
        levels.append(column)
        return _DEEPER if not left else _SHALLOWER + _MOST_LEVELS  # between two levels: an error in the file
    return _SHALLOWER + min(left, _MOST_LEVELS) - 1 if left else _SAME
