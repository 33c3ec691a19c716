"""Documents out of a source text and what a front end found in it, in one pass over the names of the file.

The front end gives containers (functions, classes) and marks (ranges that are calls, comments, literals ...).
Every mark is written into the text as a NUL and a letter; one regular expression then yields names and marks
in source order, one loop sorts them into a list a field, and a function's words are the slice of each list
between its start and its end. So words of nested functions count for the enclosing ones at no cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from ncs.extract.comments import clean_comment, clean_docstring, unquote
from ncs.extract.languages import Language
from ncs.types import Document, Field, Tokens

DEEPEST = 64
"""Containers nested deeper make no documents: code and words of all of them would grow with the square."""

MARKS: Mapping[str, str] = {
    "name": "\0n",
    "calls": "\0c",
    "enums": "\0e",
    "types": "\0t",
    "parameters": "\0p",
    "literals": "\0l ",
    "doc": "\0d ",
    "comments": "\1 ",
    "nothing": " ",
}
"""How a mark is written: before a name, or (ending in a space) in place of a text."""
_START, _END = "\0s ", "\0z "

_LISTS: tuple[Field, ...] = ("calls", "enums", "types", "parameters", "identifiers", "literals", "comments")
_CALLS, _ENUMS, _TYPES, _PARAMETERS, _IDENTIFIERS, _LITERALS, _COMMENTS, _NOTHING = range(8)
_NAME, _LITERAL, _COMMENT, _DOC, _OPEN, _CLOSE = range(8, 14)
_DOCSTRING, _OWN = 6, 7  # places in a frame
_NAMES = {"n": _NAME, "c": _CALLS, "e": _ENUMS, "t": _TYPES, "p": _PARAMETERS}
_TEXTS = {"\0l": _LITERAL, "\1": _COMMENT, "\0d": _DOC, "\0s": _OPEN, "\0z": _CLOSE}

_TOKEN = re.compile(r"[\x00\x01\w$\x80-\xff][\w$\x80-\xff]*", re.ASCII)
_BOUNDARY = re.compile(rb"\0[sz]")
_LAYOUT = b" \t\r\n\f\v\1"


class Container(NamedTuple):
    """A function or a class by its byte range; `kind` is empty where it makes no document."""

    start: int
    end: int
    kind: str
    name: str


class _Kinds(dict[str, tuple[int, str]]):
    """token -> (where it goes, its spelling), worked out once a spelling."""

    def __init__(self, row: Language) -> None:
        self._row = row

    def __missing__(self, token: str) -> tuple[int, str]:
        if len(self) > 1_000_000:
            self.clear()
        found = self[token] = self._sort(token)
        return found

    def _sort(self, token: str) -> tuple[int, str]:
        if token in _TEXTS:
            return _TEXTS[token], token
        if token[0] == "\0":
            name = decode(token[2:])
            return (_NOTHING if name in self._row.ignored else _NAMES[token[1]]), name
        name = decode(token)
        if name[0].isdigit() or name in self._row.ignored or name in self._row.keywords:
            return _NOTHING, name
        if not name[0].isupper():
            return _IDENTIFIERS, name
        return (_ENUMS if len(name) > 1 and name.isupper() else _TYPES), name


_kinds: dict[str, _Kinds] = {}


def decode(text: str) -> str:
    """UTF-8 seen as Latin-1 back into text; ASCII, by far the most, is itself."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def mask(text: str, containers: Sequence[Container], marks: Mapping[int, tuple[int, str]]) -> str:
    """The text with every mark written into it."""
    events = []
    for start, (end, what) in marks.items():
        mark = MARKS[what]
        events.append((start, 2, end if mark[-1] == " " else start, mark))
    for start, end, _, _ in containers:
        events.append((start, 1, start, _START))
        events.append((end, 0, end, _END))
    events.sort()
    pieces = []
    at = 0
    for position, _, resume, mark in events:
        pieces.append(text[at:position])
        pieces.append(mark)
        if resume > at:
            at = resume
    pieces.append(text[at:])
    return "".join(pieces)


def documents_of(
    text: str,
    containers: Sequence[Container],
    marks: Mapping[int, tuple[int, str]],
    row: Language,
    repository: str,
    path: str,
) -> list[Document]:
    """Documents of a file in source order.

    text: UTF-8 seen as Latin-1, so that byte and character offsets are one, without NUL and `\\1`.
    containers: sorted by (start, -end). marks: start -> (end, a name in MARKS).
    """
    sweep = _Sweep(text, containers, marks, row, repository, path)
    kinds = _kinds.get(row.name) or _kinds.setdefault(row.name, _Kinds(row))
    lists, events = sweep.lists, sweep.events
    for token in _TOKEN.findall(sweep.masked):
        kind, spelling = kinds[token]
        if kind <= _NOTHING:
            lists[kind].append(spelling)
        else:
            events[kind](spelling)
    return [document for document in sweep.documents if document is not None]


class _Sweep:
    """One pass over a file: what is open, what was found so far."""

    def __init__(
        self,
        text: str,
        containers: Sequence[Container],
        marks: Mapping[int, tuple[int, str]],
        row: Language,
        repository: str,
        path: str,
    ) -> None:
        self._text, self._row, self._repository, self._path = text, row, repository, path
        self._containers = iter(enumerate(containers))
        self.documents: list[Document | None] = [None] * len(containers)
        self.masked = mask(text, containers, marks)
        self._code = self.masked.encode("latin-1").translate(None, _LAYOUT)
        self._boundaries = (match.start() for match in _BOUNDARY.finditer(self._code))
        spans = sorted((start, end, what) for start, (end, what) in marks.items())
        self._literals = (text[start:end] for start, end, what in spans if what == "literals")
        self._comments = [span for span in spans if span[2] in ("comments", "doc")]
        self._clean: dict[int, str] = {}
        self.lists: list[list[str]] = [[] for _ in range(_NOTHING + 1)]
        self._n_comments = 0
        self._stack: list[list[Any]] = []
        self._functions = 0
        self._line, self._at = 1, 0
        self._place, self._twins = "", 0
        self.events: dict[int, Callable[[str], None]] = {
            _NAME: self._name,
            _LITERAL: self._literal,
            _COMMENT: self._comment,
            _DOC: self._doc,
            _OPEN: self._open,
            _CLOSE: self._close,
        }

    def _name(self, name: str) -> None:
        """A function's name is a word of the functions around it, too."""
        if self._functions > 1:
            identifiers = self.lists[_IDENTIFIERS]
            self._stack[-1][_OWN] = len(identifiers)
            identifiers.append(name)

    def _literal(self, _: str) -> None:
        if literal := unquote(decode(next(self._literals))):
            self.lists[_LITERALS].append(literal)

    def _comment(self, _: str) -> None:
        self._n_comments += 1

    def _doc(self, _: str) -> None:
        if self._stack:
            self._stack[-1][_DOCSTRING] = self._n_comments
        self._n_comments += 1

    def _open(self, _: str) -> None:
        i, container = next(self._containers)
        self._line += self._text.count("\n", self._at, container.start)
        self._at = container.start
        id = ""
        if container.kind:
            self._functions += 1
            if len(self._stack) < DEEPEST:
                id = self._id()
        self._stack.append(
            [i, container, id, self._line, next(self._boundaries), self._n_comments, -1, -1, *map(len, self.lists)]
        )

    def _id(self) -> str:
        place = f"{self._repository}/{self._path}:{self._line}"
        self._twins = self._twins + 1 if place == self._place else 1
        self._place = place
        return place if self._twins == 1 else f"{place}.{self._twins}"

    def _close(self, _: str) -> None:
        frame = self._stack.pop()
        stop = next(self._boundaries)
        if frame[1].kind:
            self._functions -= 1
        if frame[2]:
            self.documents[frame[0]] = self._document(frame, stop)

    def _document(self, frame: list[Any], stop: int) -> Document:
        _, (start, end, kind, name), id, line, boundary, first_comment, docstring, own, *at = frame
        text, lists = self._text, self.lists
        scope = tuple([outer[1].name for outer in self._stack])
        calls, enums, types, parameters, identifiers, literals = [
            tuple(lists[i][at[i] :]) for i in range(_NOTHING - 1)
        ]
        if own >= 0:
            identifiers = (*lists[_IDENTIFIERS][at[_IDENTIFIERS] : own], *lists[_IDENTIFIERS][own + 1 :])
        doc, above = self._above(first_comment, start)
        comments = [self._cleaned(i) for i in range(first_comment, self._n_comments) if i != docstring]
        if docstring >= 0:
            doc.append(self._cleaned(docstring))
        words: dict[Field, Tokens] = {"path": (self._path,)}
        if kind != "initializer":
            words["name"] = (name,)
        for field, found in (
            ("scope", scope),
            ("calls", calls),
            ("enums", enums),
            ("literals", literals),
            ("doc", tuple(doc)),
            ("comments", (*above, *comments)),
            ("identifiers", identifiers),
            ("types", types),
            ("parameters", parameters),
        ):
            if found:
                words[field] = found
        digest = blake2b(self._code[boundary:stop], digest_size=16)
        for literal in literals:
            digest.update(b"\0" + literal.encode("utf-8", "replace"))
        code = text[start:end]
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        if indent and indent.isspace():
            code = code.replace("\n" + indent, "\n")
        if "\r" in code:
            code = code.replace("\r\n", "\n")
        return Document(
            id,
            self._repository,
            self._path,
            line,
            line + text.count("\n", start, end - 1),
            self._row.name,
            kind,
            name,
            ".".join((*scope, name)),
            words,
            decode(code),
            digest.digest(),
        )

    def _cleaned(self, i: int) -> str:
        if i not in self._clean:
            start, end, what = self._comments[i]
            clean = clean_docstring if what == "doc" else clean_comment
            self._clean[i] = clean(decode(self._text[start:end]))
        return self._clean[i]

    def _above(self, i: int, start: int) -> tuple[list[str], list[str]]:
        """Comments directly above a function: those that document it, and others."""
        doc: list[str] = []
        other: list[str] = []
        text = self._text
        while i > 0:
            i -= 1
            a, b, what = self._comments[i]
            between = text[b:start]
            if what == "doc" or (between and not between.isspace()):
                break
            before = text[text.rfind("\n", 0, a) + 1 : a]
            if before and not before.isspace():
                break
            if text.startswith(self._row.doc_comment, a):
                doc.insert(0, self._cleaned(i))
                if text.startswith("*/", b - 2):
                    break
            elif between.count("\n") > 1:
                break
            else:
                other.insert(0, self._cleaned(i))
            start = a
        return doc, other
