"""A file without a grammar into Documents: cut at its definitions and empty lines, words told by their signs.

A document is a definition (of code whose rows in texts.py say what one is: kind `definition`, it may be asked for like
a function) or a block: what stands between, and all of a configuration file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from ncs.extract.bytewise import as_utf8
from ncs.extract.comments import clean_comment
from ncs.extract.paragraphs import pieces
from ncs.extract.texts import SIGNS, TEXTS, TextKind
from ncs.types import Document, Field, Tokens

LEAST = 2
"""Lines of a definition: shorter ones stand together, as a signature and what it is of do."""
LONGEST_LINE = 20_000
"""Characters of a line; a file with a longer one is data."""
DEFINITION, BLOCK = "definition", "block"

_NAME = re.compile(r"[^\W\d]\w*(?P<called>[ \t]?\()?")
_SIGN = re.compile(
    r"^\s*(?:\(\*+|\{-?|<#|<!--|#[=|]|[%;!]+|['\"]|@?rem\b|::|dnl\b|=\w+)|(?:\*+\)|-?\}|#>|[=|]#|-->|\n=cut)\s*$", re.I
)  # those that clean_comment does not know
_BLANK = re.compile(r"[^\n]")
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


class Part(NamedTuple):
    """Lines first..last, 0-based and inclusive, of which `definition` is one; -1 without."""

    first: int
    last: int
    definition: int


def read(source: bytes, kind: str, repository: str, path: str, *, outside: bool = True) -> tuple[list[Document], bool]:
    """Documents of a text in source order, and whether it was given up for a line over LONGEST_LINE.

    kind: a key of TEXTS. outside=False: definitions only, no blocks.
    """
    source = as_utf8(source)
    if kind == "objective-c" and path.endswith(".m") and not _OBJECTIVE_C.search(source):
        kind = "matlab"  # both are `.m`
    text = source.decode("utf-8", "replace").replace("\r", "\n").replace("\0", " ")
    if max(map(len, text.split("\n"))) > LONGEST_LINE:
        return [], True
    file = _File(text, TEXTS[kind], repository, path)
    found = (_document(part, file) for part in _parts(file))
    return [document for document in found if document is not None and (outside or document.kind == DEFINITION)], False


class _File:
    """A text in lines; the same without comments and strings (`bare`), and what these say by the line they start on."""

    def __init__(self, text: str, row: TextKind, repository: str, path: str) -> None:
        self.row, self.repository, self.path = row, repository, path
        self.comments: dict[int, list[str]] = {}
        self.literals: dict[int, list[str]] = {}
        self.commented: set[int] = set()
        """Lines of comments that have a line, or several, for themselves."""
        pieces = []
        at = line = 0
        for match in _tokens(row).finditer(text):
            start, end = match.span()
            line += text.count("\n", at, start)
            said = self.literals if match.lastgroup == "string" else self.comments
            said.setdefault(line, []).append(match.group())
            pieces += [text[at:start], _BLANK.sub(" ", match.group())]
            first, at = line, end
            line += text.count("\n", start, end)
            if said is self.comments and not text[text.rfind("\n", 0, start) + 1 : start].strip():
                # of a comment of several lines an empty line may part what it is about
                self.commented.update(range(first, line + 1 + (line > first and text[end : end + 2] == "\n\n")))
        self.lines, self.bare = text.split("\n"), "".join([*pieces, text[at:]]).split("\n")

    def name(self, number: int) -> str | None:
        """What a line defines, if it is code."""
        return self.row.defines(self.lines[number]) if self.bare[number].strip() else None


@lru_cache
def _tokens(row: TextKind) -> re.Pattern[str]:
    signs = [SIGNS[sign] for sign in row.comments.split()]
    string = f"(?P<string>{_STRING})"
    comment = f"(?P<comment>{'|'.join(signs)})" if signs else ""
    first, second = (comment, string) if row.comments in ("'", '"') else (string, comment)  # a quote that is no quote
    return re.compile("|".join(filter(None, (first, second))), re.DOTALL)


def _parts(file: _File) -> Iterator[Part]:
    """The documents of a text as ranges of lines, in order."""
    starts: dict[int, int] = {}
    """Where a part starts -> the line of its definition."""
    before, last = -LEAST, None
    for number in () if file.row.configuration else range(len(file.lines)):
        name = file.name(number)
        if name is not None and name != last and number - before >= LEAST:
            start = before = number
            last = name if file.row.equations else None
            while start - 1 in file.commented:
                start -= 1
            starts[start] = number
    bounds = [0, *(start for start in starts if start), len(file.lines)]
    for first, end in pairwise(bounds):
        definition = starts.get(first, -1)
        for number, (a, b) in enumerate(pieces(file.lines, first, end, definition >= 0)):
            yield Part(a, b, definition if not number else -1)


def _document(part: Part, file: _File) -> Document | None:
    """None where the lines hold no word."""
    first, last, definition = part
    words = _words(part, file)
    if not words:
        return None
    stem = file.path.rpartition("/")[2].partition(".")[0] or file.path
    if file.row.configuration:
        name, kind = next(filter(None, map(file.name, range(first, last + 1))), stem), BLOCK
    else:
        name, kind = (file.name(definition) or stem, DEFINITION) if definition >= 0 else (stem, BLOCK)
    if kind == DEFINITION:
        first = definition  # as of every function, what stands above it is its documentation
    words["name"], words["path"] = (name,), (file.path,)
    code = "\n".join(file.lines[first : last + 1])
    hashed = "\n".join(line.rstrip() for line in file.bare[first : last + 1] if line.strip())
    hashed += "\0".join(words.get("literals", ()))
    digest = blake2b(hashed.encode("utf-8", "replace"), digest_size=16).digest()
    where = (file.repository, file.path, first + 1, last + 1, file.row.name)
    return Document(f"{file.repository}/{file.path}:{first + 1}", *where, kind, name, name, words, code, digest)


def _words(part: Part, file: _File) -> dict[Field, Tokens]:
    """What stands in some lines, by field; a comment above the definition is its documentation."""
    found: dict[Field, list[str]] = {}
    for number in range(part.first, part.last + 1):
        for comment in file.comments.get(number, ()):
            field: Field = "doc" if number < part.definition else "comments"
            found.setdefault(field, []).append(clean_comment(_SIGN.sub("", comment) or " "))
        found.setdefault("literals", []).extend(literal[1:-1] for literal in file.literals.get(number, ()))
        for match in _NAME.finditer(file.bare[number]):
            called = match["called"] is not None and not file.row.configuration
            name = match.group().rstrip("( \t")
            if name.lower() not in _KEYWORDS:
                found.setdefault(_field(name, called), []).append(name)
    return {field: kept for field, said in found.items() if (kept := tuple(filter(None, said)))}


def _field(name: str, called: bool) -> Field:
    if called:
        return "calls"
    if len(name) > 1 and name.isupper():
        return "enums"
    return "types" if name[0].isupper() else "identifiers"
