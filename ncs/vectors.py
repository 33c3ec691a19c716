"""Exact search among unit vectors; the only file that imports faiss."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss as _faiss
import numpy as np

from ncs.errors import BadInput, IndexDamaged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix

faiss: Any = _faiss  # its type stubs know nothing of selectors made of arrays

HEAD = struct.Struct("<4siqqq?iQ")  # kind, dimensions, rows, two spare, trained, metric, count of numbers
READ_AHEAD = 1 << 17  # bytes; Linux reads no more for one request
SPARE = 16  # hits asked for beyond k, among which ties are put in order


class VectorIndex:
    """Rows of vectors, searched by inner product. Zero rows (documents without words) are never found.

    On disk: `vectors.faiss` and `empty.npy`, the zero rows' numbers.
    """

    def __init__(self, index: Any, empty: NDArray[np.int64]) -> None:
        self._index = index
        self._empty = empty

    def __len__(self) -> int:
        """How many rows, zero rows included."""
        return int(self._index.ntotal)

    @property
    def dim(self) -> int:
        """Numbers a vector."""
        return int(self._index.d)

    @classmethod
    def build(cls, chunks: Iterable[Matrix], dim: int) -> VectorIndex:
        """From rows [n, dim], in chunks and in order."""
        index = faiss.IndexFlatIP(dim)
        empty = [np.zeros(0, np.int64)]
        for chunk in chunks:
            empty.append(np.flatnonzero(~chunk.any(axis=1)) + index.ntotal)
            index.add(np.ascontiguousarray(chunk, np.float32))
        return cls(index, np.concatenate(empty))

    def search(
        self, queries: Matrix, k: int, *, allowed: Mask | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The k best rows of each query [n, dim] and their scores, both [n, k], by (-score, row).

        Where fewer rows can be found the rest is row -1 with score -inf. allowed: [len(self)], the rows that may
        be found. Raises BadInput for k < 1 or shapes that do not fit.
        """
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise BadInput(f"queries of shape {queries.shape} do not fit vectors of {self.dim} dimensions")
        selector, findable = self._selector(allowed)
        wanted = min(k, findable)
        rows = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        if wanted:
            for at, query in enumerate(np.ascontiguousarray(queries, np.float32)):
                rows[at, :wanted], scores[at, :wanted] = self._search(query, wanted, findable, selector)
        return rows, scores

    def similarities(self, query: Matrix, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The inner product of one query [dim] with these rows, [len(rows)]."""
        found: NDArray[np.float32] = self.rows(rows) @ query
        return found

    def rows(self, rows: NDArray[np.int64]) -> Matrix:
        """The vectors of these rows, [len(rows), dim]."""
        found: Matrix = self._index.reconstruct_batch(rows) if len(rows) else np.zeros((0, self.dim), np.float32)
        return found

    def filled(self) -> NDArray[np.int64]:
        """The rows that are not zero, rising."""
        mask = np.ones(len(self), np.bool_)
        mask[self._empty] = False
        return np.flatnonzero(mask)

    def _search(
        self, query: Matrix, wanted: int, findable: int, selector: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Asks for more until what ties with the last wanted one is all there: which of equals faiss gives is chance.

        One query at a time, because faiss computes many at once in another order of additions.
        """
        faiss.omp_set_num_threads(1)  # starting threads costs more than one query
        parameters = faiss.SearchParameters(sel=selector) if selector is not None else None
        asked = wanted
        while True:
            asked = min(findable, 4 * asked if asked > wanted else wanted + SPARE)
            scores, rows = self._index.search(query[None], asked, params=parameters)
            if asked == findable or scores[0, -1] < scores[0, wanted - 1]:
                break
        order = np.lexsort((rows[0], -scores[0]))[:wanted]
        return rows[0, order], scores[0, order]

    def _selector(self, allowed: Mask | None) -> tuple[Any, int]:
        """What faiss may look at, None for all, and how many rows that is."""
        if allowed is not None and allowed.shape != (len(self),):
            raise BadInput(f"a filter of shape {allowed.shape} does not fit {len(self)} rows")
        if allowed is None and not len(self._empty):
            return None, len(self)
        mask = np.ones(len(self), np.bool_) if allowed is None else allowed.astype(np.bool_)
        mask[self._empty] = False
        return faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little")), int(np.count_nonzero(mask))

    def save(self, folder: Path) -> None:
        """Write `vectors.faiss` and `empty.npy` into an existing folder."""
        faiss.write_index(self._index, str(folder / "vectors.faiss"))
        np.save(folder / "empty.npy", self._empty)

    @classmethod
    def load(cls, folder: Path) -> VectorIndex:
        """Memory-mapped where the system lets us; raises IndexDamaged for missing, truncated or foreign files."""
        try:
            index = _open(folder / "vectors.faiss")
            empty = np.load(folder / "empty.npy", allow_pickle=False)
        except (RuntimeError, MemoryError, OSError, EOFError, ValueError) as error:
            raise IndexDamaged(f"cannot read the vectors in {folder}; build the index again") from error
        if not isinstance(index, faiss.IndexFlatIP) or (len(empty) and empty[-1] >= index.ntotal):
            raise IndexDamaged(f"{folder} holds no vectors of ours; build the index again")
        return cls(index, empty)


def _open(path: Path) -> Any:
    """Map the file after asking for all of it: a map alone reads a cold file page by page, at a hundredth of the speed.

    Of 200,000 vectors of 100 numbers, load and first query: 15 ms mapped like this, 130 when cold; 160 and 170 read.
    """
    flag = getattr(faiss, "IO_FLAG_MMAP_IFC", None)  # faiss 1.11
    if flag is None or not hasattr(os, "posix_fadvise") or not _is_whole(path):
        return faiss.read_index(str(path))
    with path.open("rb") as file:
        for start in range(0, path.stat().st_size, READ_AHEAD):
            os.posix_fadvise(file.fileno(), start, READ_AHEAD, os.POSIX_FADV_WILLNEED)
    return faiss.read_index(str(path), flag)


def _is_whole(path: Path) -> bool:
    """Whether this is a flat index as long as its head says; mapping a shorter one crashes faiss 1.15."""
    with path.open("rb") as file:
        head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        return False
    kind, dim, rows, *_, numbers = HEAD.unpack(head)
    return bool(kind == b"IxFI" and numbers == dim * rows and path.stat().st_size == HEAD.size + 4 * numbers)
