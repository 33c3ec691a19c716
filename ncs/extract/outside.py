"""What stands outside functions as documents: classes as outlines of their members, and the top level of a file.

A class is found by its name, its documentation and its fields; its methods are documents of their own, and their
names, which the outline shows, are not among its words (that gained nothing on six repositories, and put the class
before the method that was asked for). The top level of a file (constants, statements, its docstring) is one document,
named like the file, or several, cut at empty lines, where it is long. Imports and licence headers say nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ncs.extract.bytewise import Span
from ncs.extract.described import Comments
from ncs.extract.documents import LAYOUT, Function
from ncs.extract.languages import Language
from ncs.extract.ranges import blocks, gaps, outermost, outline
from ncs.types import Document, Field, Tokens


class Class(NamedTuple):
    """A class that a front end found."""

    start: int
    end: int
    name: str
    scope: Tokens


class File(NamedTuple):
    """What a front end knows of a file."""

    source: bytes
    words: Callable[[Sequence[Span]], dict[Field, Tokens]]
    """The names in some ranges, by field."""
    literals: Sequence[tuple[int, str]]
    """Where string literals start, in order, and what they say."""
    comments: Comments
    row: Language
    repository: str
    path: str


def outlines(file: File, functions: Sequence[Function], classes: Sequence[Class]) -> list[Document]:
    """Documents for the classes of a file and its top level, in source order.

    functions and classes: sorted, the enclosing before the enclosed. Classes inside functions are theirs.
    """
    names = {(function.start, function.end): function.name for function in functions}
    bodies = outermost(sorted(names, key=lambda span: (span[0], -span[1])))
    starts = [start for start, _ in bodies]
    found = []
    lines = _Lines(file.source)
    for number, one in enumerate(classes):
        before = bisect_left(starts, one.start)
        if before and bodies[before - 1][1] > one.start:
            continue
        inner = [span for span in bodies[before : bisect_left(starts, one.end)] if span[1] <= one.end]
        nested = []
        for other in classes[number + 1 :]:
            if other.start >= one.end:
                break
            nested.append((other.start, other.end))
        inside = outermost(sorted(inner + nested, key=lambda span: (span[0], -span[1])))
        code = outline(file.source, one.start, one.end, {span: names.get(span, "") for span in inside})
        free = list(gaps(one.start, one.end, inside))
        found.append(_document(file, lines, (one.start, one.end), "class", one.name, one.scope, free, inside, code))
    whole = outermost(sorted([*bodies, *((one.start, one.end) for one in classes)]))
    return sorted(found + _top_level(file, lines, whole), key=lambda document: document.start_line)


def _top_level(file: File, lines: _Lines, inside: Sequence[Span]) -> list[Document]:
    name = file.path.rpartition("/")[2].partition(".")[0]
    documented = list(gaps(0, len(file.source), inside))
    free = [piece for start, end in documented for piece in gaps(start, end, _spans_in(file.comments, start, end))]
    found = []
    for number, group in enumerate(blocks(file.source, free)):
        start, end = group[0][0], group[-1][1]
        around = [(0 if number == 0 else start, start), *group] if number == 0 else group
        code = b"\n\n".join(file.source[a:b] for a, b in group)
        kind = "block" if number else "module"
        found.append(_document(file, lines, (start, end), kind, name, (), around, inside, code))
    return found


def _spans_in(comments: Comments, start: int, end: int) -> list[Span]:
    return [span for span in comments.spans if start <= span[0] < end]


def _document(
    file: File,
    lines: _Lines,
    span: Span,
    kind: str,
    name: str,
    scope: Tokens,
    free: Sequence[Span],
    inside: Sequence[Span],
    code: bytes,
) -> Document:
    """free: the ranges whose words are its own. inside: functions and classes, whose comments are theirs."""
    words = file.words(free)
    every = file.literals
    literals = [each for a, b in free for each in every[bisect_left(every, (a, "")) : bisect_left(every, (b, ""))]]
    docs = [text for at, text in literals if _is_docstring(file.source, at)]
    if said := tuple(text for at, text in literals if not _is_docstring(file.source, at)):
        words["literals"] = said
    file.comments.outline(span[0] if kind == "class" else -1, free, {start for start, _ in inside}, docs, words)
    words["name"], words["path"] = (name,), (file.path,)
    if scope:
        words["scope"] = scope
    first, last = lines.number(span[0]), lines.number(max(span[0], span[1] - 1))
    place = f"{file.repository}/{file.path}"
    digest = blake2b(code.translate(None, LAYOUT), digest_size=16).digest()
    text = code.decode("utf-8", "replace")
    qualified = ".".join((*scope, name))
    id = f"{place}:{first}.{kind}" if kind != "class" else f"{place}:{first}.{name}"
    where = (file.repository, file.path, first, last, file.row.name)
    return Document(id, *where, kind, name, qualified, words, text, digest)


def _is_docstring(source: bytes, at: int) -> bool:
    return source[max(0, at - 3) : at] in (b'"""', b"'''")


class _Lines:
    """Line numbers of byte offsets."""

    def __init__(self, source: bytes) -> None:
        self._ends = [match.start() for match in re.finditer(rb"\n", source)]

    def number(self, at: int) -> int:
        return bisect_left(self._ends, at) + 1
