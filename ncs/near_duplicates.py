"""Near duplicates: functions of one name made of almost the same words, found by MinHash when an index is built.

A function is the multiset of its code's words: comments and what encloses it are left out, and the n-th use of a
word is an element of its own (token multisets as in Allamanis 2019, "The adverse effects of code duplication").
Candidates share a band of their MinHash signatures (Broder 1997; banding as in Leskovec et al., "Mining of Massive
Datasets", section 3.4); then every pair is counted exactly. Rows of one cluster are at least ALIKE like its first row,
and of its name: without that, `onDescriptorRead` would be a near duplicate of `onDescriptorWrite`, whose other words
are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import IndexDamaged
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ncs.vocabulary import WordTable

    Ids = NDArray[np.int32]
    Rows = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

ALIKE = 0.8
"""Jaccard similarity from which on two functions are near duplicates."""
LEAST = 20
"""Words; what is shorter has no near duplicates: `min` and `max` differ in a sign that is no word."""
CODE: tuple[Field, ...] = tuple(field for field in FIELDS if field not in ("scope", "doc", "comments", "path"))
BANDS, WIDTH = 12, 5
"""Of two functions .8 alike 99 % share a band, of two .5 alike 32 %."""
CHUNK = 20_000
"""Rows, or pairs, that memory holds the elements of at once."""
ROUNDS = 12
ALONE = -1
FILE, MEMBERS = "near_duplicates.npy", "near_duplicates.members.npy"


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """clusters: int32 [n_documents], the first row of the cluster of each row, ALONE where it has no near duplicate.
    members: int32 [2, m], of every row that has one its cluster and the row, in this order.

    On disk `near_duplicates.npy` and `near_duplicates.members.npy`, memory-mapped when loaded.
    """

    clusters: Ids
    members: Ids

    @classmethod
    def clustered(cls, clusters: Ids) -> NearDuplicates:
        """Of the clusters, int32 [n_documents]."""
        rows = np.flatnonzero(clusters != ALONE)
        rows = rows[np.argsort(clusters[rows], kind="stable")]
        return cls(clusters, np.stack([clusters[rows], rows]).astype(np.int32))

    @classmethod
    def of(cls, words: WordTable, kinds: NDArray[np.bool_] | None = None) -> NearDuplicates:
        """From the words of all documents; rows of different kinds are never together. 258,000 documents take 3 s."""
        clusters = np.full(len(words), ALONE, np.int32)
        rows, signatures = _signatures(words)
        names = _names(words) if kinds is None else _mixed(_names(words) ^ kinds.astype(np.uint64))
        pairs = rows[_candidates(signatures, names[rows])]
        pairs = pairs[similarities(words, pairs) >= ALIKE]
        _stars(words, pairs, clusters)
        return cls.clustered(clusters)

    @classmethod
    def none(cls, documents: int) -> NearDuplicates:
        """Of a corpus whose duplicates are not looked for."""
        return cls.clustered(np.full(documents, ALONE, np.int32))

    def others(self, row: int) -> Rows:
        """The other rows of this row's cluster, ascending."""
        cluster = self.clusters[row]
        if cluster == ALONE:
            return np.zeros(0, np.int64)
        heads, rows = self.members
        here = slice(*np.searchsorted(heads, np.array([cluster, cluster + 1], heads.dtype)))
        return np.setdiff1d(rows[here], [row]).astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write both files."""
        np.save(folder / FILE, self.clusters)
        np.save(folder / MEMBERS, self.members)

    @classmethod
    def load(cls, folder: Path, documents: int) -> NearDuplicates:
        """Memory-mapped; raises IndexDamaged where the file is cut or not of this many documents.

        An index of an ncs that did not look for them has no such files, and no near duplicates; of one that did not
        keep members they are found anew.
        """
        path = folder / FILE
        if not path.exists():
            return cls.none(documents)
        clusters = _mapped(path)
        if clusters.shape != (documents,) or clusters.dtype != np.int32:
            raise IndexDamaged(f"{path} does not fit {documents} documents; build the index again")
        if not (folder / MEMBERS).exists():
            return cls.clustered(clusters)
        members = _mapped(folder / MEMBERS)
        if members.ndim != 2 or len(members) != 2 or members.dtype != np.int32:
            raise IndexDamaged(f"{folder / MEMBERS} does not fit {path}; build the index again")
        return cls(clusters, members)


def _mapped(path: Path) -> Ids:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, EOFError, ValueError) as error:
        raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error


def similarities(words: WordTable, pairs: Rows) -> NDArray[np.float64]:
    """The Jaccard similarity of the word multisets of each pair of rows [n, 2], [n]."""
    found = np.zeros(len(pairs))
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        sizes = []
        elements = []
        for side in (0, 1):
            ids, offsets = words.select_rows(CODE, chunk[:, side])
            sizes.append(np.diff(offsets))
            elements.append(_numbered(ids, sizes[side]))
        both = np.sort(np.concatenate(elements))  # an element of a pair is there twice where both sides have it
        shared = np.bincount((both[1:][both[1:] == both[:-1]] >> np.uint64(44)).astype(np.int64), minlength=len(chunk))
        found[start : start + CHUNK] = shared / np.maximum(sizes[0] + sizes[1] - shared, 1)
    return found


def _numbered(ids: Ids, sizes: Rows) -> Hashes:
    """A number for each word of documents of these sizes: 20 bits of the document's number, 12 of how often the word
    was there before in it (up to 4,095, where repetition no longer matters), 32 of the word."""
    owners = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    keys = np.sort((owners << np.uint64(32)) | ids.astype(np.uint64))
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    nth = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    nth = np.minimum(nth, 4095).astype(np.uint64)
    found: Hashes = ((keys >> np.uint64(32)) << np.uint64(44)) | (nth << np.uint64(32)) | (keys & np.uint64(0xFFFFFFFF))
    return found


def _signatures(words: WordTable) -> tuple[Rows, Hashes]:
    """The rows with at least LEAST words, and their smallest hashes by BANDS * WIDTH functions."""
    rows, signatures = [np.zeros(0, np.int64)], [np.zeros((0, BANDS * WIDTH), np.uint32)]
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, BANDS * WIDTH, np.uint64) | np.uint64(1)
    for start, ids, offsets in _chunks(words):
        sizes = np.diff(offsets)
        kept = np.flatnonzero(sizes >= LEAST)
        if not len(kept):
            continue
        ids = ids[np.repeat(sizes >= LEAST, sizes)]
        hashes = _mixed(_numbered(ids, sizes[kept]) & np.uint64((1 << 44) - 1))
        begins = np.cumsum(sizes[kept]) - sizes[kept]
        columns = [np.minimum.reduceat((hashes * factor) >> np.uint64(32), begins) for factor in factors]
        rows.append(kept + start)
        signatures.append(np.stack(columns, axis=1).astype(np.uint32))
    return np.concatenate(rows), np.concatenate(signatures)


def _chunks(words: WordTable) -> Iterator[tuple[int, Ids, Rows]]:
    for start in range(0, len(words), CHUNK):
        yield start, *words.select(CODE, start, min(start + CHUNK, len(words)))


def _mixed(values: Hashes) -> Hashes:
    """Every bit of each value spread over all 64 (splitmix64; what is added first keeps 0 from staying 0)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def _names(words: WordTable) -> Hashes:
    """A hash of each row's name, its words in their order, [len(words)]."""
    ids, offsets = words.select(("name",))
    sizes = np.diff(offsets)
    owners = np.repeat(np.arange(len(words)), sizes)
    places = (np.arange(len(ids)) - np.repeat(offsets[:-1], sizes)).astype(np.uint64)
    names = np.zeros(len(words), np.uint64)
    np.add.at(names, owners, _mixed(_mixed(ids.astype(np.uint64) + np.uint64(1)) + places))
    return names


def _candidates(signatures: Hashes, names: Hashes) -> Rows:
    """Pairs of positions that share a name and a band, [n, 2]: each with the one before it in the bucket and the first.

    Not all pairs, of which a bucket of a thousand has half a million; the twelve bands make up for it.
    """
    if not len(signatures):
        return np.zeros((0, 2), np.int64)
    found = []
    for band in np.split(signatures, BANDS, axis=1):
        keys = names
        for column in band.T:
            keys = _mixed(keys ^ column.astype(np.uint64))
        order = np.argsort(keys, kind="stable")
        same = keys[order][1:] == keys[order][:-1]
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        first = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
        found.append(np.stack([order[:-1][same], order[1:][same]], axis=1))
        found.append(np.stack([first[1:][same], order[1:][same]], axis=1))
    pairs = np.unique(np.concatenate(found), axis=0)
    pairs = pairs[names[pairs[:, 0]] == names[pairs[:, 1]]]
    agree = np.concatenate(
        [
            (signatures[part[:, 0]] == signatures[part[:, 1]]).mean(axis=1)
            for part in np.array_split(pairs, max(1, len(pairs) // CHUNK))
        ]
    )
    likely: Rows = pairs[agree >= ALIKE - 0.2]  # four standard deviations of sixty draws
    return likely


def _stars(words: WordTable, pairs: Rows, clusters: Ids) -> None:
    """Write what hangs together by pairs into `clusters`: the first row left over takes all that are like it."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rows, numbers = np.unique(pairs, return_inverse=True)
    ends = numbers.reshape(-1, 2)
    shape = (len(rows), len(rows))
    _, part = connected_components(coo_matrix((np.ones(len(ends), np.bool_), (ends[:, 0], ends[:, 1])), shape))
    for _ in range(ROUNDS):
        if not len(rows):
            return
        heads = rows[np.unique(part, return_index=True)[1]]
        _, numbers = np.unique(part, return_inverse=True)
        head = heads[numbers]
        taken = similarities(words, np.stack([head, rows], axis=1)) >= ALIKE
        many = np.bincount(numbers, taken)[numbers] > 1
        clusters[rows[taken & many]] = head[taken & many]
        rows, part = rows[~taken], part[~taken]
