"""What a grammar cannot parse and would lose the code around: C++ macros, SQL bodies in other languages.

It is blanked where the parser found errors, and before parsing where errors are certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from heapq import merge

from ncs.extract.source_bytes import Span

Mask = Callable[[bytes], tuple[Sequence[Span], bool]]
"""A source -> the ranges to blank, in order, and whether they are certain to be errors for the parser."""

_NAME = rb"[A-Z][A-Z0-9]*_[A-Z0-9_]*"  # of a macro: it has an underscore
_MACRO = _NAME + rb"(?:\([^()]{0,200}\))?"
_BEFORE = rb"(?:template[ \t]*<[^;{}\n]*>[ \t]*)?"
_BEFORE += rb"(?:(?:static|inline|explicit|virtual|constexpr|extern|friend|template)[ \t]+)*"
_MACROS = (  # each starts with bytes that are found quickly; of two that overlap the first counts
    re.compile(rb"\)(?:\s+(?:const|override|final|noexcept))*(\s+" + _MACRO + rb")(?=\s*[{:;])"),  # after parameters
    re.compile(rb"class(?<!\wclass)\s+(" + _MACRO + rb")(?=\s+\w)"),  # before the name of a class
    re.compile(rb"struct(?<!\wstruct)\s+(" + _MACRO + rb")(?=\s+\w)"),
    re.compile(rb"\n[ \t]*" + _BEFORE + rb"(" + _MACRO + rb"(?:[ \t]+" + _MACRO + rb")*)(?=\s+[A-Za-z_~:#])"),
    re.compile(rb"if(?<!\wif)[ \t]+([A-Z][A-Z0-9_]*)(?=[ \t]*\()"),  # if CONSTEXPR (...)
    re.compile(rb"\n(" + _NAME + rb"\([^;{}]{0,300}\);)"),  # a call at the top level
)
_DECLARATION = _MACROS[3]
_TYPE = re.compile(rb"[ \t]+(?:namespace|class|struct|template|void|int|bool|char)\b")


def mask_macros(source: bytes) -> tuple[Sequence[Span], bool]:
    """Macros of C++ where its grammar allows none; certain before a keyword, since a type cannot stand there."""
    source = b"\n" + source
    matches = merge(
        *([(m.start(), m.span(1), m) for m in pattern.finditer(source)] for pattern in _MACROS),
        key=lambda match: match[0],
    )
    spans: list[Span] = []
    certain, end = False, 0
    for start, (first, last), match in matches:
        if start >= end:
            end = match.end()
            spans.append((first - 1, last - 1))
            certain = certain or (match.re is _DECLARATION and _TYPE.match(source, last) is not None)
    return spans, certain


def _last_group(pattern: re.Pattern[bytes]) -> Mask:
    def spans(source: bytes) -> tuple[Sequence[Span], bool]:
        return [match.span(match.lastindex or 0) for match in pattern.finditer(source)], False

    return spans


mask_constructors = _last_group(  # Kotlin: with a comment before it the grammar loses the whole class
    re.compile(rb"class(?<!\wclass)\s+\w+(?:<[^<>{}()]*>)?(\s(?:(?!\bclass\b)[^{}()=])*?\bconstructor\b)(?=\s*\()")
)
mask_bodies = _last_group(re.compile(rb"(\$\w*\$)(.*?)\1", re.DOTALL))  # SQL: bodies in PL/pgSQL and the like
