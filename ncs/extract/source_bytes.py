"""The bytes of a source file: made UTF-8, and ranges of them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

Span = tuple[int, int]
"""A byte range: start, end."""

NOT_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_SPACE = re.compile(rb"\s*")


def as_utf8(source: bytes) -> bytes:
    """UTF-16 and Latin-1 converted to UTF-8, no byte order mark, and Unix line ends, so that equal code is equal.

    >>> as_utf8("größe".encode("latin-1")).decode()
    'größe'
    """
    if source[:3] == b"\xef\xbb\xbf":
        source = source[3:]
    elif source[:2] in (b"\xff\xfe", b"\xfe\xff"):
        source = source.decode("utf-16", "replace").encode()
    elif not source.isascii():
        text = source.decode("utf-8", "replace")
        if "\ufffd" in text:  # Latin-1 if nothing beyond ASCII is valid UTF-8
            source = (source.decode("latin-1") if text.replace("\ufffd", "").isascii() else text).encode()
    return source.replace(b"\r\n", b"\n") if b"\r" in source else source


def blanked(source: bytes | bytearray, spans: Sequence[Span], blank: bytes = b"\0") -> bytearray:
    """A copy with the ranges overwritten, so that offsets stay."""
    copy = bytearray(source)
    for start, end in spans:
        copy[start:end] = blank * (end - start)
    return copy


def after_space(source: bytes, at: int) -> int:
    """The first offset from `at` on that is not white space."""
    match = _SPACE.match(source, at)
    return match.end() if match else at


class Lines:
    """The lines of a source."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._ends = [match.start() for match in re.finditer(rb"\n", source)]
        self._letters: dict[int, int] = {}

    def number(self, at: int) -> int:
        """The number, from 1, of the line that holds an offset."""
        return bisect_left(self._ends, at) + 1

    def start(self, at: int) -> int:
        """Where the line starts that holds an offset."""
        number = self.number(at)
        return self._ends[number - 2] + 1 if number > 1 else 0

    def begins_with(self, at: int) -> bool:
        """Whether only white space stands before an offset on its line; a line is read once, however many ask."""
        start = self.start(at)
        if start not in self._letters:
            self._letters[start] = after_space(self._source, start)
        return self._letters[start] >= at


def outermost(spans: Sequence[Span]) -> list[Span]:
    """The spans that lie in no other; sorted input.

    >>> outermost([(0, 9), (2, 3), (9, 12)])
    [(0, 9), (9, 12)]
    """
    outer: list[Span] = []
    for start, end in spans:
        if not outer or start >= outer[-1][1]:
            outer.append((start, end))
    return outer


def gaps(start: int, end: int, spans: Sequence[Span]) -> Iterator[Span]:
    """The parts of start..end that lie outside the spans.

    >>> list(gaps(0, 10, [(2, 4), (8, 10)]))
    [(0, 2), (4, 8)]
    """
    at = start
    for a, b in spans:
        if a > at:
            yield at, a
        at = max(at, b)
    if at < end:
        yield at, end
