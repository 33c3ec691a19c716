"""Markdown, reStructuredText and AsciiDoc into Documents, one per section: a heading and what stands below it.

A section ends at the next heading, of whatever level. One of a few words becomes part of the section above it, a
heading with nothing below it begins the next section, and a long section is cut between paragraphs. Words of headings
are names, prose is comments, and names in code blocks are identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ncs.extract.documents import digest_of
from ncs.extract.source_bytes import as_utf8
from ncs.extract.text_files import MAX_LINE, split_lines
from ncs.sources.filters import PROSE
from ncs.text.tokens import tokenize
from ncs.types import SECTION, Document, Field, Tokens

MIN_WORDS = 10
"""Words of a section."""
MAX_HEADING = 200
"""Characters of a heading."""
PATH = " > "
"""Between the headings of a qualified name."""
FENCE = re.compile(r" {0,8}(```+|~~~+) *\{?\.?([\w+#-]*)")
DIRECTIVE = re.compile(r"( *)\.\. (?:code-block|code|sourcecode):: *([\w+#-]+) *$")
_MARKUP = re.compile(
    r"\\([!-/:-@\[-`{-~])"
    r"|!?\[([^\]\n]{0,300})\](?:\([^)\n]{0,300}\)|\[[^\]\n]{0,300}\])|:\w{1,20}:`~?([^`<\n]{0,300})[^`\n]{0,300}`"
    r"|``?([^`\n]{0,300})``?|<[^>\n]{0,300}>"
    r"|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)"
)
"""Escapes, links, roles, code, tags and emphasis; of bounded lengths, so that texts without an end take linear time."""
_NO_LANGUAGE = re.compile(r"https?://\S+|\S{200,}")
"""Addresses and data."""
_LEFT_OUT = re.compile(
    r"(?:^|/)(?:licen[cs]es?|copying|notice|code[_-]of[_-]conduct|authors|contributors)\b[^/]*$"
    r"|(?:issue|pull_request)_template",
    re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d]\w*")
_SETEXT = re.compile(r" {0,3}(?:(=)={2,}|(-)-{2,})[ \t]*$")
_NO_PARAGRAPH = ("-", "*", "+", ">", "|", "#", "<", ":")
_TAG = re.compile(r" {0,3}<h([1-6])\b[^>\n]{0,300}>")
_UNDERLINE = re.compile(r"([=\-`:'\"~^_*+#<>.])\1{2,}[ \t]*$")
_NO_PROSE = {
    "markdown": re.compile(
        r"\s*(?:<!--|\{%|import\s.*\sfrom\s|\[[^\]\n]{0,300}\]:|(?:[-*+]|\d{1,9}\.) +\[[^\]\n]{0,300}\]\(#)"
    ),
    "restructuredtext": re.compile(
        r"\s*\.\. (?:_|\||image|index|contents|toctree|module|currentmodule)|\s+:[\w-]+:|\.\."
    ),
    "asciidoc": re.compile(r"//|:[\w!-]+:|\[[^\]\n]{0,300}\]$|\|===|(?:include|image|ifdef|ifndef|endif)::"),
}
"""Lines without a sentence: comments, options, and a table of contents, which has the words of all headings."""


def prose_language(path: str) -> str | None:
    """The language of a file of prose that is read; None for other files, licenses and templates.

    >>> prose_language("docs/forms.rst"), prose_language("README.md"), prose_language("LICENSE.md")
    ('restructuredtext', 'markdown', None)
    """
    name = path[path.rfind("/") + 1 :]
    language = PROSE.get(name[name.rfind(".") :].lower())
    return None if language is None or _LEFT_OUT.search(path) else language


def read(source: bytes, language: str, repository: str, path: str) -> tuple[list[Document], bool]:
    """The sections of a text in source order, and whether it was skipped for a line over MAX_LINE.

    language: a value of PROSE.
    """
    text = as_utf8(source).decode("utf-8", "replace").replace("\r", "\n").replace("\0", " ")
    lines = text.split("\n")
    if max(map(len, lines)) > MAX_LINE:
        return [], True
    file = _File(lines, language, repository, path)
    return [_document(file, part) for section in _sections(file) for part in _parts(file, section)], False


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines first .. end - 1, 0-based, below the headings `path`."""

    path: Tokens
    first: int
    end: int


@dataclass(slots=True)
class _File:
    """A text, with the lines of its code and headings, and its sections by headings alone."""

    lines: Sequence[str]
    language: str
    repository: str
    place: str
    code: set[int] = field(default_factory=set)
    marks: set[int] = field(default_factory=set)
    """Lines without prose: fences, underlines, options of directives."""

    @property
    def stem(self) -> str:
        """The name of the file."""
        return self.place.rpartition("/")[2].partition(".")[0] or self.place

    def has_code(self, first: int, end: int) -> bool:
        """Whether code is among these lines."""
        return not self.code.isdisjoint(range(first, end))

    def prose(self, first: int, end: int) -> list[str]:
        """The sentences in these lines, without markup."""
        numbers = (number for number in range(first, end) if number not in self.code and number not in self.marks)
        lines = (self.lines[number] for number in numbers)
        return [text for line in lines if not _NO_PROSE[self.language].match(line) and (text := plain(line))]


def plain(text: str) -> str:
    r"""Without escapes, links, roles and emphasis, on one line.

    >>> plain(r"deps \[options\] of *all* [packages](index.md), _not_ of dev_packages")
    'deps [options] of all packages, not of dev_packages'
    """
    return " ".join(_MARKUP.sub(lambda match: next(filter(None, match.groups()), ""), text).split())


def end_of_fence(lines: Sequence[str], start: int, mark: str) -> int:
    """The line that closes a fence, or the number of lines."""
    for at in range(start, len(lines)):
        if lines[at].lstrip().startswith(mark) and not lines[at].strip().strip(mark[0]):
            return at
    return len(lines)


def end_of_indented(lines: Sequence[str], start: int, indent: int) -> int:
    """The first line after a directive that is not deeper than it."""
    for at in range(start, len(lines)):
        if lines[at].strip() and len(lines[at]) - len(lines[at].lstrip()) <= indent:
            return at
    return len(lines)


def _sections(file: _File) -> Iterator[_Section]:
    """The sections in order, short ones joined with the one above."""
    kept: list[_Section] = []
    for section in _by_heading(file):
        above = kept[-1] if kept else None
        if above and above.path == section.path[:-1] and _is_short(file, section):
            kept[-1] = replace(above, end=section.end)
        else:
            kept.append(section)
    first = -1
    for section, after in zip(kept, [*kept[1:], None], strict=True):
        first = section.first if first < 0 else first
        if file.prose(section.first, section.end) or file.has_code(section.first, section.end):
            yield replace(section, first=first)
        elif after and after.path[: len(section.path)] == section.path and section.end - section.first < MIN_WORDS:
            continue  # its headings are those of the next one, too
        first = -1


def _is_short(file: _File, section: _Section) -> bool:
    if section.end - section.first > MIN_WORDS * 3 or file.has_code(section.first, section.end):
        return False
    return sum(len(tokenize(line)) for line in file.prose(section.first, section.end)) < MIN_WORDS


def _by_heading(file: _File) -> Iterator[_Section]:
    """A section for each heading, and one for the text above the first."""
    headings = list(_READERS[file.language](file))
    path: list[tuple[int, str]] = []
    first = 0
    if not headings or headings[0][0] > 0:  # level 0: the title in the front matter
        path = [(99, file.stem)]
    for level, text, start, end in [*headings, (0, "", len(file.lines), len(file.lines))]:
        if first < start:
            yield _Section(_names(path), first, start)
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, text[:MAX_HEADING].strip() or file.stem))
        file.marks.update(range(start, end))
        first = start


def _names(path: Sequence[tuple[int, str]]) -> Tokens:
    """The headings on the way to a section; a title that is repeated counts once."""
    names = [text for _, text in path]
    return tuple(name for at, name in enumerate(names) if not at or name != names[at - 1])


_Heading = tuple[int, str, int, int]
"""Level, text, first line, and the line after the last."""


def _markdown(file: _File) -> Iterator[_Heading]:
    lines, at, before = file.lines, 0, -2  # before: the line of a paragraph of one line
    if lines[0].rstrip() == "---":
        at = next((number + 1 for number in range(1, min(len(lines), 200)) if lines[number].rstrip() == "---"), 0)
        file.marks.update(range(at))
        titles = (line.partition(":")[2].strip(" \t\"'") for line in lines[1:at] if line.startswith("title:"))
        if title := next(titles, ""):
            yield 0, title, 0, at
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        stripped = line.strip()
        if (opened := FENCE.match(line)) and "`" not in line[opened.end(1) :]:
            at = _code_between(file, start, end_of_fence(lines, at, opened[1]))
        elif line[:1] in " #" and (heading := _atx(line, "#")):
            yield *heading, start, at
        elif before == start - 1 and (found := _SETEXT.match(line)):
            yield 1 if found[1] else 2, plain(lines[before]), before, at
        elif opened := _TAG.match(line):
            end = next((number + 1 for number in range(start, min(start + 4, len(lines))) if "</h" in lines[number]), 0)
            if text := plain(" ".join(lines[start:end])):
                yield int(opened[1]), text, start, end
                at = end
        elif stripped and before != start - 1 and not stripped.startswith(_NO_PARAGRAPH):
            before = start if not start or not lines[start - 1].strip() else -2


def _atx(line: str, sign: str) -> tuple[int, str] | None:
    """Level and text of a line that begins with up to six signs and a space."""
    text = line.strip(" \t")
    level = len(text) - len(text.lstrip(sign))
    if not 0 < level < 7 or len(line) - len(line.lstrip()) > 3 or text[level : level + 1] not in (" ", "\t"):
        return None
    closed = text.rstrip(sign)
    return level, plain((closed if closed[-1:] in " \t" else text)[level:])


def _code_between(file: _File, opening: int, closing: int) -> int:
    """Mark a block between two lines as code; the line after it."""
    file.code.update(range(opening + 1, closing))
    file.marks.update((opening, closing))
    return closing + 1


def _restructuredtext(file: _File) -> Iterator[_Heading]:
    lines, at, levels = file.lines, 0, dict[tuple[str, bool], int]()
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        directive = DIRECTIVE.match(line)
        if directive or (line.rstrip().endswith("::") and not line.lstrip().startswith("..")):
            indent = len(line) - len(line.lstrip())
            end = end_of_indented(lines, at, indent)
            for number in range(at, end):
                (file.marks if directive and lines[number].lstrip().startswith(":") else file.code).add(number)
            file.marks.update((start,) if directive else ())
            at = end
        elif (under := _UNDERLINE.match(line)) and start:
            text, mark = lines[start - 1], under[1]
            above = _UNDERLINE.match(lines[start - 2]) if start > 1 else None
            over = above is not None and above[1] == mark
            alone = start < 2 or over or not lines[start - 2].strip()
            if alone and text.strip() and not _UNDERLINE.match(text) and len(line.rstrip()) >= len(text.strip()) - 2:
                level = levels.setdefault((mark, over), len(levels) + 1)
                yield level, plain(text), start - 1 - over, at


def _asciidoc(file: _File) -> Iterator[_Heading]:
    lines, at = file.lines, 0
    while at < len(lines):
        line, start = lines[at].rstrip(), at
        at += 1
        if (len(line) > 3 and line[0] in "-./`" and not line.strip(line[0])) or line.startswith("```"):
            mark = line if line[0] != "`" else "```"
            closing = next((number for number in range(at, len(lines)) if lines[number].rstrip() == mark), len(lines))
            if line[0] == "/":
                file.marks.update(range(start, closing + 1))
                at = closing + 1
            else:
                at = _code_between(file, start, closing)
        elif heading := _atx(line, "=") or _atx(line, "#"):
            yield *heading, start, at


_READERS = {"markdown": _markdown, "restructuredtext": _restructuredtext, "asciidoc": _asciidoc}


def _parts(file: _File, section: _Section) -> Iterator[_Section]:
    """A section in pieces that are not too long."""
    for first, last in split_lines(file.lines, section.first, section.end, whole=True):
        if file.prose(first, last + 1) or file.has_code(first, last + 1):
            yield _Section(section.path, first, last + 1)


def _document(file: _File, section: _Section) -> Document:
    *scope, name = section.path
    numbers = range(section.first, section.end)
    prose = (_NO_LANGUAGE.sub(" ", line) for line in file.prose(section.first, section.end))
    names = (match for number in numbers if number in file.code for match in _NAME.findall(file.lines[number]))
    words: dict[Field, Tokens] = {
        "name": (name,), "scope": tuple(scope), "comments": tuple(prose), "identifiers": tuple(names),
        "path": (file.place,),
    }  # fmt: skip
    lines = [file.lines[number] for number in numbers]
    hashed = "\n".join(line.strip() for line in lines if line.strip())
    return Document(
        id=f"{file.repository}/{file.place}:{section.first + 1}",
        repository=file.repository,
        path=file.place,
        start_line=section.first + 1,
        end_line=section.end,
        language=file.language,
        kind=SECTION,
        name=name,
        qualified_name=PATH.join(section.path),
        words={field: some for field, some in words.items() if some},
        code="\n".join(lines),
        digest=digest_of(hashed.encode("utf-8", "replace")),
    )
