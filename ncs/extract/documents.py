"""Functions found in a source file made into Documents: what every front end shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

from ncs.extract.described import Comments
from ncs.extract.drafts import Draft
from ncs.extract.languages import Language
from ncs.extract.layout import marked
from ncs.types import Document, Field, Tokens

LAYOUT = b" \t\r\n\f\v\0"


class Function(NamedTuple):
    """A function that a front end found."""

    start: int
    end: int
    kind: str
    name: str
    scope: Tokens
    words: dict[Field, Tokens]
    """Fields with words only; name, scope, doc, comments and path are added here."""
    docstring: int = -1
    """Where its docstring starts; -1 without."""


def documents_of(
    source: bytes,
    functions: Iterable[Function],
    comments: Comments,
    row: Language,
    repository: str,
    path: str,
) -> list[Document]:
    """Documents of a file.

    functions: in source order, the enclosing before the enclosed.
    The digest is over the code without comments and layout, but for layout that is syntax; strings keep theirs.
    """
    without = marked(bytes(comments.without)) if row.layout else comments.without
    describe = comments.describe if comments.spans else None
    return _documents([*functions], describe, _digest, repository, path, row.name, source, without)


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=16).digest()


def _documents(
    functions: list[Function],
    describe: Callable[[int, int, int, dict[Field, Tokens]], None] | None,
    digest: Callable[[bytes], bytes],
    repository: str,
    path: str,
    language: str,
    source: bytes,
    without: bytes | bytearray,
) -> list[Document]:
    """without: the source without comments; describe: adds their words."""
    documents: list[Document] = []
    path_words = (path,)
    place = f"{repository}/{path}:"
    before, line, at, twins = -1, 1, 0, 1
    last_line, end = 1, 0
    for start, stop, kind, name, scope, words, docstring in functions:
        if start >= end:  # not in the function before: on from its end
            line, at = last_line, end
        line += source.count(b"\n", at, start)
        at, end = start, stop
        code, hashed, lines = _cut(source, without, start, end)
        last_line = line + lines
        words["path"] = path_words
        if kind != "initializer":
            words["name"] = (name,)
        if scope:
            words["scope"] = scope
        if describe:
            describe(start, end, docstring, words)
        if "literals" in words:
            hashed += "\0".join(words["literals"]).encode("utf-8", "replace")
        twins = twins + 1 if line == before else 1
        before = line
        document = Draft(
            f"{place}{line}" if twins == 1 else f"{place}{line}.{twins}",
            repository,
            path,
            line,
            last_line - code.endswith("\n"),
            language,
            kind,
            name,
            f"{'.'.join(scope)}.{name}" if scope else name,
            words,
            code,
            digest(hashed),
        )
        document.__class__ = Document  # type: ignore[assignment]
        documents.append(document)  # type: ignore[arg-type]
    return documents


def _cut(source: bytes, without: bytes | bytearray, start: int, end: int) -> tuple[str, bytes, int]:
    """A range of the source, with the indentation of its first line taken off the others;

    the same range of `without` without layout; and how many line ends are in it.
    """
    code = source[start:end]
    lines = code.count(b"\n")
    indent = source[source.rfind(b"\n", 0, start) : start]
    if len(indent) > 1 and indent.isspace():
        code = code.replace(indent, b"\n")
    return code.decode("utf-8", "replace"), bytes(without[start:end]).translate(None, LAYOUT), lines
