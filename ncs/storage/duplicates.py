"""Near duplicates: functions of the same name with almost the same words, clustered when a segment is written.

A function is the multiset of its code's words (token multisets as in Allamanis 2019, "The adverse effects of code
duplication"). Candidates share a band of their MinHash signatures (Broder 1997; banding as in Leskovec et al., "Mining
of Massive Datasets", section 3.4); then the similarity of every pair is computed exactly. Rows of one cluster have a
similarity of at least MIN_SIMILARITY to its first row, and its name: the other words of `onDescriptorRead` and
`onDescriptorWrite` may be equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncs.errors import damaged
from ncs.files import save_array
from ncs.storage.arrays import are_below, distinct, gather, load_array, places_in_runs, split, starts_of_runs
from ncs.storage.words import WordReader, Words, WordTable
from ncs.types import FIELDS, Field, Ids, Rows

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot

Hashes = NDArray[np.uint64]

FILE, MEMBERS = "near_duplicates.npy", "near_duplicates.members.npy"
MIN_SIMILARITY, MIN_WORDS = 0.8, 20
"""Least Jaccard similarity and fewest words of near duplicates: the bodies of `min` and `max` differ in no word."""
CODE: tuple[Field, ...] = tuple(field for field in FIELDS if field not in ("scope", "doc", "comments", "path"))
BANDS, WIDTH = 12, 5
"""Functions with similarity .8 share a band with probability .99, with .5 with .32."""
CHUNK = 20_000
"""Rows, or pairs, per chunk."""
ROUNDS = 12
ALONE = -1


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """clusters: int32 [n_documents], the first row of each row's cluster, ALONE without near duplicates.
    members: int32 [2, m], cluster and row of every clustered row, sorted."""

    clusters: Ids
    members: Ids

    @classmethod
    def clustered(cls, clusters: Ids) -> NearDuplicates:
        """Group rows by their clusters, int32 [n_documents]."""
        rows = np.flatnonzero(clusters != ALONE)
        rows = rows[np.argsort(clusters[rows], kind="stable")]
        return cls(clusters, np.stack([clusters[rows], rows]).astype(np.int32))

    @classmethod
    def none(cls, documents: int) -> NearDuplicates:
        """No near duplicates among n documents."""
        return cls.clustered(np.full(documents, ALONE, np.int32))

    @classmethod
    def of(cls, words: WordTable, kinds: NDArray[np.bool_]) -> NearDuplicates:
        """Cluster documents by their words; rows of different kinds are never in one cluster."""
        clusters = np.full(len(words), ALONE, np.int32)
        word_hashes = _hash_words(words.vocabulary)
        names = splitmix64(_names(words, word_hashes) ^ kinds.astype(np.uint64))
        rows = _comparable_rows(words, names)
        pairs = _candidates(words, word_hashes, rows, names[rows])
        pairs = pairs[similarities(words, pairs) >= MIN_SIMILARITY]
        _stars(words, pairs, clusters)
        return cls.clustered(clusters)

    def others(self, row: int) -> Rows:
        """The other rows of this row's cluster, ascending."""
        cluster, (heads, rows) = self.clusters[row], self.members
        start, stop = np.searchsorted(heads, np.array([cluster, cluster + 1], heads.dtype))  # nothing for ALONE
        here = rows[start:stop]
        others: Rows = here[here != row].astype(np.int64)
        return others

    def is_sound(self, documents: int) -> bool:
        """Whether all values are rows of a segment of this number of documents."""
        return are_below(self.clusters, documents, ALONE) and are_below(self.members, documents)

    def save(self, folder: Path) -> None:
        """Write both files."""
        save_array(folder / FILE, self.clusters)
        save_array(folder / MEMBERS, self.members)

    @classmethod
    def load(cls, folder: Path, documents: int) -> NearDuplicates:
        """Load from a segment, memory-mapped; raises IndexDamaged for truncated or mismatched files."""
        clusters, members = load_array(folder / FILE, np.int32), load_array(folder / MEMBERS, np.int32, 2)
        if clusters.shape != (documents,) or len(members) != 2:
            raise damaged(f"{folder / FILE} does not fit {documents} documents")
        return cls(clusters, members)


class Duplicates:
    """Near duplicates of a snapshot: within segments as stored, across segments computed for the rows of a query."""

    def __init__(self, snapshot: Snapshot, words: Words) -> None:
        self._snapshot, self._words = snapshot, words
        self._parts = [NearDuplicates.load(each.path, each.documents) for each in snapshot.segments]

    def clusters_of(self, rows: Rows) -> Rows:
        """The cluster of each row, by its first row, [len(rows)]; ALONE if it has no near duplicate."""

        def read(number: int, local: Rows) -> Rows:
            own = self._parts[number].clusters[local]
            return np.where(own == ALONE, ALONE, own + self._snapshot.firsts[number])

        clusters = gather(self._snapshot.firsts, rows, read)
        return clusters if len(self._parts) == 1 else self._join_segments(rows, clusters)

    def _join_segments(self, rows: Rows, clusters: Rows) -> Rows:
        """Merge clusters across segments where rows of the same name are near duplicates."""
        ids, offsets = self._words.select_rows(("name",), rows)
        by_name = defaultdict(list)
        for at in np.argsort(rows, kind="stable").tolist():
            by_name[ids[offsets[at] : offsets[at + 1]].tobytes()].append(at)
        later = rows >= self._snapshot.firsts[1]
        pairs = [pair for same in by_name.values() for pair in combinations(same, 2) if later[pair[1]]]
        if not pairs:
            return clusters
        at = np.array(pairs)
        long = self._words.lengths(rows)[:, [FIELDS.index(field) for field in CODE]].sum(axis=1) >= MIN_WORDS
        matches = similarities(self._words, rows[at]) >= np.where(long[at].all(axis=1), MIN_SIMILARITY, 1.0)
        for pair in at[matches]:
            heads = np.where(clusters[pair] == ALONE, rows[pair], clusters[pair])
            clusters[pair] = heads.min()
            clusters[(clusters == heads[0]) | (clusters == heads[1])] = heads.min()
        return clusters

    def others(self, row: int) -> Rows:
        """The other rows of a row's cluster in its segment, ascending, without tombstones."""
        ((number, _, local),) = split(self._snapshot.firsts, np.array([row]))
        rows: Rows = self._parts[number].others(int(local[0])) + self._snapshot.firsts[number]
        live = self._snapshot.live
        return rows if live is None else rows[live[rows]]


def similarities(words: WordReader, pairs: Rows) -> NDArray[np.float64]:
    """The Jaccard similarity of the word multisets of each pair of rows [n, 2], [n]."""
    similarity = np.zeros(len(pairs))
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        sizes, elements = [], []
        for rows in chunk.T:
            ids, offsets = words.select_rows(CODE, rows)
            sizes.append(np.diff(offsets))
            elements.append(_elements(ids, sizes[-1]))
        both = np.sort(np.concatenate(elements))  # an element that both sides have occurs twice
        shared = np.bincount((both[1:][both[1:] == both[:-1]] >> np.uint64(44)).astype(np.int64), minlength=len(chunk))
        similarity[start : start + CHUNK] = shared / np.maximum(sizes[0] + sizes[1] - shared, 1)
    return similarity


def smallest_hashes(elements: Hashes, starts: Rows, count: int) -> NDArray[np.uint32]:
    """The smallest hash by each of `count` functions, [n, count], of the n sets that begin at these starts."""
    factors = np.random.default_rng(0).integers(1, 2**63, count, np.uint64) | np.uint64(1)
    hashes = np.zeros((len(starts), count), np.uint32)
    for number, factor in enumerate(factors):
        hashes[:, number] = np.minimum.reduceat((elements * factor) >> np.uint64(32), starts)
    return hashes


def band_keys(hashes: NDArray[np.uint32], seeds: Hashes, width: int) -> Hashes:
    """One number per band of `width` hashes, [bands, n], of hashes [n, bands * width], started from seeds [n]."""
    keys = np.zeros((hashes.shape[1] // width, len(hashes)), np.uint64)
    for band in range(len(keys)):
        key = seeds
        for column in hashes[:, band * width : (band + 1) * width].T:
            key = splitmix64(key ^ column.astype(np.uint64))
        keys[band] = key
    return keys


def splitmix64(values: Hashes) -> Hashes:
    """Hashes of values by splitmix64; the first addition keeps 0 from staying 0."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def _hash_words(words: Iterable[str]) -> Hashes:
    """A hash of each word's letters, independent of the vocabulary."""
    digests = b"".join(blake2b(word.encode(), digest_size=8).digest() for word in words)
    return np.frombuffer(digests, np.uint64)


def _names(words: WordTable, word_hashes: Hashes) -> Hashes:
    """A hash of each row's name, its words in their order, [len(words)]."""
    ids, offsets = words.select(("name",))
    owners = np.repeat(np.arange(len(words)), np.diff(offsets))
    places = places_in_runs(owners).astype(np.uint64)
    names = np.zeros(len(words), np.uint64)
    np.add.at(names, owners, splitmix64(splitmix64(word_hashes[ids] + np.uint64(1)) + places))
    return names


def _comparable_rows(words: WordTable, names: Hashes) -> Rows:
    """The rows with at least MIN_WORDS words and a name that another such row has."""
    columns = [FIELDS.index(field) for field in CODE]
    sizes = np.diff(words.offsets).reshape(-1, len(FIELDS))[:, columns].sum(axis=1)
    rows = np.flatnonzero(sizes >= MIN_WORDS)
    _, numbers, counts = np.unique(names[rows], return_inverse=True, return_counts=True)
    return rows[counts[numbers] > 1]


def _elements(ids: Ids, sizes: Rows) -> Hashes:
    """A number for each word of documents of these sizes: 20 bits for the document, 12 for the earlier occurrences of
    the word in it (at most 4,095), 32 for the word."""
    owners = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    keys = np.sort((owners << np.uint64(32)) | ids.astype(np.uint64))
    nth = np.minimum(places_in_runs(keys), 4095).astype(np.uint64)
    elements: Hashes = (
        ((keys >> np.uint64(32)) << np.uint64(44)) | (nth << np.uint64(32)) | (keys & np.uint64(0xFFFFFFFF))
    )
    return elements


def _candidates(words: WordTable, word_hashes: Hashes, rows: Rows, names: Hashes) -> Rows:
    """Pairs of rows that share a name and a band, [n, 2]: each row with the first and the previous one of its bucket,
    as all pairs of a bucket are too many."""
    bands = np.zeros((BANDS, len(rows)), np.uint64)
    for start in range(0, len(rows), CHUNK):
        here = slice(start, start + CHUNK)
        ids, offsets = words.select_rows(CODE, rows[here])
        elements = _elements(ids, np.diff(offsets))
        word, nth = elements & np.uint64(0xFFFFFFFF), (elements >> np.uint64(32)) & np.uint64(4095)
        hashes = smallest_hashes(splitmix64(word_hashes[word.astype(np.int64)] ^ nth), offsets[:-1], BANDS * WIDTH)
        bands[:, here] = band_keys(hashes, names[here], WIDTH)
    pairs = np.zeros(0, np.int64)  # both positions as one sortable number
    for keys in bands:
        order = np.argsort(keys, kind="stable")
        same = keys[order[1:]] == keys[order[:-1]]
        starts = starts_of_runs(keys[order])
        first = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
        before = np.concatenate([order[:-1][same], first[1:][same]])
        pairs = distinct(np.concatenate([pairs, (before << 32) | np.tile(order[1:][same], 2)]))
    at = np.stack([pairs >> 32, pairs & 0xFFFFFFFF], axis=1)
    candidates: Rows = rows[at[names[at[:, 0]] == names[at[:, 1]]]]
    return candidates


def _stars(words: WordTable, pairs: Rows, clusters: Ids) -> None:
    """Fill `clusters`: the first remaining row of each component is the head of all rows similar to it."""
    if not len(pairs):
        return
    rows, numbers = np.unique(pairs, return_inverse=True)
    component = _components(len(rows), numbers.reshape(-1, 2))
    for _ in range(ROUNDS):
        if not len(rows):
            return
        _, firsts, numbers = np.unique(component, return_index=True, return_inverse=True)
        head = rows[firsts][numbers]
        match = similarities(words, np.stack([head, rows], axis=1)) >= MIN_SIMILARITY
        multiple = np.bincount(numbers, match)[numbers] > 1
        clusters[rows[match & multiple]] = head[match & multiple]
        rows, component = rows[~match], component[~match]


def _components(count: int, edges: Rows) -> Rows:
    """The first node of each node's connected component, [count], given edges [n, 2]; scipy takes 100 ms to import."""
    first = np.arange(count)
    while len(edges):
        np.minimum.at(first, edges, edges[:, ::-1])
        while not np.array_equal(first, above := first[first]):
            first = above
        edges = first[edges]
        edges = edges[edges[:, 0] != edges[:, 1]]
    return first
