"""Exact and near duplicates of one language's functions, and training pairs too similar to held-out functions.

Two functions are near duplicates where the sets of their identifiers are at least .8 alike (Jaccard) and the multisets
at least .7, both of at least 20 identifiers (Allamanis 2019, "The adverse effects of code duplication", section 2.1,
after SourcererCC). Candidates share a band of their MinHash signatures (ncs.storage.minhash). A cluster is a
connected component; its first pair, else its first function, is kept. Functions are
rows of files: memory holds one band's keys.
"""

from __future__ import annotations

import re
import shutil
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from corpora.codesearchnet.filters import first_paragraph, read_code
from ncs.extract import LANGUAGES
from ncs.search.pairs import normalized
from ncs.storage.minhash import band_keys, mixed, smallest_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from corpora.pairs import Pair

SET, MULTISET = 0.8, 0.7
"""Least Jaccard similarities of near duplicates."""
MIN_IDENTIFIERS = 20
"""Repetitions counted; shorter functions have exact duplicates only."""
BANDS, WIDTH = 16, 5
"""Of two functions .8 alike 99.8 % share a band (1 - (1 - .8^5)^16), of two .5 alike 40 %."""
ROW = np.dtype([("digest", "<u8", (2,)), ("keys", "<u8", (BANDS,)), ("identifiers", "<u4"), ("documented", "u1")])
"""A function on disk, beside its identifiers' hashes: `keys` are 0 where it has too few of them."""
REPRESENTATIVES = 16
"""Functions per key that further ones are compared with, which bounds the cost of frequent keys."""
KEPT, EXACT, NEAR = 0, 1, 2
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def identifiers(tokens: Sequence[str], language: str) -> list[int]:
    """Hashes (CRC-32) of the tokens that are names and no keywords, ascending, repetitions kept."""
    ignored = LANGUAGES[language].ignored
    return sorted(_hash(token) for token in tokens if token not in ignored and _IDENTIFIER.match(token))


@lru_cache(1 << 16)
def _hash(token: str) -> int:
    return zlib.crc32(token.encode("utf-8", "replace"))


def rows_of(names: Sequence[Sequence[int]], digests: Sequence[bytes], documented: Sequence[bool]) -> NDArray[np.void]:
    """ROWs of functions from their identifiers, 16-byte digests and whether they are documented, [n]."""
    rows: NDArray[Any] = np.zeros(len(names), ROW)
    rows["digest"] = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
    rows["identifiers"] = [len(each) for each in names]
    rows["documented"] = documented
    long = [number for number, each in enumerate(names) if len(each) >= MIN_IDENTIFIERS]
    if long:
        sets = [sorted(set(names[number])) for number in long]
        starts = np.cumsum([0, *map(len, sets)])[:-1]
        hashes = smallest_hashes(mixed(np.concatenate(sets).astype(np.uint64)), starts, BANDS * WIDTH)
        rows["keys"][long] = band_keys(hashes, np.zeros(len(sets), np.uint64), WIDTH).T
    return rows


def alike(left: Counter[int], right: Counter[int]) -> bool:
    """Whether two multisets of identifiers are near duplicates.

    >>> alike(Counter("abcdefgh"), Counter("abcdefghi")), alike(Counter("aaaab"), Counter("ab"))
    (True, False)
    """
    shared = left.keys() & right.keys()
    if len(shared) < SET * (len(left) + len(right) - len(shared)):
        return False
    common = sum(min(left[name], right[name]) for name in shared)
    return common >= MULTISET * (left.total() + right.total() - common)


@dataclass(frozen=True, slots=True)
class Part:
    """The ROWs and identifiers' hashes of one repository and language, as files."""

    rows: Path
    names: Path


def duplicates(parts: Sequence[Part], scratch: Path) -> NDArray[np.uint8]:
    """KEPT, EXACT (duplicate) or NEAR for every function of the parts, in order.

    scratch: an empty folder for 149 bytes a function and 4 an identifier, while this runs.
    """
    rows = _concatenate([part.rows for part in parts], scratch / "rows", ROW)
    names = _concatenate([part.names for part in parts], scratch / "names", np.dtype("<u4"))
    ends = np.cumsum(rows["identifiers"], dtype=np.int64)
    digests = np.array(rows["digest"])
    clusters = _Clusters(np.array(rows["documented"], bool))

    def identifiers_of(row: int) -> Counter[int]:
        return Counter(names[ends[row] - int(rows["identifiers"][row]) : ends[row]].tolist())

    for first, *others in _groups(digests[:, 0]):
        for row in others:
            if (digests[row] == digests[first]).all():
                clusters.join(first, row)
    for band in range(BANDS):
        for group in _groups(np.array(rows["keys"][:, band])):
            representatives: list[tuple[int, Counter[int]]] = []
            for row in group:
                cluster = clusters.first(row)
                if any(clusters.first(other) == cluster for other, _ in representatives):
                    continue
                identifiers_of_row = identifiers_of(row)
                if (
                    match := next(
                        (other for other, theirs in representatives if alike(identifiers_of_row, theirs)), None
                    )
                ) is not None:
                    clusters.join(match, row)
                elif len(representatives) < REPRESENTATIVES:
                    representatives.append((row, identifiers_of_row))
    fates = np.zeros(len(rows), np.uint8)
    for row in range(len(rows)):
        if (original := clusters.first(row)) != row:
            fates[row] = EXACT if (digests[row] == digests[original]).all() else NEAR
    return fates


def _concatenate(files: Sequence[Path], path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """The concatenated arrays of these files, memory-mapped."""
    with path.open("wb") as target:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, target)
    return np.memmap(path, kind, "r") if path.stat().st_size else np.zeros(0, kind)


def _groups(keys: NDArray[np.uint64]) -> Iterator[list[int]]:
    """Groups of at least two rows that share a key other than 0, ascending."""
    rows = np.flatnonzero(keys)
    rows = rows[np.argsort(keys[rows], kind="stable")]
    same = np.flatnonzero(keys[rows[1:]] == keys[rows[:-1]])
    if len(same):
        ends = np.diff(same) > 1
        for start, end in zip(same[np.r_[True, ends]].tolist(), same[np.r_[ends, True]].tolist(), strict=True):
            yield rows[start : end + 2].tolist()


class _Clusters:
    """Disjoint sets of rows; the first of a cluster is its first pair, else its first row."""

    def __init__(self, documented: NDArray[np.bool_]) -> None:
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
        """From (code, language)."""
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
