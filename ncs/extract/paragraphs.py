"""Lines of text in pieces that a person would make: between empty lines, neither too short nor too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SHORTEST, LONGEST = 5, 60
"""Lines of a block: a shorter one is joined with the next, a longer one is cut where the indentation is least."""


def pieces(lines: Sequence[str], first: int, end: int, whole: bool) -> Iterator[tuple[int, int]]:
    """Lines first..end in pieces of SHORTEST to LONGEST lines, without empty lines around; `whole`: as few as can be.

    A piece ends at an empty line, or where too long at the line of least indentation in its second half.
    """
    while first < end and not lines[first].strip():
        first += 1
    while end > first and not lines[end - 1].strip():
        end -= 1
    while first < end:
        stop = _stop(lines, first, end, whole)
        last = stop - 1
        while last > first and not lines[last].strip():
            last -= 1
        yield first, last
        first = stop
        while first < end and not lines[first].strip():
            first += 1


def _stop(lines: Sequence[str], first: int, end: int, whole: bool) -> int:
    """Where the piece that starts at a line ends (exclusive)."""
    if whole and end - first <= LONGEST:
        return end
    limit = min(end, first + LONGEST)
    if not whole:
        for number in range(first + SHORTEST, limit):
            if not lines[number].strip() and end - number > SHORTEST:
                return number
    if limit == end:
        return end
    half = range(limit, first + LONGEST // 2, -1)
    return min(half, key=lambda n: (bool(lines[n - 1].strip()), len(lines[n]) - len(lines[n].lstrip())))
