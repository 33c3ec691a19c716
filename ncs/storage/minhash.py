"""Near-duplicate detection by MinHash: functions of the same name with almost the same words.

A function is the multiset of its code's words: comments and what encloses it are left out, and the n-th use of a
word is an element of its own (token multisets as in Allamanis 2019, "The adverse effects of code duplication").
Candidates share a band of their MinHash signatures (Broder 1997; banding as in Leskovec et al., "Mining of Massive
Datasets", section 3.4); then every pair is counted exactly. Rows of one cluster are at least ALIKE like its first row,
and of its name: without that, `onDescriptorRead` would be a near duplicate of `onDescriptorWrite`, whose other words
are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.arrays import connected_components, distinct
from ncs.storage.external_sort import temporary
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from ncs.storage.words import Words, WordTable

    Ids = NDArray[np.int32]
    Rows = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

ALIKE = 0.8
"""Jaccard similarity from which on two functions are near duplicates."""
LEAST = 20
"""Minimum words: `min` and `max` differ in an operator, which is not a word."""
CODE: tuple[Field, ...] = tuple(field for field in FIELDS if field not in ("scope", "doc", "comments", "path"))
BANDS, WIDTH = 12, 5
"""Functions with similarity .8 share a band with probability .99, with .5 with .32."""
CHUNK = 20_000
"""Rows, or pairs, per chunk."""
ROUNDS = 12
LOW = np.uint64(0xFFFFFFFF)
ALONE = -1


def hash_words(words: Iterable[str]) -> Hashes:
    """A hash of each word's letters, independent of the vocabulary."""
    digests = b"".join(blake2b(word.encode(), digest_size=8).digest() for word in words)
    return np.frombuffer(digests, np.uint64)


def cluster(
    words: WordTable, word_hashes: Hashes, rows: Rows, names: Hashes, clusters: Ids, folder: Path | None = None
) -> None:
    """Write the clusters of these ascending rows into `clusters`, initially ALONE.

    word_hashes: of all words; names: of these rows. Rows of a name must be all here, or none of them.
    """
    at = _comparable(words, rows, names)
    rows, names = rows[at], names[at]
    pairs = rows[_candidates(Signatures.of(words, word_hashes, rows, names, folder), names)]
    pairs = pairs[similarities(words, pairs) >= ALIKE]
    _stars(words, pairs, clusters)


def hash_names(words: WordTable, word_hashes: Hashes, kinds: NDArray[np.bool_] | None = None) -> Hashes:
    """A hash of each row's name, its words in their order, and of its kind, [len(words)]."""
    names = _names(words, word_hashes)
    return names if kinds is None else mixed(names ^ kinds.astype(np.uint64))


def similarities(words: WordTable | Words, pairs: Rows) -> NDArray[np.float64]:
    """The Jaccard similarity of the word multisets of each pair of rows [n, 2], [n]."""
    similarity = np.zeros(len(pairs))
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        sizes = []
        elements = []
        for side in (0, 1):
            ids, offsets = words.select_rows(CODE, chunk[:, side])
            sizes.append(np.diff(offsets))
            elements.append(_elements(ids, sizes[side]))
        both = np.sort(np.concatenate(elements))  # an element that both sides have occurs twice
        shared = np.bincount((both[1:][both[1:] == both[:-1]] >> np.uint64(44)).astype(np.int64), minlength=len(chunk))
        similarity[start : start + CHUNK] = shared / np.maximum(sizes[0] + sizes[1] - shared, 1)
    return similarity


def _elements(ids: Ids, sizes: Rows) -> Hashes:
    """A number for each word of documents of these sizes: 20 bits of the document's number, 12 of how often the word
    was there before in it (up to 4,095, where repetition no longer matters), 32 of the word."""
    owners = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    keys = np.sort((owners << np.uint64(32)) | ids.astype(np.uint64))
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    nth = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    nth = np.minimum(nth, 4095).astype(np.uint64)
    elements: Hashes = (
        ((keys >> np.uint64(32)) << np.uint64(44)) | (nth << np.uint64(32)) | (keys & np.uint64(0xFFFFFFFF))
    )
    return elements


def _comparable(words: WordTable, among: Rows, names: Hashes) -> Rows:
    """The rows with at least LEAST words and a name that another such row has."""
    rows = np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *(sizes >= LEAST for sizes in _sizes(words, among))]))
    sorted_names = np.sort(names[rows])
    shared = distinct(sorted_names[1:][sorted_names[1:] == sorted_names[:-1]])
    if not len(shared):
        return rows[:0]
    at = np.minimum(np.searchsorted(shared, names[rows]), len(shared) - 1)
    shared_rows: Rows = rows[shared[at] == names[rows]]
    return shared_rows


def _sizes(words: WordTable, rows: Rows) -> Iterator[Rows]:
    """Number of code words of each row."""
    columns = [FIELDS.index(field) for field in CODE]
    for start in range(0, len(rows), CHUNK):
        yield words.lengths(rows[start : start + CHUNK])[:, columns].sum(axis=1)


@dataclass(frozen=True, slots=True)
class Signatures:
    """Of m rows the smallest hashes by BANDS * WIDTH functions, uint32 [m, BANDS * WIDTH]; and keys, uint64
    [BANDS, m]: those of a band and the row's name as one number."""

    hashes: NDArray[np.uint32]
    keys: Hashes

    @classmethod
    def of(cls, words: WordTable, word_hashes: Hashes, rows: Rows, names: Hashes, folder: Path | None) -> Signatures:
        """Of these rows, whose names are given; in temporary files of the folder."""
        hashes = temporary((len(rows), BANDS * WIDTH), np.uint32, folder)
        keys = temporary((BANDS, len(rows)), np.uint64, folder)
        for start in range(0, len(rows), CHUNK):
            here = slice(start, start + CHUNK)
            ids, offsets = words.select_rows(CODE, rows[here])
            elements = _elements(ids, np.diff(offsets))
            elements = mixed(
                word_hashes[(elements & LOW).astype(np.int64)] ^ ((elements >> np.uint64(32)) & np.uint64(4095))
            )
            hashes[here] = smallest_hashes(elements, offsets[:-1], BANDS * WIDTH)
            keys[:, here] = band_keys(hashes[here], names[here], WIDTH)
        return cls(hashes, keys)


def smallest_hashes(elements: Hashes, starts: Rows, count: int) -> NDArray[np.uint32]:
    """The smallest hash by each of `count` functions, [n, count], of the n sets that begin at these starts."""
    factors = np.random.default_rng(0).integers(1, 2**63, count, np.uint64) | np.uint64(1)
    hashes = np.zeros((len(starts), count), np.uint32)
    for number, factor in enumerate(factors):
        hashes[:, number] = np.minimum.reduceat((elements * factor) >> np.uint64(32), starts)
    return hashes


def band_keys(hashes: NDArray[np.uint32], seeds: Hashes, width: int) -> Hashes:
    """One number a band of `width` hashes, [bands, n], of hashes [n, bands * width], started from seeds [n]."""
    keys = np.zeros((hashes.shape[1] // width, len(hashes)), np.uint64)
    for band in range(len(keys)):
        key = seeds
        for column in hashes[:, band * width : (band + 1) * width].T:
            key = mixed(key ^ column.astype(np.uint64))
        keys[band] = key
    return keys


def mixed(values: Hashes) -> Hashes:
    """Every bit of each value spread over all 64 (splitmix64; what is added first keeps 0 from staying 0)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def _names(words: WordTable, word_hashes: Hashes) -> Hashes:
    names = np.zeros(len(words), np.uint64)
    for start in range(0, len(words), CHUNK):
        ids, offsets = words.select(("name",), start, min(start + CHUNK, len(words)))
        sizes = np.diff(offsets)
        owners = np.repeat(np.arange(start, start + len(sizes)), sizes)
        places = (np.arange(len(ids)) - np.repeat(offsets[:-1], sizes)).astype(np.uint64)
        np.add.at(names, owners, mixed(mixed(word_hashes[ids] + np.uint64(1)) + places))
    return names


def _candidates(signatures: Signatures, names: Hashes) -> Rows:
    """Pairs of positions that share a name and a band, [n, 2]: each with the one before it in the bucket and the first.

    Not all pairs: a bucket of a thousand has half a million; twelve bands compensate.
    """
    pair_keys = np.zeros(0, np.uint64)  # both positions as one sortable number
    for keys in signatures.keys if len(names) else ():
        order = np.argsort(keys, kind="stable").astype(np.uint64)
        sorted_keys = keys[order]
        same = sorted_keys[1:] == sorted_keys[:-1]
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        first = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
        later = order[1:][same]
        earlier = (order[:-1][same], first[1:][same])
        pair_keys = distinct(np.concatenate([pair_keys, *((before << np.uint64(32)) | later for before in earlier)]))
    likely_pairs = [np.zeros((0, 2), np.int64)]
    for start in range(0, len(pair_keys), CHUNK):
        pairs = np.stack(
            [pair_keys[start : start + CHUNK] >> np.uint64(32), pair_keys[start : start + CHUNK] & LOW], axis=1
        )
        pairs = pairs.astype(np.int64)
        pairs = pairs[names[pairs[:, 0]] == names[pairs[:, 1]]]
        agree = (signatures.hashes[pairs[:, 0]] == signatures.hashes[pairs[:, 1]]).mean(axis=1)
        likely_pairs.append(pairs[agree >= ALIKE - 0.2])  # four standard deviations of sixty draws
    return np.concatenate(likely_pairs)


def _stars(words: WordTable, pairs: Rows, clusters: Ids) -> None:
    """Write clusters: the first remaining row of each component takes all rows similar to it."""
    rows, numbers = np.unique(pairs, return_inverse=True)
    component = connected_components(numbers.reshape(-1, 2), len(rows))
    for _ in range(ROUNDS):
        if not len(rows):
            return
        heads = rows[np.unique(component, return_index=True)[1]]
        _, numbers = np.unique(component, return_inverse=True)
        head = heads[numbers]
        match = similarities(words, np.stack([head, rows], axis=1)) >= ALIKE
        multiple = np.bincount(numbers, match)[numbers] > 1
        clusters[rows[match & multiple]] = head[match & multiple]
        rows, component = rows[~match], component[~match]
