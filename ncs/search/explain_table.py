"""Explanations as lines of text for a terminal of a given width."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

LEAST = 40
"""Minimum width in columns."""
NAMES = 5
"""Number of shared names shown."""
ABOUT = {"similarity": "alike", "idf": "idf"}
SHORTEST = 8
"""Minimum columns of a word."""
_FILLER = "\0"
FIELDS_BESIDE = 18
"""Minimum columns for fields beside the numbers of a word; otherwise they get their own line."""


def query_lines(answer: Mapping[str, Any], width: int) -> list[str]:
    """Lines about the query: its kind, the words used and ignored, and the gates."""
    query, width = answer["explanation"], max(width, LEAST)
    parts = [f"{query['kind']} query" if query["kind"] else f"ranker {answer['ranker']}"]
    parts.append(f"words: {', '.join(query['words']) or 'none'}")
    if ignored := [*query["grammar"], *(f"{word} (nearly all documents)" for word in query["languages"])]:
        parts.append(f"left out: {', '.join(ignored)}")
    if query["added"]:
        parts.append(f"added: {', '.join(query['added'])}")
    if query["symbols"]:
        parts.append(f"symbols: {', '.join(query['symbols'])}")
    if gates := query["gates"]:
        few = "y" if gates["repositories"] == 1 else "ies"
        parts.append(f"candidates: {gates['candidates']} of {gates['repositories']} repositor{few}")
        parts.append(f"gates: consensus {gates['consensus']:.2f}, file {gates['inside']:.2f}")
    return _wrapped("; ".join(parts), width, "", "  ")


def reasons_lines(explanation: Mapping[str, Any], width: int, indent: int = 4) -> list[str]:
    """Lines about one hit: the sum of its signals, one line per word, and the causes of the other signals."""
    margin, width = " " * indent, max(width, LEAST)
    lines: list[str] = []
    if explanation["shares"] is not None:
        sum_of = " + ".join(f"{name} {share:.4f}" for name, share in explanation["shares"].items() if share)
        halved = [f"{name} {factor:.2f}" for name, factor in explanation["factors"].items() if factor != 1]
        after = f" (after {' x '.join(halved)})" if halved else ""
        lines += _wrapped(f"{round(explanation['score'], 6):.4f} = {sum_of}{after}", width, margin, margin + "  ")
    lines += [margin + line for line in _words(explanation["words"], width - indent)]
    if names := explanation["names"]:
        users = [f"{used['name']} ({used['repositories']})" for used in names[:NAMES]]
        users[0] = users[0].replace(")", " repositories)" if names[0]["repositories"] != 1 else " repository)")
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        lines += _wrapped(f"shared names: {', '.join(users)}{more}", width, margin, margin + "  ")
    if explanation["defines"]:
        lines += _wrapped(f"defines {', '.join(explanation['defines'])}", width, margin, margin + "  ")
    if explanation["title"]:
        parts = f"file name matches {', '.join(explanation['title'])}: {explanation['title_share']:.4f}"
        lines += _wrapped(parts, width, margin, margin + "  ")
    return lines


def _words(words: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """A table: the word, the matching word of the document, their similarity, its shares, and the fields.

    If it is too wide, fields get their own line, then similarity and idf are dropped, then words are shortened.
    """
    if not words:
        return []
    about = [name for name in ABOUT if any(each[name] is not None for each in words)]
    signals = list(words[0]["shares"])
    while True:
        head = ["word", "met", *(ABOUT[name] for name in about), *signals]
        rows = [[each["word"], _match_text(each), *_numbers(each, about, signals)] for each in words]
        columns = [max(cells(row[at]) for row in [head, *rows]) for at in range(len(head))]
        spare = width - sum(columns) - 2 * (len(columns) - 1)
        if spare >= 0 or not about:
            break
        about.pop()
    beside = spare - 2 >= FIELDS_BESIDE
    for at in (0, 1):  # long identifiers are shortened, numbers never
        columns[at] -= min(max(0, -spare), max(0, columns[at] - SHORTEST))
        spare = width - sum(columns) - 2 * (len(columns) - 1)
    lines = [_row(head, columns) + ("  in" if beside else "")]
    for row, each in zip(rows, words, strict=True):
        fields, line = ", ".join(each["fields"]), _row(row, columns)
        if beside and fields:
            lines += _wrapped(fields, width, f"{line}  ", " " * (cells(line) + 2))
        else:
            lines += [line, *(_wrapped(f"in {fields}", width, "  ", "     ") if fields else [])]
    return [line.rstrip() for line in lines]


def _match_text(word: Mapping[str, Any]) -> str:
    if word["met"] is None:
        return "-"
    return str(word["met"]) if word["similarity"] == 1 else f"~ {word['met']}"


def _numbers(word: Mapping[str, Any], about: Sequence[str], signals: Sequence[str]) -> list[str]:
    shown = ["" if word[name] is None else f"{word[name]:.2f}" for name in about]
    return [*shown, *(f"{word['shares'][name]:.4f}" if word["shares"][name] else "0" for name in signals)]


def cells(text: str) -> int:
    """The terminal columns of a text: wide characters (Chinese, Japanese, Korean ...) take two, combining marks none.

    >>> cells("read"), cells("\u8bfb\u53d6"), cells("e\u0301")
    (4, 4, 1)
    """
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _row(texts: Sequence[str], columns: Sequence[int]) -> str:
    """A row of the table, words left-aligned and numbers right-aligned."""
    shortened = [_shorten(text, size) for text, size in zip(texts, columns, strict=True)]
    padding = [" " * (size - cells(text)) for text, size in zip(shortened, columns, strict=True)]
    return "  ".join(
        text + blank if at < 2 else blank + text
        for at, (text, blank) in enumerate(zip(shortened, padding, strict=True))
    )


def _shorten(text: str, size: int) -> str:
    if cells(text) <= size:
        return text
    while cells(text) > size - 1:
        text = text[:-1]
    return f"{text}…"


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    """Lines of at most `width` columns; textwrap counts characters, so wide ones are followed by a filler."""
    wide = {character for character in text + first + rest if _cells(character) == 2}
    filled = {ord(character): character + _FILLER for character in wide}
    lines = textwrap.wrap(
        text.translate(filled),
        width,
        initial_indent=first.translate(filled),
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    return [line.replace(_FILLER, "") for line in lines]
