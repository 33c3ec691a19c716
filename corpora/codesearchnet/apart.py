"""Functions kept for evaluation, and pairs that are too like them to be learnt from: the same code, nearly, or words.

All near duplicates are found, not only those that share a band: of two sets of identifiers of which SET is shared, the
rarest few of each meet (prefix filtering: Chaudhuri, Ganti and Kaushik 2006).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal

from corpora.codesearchnet.code import read_code
from corpora.codesearchnet.documentation import first_paragraph
from corpora.codesearchnet.signatures import LEAST, SET, alike, identifiers
from corpora.pairs import Pair
from ncs.extract import LANGUAGES
from ncs.search.pairs import normalised

Reason = Literal["code", "near duplicate", "documentation"]


class Apart:
    """What is kept apart. Code is compared without comments, documentation by its first paragraph's words."""

    def __init__(self, functions: Iterable[tuple[str, str]]) -> None:
        """From (code, language)."""
        self._tokens: set[tuple[str, ...]] = set()
        self._said: set[str] = set()
        self._names: list[Counter[int]] = []
        for text, language in functions:
            code = read_code(text, language) if language in LANGUAGES else None
            if code is not None:
                self._tokens.add(code.tokens)
                self._said.add(normalised(first_paragraph(code.docstring)))
                self._names.append(Counter(identifiers(code.tokens, language)))
        self._said.discard("")
        self._often = Counter(name for names in self._names for name in names)
        self._places: dict[int, list[int]] = defaultdict(list)
        for place, names in enumerate(self._names):
            for name in self._rarest(names):
                self._places[name].append(place)

    def __len__(self) -> int:
        return len(self._names)

    def reason(self, pair: Pair) -> Reason | None:
        """Why a pair is not to be learnt from; None where it may be."""
        if normalised(first_paragraph(pair.query)) in self._said:
            return "documentation"
        if pair.language not in LANGUAGES:
            return None
        tokens = read_code(pair.code, pair.language).tokens
        if tokens in self._tokens:
            return "code"
        names = Counter(identifiers(tokens, pair.language))
        met = {place for name in self._rarest(names) for place in self._places.get(name, ())}
        return "near duplicate" if any(alike(names, self._names[place]) for place in met) else None

    def others(self, pairs: Iterable[Pair], dropped: Counter[str]) -> Iterator[Pair]:
        """The pairs that may be learnt from; the others are counted by their reason."""
        for pair in pairs:
            reason = self.reason(pair)
            if reason is None:
                yield pair
            else:
                dropped[reason] += 1

    def _rarest(self, names: Counter[int]) -> list[int]:
        """Of a function that is long enough, so many identifiers that two near duplicates have one of them in common.

        Both share SET of the larger set at least, so leaving the rarest of these out leaves too few.
        """
        if names.total() < LEAST:
            return []
        ordered = sorted(names, key=lambda name: (self._often[name], name))
        return ordered[: len(ordered) - int(SET * len(ordered) - 1e-9)]
