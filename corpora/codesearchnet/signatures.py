"""What is compared of a function: MinHash band keys of its identifiers, their hashes, and a digest of its code.

Two functions are near duplicates where the sets of their identifiers are at least .8 alike (Jaccard) and the multisets
at least .7, both of at least 20 identifiers (Allamanis 2019, "The adverse effects of code duplication", section 2.1,
after SourcererCC; CodeSearchNet took its tool).
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import MissingExtra
from ncs.extract import LANGUAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

SET, MULTISET = 0.8, 0.7
"""Jaccard similarities from which on two functions are near duplicates."""
LEAST = 20
"""Identifiers, repetitions counted; what has fewer has only exact duplicates."""
BANDS, WIDTH = 16, 5
"""Of two functions .8 alike 99.8 % share a band (1 - (1 - .8^5)^16), of two .5 alike 40 %."""
ROW = np.dtype([("digest", "<u8", (2,)), ("keys", "<u8", (BANDS,)), ("identifiers", "<u4"), ("documented", "u1")])
"""A function on disk, beside its identifiers' hashes: `keys` are 0 where it has too few of them."""
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def identifiers(tokens: Sequence[str], language: str) -> list[int]:
    """Hashes (CRC-32) of the tokens that are names and no keywords, ascending, repetitions kept."""
    ignored = LANGUAGES[language].ignored
    return sorted(_hash(token) for token in tokens if token not in ignored and _IDENTIFIER.match(token))


@lru_cache(1 << 16)
def _hash(token: str) -> int:
    return zlib.crc32(token.encode("utf-8", "replace"))


def rows_of(names: Sequence[Sequence[int]], digests: Sequence[bytes], documented: Sequence[bool]) -> NDArray[np.void]:
    """ROWs of functions by their identifiers, 16-byte digests and whether they are pairs, [n]."""
    rows: NDArray[Any] = np.zeros(len(names), ROW)
    rows["digest"] = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
    rows["identifiers"] = [len(each) for each in names]
    rows["documented"] = documented
    long = [number for number, each in enumerate(names) if len(each) >= LEAST]
    rows["keys"][long] = band_keys([sorted(set(names[number])) for number in long])
    return rows


def band_keys(sets: Sequence[Sequence[int]]) -> NDArray[np.uint64]:
    """A key for every band of the MinHash signatures of sets of 32-bit hashes, [n, BANDS], none of them 0."""
    keys = np.zeros((len(sets), BANDS), np.uint64)
    for number, minhash in enumerate(_minhash().bulk(sets, num_perm=BANDS * WIDTH, hashfunc=int)):
        bands = minhash.hashvalues.astype("<u4").reshape(BANDS, WIDTH)
        keys[number] = [
            int.from_bytes(blake2b(band.tobytes(), digest_size=8).digest(), "little") or 1 for band in bands
        ]
    return keys


def alike(one: Counter[int], other: Counter[int]) -> bool:
    """Whether two multisets of identifiers are near duplicates.

    >>> alike(Counter("abcdefgh"), Counter("abcdefghi")), alike(Counter("aaaab"), Counter("ab"))
    (True, False)
    """
    shared = one.keys() & other.keys()
    if len(shared) < SET * (len(one) + len(other) - len(shared)):
        return False
    both = sum(min(one[name], other[name]) for name in shared)
    return both >= MULTISET * (one.total() + other.total() - both)


def _minhash() -> Any:
    try:
        from datasketch import MinHash
    except ImportError:
        raise MissingExtra(
            "near duplicates are found with datasketch; install it with: pip install 'neural-code-search[corpora]'"
        ) from None
    return MinHash
