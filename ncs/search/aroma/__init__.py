"""Aroma's structural features of any piece of code, and which share of one piece another one has.

Luan et al., "Aroma: code recommendation via structural code search" (OOPSLA 2019), section 3.1, written from the
paper. A simplified parse tree has lists as nodes; a list's label joins its keyword tokens and a `#` for each part
that is no keyword. Every other token n (a name, a literal) gives these features:

    n                                    local variables become #VAR, literals their class (#STR, #NUM)
    (n, i, label)                        for parent, grandparent and great-grandparent; i is the part n stands in
    (n, next token)                      what follows in source order
    (use, next use)                      for a variable: where it stands now and where it stands next, as (i, label)

A local variable is a name that the piece declares, as a local or a parameter. A name that it only uses may be a field
or a variable of code left out, and stays as it is: that separates best (DESIGN.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from ncs.search.aroma.parse import parse, readable
from ncs.search.aroma.tree import Step, Token, tokens_of

__all__ = ["Feature", "Features", "cached_features", "features", "readable", "similarity"]

Feature = tuple[object, ...]
Features = Mapping[Feature, int]
"""A multiset: feature -> how often."""

CACHED = 20_000
"""Pieces of code whose features are remembered: more than five rankers' hits on 287 questions."""


def features(code: str | bytes, language: str) -> Features:
    """The multiset of features of statements, members or a whole file, whatever parses with fewest errors.

    Garbage has few features, and no code raises anything. Raises BadInput for a language without a grammar.
    """
    parsed = parse(code.encode(errors="replace") if isinstance(code, str) else code, language)
    tokens, scopes = tokens_of(parsed)
    declared = [scopes.owner(token) for token in tokens]
    texts = ["#VAR" if owner is not None else token.text for token, owner in zip(tokens, declared, strict=True)]
    found: Counter[Feature] = Counter()
    found.update((text,) for text in texts)
    found.update((text, *step) for token, text in zip(tokens, texts, strict=True) for step in token.above)
    found.update((text, "->", after) for text, after in pairwise(texts))
    found.update(_uses(tokens, declared))
    return found


@lru_cache(maxsize=CACHED)
def cached_features(code: str, language: str) -> Features:
    """`features`, remembered by content in this process: computing them takes less than a millisecond a function."""
    return features(code, language)


def similarity(function: Features, answer: Features) -> float:
    """The share of the answer's features that the function has, as multisets; 0 for an answer without features.

    >>> similarity(features("a.close(); b.open();", "java"), features("a.close();", "java"))
    1.0
    """
    total = sum(answer.values())
    shared = sum(min(count, function.get(feature, 0)) for feature, count in answer.items())
    return shared / total if total else 0.0


def _uses(tokens: Sequence[Token], declared: Iterable[int | None]) -> Iterator[Feature]:
    """Each use of a variable with the next one."""
    last: dict[tuple[int, str], Step] = {}
    for token, owner in zip(tokens, declared, strict=True):
        if owner is None or not token.above:
            continue
        use, variable = token.above[0], (owner, token.text)
        if variable in last:
            yield "use", last[variable], use
        last[variable] = use
