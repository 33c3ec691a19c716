"""Code outside functions as documents: classes as outlines of their members, and the top level of a file.

A class is found by its name, its documentation and its fields. Its methods are documents of their own, and their names
are not among its words: that gained nothing on six repositories and ranked the class above the method in question. The
top level of a file (constants, statements, its docstring) is one document, named like the file, or several, cut at
empty lines. Imports and license headers are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ncs.extract.comments import Comments
from ncs.extract.documents import Function, layout_free_digest
from ncs.extract.languages import Language
from ncs.extract.source_bytes import Span, gaps, outermost
from ncs.types import Document, Field, Tokens

MAX_LINES = 60
"""Lines of a block; a longer top level is cut at empty lines."""
_IMPORT = re.compile(
    rb"^[ \t]*(?:from\s+\S+\s+)?import\s*(?:\([^)]*\)|\{[^}]*\}[^\n]*|[^\n]*)"
    rb"|^[ \t]*(?:package|using|use|require|require_relative|include|mod|namespace)\b[^\n]*"
    rb"|^[ \t]*#[ \t]*include[^\n]*|^[^\n=]*=[ \t]*require\([^\n]*",
    re.MULTILINE,
)
_EMPTY_LINES = re.compile(rb"\n[ \t]*(?:\n[ \t]*)+")
_BODY_START = re.compile(rb"[ \t]*\{[ \t]*$|[ \t]*:[ \t]*$")


class Class(NamedTuple):
    """A class in a source file."""

    start: int
    end: int
    name: str
    scope: Tokens


class File(NamedTuple):
    """What the parser knows of a file."""

    source: bytes
    words: Callable[[Sequence[Span]], dict[Field, Tokens]]
    """The names in some ranges, by field."""
    literals: Sequence[tuple[int, str]]
    """Where string literals start, in order, and their text."""
    comments: Comments
    language: Language
    repository: str
    path: str


def outlines_of(file: File, functions: Sequence[Function], classes: Sequence[Class]) -> list[Document]:
    """Documents for the classes of a file and its top level, in source order.

    functions and classes: sorted, the enclosing before the enclosed. Classes inside functions belong to these.
    """
    names = {(function.start, function.end): function.name for function in functions}
    bodies = outermost(sorted(names, key=lambda span: (span[0], -span[1])))
    starts = [start for start, _ in bodies]
    documents = []
    line_ends = [match.start() for match in re.finditer(rb"\n", file.source)]
    for number, one in enumerate(classes):
        before = bisect_left(starts, one.start)
        if before and bodies[before - 1][1] > one.start:
            continue
        members = [span for span in bodies[before : bisect_left(starts, one.end)] if span[1] <= one.end]
        for other in classes[number + 1 :]:
            if other.start >= one.end:
                break
            members.append((other.start, other.end))
        members = outermost(sorted(members, key=lambda span: (span[0], -span[1])))
        code = _outline(file.source, one.start, one.end, {span: names.get(span, "") for span in members})
        free = list(gaps(one.start, one.end, members))
        span = (one.start, one.end)
        documents.append(_document(file, line_ends, span, "class", one.name, one.scope, free, members, code))
    whole = outermost(sorted([*bodies, *((one.start, one.end) for one in classes)]))
    documents += _top_level(file, line_ends, whole)
    return sorted(documents, key=lambda document: document.start_line)


def _outline(source: bytes, start: int, end: int, members: Mapping[Span, str]) -> bytes:
    """The code of a class; of each member, given with its name, only the lines up to its name."""
    parts = []
    at = start
    for (a, b), name in members.items():
        name_start = source.find(name.encode("utf-8", "replace"), a, b)
        line_end = source.find(b"\n", max(a, name_start), b)
        head = source[a:b] if line_end < 0 else _BODY_START.sub(b"", source[a:line_end]) + b" ..."
        parts += [source[at:a], head]
        at = b
    parts.append(source[at:end])
    return b"".join(parts)


def _top_level(file: File, line_ends: Sequence[int], inside: Sequence[Span]) -> list[Document]:
    """inside: functions and classes."""
    name = file.path.rpartition("/")[2].partition(".")[0]
    free = [
        span
        for start, end in gaps(0, len(file.source), inside)
        for span in gaps(start, end, [comment for comment in file.comments.spans if start <= comment[0] < end])
    ]
    documents = []
    for number, group in enumerate(_blocks(file.source, free)):
        start, end = group[0][0], group[-1][1]
        own = [(0 if number == 0 else start, start), *group] if number == 0 else group
        code = b"\n\n".join(file.source[a:b] for a, b in group)
        kind = "block" if number else "module"
        documents.append(_document(file, line_ends, (start, end), kind, name, (), own, inside, code))
    return documents


def _blocks(source: bytes, free: Sequence[Span]) -> list[list[Span]]:
    """The free spans that hold more than imports, in groups of at most MAX_LINES lines, cut at empty lines."""
    pieces: list[Span] = []
    for start, end in free:
        for a, b in gaps(start, end, [match.span() for match in _IMPORT.finditer(source, start, end)]):
            at = a
            for match in _EMPTY_LINES.finditer(source, a, b):
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
        if not groups or lines + here > MAX_LINES:
            groups.append([])
            lines = 0
        skipped = len(text) - len(text.lstrip())
        groups[-1].append((start + skipped, start + len(text.rstrip())))
        lines += here
    return groups


def _document(
    file: File,
    line_ends: Sequence[int],
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
    if texts := tuple(text for at, text in literals if not _is_docstring(file.source, at)):
        words["literals"] = texts
    start = span[0] if kind == "class" else -1
    file.comments.describe_outline(start, free, {start for start, _ in inside}, docs, words)
    words["name"], words["path"] = (name,), (file.path,)
    if scope:
        words["scope"] = scope
    first, last = (bisect_left(line_ends, at) + 1 for at in (span[0], max(span[0], span[1] - 1)))
    return Document(
        id=f"{file.repository}/{file.path}:{first}.{name if kind == 'class' else kind}",
        repository=file.repository,
        path=file.path,
        start_line=first,
        end_line=last,
        language=file.language.name,
        kind=kind,
        name=name,
        qualified_name=".".join((*scope, name)),
        words=words,
        code=code.decode("utf-8", "replace"),
        digest=layout_free_digest(code),
    )


def _is_docstring(source: bytes, at: int) -> bool:
    return source[max(0, at - 3) : at] in (b'"""', b"'''")
