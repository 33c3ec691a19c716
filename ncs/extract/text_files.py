"""A file without a grammar into Documents: cut at definitions and empty lines, its words found by patterns.

A document is a definition (of code whose row in text_kinds.py says what one looks like) or a block: what stands
between, and everything in a configuration file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from ncs.extract.comments import clean_comment
from ncs.extract.source_bytes import as_utf8
from ncs.extract.text_kinds import COMMENT_PATTERNS, TEXT_KINDS, TextKind
from ncs.types import Document, Field, Tokens

DEFINITION, BLOCK = "definition", "block"
MIN_DEFINITION = 2
"""Lines of a definition: shorter ones are joined, such as a signature with its equation."""
MIN_BLOCK, MAX_BLOCK = 5, 60
"""Lines of a block: a shorter one is joined with the next, a longer one is cut where the indentation is least."""
MAX_LINE = 20_000
"""Characters of a line; a file with a longer one is data."""

_NAME = re.compile(r"[^\W\d]\w*(?P<call>[ \t]?\()?")
_COMMENT_SIGN = re.compile(
    r"^\s*(?:\(\*+|\{-?|<#|<!--|#[=|]|[%;!]+|['\"]|@?rem\b|::|dnl\b|=\w+)|(?:\*+\)|-?\}|#>|[=|]#|-->|\n=cut)\s*$", re.I
)  # those that clean_comment does not know
_NOT_LINE_END = re.compile(r"[^\n]")
_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_OBJECTIVE_C = re.compile(
    rb"^(?:@(?:interface|implementation|import|protocol|class)\b|[-+] *\(|# *(?:import|include)\b)", re.M
)
_WORDS = (
    "if else elif elsif elseif for foreach while do done then fi end begin return let in of function fn func sub def my"
    " var val const class struct enum type module package import use using include require public private protected"
    " static final new this self true false null nil none not and or case switch when match with try catch throw void"
    " int string bool double float char local export set unless until loop break continue default is as"
)
_KEYWORDS = frozenset(_WORDS.split())


def read(source: bytes, kind: str, repository: str, path: str, *, outside: bool = True) -> tuple[list[Document], bool]:
    """Documents of a text in source order, and whether it was skipped for a line over MAX_LINE.

    kind: a key of TEXT_KINDS. outside=False: definitions only, no blocks.
    """
    source = as_utf8(source)
    if kind == "objective-c" and path.endswith(".m") and not _OBJECTIVE_C.search(source):
        kind = "matlab"  # both are `.m`
    text = source.decode("utf-8", "replace").replace("\r", "\n").replace("\0", " ")
    if max(map(len, text.split("\n"))) > MAX_LINE:
        return [], True
    file = _File(text, TEXT_KINDS[kind], repository, path)
    documents = (_document(part, file) for part in _parts(file))
    return [
        document for document in documents if document is not None and (outside or document.kind == DEFINITION)
    ], False


class _File:
    """The lines of a text, also without comments and strings (`bare`), and these by the line they start on."""

    def __init__(self, text: str, kind: TextKind, repository: str, path: str) -> None:
        self.kind, self.repository, self.path = kind, repository, path
        self.comments: dict[int, list[str]] = {}
        self.literals: dict[int, list[str]] = {}
        self.comment_lines: set[int] = set()
        """Lines that are nothing but comment."""
        pieces = []
        at = line = 0
        for match in _comments_and_strings(kind).finditer(text):
            start, end = match.span()
            line += text.count("\n", at, start)
            by_line = self.literals if match.lastgroup == "string" else self.comments
            by_line.setdefault(line, []).append(match.group())
            pieces += [text[at:start], _NOT_LINE_END.sub(" ", match.group())]
            first, at = line, end
            line += text.count("\n", start, end)
            if by_line is self.comments and not text[text.rfind("\n", 0, start) + 1 : start].strip():
                # an empty line may separate a comment of several lines from what it is about
                self.comment_lines.update(range(first, line + 1 + (line > first and text[end : end + 2] == "\n\n")))
        self.lines, self.bare = text.split("\n"), "".join([*pieces, text[at:]]).split("\n")

    def name(self, number: int) -> str | None:
        """The name that a line defines, if it is code."""
        return self.kind.defines(self.lines[number]) if self.bare[number].strip() else None


@lru_cache
def _comments_and_strings(kind: TextKind) -> re.Pattern[str]:
    signs = [COMMENT_PATTERNS[sign] for sign in kind.comments.split()]
    string = f"(?P<string>{_STRING})"
    comment = f"(?P<comment>{'|'.join(signs)})" if signs else ""
    first, second = (comment, string) if kind.comments in ("'", '"') else (string, comment)
    return re.compile("|".join(filter(None, (first, second))), re.DOTALL)


class _Part(NamedTuple):
    """Lines first..last, 0-based and inclusive, and the line of its definition; -1 without."""

    first: int
    last: int
    definition: int


def _parts(file: _File) -> Iterator[_Part]:
    """The line ranges of documents, in order."""
    starts: dict[int, int] = {}  # first line -> line of the definition
    before, last = -MIN_DEFINITION, None
    for number in () if file.kind.configuration else range(len(file.lines)):
        name = file.name(number)
        if name is not None and name != last and number - before >= MIN_DEFINITION:
            start = before = number
            last = name if file.kind.equations else None
            while start - 1 in file.comment_lines:
                start -= 1
            starts[start] = number
    bounds = [0, *(start for start in starts if start), len(file.lines)]
    for first, end in pairwise(bounds):
        definition = starts.get(first, -1)
        for number, (a, b) in enumerate(split_lines(file.lines, first, end, definition >= 0)):
            yield _Part(a, b, definition if not number else -1)


def split_lines(lines: Sequence[str], first: int, end: int, whole: bool) -> Iterator[tuple[int, int]]:
    """Lines first..end in pieces of MIN_BLOCK to MAX_BLOCK lines, without empty lines around; `whole`: in few pieces.

    A piece ends at an empty line, or, where too long, at the line of least indentation in its second half.
    """
    while first < end and not lines[first].strip():
        first += 1
    while end > first and not lines[end - 1].strip():
        end -= 1
    while first < end:
        stop = _piece_end(lines, first, end, whole)
        last = stop - 1
        while last > first and not lines[last].strip():
            last -= 1
        yield first, last
        first = stop
        while first < end and not lines[first].strip():
            first += 1


def _piece_end(lines: Sequence[str], first: int, end: int, whole: bool) -> int:
    """Where the piece that starts at a line ends (exclusive)."""
    if whole and end - first <= MAX_BLOCK:
        return end
    limit = min(end, first + MAX_BLOCK)
    if not whole:
        for number in range(first + MIN_BLOCK, limit):
            if not lines[number].strip() and end - number > MIN_BLOCK:
                return number
    if limit == end:
        return end
    half = range(limit, first + MAX_BLOCK // 2, -1)
    return min(half, key=lambda n: (bool(lines[n - 1].strip()), len(lines[n]) - len(lines[n].lstrip())))


def _document(part: _Part, file: _File) -> Document | None:
    """None where the lines hold no word."""
    first, last, definition = part
    words = _words(part, file)
    if not words:
        return None
    stem = file.path.rpartition("/")[2].partition(".")[0] or file.path
    if file.kind.configuration:
        name, kind = next(filter(None, map(file.name, range(first, last + 1))), stem), BLOCK
    else:
        name, kind = (file.name(definition) or stem, DEFINITION) if definition >= 0 else (stem, BLOCK)
    if kind == DEFINITION:
        first = definition  # the comment above is its documentation, as of every function
    words["name"], words["path"] = (name,), (file.path,)
    hashed = "\n".join(line.rstrip() for line in file.bare[first : last + 1] if line.strip())
    hashed += "\0".join(words.get("literals", ()))
    return Document(
        id=f"{file.repository}/{file.path}:{first + 1}",
        repository=file.repository,
        path=file.path,
        start_line=first + 1,
        end_line=last + 1,
        language=file.kind.name,
        kind=kind,
        name=name,
        qualified_name=name,
        words=words,
        code="\n".join(file.lines[first : last + 1]),
        digest=blake2b(hashed.encode("utf-8", "replace"), digest_size=16).digest(),
    )


def _words(part: _Part, file: _File) -> dict[Field, Tokens]:
    """The words in some lines, by field; a comment above the definition is its documentation."""
    words: dict[Field, list[str]] = {}
    for number in range(part.first, part.last + 1):
        for comment in file.comments.get(number, ()):
            field: Field = "doc" if number < part.definition else "comments"
            words.setdefault(field, []).append(clean_comment(_COMMENT_SIGN.sub("", comment) or " "))
        words.setdefault("literals", []).extend(literal[1:-1] for literal in file.literals.get(number, ()))
        for match in _NAME.finditer(file.bare[number]):
            is_call = match["call"] is not None and not file.kind.configuration
            name = match.group().rstrip("( \t")
            if name.lower() not in _KEYWORDS:
                words.setdefault(_field(name, is_call), []).append(name)
    return {field: some for field, every in words.items() if (some := tuple(filter(None, every)))}


def _field(name: str, is_call: bool) -> Field:
    if is_call:
        return "calls"
    if len(name) > 1 and name.isupper():
        return "enums"
    return "types" if name[0].isupper() else "identifiers"
