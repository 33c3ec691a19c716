"""Clusters of near duplicates (ncs.storage.minhash), computed when a segment is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.minhash import ALIKE, ALONE, CODE, LEAST, cluster, hash_names, hash_words, similarities
from ncs.storage.snapshot import load_array
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import Words, WordTable

    Ids = NDArray[np.int32]
    Rows = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

FILE, MEMBERS = "near_duplicates.npy", "near_duplicates.members.npy"


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """clusters: int32 [n_documents], the first row of the cluster of each row, ALONE where it has no near duplicate.
    members: int32 [2, m], the cluster and the row of every clustered row, sorted.

    On disk `near_duplicates.npy` and `near_duplicates.members.npy`, memory-mapped when loaded.
    """

    clusters: Ids
    members: Ids

    @classmethod
    def clustered(cls, clusters: Ids) -> NearDuplicates:
        """From the clusters, int32 [n_documents]."""
        rows = np.flatnonzero(clusters != ALONE)
        rows = rows[np.argsort(clusters[rows], kind="stable")]
        return cls(clusters, np.stack([clusters[rows], rows]).astype(np.int32))

    @classmethod
    def of(cls, words: WordTable, kinds: NDArray[np.bool_] | None = None, folder: Path | None = None) -> NearDuplicates:
        """From the words of all documents; rows of different kinds are never together. 258,000 documents take 3 s.

        folder: for temporary files; without one, signatures take 336 bytes of memory a document.
        """
        clusters = np.full(len(words), ALONE, np.int32)
        word_hashes = hash_words(words.vocabulary)
        names = hash_names(words, word_hashes, kinds)
        cluster(words, word_hashes, np.arange(len(words)), names, clusters, folder)
        return cls.clustered(clusters)

    @classmethod
    def none(cls, documents: int) -> NearDuplicates:
        """No near duplicates among n documents."""
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
        """Load from a segment, memory-mapped; raises IndexDamaged for truncated or mismatched files."""
        clusters, members = load_array(folder / FILE), load_array(folder / MEMBERS)
        if clusters.shape != (documents,) or clusters.dtype != np.int32:
            raise IndexDamaged(f"{folder / FILE} does not fit {documents} documents; build the index again")
        if members.ndim != 2 or len(members) != 2 or members.dtype != np.int32:
            raise IndexDamaged(f"{folder / MEMBERS} does not fit {folder / FILE}; build the index again")
        return cls(clusters, members)


class Duplicates:
    """Near duplicates in a snapshot: within segments as stored, across segments among the rows of a query."""

    def __init__(self, snapshot: Snapshot, words: Words) -> None:
        self._snapshot, self._words = snapshot, words
        self._parts = [NearDuplicates.load(each.path, each.documents) for each in snapshot.segments]

    def clusters_of(self, rows: Rows) -> Rows:
        """The cluster of each row, by its first row, [len(rows)]; ALONE if it has no near duplicate."""
        clusters = np.full(len(rows), ALONE, np.int64)
        for number, at, local in self._snapshot.split(rows):
            own = self._parts[number].clusters[local]
            clusters[at] = np.where(own == ALONE, ALONE, own + self._snapshot.segments[number].first)
        return clusters if len(self._parts) == 1 else self._join_segments(rows, clusters)

    def _join_segments(self, rows: Rows, clusters: Rows) -> Rows:
        """Merge clusters across segments where rows of the same name are near duplicates."""
        ids, offsets = self._words.select_rows(("name",), rows)
        by_name: dict[bytes, list[int]] = {}
        for at in range(len(rows)):
            by_name.setdefault(ids[offsets[at] : offsets[at + 1]].tobytes(), []).append(at)
        first_later = self._snapshot.segments[1].first
        pairs = np.array(
            [
                (other, at)
                for same in by_name.values()
                for at in same
                if rows[at] >= first_later
                for other in same
                if other != at and rows[other] < rows[at]
            ],
            np.int64,
        ).reshape(-1, 2)
        if not len(pairs):
            return clusters
        long = self._words.lengths(rows)[:, [FIELDS.index(field) for field in CODE]].sum(axis=1) >= LEAST
        matches = (similarities(self._words, rows[pairs]) >= np.where(long[pairs].all(axis=1), ALIKE, 1.0)).tolist()
        clusters = clusters.copy()
        for (other, at), same in zip(pairs.tolist(), matches, strict=True):
            if same:
                heads = [rows[each] if clusters[each] == ALONE else clusters[each] for each in (other, at)]
                clusters[[other, at]] = min(heads)
                clusters[np.isin(clusters, heads)] = min(heads)
        return clusters

    def others(self, row: int) -> Rows:
        """The other rows of a row's cluster in its segment, ascending, without tombstones."""
        ((number, _, local),) = self._snapshot.split(np.array([row]))
        rows = self._parts[number].others(int(local[0])) + self._snapshot.segments[number].first
        live = self._snapshot.live
        return rows if live is None else rows[live[rows]]
