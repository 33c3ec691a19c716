"""What stands outside functions as documents: classes as outlines of their members, and the top level of a file.

A class is found by its name, its documentation and its fields; its methods are documents of their own, and their
names, which the outline shows, are not among its words (that gained nothing on six repositories, and put the class
before the method that was asked for). The top level of a file (constants, statements, its docstring) is one document,
named like the file, or several, cut at empty lines, where it is long. Imports and licence headers say nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ncs.extract.documents import LAYOUT, Comments, Function, Span
from ncs.extract.languages import Language
from ncs.types import Document, Field, Tokens

LONGEST = 60  # lines of a block; a longer top level is cut at empty lines
_IMPORT = re.compile(
    rb"^[ \t]*(?:from\s+\S+\s+)?import\s*(?:\([^)]*\)|\{[^}]*\}[^\n]*|[^\n]*)"
    rb"|^[ \t]*(?:package|using|use|require|require_relative|include|mod|namespace)\b[^\n]*"
    rb"|^[ \t]*#[ \t]*include[^\n]*|^[^\n=]*=[ \t]*require\([^\n]*",
    re.MULTILINE,
)
_BREAK = re.compile(rb"\n[ \t]*(?:\n[ \t]*)+")
_BODIES = re.compile(rb"[ \t]*\{[ \t]*$|[ \t]*:[ \t]*$")


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
    literals = [(at, text) for at, text in file.literals if any(a <= at < b for a, b in free)]
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


def outermost(spans: Sequence[Span]) -> list[Span]:
    """Those that lie in no other; sorted input.

    >>> outermost([(0, 9), (2, 3), (9, 12)])
    [(0, 9), (9, 12)]
    """
    found: list[Span] = []
    for start, end in spans:
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def gaps(start: int, end: int, inside: Sequence[Span]) -> Iterator[Span]:
    """What of start..end lies outside the spans.

    >>> list(gaps(0, 10, [(2, 4), (8, 10)]))
    [(0, 2), (4, 8)]
    """
    at = start
    for a, b in inside:
        if a > at:
            yield at, a
        at = max(at, b)
    if at < end:
        yield at, end


def outline(source: bytes, start: int, end: int, inside: Mapping[Span, str]) -> bytes:
    """The code of a class; of each named span in it what comes before its body: the first lines up to its name."""
    parts = []
    at = start
    for (a, b), name in inside.items():
        named = source.find(name.encode("utf-8", "replace"), a, b)
        line_end = source.find(b"\n", max(a, named), b)
        head = source[a:b] if line_end < 0 else _BODIES.sub(b"", source[a:line_end]) + b" ..."
        parts += [source[at:a], head]
        at = b
    parts.append(source[at:end])
    return b"".join(parts)


def blocks(source: bytes, free: Sequence[Span]) -> list[list[Span]]:
    """The free spans that hold more than imports, in groups of at most LONGEST lines, cut at empty lines."""
    pieces: list[Span] = []
    for start, end in free:
        for a, b in gaps(start, end, [match.span() for match in _IMPORT.finditer(source, start, end)]):
            at = a
            for match in _BREAK.finditer(source, a, b):
                pieces.append((at, match.start()))
                at = match.end()
            pieces.append((at, b))
    groups: list[list[Span]] = []
    lines = 0
    for start, end in pieces:
        text = source[start:end]
        if not re.search(rb"\w", text):
            continue
        here = text.strip().count(b"\n") + 1
        if not groups or lines + here > LONGEST:
            groups.append([])
            lines = 0
        skipped = len(text) - len(text.lstrip())
        groups[-1].append((start + skipped, start + len(text.rstrip())))
        lines += here
    return groups
