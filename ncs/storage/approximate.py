"""Approximate search among vectors: which kinds there are, how one is trained, filled, tuned, saved and opened.

    ivf      lists around centres (k-means), of which the nearest are searched; a byte a number, of the difference
             from the centre
    hnsw     a graph of near neighbours (Malkov and Yashunin 2016) over a byte a number
    rabitq   lists again, of a bit a number (Gao and Long 2024), the best compared by a byte a number

Vectors are filled up with zeros to a multiple of 16 numbers: faiss decodes other lengths at a tenth of the speed. How
far a search must look is measured with questions when it is built (ncs.storage.tune_nprobe).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss as _faiss
import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.ground_truth import BEST, Best
from ncs.storage.listed import PLACES, Listed, list_places, places_of, read_ahead
from ncs.storage.tune_nprobe import EFFORTS, tune
from ncs.storage.vector_kinds import ABOUT, About, Kind, read_about

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix

    Rows = NDArray[np.int64]

faiss: Any = _faiss

A_LIST = 40
"""Vectors a list that training sees; faiss wants 39."""
REFINED = 16
"""rabitq: candidates a hit that are compared by their bytes."""
FILE = "vectors.faiss"


def lists(rows: int) -> int:
    """Lists of so many vectors: a power of two near twice the root, and no more than can be trained.

    >>> lists(300_000), lists(5_000_000), lists(50)
    (1024, 4096, 1)
    """
    return int(min(1 << round(np.log2(2 * max(rows, 1) ** 0.5)), 1 << int(np.log2(max(1, rows // A_LIST)))))


def sample_size(rows: int) -> int:
    """Vectors that training sees.

    >>> sample_size(5_000_000), sample_size(300)
    (163840, 300)
    """
    return min(rows, max(10_000, A_LIST * lists(rows)))


class Approximate:
    """Rows of vectors [n, dim] that a search need not all look at.

    On disk `vectors.faiss`, memory-mapped, `vectors.json`, and for ivf `places.npy` (ncs.storage.listed).
    """

    def __init__(self, index: Any, about: About, stored: Any = None) -> None:
        """stored: what gives vectors back, where it is not faiss."""
        self._index, self.about = index, about
        self._cold: Path | None = None
        self._stored = stored or (index.refine_index if about.kind == "rabitq" else index)

    @classmethod
    def build(
        cls, kind: Kind, chunks: Iterable[Matrix], dim: int, *, sample: Matrix, rows: int, questions: Matrix
    ) -> Approximate:
        """From `rows` rows, in chunks and in order. sample: some of them, for training; questions [m, dim]: what is
        asked to find out how far to look. One thread, so that the same vectors make the same bytes."""
        faiss.omp_set_num_threads(1)
        about = About(kind, dim, rows, 1 if kind == "hnsw" else lists(rows), EFFORTS[-1])
        index, best = _empty(about), Best(questions)
        index.train(_filled_up(sample))
        for chunk in chunks:
            index.add(_filled_up(chunk))
            best.see(chunk)
        if kind == "ivf":
            index.make_direct_map()
        built = cls(index, about)
        tune(built, best)
        return built

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dim(self) -> int:
        """Numbers a vector."""
        return self.about.dim

    def nearest(self, query: Matrix, n: int, selector: Any, share: float) -> tuple[NDArray[np.float32], Rows]:
        """Scores and rows of the n best that it finds, best first; where it finds too few it looks further.

        selector: faiss's, for the share of the rows that may be found; the fewer, the further it looks.
        """
        whole = len(self) if self.about.kind == "hnsw" else self.about.lists
        effort = min(whole, int(np.ceil(self.about.effort / max(share, 1e-9))))
        query = _filled_up(query[None])
        self._read_ahead(query, effort)
        while True:
            scores, rows = self._index.search(query, n, params=self._parameters(effort, n, selector))
            found = rows[0] >= 0
            if found.all() or effort >= whole:
                return scores[0][found], rows[0][found]
            effort = min(whole, 4 * effort)

    def _read_ahead(self, query: Matrix, effort: int) -> None:
        """For the first question: later ones find most lists in memory, or can wait."""
        path, self._cold = self._cold, None
        if path:
            places = list_places(path, _sizes(self._index), self._index.code_size)
            read_ahead(path, places, self._index.quantizer.search(query, effort)[1][0])

    def _parameters(self, effort: int, n: int, selector: Any) -> Any:
        chosen = {} if selector is None else {"sel": selector}
        if self.about.kind == "hnsw":
            return faiss.SearchParametersHNSW(efSearch=max(effort, n), **chosen)
        if self.about.kind == "ivf":
            return faiss.SearchParametersIVF(nprobe=effort, **chosen)
        bits = faiss.IVFRaBitQSearchParameters(nprobe=effort, **chosen)
        return faiss.IndexRefineSearchParameters(k_factor=REFINED if n <= 4 * BEST else 4, base_index_params=bits)

    def vectors(self, rows: Rows) -> Matrix:
        """The vectors of these rows as far as bytes keep them, [len(rows), dim]."""
        found: Matrix = self._stored.reconstruct_batch(rows)[:, : self.dim]
        return found

    def save(self, folder: Path) -> None:
        """Write into an existing folder."""
        index, path = self._index, folder / FILE
        if self.about.kind == "ivf":
            index.set_direct_map_type(faiss.DirectMap.NoMap)
        faiss.write_index(index, str(path))
        if self.about.kind == "ivf":
            np.save(folder / PLACES, _places(index))
            index.make_direct_map()
        about = replace(self.about, bytes=path.stat().st_size)
        (folder / ABOUT).write_text(json.dumps(asdict(about)) + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: Path) -> Approximate:
        """Memory-mapped; raises IndexDamaged for truncated or foreign files, and what faiss and numpy raise."""
        about = read_about(folder)
        path = folder / FILE
        if about is None or path.stat().st_size != about.bytes:
            raise IndexDamaged(f"{path} does not fit {ABOUT}; build the index again")
        index = faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP))
        if index.ntotal != about.rows or index.d != _width(about.dim) or type(index) is not type(_empty(about)):
            raise IndexDamaged(f"{path} holds no vectors of ours; build the index again")
        stored = None
        if about.kind == "ivf":
            stored = Listed.open(path, faiss.vector_to_array(index.sq.trained), _centres(index), _sizes(index))
            if len(stored.places) != about.rows:
                raise IndexDamaged(f"{folder / PLACES} does not fit {FILE}; build the index again")
        opened = cls(index, about, stored)
        opened._cold = path if about.kind == "ivf" else None
        return opened


def _width(dim: int) -> int:
    return -(-dim // 16) * 16


def _filled_up(vectors: Matrix) -> Matrix:
    """With zeros, to a multiple of 16 numbers."""
    missing = _width(vectors.shape[1]) - vectors.shape[1]
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors, np.float32)


def _empty(about: About) -> Any:
    dim, metric = _width(about.dim), faiss.METRIC_INNER_PRODUCT
    if about.kind == "hnsw":
        return faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, 32, metric)
    if about.kind == "rabitq":
        return faiss.index_factory(dim, f"IVF{about.lists},RaBitQ,Refine(SQ8)", metric)
    return faiss.index_factory(dim, f"IVF{about.lists},SQ8", metric)


def _sizes(index: Any) -> Rows:
    """Rows a list."""
    return np.array([index.invlists.list_size(number) for number in range(index.nlist)], np.int64)


def _centres(index: Any) -> Matrix:
    """What bytes are differences from, [lists, numbers]."""
    found: Matrix = index.quantizer.reconstruct_n(0, index.nlist)
    return found if index.by_residual else np.zeros_like(found)


def _places(index: Any) -> NDArray[np.uint32]:
    """Where each row's bytes stand: faiss writes every list as all its codes and then all its ids (8 bytes each)."""
    lengths = _sizes(index).tolist()
    ids = [faiss.rev_swig_ptr(index.invlists.get_ids(n), size) for n, size in enumerate(lengths) if size]
    return places_of(ids, index.code_size)
