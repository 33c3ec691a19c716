"""What in a file is no code of its language and spoils the parse around it: macros, and other languages.

It is not shown to the parser where that found errors; where macros surely make errors, not in the first place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from heapq import merge

from ncs.extract.bytewise import Span

Opaque = Callable[[bytes], tuple[Sequence[Span], bool]]
"""A source -> the ranges that are no code, in order, and whether they surely make errors."""

_NAME = rb"[A-Z][A-Z0-9]*_[A-Z0-9_]*"  # of a macro: it has an underscore
_MACRO = _NAME + rb"(?:\([^()]{0,200}\))?"
_BEFORE = rb"(?:template[ \t]*<[^;{}\n]*>[ \t]*)?"
_BEFORE += rb"(?:(?:static|inline|explicit|virtual|constexpr|extern|friend|template)[ \t]+)*"
_MACROS = (  # each starts with bytes that are quickly found; of two that overlap the first counts
    re.compile(rb"\)(?:\s+(?:const|override|final|noexcept))*(\s+" + _MACRO + rb")(?=\s*[{:;])"),  # behind parameters
    re.compile(rb"class(?<!\wclass)\s+(" + _MACRO + rb")(?=\s+\w)"),  # before the name of a class
    re.compile(rb"struct(?<!\wstruct)\s+(" + _MACRO + rb")(?=\s+\w)"),
    re.compile(rb"\n[ \t]*" + _BEFORE + rb"(" + _MACRO + rb"(?:[ \t]+" + _MACRO + rb")*)(?=\s+[A-Za-z_~:#])"),
    re.compile(rb"if(?<!\wif)[ \t]+([A-Z][A-Z0-9_]*)(?=[ \t]*\()"),  # if CONSTEXPR (...)
    re.compile(rb"\n(" + _NAME + rb"\([^;{}]{0,300}\);)"),  # a call outside of everything
)
_DECLARATION = _MACROS[3]
_TYPE = re.compile(rb"[ \t]+(?:namespace|class|struct|template|void|int|bool|char)\b")


def macros(source: bytes) -> tuple[Sequence[Span], bool]:
    """Macros of C++ that stand where its grammar knows none. What follows a type's name can be no other type."""
    source = b"\n" + source
    found = merge(*([(m.start(), m.span(1), m) for m in pattern.finditer(source)] for pattern in _MACROS), key=_start)
    spans: list[Span] = []
    surely, end = False, 0
    for start, (first, last), match in found:
        if start >= end:
            end = match.end()
            spans.append((first - 1, last - 1))
            surely = surely or (match.re is _DECLARATION and _TYPE.match(source, last) is not None)
    return spans, surely


def _start(found: tuple[int, Span, re.Match[bytes]]) -> int:
    return found[0]


def within(pattern: re.Pattern[bytes]) -> Opaque:
    """What the last group of a pattern matches."""

    def spans(source: bytes) -> tuple[Sequence[Span], bool]:
        return [match.span(match.lastindex or 0) for match in pattern.finditer(source)], False

    return spans


CONSTRUCTORS = within(  # Kotlin: with a comment before it the grammar loses the whole class
    re.compile(rb"class(?<!\wclass)\s+\w+(?:<[^<>{}()]*>)?(\s(?:(?!\bclass\b)[^{}()=])*?\bconstructor\b)(?=\s*\()")
)
BODIES = within(re.compile(rb"(\$\w*\$)(.*?)\1", re.DOTALL))  # SQL: bodies in PL/pgSQL and the like
