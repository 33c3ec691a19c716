"""Approximate search by a fast scan: lists of four bits for two numbers each, the best compared by ten bits a number.

    lists       around centres (spherical k-means) of vectors that are drawn out along the questions
    (ncs.storage.stretched)
    fast scan   a product quantiser of 16 centres for two numbers, of the difference from the list's centre, whose
                tables stay in registers (Andre et al. 2017; faiss's IndexIVFPQFastScan); the nearest lists are scanned
    fine        CANDIDATES of it or more are compared by ten bits a number (ncs.storage.fine), from which vectors are
    given back

Of 100 numbers a vector takes 25 + 8 (id) + 125 bytes. Everything but the centres is memory-mapped.
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
from ncs.storage import fine, packed
from ncs.storage.approximate import FILE, lists
from ncs.storage.fine import Fine, FineWriter, Grid
from ncs.storage.ground_truth import BEST, Best
from ncs.storage.listed import read_ahead
from ncs.storage.stretched import Stretch
from ncs.storage.tune_nprobe import EFFORTS, tune
from ncs.storage.vector_kinds import ABOUT, About

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix

    Rows = NDArray[np.int64]

faiss: Any = _faiss

CANDIDATES, A_HIT = 400, 3
"""Rows that are compared by ten bits, and so many a hit where that is more."""
MANY, FURTHER = 4 * BEST, 2
"""Hits from which on so many times as many lists are searched: a thousand lie in more of them than ten, for which the
effort was found. Of 266,192 documents .971 of the thousand best instead of .913, in 1.9 ms instead of 1.8."""
TRAINED = 640
"""Vectors that training sees at least (of fewer, each several times): faiss wants 39 for each of 16 centres."""
LEARNT = "scan.npy"


class Scanned:
    """Rows of vectors [n, dim]. On disk `vectors.faiss` (centres), `lists.bin`, `scan.npy`, `fine.npy` and
    `vectors.json`."""

    def __init__(self, index: Any, about: About, stretch: Stretch, stored: Fine) -> None:
        self._index, self.about, self._stretch, self._fine = index, about, stretch, stored
        self._trained = b""
        self._cold: tuple[Path, Rows] | None = None
        self._lists: Any = None

    @classmethod
    def build(cls, chunks: Iterable[Matrix], dim: int, *, sample: Matrix, rows: int, questions: Matrix) -> Scanned:
        """From `rows` rows, in chunks and in order. sample: some of them, for training; questions [m, dim]: from every
        other one the direction is learnt, with the rest is found out how far to look. One thread, so that the same
        vectors make the same bytes."""
        faiss.omp_set_num_threads(1)
        stretch, best = Stretch.of(questions[::2], dim), Best(questions[1::2])
        index = faiss.index_factory(
            _width(dim), f"IVF{lists(rows)},PQ{_width(dim) // 2}x4fsr", faiss.METRIC_INNER_PRODUCT
        )
        index.train(_even(stretch.documents(np.resize(sample, (max(len(sample), TRAINED), dim)))))
        trained = faiss.serialize_index(index).tobytes()
        with FineWriter(Grid.of(sample)) as writer:
            for chunk in chunks:
                index.add(_even(stretch.documents(chunk)))
                writer.add(chunk)
                best.see(chunk)
            built = cls(index, About("pq", dim, rows, lists(rows), EFFORTS[-1]), stretch, writer.done())
        built._trained = trained
        tune(built, best)
        return built

    def __len__(self) -> int:
        return len(self._fine.codes)

    def nearest(self, query: Matrix, n: int, selector: Any, share: float) -> tuple[NDArray[np.float32], Rows]:
        """Scores and rows of the n best that it finds, best first; where it finds too few it looks further.

        selector: faiss's, for the share of the rows that may be found; the fewer, the further it looks.
        """
        whole = self.about.lists
        effort = self.about.effort * (FURTHER if n > MANY else 1)
        effort = min(whole, int(np.ceil(effort / max(share, 1e-9))))
        asked = _even(self._stretch.questions(query[None]))
        self._read_ahead(asked, effort)
        chosen = {} if selector is None else {"sel": selector}
        while True:
            parameters = faiss.SearchParametersIVF(nprobe=effort, **chosen)
            rows = self._index.search(asked, min(len(self), max(CANDIDATES, A_HIT * n)), params=parameters)[1][0]
            rows = np.sort(rows[rows >= 0])
            if len(rows) >= n or effort >= whole:
                scores = self._fine.scores(query, rows)
                order = np.argsort(-scores, kind="stable")[:n]
                return scores[order], rows[order]
            effort = min(whole, 4 * effort)

    def _read_ahead(self, asked: Matrix, effort: int) -> None:
        """For the first question: later ones find most lists in memory, or can wait."""
        cold, self._cold = self._cold, None
        if cold:
            read_ahead(*cold, self._index.quantizer.search(asked, effort)[1][0])

    def vectors(self, rows: Rows) -> Matrix:
        """The vectors of these rows as far as ten bits keep them, [len(rows), dim]."""
        return self._fine.vectors(rows)

    def save(self, folder: Path) -> None:
        """Write into an existing folder; only what was built here."""
        (folder / FILE).write_bytes(self._trained)
        sizes = packed.write(
            faiss.downcast_InvertedLists(self._index.invlists), folder / packed.LISTS, _code(self._index)
        )
        stretch, grid = self._stretch, self._fine.grid
        np.save(folder / LEARNT, np.concatenate([[stretch.factor], stretch.direction, grid.low, grid.step, sizes]))
        np.save(folder / fine.FINE, self._fine.codes)
        about = replace(self.about, bytes=(folder / packed.LISTS).stat().st_size)
        (folder / ABOUT).write_text(json.dumps(asdict(about)) + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: Path, about: About) -> Scanned:
        """Memory-mapped; raises IndexDamaged for files that do not fit, and what faiss and numpy raise."""
        index = faiss.read_index(str(folder / FILE))
        learnt = np.load(folder / LEARNT, allow_pickle=False)
        factor, direction, low, step, sizes = np.split(learnt, np.cumsum([1, about.dim, about.dim, about.dim]))
        stretch, sizes = Stretch(direction.astype(np.float32), float(factor[0])), sizes.astype(np.int64)
        grid = Grid(low.astype(np.float32), step.astype(np.float32))
        stored = fine.opened(folder, grid)
        if (
            not isinstance(index, faiss.IndexIVFPQFastScan)
            or index.d != _width(about.dim)
            or len(sizes) != index.nlist
            or index.nlist != about.lists
            or int(sizes.sum()) != about.rows
            or stored.codes.shape != (about.rows, grid.width)
        ):
            raise IndexDamaged(f"the files of vectors in {folder} do not fit each other; build the index again")
        opened = cls(index, about, stretch, stored)
        opened._lists = packed.mapped(folder / packed.LISTS, sizes, _code(index))
        index.replace_invlists(opened._lists, False)
        index.ntotal = about.rows
        opened._cold = folder / packed.LISTS, packed.begins(sizes, _code(index))
        return opened


def _width(dim: int) -> int:
    """Numbers, filled up to a multiple of four: two of them a code, and whole bytes of two codes."""
    return -(-dim // 4) * 4


def _even(vectors: Matrix) -> Matrix:
    """With zeros, to as many numbers as faiss is told of."""
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, _width(vectors.shape[1]) - vectors.shape[1]))), np.float32)


def _code(index: Any) -> int:
    """Bytes of a vector in its list."""
    return int(index.M2) // 2
