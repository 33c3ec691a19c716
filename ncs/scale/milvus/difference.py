"""What a collection lacks and what it has too much, found by asking for the keys of those parts only that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.scale.milvus.about import BUCKETS, SHIFT, About, bucket_of, sums_of
from ncs.scale.milvus.target import TIMEOUT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

MOST = 16_384
"""Entities that Milvus gives at most."""
ASKED, RANGES = 12_000, 200
"""Keys, as many as are expected, and stretches of keys that one request asks for."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rising keys: that are to be there and are not; that are there and need not be. parts: those that were asked."""

    missing: Numbers
    extra: Numbers
    parts: Numbers

    def __len__(self) -> int:
        """How many documents came or went, whichever are more."""
        return max(len(self.missing), len(self.extra))


def difference(client: Any, name: str, about: About, wanted: Numbers) -> Difference:
    """Between what a loaded collection holds and rising keys."""
    parts = np.array([at for at, own in enumerate(sums_of(wanted)) if own != about.sums[at]], np.int64)
    differing = np.zeros(BUCKETS, np.bool_)
    differing[parts] = True
    here = wanted[differing[bucket_of(wanted)]]
    there = _there(client, name, differing, np.bincount(bucket_of(wanted), minlength=BUCKETS))
    missing, extra = (np.setdiff1d(one, other, assume_unique=True) for one, other in ((here, there), (there, here)))
    return Difference(missing, extra, parts)


def _there(client: Any, name: str, differing: NDArray[np.bool_], expected: Numbers) -> Numbers:
    """The keys of the collection in these parts."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], differing, [False]]).astype(np.int8)))
    found, asked, size = [np.zeros(0, np.int64)], list[tuple[int, int]](), 0
    for first, last in edges.reshape(-1, 2).tolist():
        while first < last:
            until = min(last, first + max(1, ASKED * BUCKETS // max(1, int(expected.sum()))))
            here = int(expected[first:until].sum())
            if asked and (size + here > ASKED or len(asked) == RANGES):
                found.append(_keys(client, name, asked))
                asked, size = [], 0
            asked.append((first << SHIFT, until << SHIFT))
            size, first = size + here, until
    if asked:
        found.append(_keys(client, name, asked))
    return np.sort(np.concatenate(found))


def _keys(client: Any, name: str, ranges: list[tuple[int, int]]) -> Numbers:
    """The keys in these stretches; asked in halves where there are more than Milvus gives."""
    asked = " or ".join(f"(key >= {first} and key <= {last - 1})" for first, last in ranges)
    found = client.query(name, filter=asked, output_fields=["key"], limit=MOST, timeout=TIMEOUT)
    if len(found) < MOST:
        return np.array([each["key"] for each in found], np.int64)
    if len(ranges) > 1:
        halves = [ranges[: len(ranges) // 2], ranges[len(ranges) // 2 :]]
    else:
        (first, last), middle = ranges[0], sum(ranges[0]) // 2
        halves = [[(first, middle)], [(middle, last)]]
    return np.concatenate([_keys(client, name, half) for half in halves])
