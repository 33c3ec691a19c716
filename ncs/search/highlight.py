"""Highlighting: the query words in a hit, their offsets in its code, and the lines to show."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncs.text.stems import stem_all
from ncs.text.tokens import content_words, field_tokens, spans, tokenize
from ncs.types import Document

_JOINED_KINDS = frozenset({"module", "block"})
EXCERPT_LINES = 14


def query_stems(text: str) -> dict[str, str]:
    """stem -> the query's word, without stop words, in the query's order."""
    return first_words(content_words(tokenize(text)))


def first_words(words: Sequence[str]) -> dict[str, str]:
    """stem -> the first of the words that has it, in order."""
    stems: dict[str, str] = {}
    for stem, word in zip(stem_all(words), words, strict=True):
        stems.setdefault(stem, word)
    return stems


def matched_words(document: Document, text: str) -> list[str]:
    """Words of the query that the document has in any field, by stem, in the query's order."""
    words = [word for field, spellings in document.words.items() for word in field_tokens(field, spellings)]
    if not document.words:
        words = tokenize(f"{document.qualified_name} {document.path} {document.code}")
    stems = set(stem_all(words))
    return [word for stem, word in query_stems(text).items() if stem in stems]


def marks(code: str, text: str) -> list[tuple[int, int]]:
    """Offsets (start, end) of the query's words in the code, matched by stem.

    >>> marks("void hideKeyboards() {}", "hiding the keyboard")
    [(5, 9), (9, 18)]
    """
    places, stems = list(spans(code)), query_stems(text)
    stemmed = stem_all(word for _, _, word in places)
    return [(start, end) for (start, end, _), stem in zip(places, stemmed, strict=True) if stem in stems]


def text_marks(code: str, texts: Iterable[str]) -> list[tuple[int, int]]:
    """Offsets (start, end) of texts in the code.

    >>> text_marks("sleep(1); sleep(10)", ["sleep(1"])
    [(0, 7), (10, 17)]
    """
    pattern = "|".join(map(re.escape, texts))
    return [match.span() for match in re.finditer(pattern, code)] if pattern else []


def name_marks(code: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Offsets (start, end) of whole names in the code.

    >>> name_marks("openFile(open, File.open)", ["open"])
    [(9, 13), (20, 24)]
    """
    pattern = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return [match.span() for match in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", code)] if pattern else []


def excerpt(
    lines: int, marked: Sequence[int], most: int = EXCERPT_LINES, context: tuple[int, int] | None = None
) -> list[tuple[int, int]]:
    """The lines of a function to show: ranges of 0-based lines, ends excluded, at most about `most` lines.

    The first line is always shown; then the marked lines, most important first, each with its neighbors. A function
    that is only slightly longer is shown whole. context: so many lines before and after each of the first `most`
    marked lines, instead.

    >>> excerpt(8, [5])
    [(0, 8)]
    >>> excerpt(100, [50, 52], 10)
    [(0, 3), (49, 54)]
    >>> excerpt(100, [10, 20, 30], 10)
    [(0, 3), (9, 12), (19, 22)]
    >>> excerpt(8, [5], context=(0, 1))
    [(0, 1), (5, 7)]
    """
    if context and marked:
        before, after = context
        around = (range(max(at - before, 0), min(at + after + 1, lines)) for at in marked[:most])
        return _ranges(sorted({0}.union(*around)))
    if lines <= most + 3:
        return [(0, lines)]
    lines_shown = {0, 1, 2} if marked else set(range(most))
    for line in marked:
        neighbors = {max(line - 1, 0), line, min(line + 1, lines - 1)}
        if len(lines_shown | neighbors) > most:
            break
        lines_shown |= neighbors
    return _ranges(sorted(lines_shown))


def line_starts(code: str) -> list[int]:
    """The offset of each line of the code.

    >>> line_starts("a\\nbc\\n")
    [0, 2, 5]
    """
    return [0, *(match.end() for match in re.finditer("\n", code))]


def marked_lines(code: str, marks: Iterable[tuple[int, int]]) -> list[int]:
    """The 0-based lines with marks, those with the most distinct words first.

    >>> marked_lines("x\\nhide\\nhide key\\nkey key", [(2, 6), (7, 11), (12, 15), (16, 19), (20, 23)])
    [2, 1, 3]
    """
    starts = line_starts(code)
    words_of: dict[int, set[str]] = {}
    for start, end in marks:
        words_of.setdefault(bisect_right(starts, start) - 1, set()).add(code[start:end].lower())
    return sorted(words_of, key=lambda line: (-len(words_of[line]), line))


def has_file_lines(hit: Mapping[str, Any]) -> bool:
    """Whether the lines of a hit's code are consecutive lines of its file, so that they can be numbered. Outlines
    leave out lines: methods' bodies, or code between pieces joined by empty lines.
    """
    code: str = hit["code"]
    whole = hit["kind"] not in _JOINED_KINDS or "\n\n" not in code
    return whole and code.count("\n") == hit["end_line"] - hit["start_line"]


def _ranges(lines: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted lines as ranges; a gap of one line is closed, as an ellipsis would be no shorter."""
    ranges = [(lines[0], lines[0] + 1)]
    for line in lines[1:]:
        start, end = ranges[-1]
        if line <= end + 1:
            ranges[-1] = (start, line + 1)
        else:
            ranges.append((line, line + 1))
    return ranges
