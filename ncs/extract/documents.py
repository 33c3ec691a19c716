"""Functions found in a source file made into Documents: what every front end shares."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ncs.extract.comments import clean_comment, clean_docstring
from ncs.extract.drafts import Draft
from ncs.extract.languages import Language
from ncs.extract.layout import marked
from ncs.types import Document, Field, Tokens

try:
    from ncs.extract import _words
except ImportError:  # not compiled: the same in Python
    _words = None  # type: ignore[assignment]

Span = tuple[int, int]
"""A byte range: start, end."""

LAYOUT = b" \t\r\n\f\v\0"
_SPACE = re.compile(rb"\s*")
_FAR = 128  # bytes looked at at once; indentation and a few empty lines take less
_LICENCE = re.compile(rb"copyright|licen[cs]e|all rights reserved", re.IGNORECASE)


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


def as_utf8(source: bytes) -> bytes:
    """UTF-16 and Latin-1 made UTF-8, no byte order mark, and Unix line ends, so that equal code is equal.

    >>> as_utf8("größe".encode("latin-1")).decode()
    'größe'
    """
    if source[:3] == b"\xef\xbb\xbf":
        source = source[3:]
    elif source[:2] in (b"\xff\xfe", b"\xfe\xff"):
        source = source.decode("utf-16", "replace").encode()
    elif not source.isascii():
        text = source.decode("utf-8", "replace")
        if "\ufffd" in text:  # where nothing beyond ASCII is UTF-8, it is Latin-1
            source = (source.decode("latin-1") if text.replace("\ufffd", "").isascii() else text).encode()
    return source.replace(b"\r\n", b"\n") if b"\r" in source else source


def blanked(source: bytes | bytearray, spans: Iterable[Span], blank: bytes = b"\0") -> bytearray:
    """The source with NULs in place of some ranges, so that offsets stay."""
    copy = bytearray(source)
    for start, end in spans:
        copy[start:end] = blank * (end - start)
    return copy


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
    make = documents_in_python if _words is None else _words.documents
    return make(Document, [*functions], describe, _digest, repository, path, row.name, source, without)


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=16).digest()


def documents_in_python(
    kind_of_document: type[Document],
    functions: list[Function],
    describe: Callable[[int, int, int, dict[Field, Tokens]], None] | None,
    digest: Callable[[bytes], bytes],
    repository: str,
    path: str,
    language: str,
    source: bytes,
    without: bytes | bytearray,
) -> list[Document]:
    """What `_words.documents` does. without: the source without comments; describe: adds their words."""
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
        code, hashed, lines = cut_in_python(source, without, start, end)
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
        document.__class__ = kind_of_document  # type: ignore[assignment]
        documents.append(document)  # type: ignore[arg-type]
    return documents


def cut_in_python(source: bytes, without: bytes | bytearray, start: int, end: int) -> tuple[str, bytes, int]:
    """What `_words.cut` does: a range of the source, with the indentation of its first line taken off the others;

    the same range of `without` without layout; and how many line ends are in it.
    """
    code = source[start:end]
    lines = code.count(b"\n")
    indent = source[source.rfind(b"\n", 0, start) : start]
    if len(indent) > 1 and indent.isspace():
        code = code.replace(indent, b"\n")
    return code.decode("utf-8", "replace"), bytes(without[start:end]).translate(None, LAYOUT), lines


class Comments:
    """The comments and docstrings of a file, and which of them speak about which function."""

    def __init__(self, source: bytes, comments: list[Span], docstrings: list[Span], row: Language) -> None:
        """comments and docstrings: sorted."""
        self._source, self._marks = source, tuple(mark.encode() for mark in row.doc_comment)
        self._docstrings = {start for start, _ in docstrings}
        self.spans = sorted(comments + docstrings) if docstrings else comments
        self.without = blanked(source, self.spans)
        self._starts = [start for start, _ in self.spans]
        self._texts: dict[int, str] = {}
        self._ends = {  # some include their line's end
            end if source[end - 1] > 0x20 else before_space(source, end): i for i, (_, end) in enumerate(self.spans)
        }

    def describe(self, start: int, end: int, docstring: int, words: dict[Field, Tokens]) -> None:
        """Add `doc`, what documents a function, and `comments`, what stands inside it or plainly above."""
        doc: list[str] = []
        comments: list[str] = []
        above = self._above(start)
        if above is not None:
            self._look_up(start, above, doc, comments)
        starts = self._starts
        i = bisect_left(starts, start)
        while i < len(starts) and starts[i] < end:
            (doc if starts[i] == docstring else comments).append(self._text(i))
            i += 1
        if doc and (kept := tuple(filter(None, doc))):
            words["doc"] = kept
        if comments and (kept := tuple(filter(None, comments))):
            words["comments"] = kept

    def outline(
        self, start: int, free: Sequence[Span], inner: set[int], docs: Sequence[str], words: dict[Field, Tokens]
    ) -> None:
        """Add `doc` and `comments` of what stands outside functions: a class that starts at `start`, or the top level.

        free: its own ranges; a comment above something else (`inner`: where that starts) is that one's.
        """
        doc: list[str] = []
        comments: list[str] = []
        above = self._above(start)
        if above is not None:
            self._look_up(start, above, doc, comments)
        for a, b in free:
            first = bisect_left(self._starts, a)
            for i in range(first, bisect_left(self._starts, b, first)):
                span = self.spans[i]
                ours = after_space(self._source, span[1]) not in inner and span[0] not in self._docstrings
                if ours and not _LICENCE.search(self._source, *span):
                    comments.append(self._text(i))
        if doc or docs:
            words["doc"] = (*filter(None, doc), *docs)
        if kept := tuple(filter(None, comments)):
            words["comments"] = kept

    def _above(self, start: int) -> int | None:
        """The comment that nothing but space parts from what starts there."""
        return self._ends.get(before_space(self._source, start))

    def _look_up(self, start: int, above: int, doc: list[str], comments: list[str]) -> None:
        """Comments directly above a function, from the nearest upwards."""
        source = self._source
        i: int | None = above
        while i is not None:
            a, b = self.spans[i]
            line_start = source.rfind(b"\n", 0, a) + 1
            if a in self._docstrings or source[line_start:a].strip():
                return  # at the end of a line it is about that line
            block = source.endswith(b"*/", a, b)
            documents = source.startswith(self._marks, a)
            if not (documents and block) and source.count(b"\n", b, start) > 1:
                return  # below an empty line a comment is a heading or old code
            (doc if documents else comments).insert(0, self._text(i))
            if documents and block:
                return
            start = a
            i = self._above(start)

    def _text(self, i: int) -> str:
        text = self._texts.get(i)
        if text is None:
            start, end = self.spans[i]
            tidy = clean_docstring if start in self._docstrings else clean_comment
            text = self._texts[i] = tidy(self._source[start:end].decode("utf-8", "replace"))
        return text


def before_space(source: bytes, at: int) -> int:
    """Where the last thing before an offset ends.

    >>> before_space(b"/* a */ int x", 8), before_space(b" " * 500, 500)
    (7, 0)
    """
    while at > 0:
        start = max(0, at - _FAR)
        end = start + len(source[start:at].rstrip())
        if end > start:
            return end
        at = start
    return 0


def after_space(source: bytes, at: int) -> int:
    """Where the next thing starts."""
    match = _SPACE.match(source, at)
    return match.end() if match else at
