"""Makes Documents of a source file: functions, and outside them classes and the top level.

A class is an outline, found by its name, its documentation and its fields. Its methods are documents of their own, and
their names are not among its words: that gained nothing on six repositories and ranked the class above the method in
question. The top level of a file (constants, statements, its docstring) is one document, named like the file, or
several, cut at empty lines. Imports and license headers are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from operator import attrgetter
from typing import NamedTuple

from ncs.extract.comments import Comments
from ncs.extract.languages import Language
from ncs.extract.source_bytes import NOT_BRACKETS, Lines, Span, gaps, outermost
from ncs.text.declarations import declared_names
from ncs.types import Document, Field, Tokens

MAX_LINES = 60
"""Lines of a block; a longer top level is cut at empty lines."""
_LAYOUT = b" \t\r\n\f\v\0"
_IMPORT = re.compile(
    rb"^[ \t]*(?:from\s+\S+\s+)?import\s*"
    rb"(?:\([^()]*(?:\([^()]*){0,9}\)|\{[^{}]*(?:\{[^{}]*){0,9}\}[^\n]*|[^\n]*)"  # {0,9}: linear where nothing closes
    rb"|^[ \t]*(?:package|using|use|require|require_relative|include|mod|namespace)\b[^\n]*"
    rb"|^[ \t]*#[ \t]*include[^\n]*|^[^\n=]*=[ \t]*require\([^\n]*",
    re.MULTILINE,
)
_EMPTY_LINES = re.compile(rb"\n[ \t]*(?:\n[ \t]*)+")


class Function(NamedTuple):
    """A function in a source file."""

    start: int
    end: int
    kind: str
    name: str
    scope: Tokens
    words: dict[Field, Tokens]
    """Without name, scope, doc, comments and path, which `documents_of` adds."""


class Class(NamedTuple):
    """A class in a source file."""

    start: int
    end: int
    name: str
    scope: Tokens


class File:
    """A source file.

    bare: of a language with `layout`, the source with comments and strings blanked out. tests: where tests are.
    """

    def __init__(
        self,
        source: bytes,
        comments: Comments,
        language: Language,
        repository: str,
        path: str,
        bare: bytes | bytearray = b"",
        tests: Sequence[Span] = (),
    ) -> None:
        self.source, self.comments, self.language, self.bare = source, comments, language, bare
        self.repository, self.path = repository, path
        self._tests = outermost(sorted(tests, key=_enclosing_first))

    def document(
        self,
        span: Span,
        kind: str,
        name: str,
        scope: Tokens,
        words: dict[Field, Tokens],
        code: bytes,
        hashed: bytes,
        suffix: str = "",
        own: Sequence[Span] = (),
    ) -> Document:
        """A document of the code in the span. suffix: of its id; own: the parts of the span that are its own."""
        start, end = span
        first, last = map(self.comments.lines.number, (start, max(start, end - 1)))
        words["path"] = (self.path,)
        if kind != "initializer":
            words["name"] = (name,)
        if scope:
            words["scope"] = scope
        return Document(
            id=f"{self.repository}/{self.path}:{first}{suffix}",
            repository=self.repository,
            path=self.path,
            start_line=first,
            end_line=last,
            language=self.language.name,
            kind=kind,
            name=name,
            qualified_name=".".join((*scope, name)),
            words=words,
            code=code.decode("utf-8", "replace"),
            digest=digest_of(hashed),
            test=self._is_test(own or [span]),
        )

    def _is_test(self, spans: Sequence[Span]) -> bool:
        """Whether tests cover at least half of the spans."""
        size = covered = 0
        for start, end in spans if self._tests else ():
            size += end - start
            for a, b in self._tests[max(0, bisect_left(self._tests, (start,)) - 1) : bisect_left(self._tests, (end,))]:
                covered += max(0, min(b, end) - max(a, start))
        return 0 < size <= 2 * covered


def with_distinct_ids(documents: Iterable[Document]) -> list[Document]:
    """The documents, with a number appended to ids that occur again, as those on one line do."""
    numbers: dict[str, int] = {}  # the ids in use -> the number that was appended last
    distinct = []
    for document in documents:
        id, n = document.id, numbers.get(document.id, 1)
        while id in numbers:
            n += 1
            id = f"{document.id}.{n}"
        numbers[document.id] = n
        numbers.setdefault(id, 1)
        distinct.append(document if id == document.id else replace(document, id=id))
    return distinct


def digest_of(code: bytes) -> bytes:
    """The digest by which exact copies are recognized."""
    return blake2b(code, digest_size=16).digest()


def documents_of(file: File, functions: Sequence[Function]) -> list[Document]:
    """Documents of functions, in source order, the enclosing before the enclosed.

    The digest is over the code without comments and layout, unless layout is syntax; strings keep theirs.
    """
    source, comments = file.source, file.comments
    code = mark_layout(bytes(comments.code), file.bare) if file.language.layout else comments.code
    documents = []
    following = [*(function.start for function in functions[1:]), len(source)]
    for (start, end, kind, name, scope, words), inner in zip(functions, following, strict=False):
        hashed = bytes(code[start:end].translate(None, _LAYOUT))
        if "literals" in words:
            hashed += "\0".join(words["literals"]).encode("utf-8", "replace")
        comments.describe(start, end, inner, words)
        text = _dedented(source, start, end, comments.lines)
        documents.append(file.document((start, end), kind, name, scope, words, text, hashed))
    return documents


def _dedented(source: bytes, start: int, end: int, lines: Lines) -> bytes:
    """The code in the range, with the indentation of its first line removed from the others."""
    code, line_start = source[start:end], lines.start(start)
    if not 0 < line_start < start or not lines.begins_with(start):
        return code
    return code.replace(source[line_start - 1 : start], b"\n")


_SPACE = b" \t\r\f\v"
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
            if brackets := line.translate(None, NOT_BRACKETS):
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


class Outlines:
    """Documents for the classes of a file and its top level."""

    def __init__(
        self,
        file: File,
        literals: Sequence[tuple[int, str]],
        names: Callable[[Sequence[Span]], dict[Field, Tokens]],
    ) -> None:
        """literals: where strings start, in order, and their text. names: those in some ranges, by field."""
        self._file, self._literals, self._names = file, literals, names

    def documents(self, functions: Sequence[Function], classes: Sequence[Class]) -> list[Document]:
        """The documents in source order. functions and classes: sorted, the enclosing before the enclosed.

        Classes inside functions are part of the functions.
        """
        source = self._file.source
        names = {(function.start, function.end): function.name for function in functions}
        bodies = outermost(sorted(names, key=_enclosing_first))
        starts = [start for start, _ in bodies]
        spans = sorted([*bodies, *((one.start, one.end) for one in classes)], key=_enclosing_first)
        documents = []
        following = 0
        for start, end, name, scope in classes:
            following = spans.index((start, end), following) + 1
            before = bisect_left(starts, start)
            if before and bodies[before - 1][1] > start:
                continue
            members = list(_members((start, end), spans, following))
            code = _outline(source, start, end, {span: names.get(span, "") for span in members})
            own = list(gaps(start, end, members))
            documents.append(self._document((start, end), "class", name, scope, own, members, code))
        inside = outermost(sorted(spans))
        name = self._file.path.rpartition("/")[2].partition(".")[0]
        for number, group in enumerate(self._top_level(inside)):
            start, end = group[0][0], group[-1][1]
            above = [] if number else gaps(0, start, [each for each in inside if each[0] < start])
            own = [*above, *group]
            code = _at_their_lines(source, group)
            kind = "block" if number else "module"
            documents.append(self._document((start, end), kind, name, (), own, inside, code))
        return sorted(documents, key=attrgetter("start_line"))

    def _top_level(self, inside: Sequence[Span]) -> list[list[Span]]:
        """The code outside functions, classes and imports, in groups of at most MAX_LINES lines."""
        source = self._file.source
        pieces: list[Span] = []
        for start, end in gaps(0, len(source), inside):
            for a, b in gaps(start, end, self._file.comments.inside(start, end)):
                for c, d in gaps(a, b, [match.span() for match in _IMPORT.finditer(source, a, b)]):
                    pieces += gaps(c, d, [match.span() for match in _EMPTY_LINES.finditer(source, c, d)])
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
            groups[-1].append((end - len(text.lstrip()), start + len(text.rstrip())))
            lines += here
        return groups

    def _document(
        self,
        span: Span,
        kind: str,
        name: str,
        scope: Tokens,
        own: Sequence[Span],
        inside: Sequence[Span],
        code: bytes,
    ) -> Document:
        """own: the ranges whose words are its own. inside: functions and classes, whose comments are theirs."""
        source = self._file.source
        words = self._names(own)
        every = self._literals
        literals = [each for a, b in own for each in every[bisect_left(every, (a, "")) : bisect_left(every, (b, ""))]]
        docs = [text for at, text in literals if _is_docstring(source, at)]
        if texts := tuple(text for at, text in literals if not _is_docstring(source, at)):
            words["literals"] = texts
        inner = [each for each in own if each[0] >= span[0]]  # not the imports before the first block
        bare = self._file.comments.code if self._file.language.name == "php" else self._file.bare  # define('NAME', 1)
        text = b"\n".join(bytes((bare or self._file.comments.code)[a:b]) for a, b in inner)
        if declared := declared_names(text, self._file.language.name, in_class=kind == "class"):
            words["declared"] = declared
        start = span[0] if kind == "class" else -1
        self._file.comments.describe_outline(start, own, {start for start, _ in inside}, docs, words)
        hashed = code.translate(None, _LAYOUT)
        suffix = f".{name if kind == 'class' else kind}"
        return self._file.document(span, kind, name, scope, words, code, hashed, suffix, inner)


def _outline(source: bytes, start: int, end: int, members: Mapping[Span, str]) -> bytes:
    """The code of a class without the bodies of its members. members: their spans and names.

    A member keeps its lines up to its name; its other lines become empty, so that every line keeps its number.
    """
    parts = []
    at = start
    for (a, b), name in members.items():
        name_start = source.find(name.encode("utf-8", "replace"), a, b)
        line_end = source.find(b"\n", max(a, name_start), b)
        head = source[a:b]
        if line_end >= 0:
            head = _without_body_start(source[a:line_end]) + b" ..." + b"\n" * source.count(b"\n", line_end, b)
        parts += [source[at:a], head]
        at = b
    parts.append(source[at:end])
    return b"".join(parts)


def _at_their_lines(source: bytes, spans: Sequence[Span]) -> bytes:
    """The code of the spans, each at its line: empty ones instead of what is between them."""
    parts, at = [], spans[0][0]
    for start, end in spans:
        parts += [b"\n" * source.count(b"\n", at, start) or b" ", source[start:end]]
        at = end
    return b"".join(parts[1:])


def _without_body_start(head: bytes) -> bytes:
    stripped = head.rstrip(b" \t")
    return stripped[:-1].rstrip(b" \t") if stripped.endswith((b"{", b":")) else head


def _members(outer: Span, spans: Sequence[Span], number: int) -> Iterator[Span]:
    """The outermost spans inside the outer span; spans: sorted; number: that of the first one to look at.

    It jumps from each to the next one behind it, as spans may be nested deeply.
    """
    at, end = outer
    while (number := bisect_left(spans, (at,), number)) < len(spans) and spans[number][0] < end:
        start, stop = spans[number]
        number += 1
        if stop <= end:
            at = stop
            yield start, stop


def _enclosing_first(span: Span) -> Span:
    return span[0], -span[1]


def _is_docstring(source: bytes, at: int) -> bool:
    return source[max(0, at - 3) : at] in (b'"""', b"'''")
