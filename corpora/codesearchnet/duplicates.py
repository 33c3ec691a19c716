"""Exact and near duplicates of one language's functions, and training pairs too similar to held-out functions.

Two functions are near duplicates where the sets of their identifiers are at least .8 alike (Jaccard) and the multisets
at least .7, both of at least 20 identifiers (Allamanis 2019, "The adverse effects of code duplication", section 2.1,
after SourcererCC). Candidates share a band of their MinHash signatures (ncs.storage.duplicates). A cluster is a
connected component; its first pair, else its first function, is kept.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from corpora.codesearchnet.filters import first_paragraph, read_code
from corpora.pairs import Pair
from ncs.extract import LANGUAGES
from ncs.search.baselines.enhanced import normalized
from ncs.storage.duplicates import band_keys, smallest_hashes, splitmix64

SET, MULTISET = 0.8, 0.7
"""Least Jaccard similarities of near duplicates."""
MIN_IDENTIFIERS = 20
"""Repetitions counted; shorter functions have exact duplicates only."""
BANDS, WIDTH = 16, 5
"""Of two functions .8 alike 99.8 % share a band (1 - (1 - .8^5)^16), of two .5 alike 40 %."""
CHUNK = 20_000
"""Functions hashed at a time."""
REPRESENTATIVES = 16
"""Functions per key that further ones are compared with, which bounds the cost of frequent keys."""
KEPT, EXACT, NEAR = 0, 1, 2
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def identifiers(tokens: Sequence[str], language: str) -> array[int]:
    """Hashes (CRC-32) of the tokens that are names and no keywords, ascending, repetitions kept."""
    ignored = LANGUAGES[language].ignored
    names = (token for token in tokens if token not in ignored and _IDENTIFIER.match(token))
    return array("I", sorted(zlib.crc32(name.encode("utf-8", "replace")) for name in names))


def alike(left: Counter[int], right: Counter[int]) -> bool:
    """Whether two multisets of identifiers are near duplicates.

    >>> alike(Counter("abcdefgh"), Counter("abcdefghij")), alike(Counter("abcdefg"), Counter("abcdefghi"))
    (True, False)
    >>> alike(Counter("aaaab"), Counter("ab"))  # alike as sets
    False
    """
    shared = left.keys() & right.keys()
    if len(shared) < SET * (len(left) + len(right) - len(shared)):
        return False
    common = sum(min(left[name], right[name]) for name in shared)
    return common >= MULTISET * (left.total() + right.total() - common)


def duplicates(
    names: Sequence[Sequence[int]], digests: Sequence[bytes], documented: Sequence[int]
) -> NDArray[np.uint8]:
    """KEPT, EXACT (duplicate) or NEAR for every function, from its `identifiers` and its digest, [n]."""
    clusters = _Clusters(documented)
    first: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        clusters.join(first.setdefault(digest, row), row)
    for keys in _band_keys(names):
        for group in _groups(keys):
            representatives: list[tuple[int, Counter[int]]] = []
            for row in group:
                if any(clusters.first(other) == clusters.first(row) for other, _ in representatives):
                    continue
                own = Counter(names[row])
                match = next((other for other, theirs in representatives if alike(own, theirs)), None)
                if match is not None:
                    clusters.join(match, row)
                elif len(representatives) < REPRESENTATIVES:
                    representatives.append((row, own))
    fates = np.zeros(len(names), np.uint8)
    for row in range(len(names)):
        if (original := clusters.first(row)) != row:
            fates[row] = EXACT if digests[row] == digests[original] else NEAR
    return fates


def _band_keys(names: Sequence[Sequence[int]]) -> NDArray[np.uint64]:
    """The MinHash key of each band, [BANDS, n]; 0 for functions of few identifiers."""
    keys = np.zeros((BANDS, len(names)), np.uint64)
    rows = [row for row, each in enumerate(names) if len(each) >= MIN_IDENTIFIERS]
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        sets = [np.unique(np.array(names[row], np.uint64)) for row in chunk]
        starts = np.cumsum([0, *map(len, sets)])[:-1]
        hashes = smallest_hashes(splitmix64(np.concatenate(sets)), starts, BANDS * WIDTH)
        keys[:, chunk] = band_keys(hashes, np.zeros(len(chunk), np.uint64), WIDTH)
    return keys


def _groups(keys: NDArray[np.uint64]) -> Iterator[list[int]]:
    """Groups of at least two rows that share a key other than 0, ascending."""
    rows = np.flatnonzero(keys)
    rows = rows[np.argsort(keys[rows], kind="stable")]
    _, starts, counts = np.unique(keys[rows], return_index=True, return_counts=True)
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        yield rows[start : start + count].tolist()


class _Clusters:
    """Disjoint sets of rows; the first of a cluster is its first pair, else its first row."""

    def __init__(self, documented: Sequence[int]) -> None:
        self._documented = documented
        self._parent = array("i", range(len(documented)))

    def first(self, row: int) -> int:
        parent = self._parent
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    def join(self, one: int, other: int) -> None:
        one, other = self.first(one), self.first(other)
        if (not self._documented[other], other) < (not self._documented[one], one):
            one, other = other, one
        self._parent[other] = one


class HeldOutFunctions:
    """Functions kept for evaluation: code is compared without comments, documentation by its first paragraph's words.

    All near duplicates are found, not only those that share a band: of two sets of identifiers of which SET is shared,
    the rarest few of each meet (prefix filtering: Chaudhuri, Ganti and Kaushik 2006).
    """

    def __init__(self, functions: Iterable[tuple[str, str]]) -> None:
        """Index functions, given as (code, language)."""
        self._tokens: set[tuple[str, ...]] = set()
        self._documentation: set[str] = set()
        self._names: list[Counter[int]] = []
        for text, language in functions:
            if language in LANGUAGES:
                code = read_code(text, language)
                self._tokens.add(code.tokens)
                self._documentation.add(normalized(first_paragraph(code.docstring)))
                self._names.append(Counter(identifiers(code.tokens, language)))
        self._documentation.discard("")
        self._frequency = Counter(name for names in self._names for name in names)
        self._places: dict[int, list[int]] = defaultdict(list)
        for place, names in enumerate(self._names):
            for name in self._rarest(names):
                self._places[name].append(place)

    def overlap(self, pair: Pair) -> Literal["code", "near duplicate", "documentation"] | None:
        """Why a pair must not be used for training; None if it may."""
        if normalized(first_paragraph(pair.query)) in self._documentation:
            return "documentation"
        if pair.language not in LANGUAGES:
            return None
        tokens = read_code(pair.code, pair.language).tokens
        if tokens in self._tokens:
            return "code"
        names = Counter(identifiers(tokens, pair.language))
        candidates = {place for name in self._rarest(names) for place in self._places.get(name, ())}
        return "near duplicate" if any(alike(names, self._names[place]) for place in candidates) else None

    def without(self, pairs: Iterable[Pair], dropped: Counter[str]) -> Iterator[Pair]:
        """The pairs that may be trained on; the others are counted by their reason."""
        for pair in pairs:
            if (reason := self.overlap(pair)) is None:
                yield pair
            else:
                dropped[reason] += 1

    def _rarest(self, names: Counter[int]) -> list[int]:
        """The rarest identifiers of a long function, enough that near duplicates share one (prefix filter)."""
        if names.total() < MIN_IDENTIFIERS:
            return []
        ordered = sorted(names, key=lambda name: (self._frequency[name], name))
        return ordered[: len(ordered) - int(SET * len(ordered) - 1e-9)]
