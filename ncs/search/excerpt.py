"""Which lines of a hit's code are worth showing, and whether they are the lines of its file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PIECES = frozenset({"module", "block"})
MOST = 14
"""Lines of an excerpt."""


def excerpt(lines: int, marked: Sequence[int], most: int = MOST) -> list[tuple[int, int]]:
    """Which lines of a function to show: ranges of 0-based lines, ends excluded, at most about `most` lines.

    The first line is always there; then come the marked lines, those that matter most first, each with its
    neighbours. A function of a few lines more than that is shown whole.

    >>> excerpt(8, [5])
    [(0, 8)]
    >>> excerpt(100, [50, 52], 10)
    [(0, 3), (49, 54)]
    """
    if lines <= most + 3:
        return [(0, lines)]
    shown = {0, 1, 2}
    for line in marked:
        around = {max(line - 1, 0), line, min(line + 1, lines - 1)}
        if len(shown | around) > most:
            break
        shown |= around
    line = 3
    while not marked and len(shown) < most:
        shown.add(line)
        line += 1
    return _ranges(sorted(shown))


def line_starts(code: str) -> list[int]:
    """Where each line of the code begins, as offsets.

    >>> line_starts("a\\nbc\\n")
    [0, 2, 5]
    """
    starts = [0]
    for line in code.split("\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def marked_lines(code: str, marks: Iterable[tuple[int, int]]) -> list[int]:
    """The 0-based lines in which something is marked, those with the most different words first.

    >>> marked_lines("x\\nhide\\nhide key\\nkey key", [(2, 6), (7, 11), (12, 15), (16, 19), (20, 23)])
    [2, 1, 3]
    """
    starts = line_starts(code)
    held: dict[int, set[str]] = {}
    for start, end in marks:
        held.setdefault(bisect_right(starts, start) - 1, set()).add(code[start:end].lower())
    return sorted(held, key=lambda line: (-len(held[line]), line))


def numbered(hit: Mapping[str, Any]) -> bool:
    """Whether the lines of a hit's code are the lines of its file, one for one.

    An outline of a class leaves out the bodies of methods, and that of a file what stands between its pieces; their
    lines have no numbers that are true. Pieces are joined by empty lines: only one that has none is sure to be whole.
    """
    code: str = hit["code"]
    whole = hit["kind"] not in _PIECES or "\n\n" not in code
    return whole and code.count("\n") == hit["end_line"] - hit["start_line"]


def _ranges(lines: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted lines as ranges; a gap of one line is closed, an ellipsis would be no shorter."""
    ranges = [(lines[0], lines[0] + 1)]
    for line in lines[1:]:
        start, end = ranges[-1]
        if line <= end + 1:
            ranges[-1] = (start, line + 1)
        else:
            ranges.append((line, line + 1))
    return ranges
