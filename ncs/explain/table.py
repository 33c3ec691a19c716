"""An explanation as lines of text for a terminal of some width: from the dictionaries that are in an answer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

LEAST = 40
"""Columns below which nothing gets narrower."""
NAMES = 5
"""Shared names that are shown."""
FIELDS_BESIDE = 18
"""Columns that fields need to stand beside the numbers of a word; with fewer they get a line of their own."""


def reading_lines(answer: Mapping[str, Any], width: int) -> list[str]:
    """What was asked: the kind of question, the words looked for and left out, and how far each gate is open."""
    reading = answer["explanation"]
    said = [f"{reading['kind']} question" if reading["kind"] else f"ranker {answer['ranker']}"]
    said.append(f"words: {', '.join(reading['words']) or 'none'}")
    if left := [*reading["grammar"], *(f"{word} (nearly all is)" for word in reading["languages"])]:
        said.append(f"left out: {', '.join(left)}")
    if reading["added"]:
        said.append(f"added: {', '.join(reading['added'])}")
    if reading["symbols"]:
        said.append(f"names asked for: {', '.join(reading['symbols'])}")
    if gates := reading["gates"]:
        few = "y" if gates["repositories"] == 1 else "ies"
        said.append(f"candidates: {gates['candidates']} of {gates['repositories']} repositor{few}")
        said.append(f"gates: consensus {gates['consensus']:.2f}, file {gates['inside']:.2f}")
    return _wrapped("; ".join(said), width, "", "  ")


def reasons_lines(explanation: Mapping[str, Any], width: int, indent: int = 4) -> list[str]:
    """Why one hit has its score: the sum of its signals, a line a word, and what stands behind the other signals."""
    left = " " * indent
    lines: list[str] = []
    if explanation["shares"] is not None:
        sum_of = " + ".join(f"{name} {share:.4f}" for name, share in explanation["shares"].items() if share)
        halved = [f"{name} {factor:.2f}" for name, factor in explanation["factors"].items() if factor != 1]
        after = f" (after {' x '.join(halved)})" if halved else ""
        lines += _wrapped(f"{explanation['score']:.4f} = {sum_of}{after}", width, left, left + "  ")
    lines += [left + line for line in _words(explanation["words"], max(width, LEAST) - indent)]
    if names := explanation["names"]:
        shown = [f"{used['name']} ({used['repositories']})" for used in names[:NAMES]]
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        what = "uses names that candidates share (of so many repositories): "
        lines += _wrapped(what + ", ".join(shown) + more, width, left, left + "  ")
    if explanation["defines"]:
        lines += _wrapped(f"defines {', '.join(explanation['defines'])}", width, left, left + "  ")
    if explanation["title"]:
        said = f"its file's name says {', '.join(explanation['title'])}: {explanation['title_share']:.4f}"
        lines += _wrapped(said, width, left, left + "  ")
    return lines


def _words(words: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """A table: the word, the document's word that it met, how alike they are, what it adds, and the fields."""
    if not words:
        return []
    signals = list(words[0]["shares"])
    rows = [
        [each["word"], _met(each), *_numbers(each, words), *(_share(each["shares"][name]) for name in signals)]
        for each in words
    ]
    head = ["word", "met", *_numbers_head(words), *signals]
    columns = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    room = width - sum(columns[2:]) - 2 * len(columns)
    beside = room - columns[0] - columns[1] >= FIELDS_BESIDE
    for at in (0, 1):  # long identifiers are cut, numbers never
        columns[at] = min(columns[at], max(8, room // 2 - (FIELDS_BESIDE // 2 if beside else 0)))
    lines = [_row(head, columns) + ("  in" if beside else "")]
    for row, each in zip(rows, words, strict=True):
        fields = ", ".join(each["fields"])
        line = _row(row, columns)
        if beside:
            lines += _wrapped(fields, width, f"{line}  ", " " * (len(line) + 2)) if fields else [line]
        else:
            lines += [line, *(_wrapped(f"in {fields}", width, "  ", "     ") if fields else [])]
    return [line.rstrip() for line in lines]


def _met(word: Mapping[str, Any]) -> str:
    if word["met"] is None:
        return "-"
    return str(word["met"]) if word["similarity"] == 1 else f"~ {word['met']}"


def _numbers_head(words: Sequence[Mapping[str, Any]]) -> list[str]:
    return ["alike", *(["idf"] if any(each["idf"] is not None for each in words) else [])]


def _numbers(word: Mapping[str, Any], words: Sequence[Mapping[str, Any]]) -> list[str]:
    alike = "" if word["similarity"] is None else f"{word['similarity']:.2f}"
    rare = [] if len(_numbers_head(words)) == 1 else ["" if word["idf"] is None else f"{word['idf']:.1f}"]
    return [alike, *rare]


def _share(share: float) -> str:
    return f"{share:.4f}" if share else "0"


def _row(cells: Sequence[str], columns: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    cut = [cell if len(cell) <= size else cell[: size - 1] + "…" for cell, size in zip(cells, columns, strict=True)]
    return "  ".join(
        f"{cell:<{size}}" if at < 2 else f"{cell:>{size}}"
        for at, (cell, size) in enumerate(zip(cut, columns, strict=True))
    )


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, max(width, LEAST), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
