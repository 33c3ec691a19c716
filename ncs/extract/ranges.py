"""Ranges of a file: which lie in no other, what is left between, and what is shown of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ncs.extract.bytewise import Span

LONGEST = 60  # lines of a block; a longer top level is cut at empty lines
_IMPORT = re.compile(
    rb"^[ \t]*(?:from\s+\S+\s+)?import\s*(?:\([^)]*\)|\{[^}]*\}[^\n]*|[^\n]*)"
    rb"|^[ \t]*(?:package|using|use|require|require_relative|include|mod|namespace)\b[^\n]*"
    rb"|^[ \t]*#[ \t]*include[^\n]*|^[^\n=]*=[ \t]*require\([^\n]*",
    re.MULTILINE,
)
_BREAK = re.compile(rb"\n[ \t]*(?:\n[ \t]*)+")
_BODIES = re.compile(rb"[ \t]*\{[ \t]*$|[ \t]*:[ \t]*$")


def outermost(spans: Sequence[Span]) -> list[Span]:
    """Those that lie in no other; sorted input.

    >>> outermost([(0, 9), (2, 3), (9, 12)])
    [(0, 9), (9, 12)]
    """
    found: list[Span] = []
    for start, end in spans:
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def gaps(start: int, end: int, inside: Sequence[Span]) -> Iterator[Span]:
    """What of start..end lies outside the spans.

    >>> list(gaps(0, 10, [(2, 4), (8, 10)]))
    [(0, 2), (4, 8)]
    """
    at = start
    for a, b in inside:
        if a > at:
            yield at, a
        at = max(at, b)
    if at < end:
        yield at, end


def outline(source: bytes, start: int, end: int, inside: Mapping[Span, str]) -> bytes:
    """The code of a class; of each named span in it what comes before its body: the first lines up to its name."""
    parts = []
    at = start
    for (a, b), name in inside.items():
        named = source.find(name.encode("utf-8", "replace"), a, b)
        line_end = source.find(b"\n", max(a, named), b)
        head = source[a:b] if line_end < 0 else _BODIES.sub(b"", source[a:line_end]) + b" ..."
        parts += [source[at:a], head]
        at = b
    parts.append(source[at:end])
    return b"".join(parts)


def blocks(source: bytes, free: Sequence[Span]) -> list[list[Span]]:
    """The free spans that hold more than imports, in groups of at most LONGEST lines, cut at empty lines."""
    pieces: list[Span] = []
    for start, end in free:
        for a, b in gaps(start, end, [match.span() for match in _IMPORT.finditer(source, start, end)]):
            at = a
            for match in _BREAK.finditer(source, a, b):
                pieces.append((at, match.start()))
                at = match.end()
            pieces.append((at, b))
    groups: list[list[Span]] = []
    lines = 0
    for start, end in pieces:
        text = source[start:end]
        if not re.search(rb"\w", text):
            continue
        here = text.strip().count(b"\n") + 1
        if not groups or lines + here > LONGEST:
            groups.append([])
            lines = 0
        skipped = len(text) - len(text.lstrip())
        groups[-1].append((start + skipped, start + len(text.rstrip())))
        lines += here
    return groups
