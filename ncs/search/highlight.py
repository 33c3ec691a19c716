"""Highlighting: the query's words in a hit, their offsets in its code, and the excerpt that displays show.

An excerpt has the signature, then lines named by a trace or a message, then for each word of the query, the rarest
first, a line with it, of code rather than of a comment; then further lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum  # of sets, whose order is not the same in every process
from typing import Any

from ncs.search.question import MAX_MESSAGE
from ncs.text.stems import stem_all
from ncs.text.tokens import content_words, field_tokens, literal_tokens, spans, tokenize
from ncs.types import Document

EXCERPT_LINES, FEW = 14, 5
"""Most lines of an excerpt. With fewer than FEW lines, the first lines of code are added, or those
around the first line that a match or a trace names."""
MAX_MARKED = 100_000
"""Characters of code in which words are searched."""
NAME_LINES = 12
"""Lines of a function in which its name is searched."""
BEFORE_NAME = ("@", "#", "[", "//", "/*", "*", "--")
"""The beginnings of decorators and comments before a definition."""
_HASH = "python ruby bash elixir php perl r julia yaml toml make dockerfile cmake powershell"
_DASH = "lua haskell sql"
"""Languages whose comments begin with `#` and `--`."""
_STRING = r'"(?:\\.|[^"\\\n])*"?|`(?:\\.|[^`\\\n])*`|(?<!\w)\'(?:\\.|[^\'\\\n])*\''
_STRINGS = re.compile(_STRING)
_VALUE = re.compile(r"[$#]?\{[^{}]{0,60}\}|\$\w+|\\\([^()\\]{0,60}\)")
"""An expression in a string."""


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
    words = {word for field, spellings in document.words.items() for word in field_tokens(field, set(spellings))}
    if not document.words:
        words = set(tokenize(f"{document.qualified_name} {document.path} {document.code}"))
    stems = set(stem_all(words))
    return [word for stem, word in query_stems(text).items() if stem in stems]


def marks(code: str, stems: Collection[str]) -> list[tuple[int, int]]:
    """Offsets (start, end) of the words with these stems in the code.

    >>> marks("void hideKeyboards() {}", query_stems("hiding the keyboard"))
    [(5, 9), (9, 18)]
    """
    places = list(spans(code[:MAX_MARKED]))
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
    code: str, language: str, name: str, weights: Mapping[str, float], first: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """The lines of a function or class to show: ranges of 0-based lines of its code, ends excluded.

    weights: of stems of the query. first: lines preferred to those of words. At most EXCERPT_LINES; code that is only
    slightly longer is shown whole.
    """
    lines = code.rstrip("\n").split("\n")
    content = whole(code)
    if sum(end - start for start, end in content) <= EXCERPT_LINES + 3:
        return content
    signature = name_position(lines, name)[0]
    in_code, in_comments, comments = _words_of_lines(code, language, weights)
    order = [line for line in dict.fromkeys(first) if 0 <= line < len(lines)]
    covered = set().union(*(in_code.get(line, set()) for line in (signature, *order)))
    present = set().union(*in_code.values(), *in_comments.values())
    for stem in sorted(present, key=lambda stem: (-weights[stem], stem)):
        if stem not in covered:
            of = in_code if any(stem in words for words in in_code.values()) else in_comments
            having = [line for line, words in of.items() if stem in words]
            best = max(having, key=lambda line: (fsum(weights[each] for each in of[line] - covered), -line))
            order.append(best)
            covered |= of[best]
    more = sorted(in_code, key=lambda line: (-fsum(weights[each] for each in in_code[line]), line))
    shown = {0, signature, *order[: EXCERPT_LINES - 2]}
    shown_whole = {line for start, end in content for line in range(start, end) if lines[line].strip()} - comments
    for around in [(signature + 1, signature + 2), *((line - 1, line + 1) for line in order)]:
        new = shown_whole.intersection(around) - shown
        if len(shown | new) <= EXCERPT_LINES:
            shown |= new
    for line in more:
        new = {line, *shown_whole.intersection((line - 1, line + 1))}
        if len(shown | new) <= EXCERPT_LINES:
            shown |= new
    if len(shown) < FEW:
        near = first[0] if first else 0
        shown.update(sorted(shown_whole, key=lambda line: (abs(line - near), line))[:EXCERPT_LINES])
    return _ranges(sorted(shown))


def whole(code: str) -> list[tuple[int, int]]:
    """The lines of a function or class as ranges, without long runs of empty lines (omissions of an outline).

    >>> whole("class A:\\n  def f() ...\\n\\n\\n  x = 1\\n\\n  y = 2\\n")
    [(0, 2), (4, 7)]
    """
    lines = code.rstrip("\n").split("\n")
    return _ranges([at for at, line in enumerate(lines) if line.strip()] or [0])


def _words_of_lines(
    code: str, language: str, stems: Collection[str]
) -> tuple[dict[int, set[str]], dict[int, set[str]], set[int]]:
    """line -> stems in code; line -> stems in comments; the lines that are only comment."""
    code = code[:MAX_MARKED]
    starts, blanked = line_starts(code), _without_comments(code, language)
    in_code: dict[int, set[str]] = {}
    in_comments: dict[int, set[str]] = {}
    places = list(spans(code))
    for (start, end, _), stem in zip(places, stem_all(word for _, _, word in places), strict=True):
        if stem in stems:
            of = in_code if blanked[start:end] == code[start:end] else in_comments
            of.setdefault(bisect_right(starts, start) - 1, set()).add(stem)
    texts = zip(code.split("\n"), blanked.split("\n"), strict=True)
    return in_code, in_comments, {at for at, (text, bare) in enumerate(texts) if text.strip() and not bare.strip()}


def _without_comments(code: str, language: str) -> str:
    """The code with comments and docstrings blanked, approximately: it only decides which lines are shown."""
    sign = "#" if language in _HASH.split() else "--" if language in _DASH.split() else "//"
    blocks = {"lua": r"--\[\[.*?(?:\]\]|\Z)", "haskell": r"\{-.*?(?:-\}|\Z)", "ruby": r"(?m:^=begin).*?(?:\n=end|\Z)"}
    block = blocks.get(language, r"/\*.*?(?:\*/|\Z)")
    comment = rf"{block}|{sign}[^\n]*"
    comment = comment if language != "php" else rf"{comment}|//[^\n]*"
    doc = r'^[ \t]*(?:@\w+[ \t]+)?[rRuU]?(?P<q>"{3}|\'{3}).*?(?:(?P=q)|\Z)'
    pattern = rf"(?P<comment>{doc}|{comment})|(?:\"{{3}}).*?(?:\"{{3}}|\Z)|{_STRING}"

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match["comment"] else match[0]

    return re.sub(pattern, blank, code, flags=re.DOTALL | re.MULTILINE)


def message_lines(code: str, message: str) -> list[int]:
    """The 0-based lines with literals of a message, those with most of its words first.

    >>> message_lines('f(x)\\nthrow("no file " + x + " in %s\\\\n")', "no file a.txt in src")
    [1]
    """
    words = tokenize(message)[:MAX_MESSAGE]
    triples, starts = set(zip(words, words[1:], words[2:], strict=False)), line_starts(code)
    found: dict[int, int] = {}
    for match in _STRINGS.finditer(code[:MAX_MARKED]):
        literal = literal_tokens(_VALUE.sub(" ", match[0][1:].removesuffix(match[0][0])))
        following = iter(words)
        is_whole = len(literal) > 1 and all(word in following for word in literal)
        if is_whole or not triples.isdisjoint(zip(literal, literal[1:], literal[2:], strict=False)):
            line = bisect_right(starts, match.start()) - 1
            found[line] = found.get(line, 0) + len(literal)
    return sorted(found, key=lambda line: (-found[line], line))


def name_position(lines: Sequence[str], name: str) -> tuple[int, int]:
    """0-based line and column of a name in its definition, after decorators and comments; else of the first word.

    >>> name_position(['@of("dock")', "  def dock():"], "dock")
    (1, 6)
    >>> name_position(["  {"], "")
    (0, 2)
    """
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for number, line in enumerate(lines[:NAME_LINES] if name else ()):
        if not line.lstrip().startswith(BEFORE_NAME) and (match := word.search(line)):
            return number, match.start()
    return 0, len(lines[0]) - len(lines[0].lstrip())


def line_starts(code: str) -> list[int]:
    """The offset of each line of the code.

    >>> line_starts("a\\nbc\\n")
    [0, 2, 5]
    """
    return [0, *(match.end() for match in re.finditer("\n", code))]


def marked_lines(code: str, marks: Iterable[tuple[int, int]]) -> list[int]:
    """The 0-based lines in which marks begin, in order.

    >>> marked_lines("x\\nhide key\\nkey", [(7, 10), (2, 6), (11, 14)])
    [1, 2]
    """
    starts = line_starts(code)
    return sorted({bisect_right(starts, start) - 1 for start, _ in marks})


def around(marked: Sequence[int], lines: int, before: int, after: int) -> list[tuple[int, int]]:
    """The first line, and `before` and `after` lines around each marked one, as ranges.

    >>> around([5, 9], 10, 0, 2)
    [(0, 1), (5, 10)]
    """
    ranges = (range(max(at - before, 0), min(at + after + 1, lines)) for at in marked)
    return _ranges(sorted({0}.union(*ranges)))


def has_file_lines(hit: Mapping[str, Any]) -> bool:
    """Whether the lines of a hit's code are those of its file, so that they can be numbered; not in older indexes."""
    code, lines = str(hit["code"]), int(hit["end_line"] - hit["start_line"])
    return code.count("\n") == lines


def _ranges(lines: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted lines as ranges; gaps of one line are closed, as an ellipsis would be no shorter."""
    ranges = [(lines[0], lines[0] + 1)]
    for line in lines[1:]:
        start, end = ranges[-1]
        if line <= end + 1:
            ranges[-1] = (start, line + 1)
        else:
            ranges.append((line, line + 1))
    return ranges
