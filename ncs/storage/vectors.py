"""Search among unit vectors by inner product: exact, or approximate where there are many (ncs.storage.approximate)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import faiss as _faiss
import numpy as np

from ncs.build.delta import room_of
from ncs.errors import BadInput, IndexDamaged
from ncs.storage.approximate import Approximate
from ncs.storage.exact import Exact
from ncs.storage.scanned import Scanned
from ncs.storage.vector_kinds import About, Kind, read_about

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix

    Rows = NDArray[np.int64]
    Scores = NDArray[np.float32]

faiss: Any = _faiss  # its type stubs know nothing of selectors made of arrays

SPARE = 16  # hits asked for beyond k, among which ties are put in order
FEW = 10_000
"""Rows that a filter leaves up to which they are all compared, whatever the kind."""


class Searcher(Protocol):
    """What finds rows: all of them compared, or some."""

    about: About

    def __len__(self) -> int: ...

    def nearest(self, query: Matrix, n: int, selector: Any, share: float) -> tuple[Scores, Rows]:
        """Scores and rows of the n best, best first, or as many as it finds; selector: faiss's, for a share of all."""
        ...

    def vectors(self, rows: Rows) -> Matrix:
        """[len(rows), dim]."""
        ...

    def save(self, folder: Path) -> None: ...


class VectorIndex:
    """Rows of vectors, searched by inner product. Zero rows (documents without words) are never found.

    On disk: `vectors.faiss` and `empty.npy`, the zero rows' numbers; `vectors.json` where the search is approximate.
    """

    def __init__(self, searcher: Searcher, empty: Rows) -> None:
        self._searcher = searcher
        self._empty = empty
        self._all: Any = None

    def __len__(self) -> int:
        """How many rows, zero rows included."""
        return len(self._searcher)

    @property
    def about(self) -> About:
        """The kind of index and what was measured when it was built."""
        return self._searcher.about

    @property
    def dim(self) -> int:
        """Numbers a vector."""
        return self._searcher.about.dim

    @classmethod
    def build(
        cls,
        chunks: Iterable[Matrix],
        dim: int,
        *,
        kind: Kind = "exact",
        rows: int = 0,
        sample: Matrix | None = None,
        questions: Matrix | None = None,
    ) -> VectorIndex:
        """From rows [n, dim], in chunks and in order.

        A kind other than exact wants to know how many rows there will be and `sample_size` of them to learn from, and
        does well to have questions [m, dim] to find out with how far to look.
        """
        empty = _Empty()
        if kind == "exact":
            return cls(Exact.of(empty.watched(chunks), dim), empty.rows())
        if sample is None or not len(sample):
            raise BadInput(f"vectors of the kind {kind!r} are learnt from some of them; give a sample")
        asked = np.zeros((0, dim), np.float32) if questions is None else questions
        if kind == "pq":
            scanned = Scanned.build(empty.watched(chunks), dim, sample=sample, rows=rows, questions=asked)
            return cls(scanned, empty.rows())
        built = Approximate.build(kind, empty.watched(chunks), dim, sample=sample, rows=rows, questions=asked)
        return cls(built, empty.rows())

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
        if allowed is not None and allowed.shape != (len(self),):
            raise BadInput(f"a filter of shape {allowed.shape} does not fit {len(self)} rows")
        mask = self._mask(allowed)
        findable = len(self) - len(self._empty) if mask is None else int(np.count_nonzero(mask))
        rows = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        if findable:
            selector = self._selector(mask)
            for at, query in enumerate(np.ascontiguousarray(queries, np.float32)):
                if mask is not None and findable <= FEW and self.about.kind != "exact":
                    found = self._among(query, np.flatnonzero(mask), k)
                else:
                    found = self._search(query, min(k, findable), findable, selector)
                rows[at, : len(found[0])], scores[at, : len(found[0])] = found
        return rows, scores

    def similarities(self, query: Matrix, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The inner product of one query [dim] with these rows, [len(rows)]."""
        found: NDArray[np.float32] = self.rows(rows) @ query
        return found

    def rows(self, rows: NDArray[np.int64]) -> Matrix:
        """The vectors of these rows, [len(rows), dim]; rounded where the search is approximate."""
        return self._searcher.vectors(rows) if len(rows) else np.zeros((0, self.dim), np.float32)

    def filled(self) -> NDArray[np.int64]:
        """The rows that are not zero, rising."""
        mask = np.ones(len(self), np.bool_)
        mask[self._empty] = False
        return np.flatnonzero(mask)

    def _search(self, query: Matrix, wanted: int, findable: int, selector: Any) -> tuple[Rows, Scores]:
        """Asks for more until what ties with the last wanted one is all there: which of equals faiss gives is chance.

        One query at a time, because faiss computes many at once in another order of additions.
        """
        faiss.omp_set_num_threads(1)  # starting threads costs more than one query
        asked, share = wanted, findable / (len(self) - len(self._empty))
        while True:
            asked = min(findable, 4 * asked if asked > wanted else wanted + SPARE)
            scores, rows = self._searcher.nearest(query, asked, selector, share)
            if asked == findable or len(rows) < asked or scores[-1] < scores[wanted - 1]:
                return _best(rows, scores, wanted)

    def _among(self, query: Matrix, rows: Rows, k: int) -> tuple[Rows, Scores]:
        """The best of few rows, all compared."""
        return _best(rows, self.similarities(query, rows), k)

    def _mask(self, allowed: Mask | None) -> Mask | None:
        """The rows that may be found and are not zero; None for no filter."""
        if allowed is None:
            return None
        mask = allowed.astype(np.bool_)
        mask[self._empty] = False
        return mask

    def _selector(self, mask: Mask | None) -> Any:
        """What faiss may look at, None for all; the one without a filter is made once."""
        if mask is not None:
            return _bitmap(mask)
        if self._all is None and len(self._empty):
            everything = np.ones(len(self), np.bool_)
            everything[self._empty] = False
            self._all = _bitmap(everything)
        return self._all

    def save(self, folder: Path) -> None:
        """Write `vectors.faiss`, `empty.npy` and what its kind needs into an existing folder."""
        self._searcher.save(folder)
        np.save(folder / "empty.npy", self._empty)

    @classmethod
    def load(cls, folder: Path) -> VectorIndex:
        """Of a ranker's folder in an index: with what came since it was built (ncs.build.delta)."""
        if (room := room_of(folder.parent)) and (room / folder.name).is_dir():
            from ncs.build.delta.vectors import StackedVectors

            return StackedVectors.of_rooms(folder, room)
        return cls.of_folder(folder)

    @staticmethod
    def of_folder(folder: Path) -> VectorIndex:
        """Memory-mapped where the system lets us; raises IndexDamaged for missing, truncated or foreign files."""
        try:
            searcher = _opened(folder)
            empty = np.load(folder / "empty.npy", allow_pickle=False)
        except (RuntimeError, MemoryError, OSError, EOFError, ValueError) as error:
            raise IndexDamaged(f"cannot read the vectors in {folder}; build the index again") from error
        if len(empty) and empty[-1] >= len(searcher):
            raise IndexDamaged(f"{folder} holds no vectors of ours; build the index again")
        return VectorIndex(searcher, empty)


def _opened(folder: Path) -> Searcher:
    about = read_about(folder)
    if about is None:
        return Exact.open(folder)
    return Scanned.open(folder, about) if about.kind == "pq" else Approximate.open(folder)


class _Empty:
    """Notes which rows are zero while chunks of vectors go by."""

    def __init__(self) -> None:
        self._seen, self._found = 0, [np.zeros(0, np.int64)]

    def watched(self, chunks: Iterable[Matrix]) -> Iterable[Matrix]:
        for chunk in chunks:
            self._found.append(np.flatnonzero(~chunk.any(axis=1)) + self._seen)
            self._seen += len(chunk)
            yield chunk

    def rows(self) -> Rows:
        return np.concatenate(self._found)


def _best(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]


def _bitmap(mask: Mask) -> Any:
    return faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
