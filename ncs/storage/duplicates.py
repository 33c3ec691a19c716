"""Near duplicates of an index: which functions are nearly the same (ncs.storage.minhash), found when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta import room_of
from ncs.errors import IndexDamaged
from ncs.storage.minhash import ALONE, cluster, hashed_names, marks_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable

    Ids = NDArray[np.int32]
    Rows = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

FILE, MEMBERS = "near_duplicates.npy", "near_duplicates.members.npy"
NAMES = "near_duplicates.names.npy"
"""Of every row the hash of its name and kind, by which an update finds those that may be alike."""


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """clusters: int32 [n_documents], the first row of the cluster of each row, ALONE where it has no near duplicate.
    members: int32 [2, m], of every row that has one its cluster and the row, in this order.

    On disk `near_duplicates.npy` and `near_duplicates.members.npy`, memory-mapped when loaded.
    """

    clusters: Ids
    members: Ids
    names: Hashes | None = None
    """uint64 [n_documents], of each row's name and kind: for who saves them, not loaded."""

    @classmethod
    def clustered(cls, clusters: Ids, names: Hashes | None = None) -> NearDuplicates:
        """Of the clusters, int32 [n_documents]."""
        rows = np.flatnonzero(clusters != ALONE)
        rows = rows[np.argsort(clusters[rows], kind="stable")]
        return cls(clusters, np.stack([clusters[rows], rows]).astype(np.int32), names)

    @classmethod
    def of(cls, words: WordTable, kinds: NDArray[np.bool_] | None = None, folder: Path | None = None) -> NearDuplicates:
        """From the words of all documents; rows of different kinds are never together. 258,000 documents take 3 s.

        folder: where signatures lie meanwhile; without one, in memory, 336 bytes a document.
        """
        clusters = np.full(len(words), ALONE, np.int32)
        marks = marks_of(words.vocabulary)
        names = hashed_names(words, marks, kinds)
        cluster(words, marks, np.arange(len(words)), names, clusters, folder)
        return cls.clustered(clusters, names)

    @classmethod
    def none(cls, documents: int) -> NearDuplicates:
        """Of a corpus whose duplicates are not looked for."""
        return cls.clustered(np.full(documents, ALONE, np.int32))

    def clusters_of(self, rows: Rows) -> Ids:
        """The cluster of each row; ALONE for a row without near duplicates."""
        return self.clusters[rows]

    def others(self, row: int) -> Rows:
        """The other rows of this row's cluster, ascending."""
        cluster = self.clusters[row]
        if cluster == ALONE:
            return np.zeros(0, np.int64)
        heads, rows = self.members
        here = slice(*np.searchsorted(heads, np.array([cluster, cluster + 1], heads.dtype)))
        return np.setdiff1d(rows[here], [row]).astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write both files, and the names where there are any."""
        np.save(folder / FILE, self.clusters)
        np.save(folder / MEMBERS, self.members)
        if self.names is not None:
            np.save(folder / NAMES, self.names)

    @classmethod
    def load(cls, folder: Path, documents: int) -> NearDuplicates:
        """Memory-mapped; raises IndexDamaged where the file is cut or not of this many documents.

        An index of an ncs that did not look for them has no such files, and no near duplicates; of one that did not
        keep members they are found anew.
        """
        folder = room_of(folder) or folder
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
