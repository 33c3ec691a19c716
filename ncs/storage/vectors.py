"""Vector search by inner product among unit vectors.

    exact  a query is compared with every row, float32
    pq     faiss's IVF-PQ fast scan: k-means lists, of which the nearest are scanned, with four bits for two dimensions
           (Andre et al. 2017); the best candidates are compared again in float16

On disk `vectors.npy` (memory-mapped), `empty.npy` (the zero rows), `vectors.json`; for pq also `ivf_pq.faiss`, which is
read into memory: 33 bytes a vector of 100 dimensions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ncs.errors import check_k, damaged, reading, unknown
from ncs.files import read_json, save_array
from ncs.storage.arrays import both, gather, load_array, offsets_of, top_rows
from ncs.storage.snapshot import Snapshot
from ncs.types import Mask, Matrix, Rows

Scores = NDArray[np.float32]

Kind = Literal["exact", "pq"]
Choice = Literal["auto", "exact", "pq"]
MAX_EXACT, MIN_PQ, MAX_COMPARED = 300_000, 1_000, 10_000
"""With "auto" the search is exact up to MAX_EXACT vectors. It is always exact below MIN_PQ vectors (faiss needs 39 for
each of 16 centroids), and for at most MAX_COMPARED allowed rows."""
CANDIDATES, PER_HIT = 600, 4
"""Candidates of the fast scan that are compared in float16: a minimum, and per hit."""
LISTS_PER_PROBE, MIN_PROBES = 8, 16
"""One in LISTS_PER_PROBE lists is scanned, at least MIN_PROBES; twice as many for more than DEEP hits."""
DEEP = 40
TRAINING, ROUNDING = 40, 1e-5
"""Training vectors per list (faiss requires 39); bound on the rounding error of inner products of unit vectors."""
CHUNK = 1 << 16
VECTORS, EMPTY, INFO, IVF_PQ = "vectors.npy", "empty.npy", "vectors.json", "ivf_pq.faiss"


def choose_kind(choice: str, rows: int) -> Kind:
    """The kind of index for this number of vectors; BadInput for an unknown choice.

    >>> choose_kind("auto", 300_000), choose_kind("auto", 300_001), choose_kind("pq", 10_000), choose_kind("pq", 10)
    ('exact', 'pq', 'pq', 'exact')
    """
    if choice not in get_args(Choice):
        raise unknown("kind of vectors", choice, get_args(Choice))
    if choice == "auto":
        choice = "exact" if rows <= MAX_EXACT else "pq"
    return "exact" if rows < MIN_PQ else cast(Kind, choice)


def list_count(rows: int) -> int:
    """The number of IVF lists: a power of two near twice the square root, and no more than can be trained.

    >>> list_count(300_000), list_count(5_000_000), list_count(1_000)
    (1024, 4096, 16)
    """
    return int(min(1 << round(np.log2(2 * max(rows, 1) ** 0.5)), 1 << int(np.log2(max(1, rows // TRAINING)))))


@dataclass(frozen=True, slots=True)
class VectorInfo:
    """The content of `vectors.json`; lists: of pq; bytes: size of `ivf_pq.faiss`."""

    kind: Kind
    rows: int
    dim: int
    lists: int = 0
    bytes: int = 0


def read_info(folder: Path) -> VectorInfo:
    """Read `vectors.json` of a folder; raises IndexDamaged."""
    path = folder / INFO
    with reading(path):
        info = VectorInfo(**read_json(path))
        if info.kind not in get_args(Kind) or {type(number) for number in (info.rows, info.dim, info.lists)} != {int}:
            raise ValueError("it describes no vectors")
        return info


class VectorIndex:
    """Vectors [n, dim], searched by inner product; zero rows are never hits."""

    def __init__(self, vectors: NDArray[Any], empty: Rows, ivf_pq: Any = None) -> None:
        """vectors: float32 for exact search, float16 beside faiss's index `ivf_pq`; empty: the zero rows, ascending."""
        self._vectors, self._empty, self._ivf_pq = vectors, empty, ivf_pq

    def __len__(self) -> int:
        """Rows, zero rows included."""
        return len(self._vectors)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self._vectors.shape[1])

    @property
    def info(self) -> VectorInfo:
        """The kind of index and its size."""
        if self._ivf_pq is None:
            return VectorInfo("exact", len(self), self.dim)
        return VectorInfo("pq", len(self), self.dim, int(self._ivf_pq.nlist))

    @classmethod
    def build(cls, chunks: Iterable[Matrix], dim: int, *, kind: Kind = "exact") -> VectorIndex:
        """Build from chunks of rows, deterministically; exact for fewer than MIN_PQ nonzero rows."""
        if kind == "exact":
            vectors = np.concatenate([np.zeros((0, dim), np.float32), *chunks]).astype(np.float32, copy=False)
            return cls(vectors, np.flatnonzero(~vectors.any(axis=1)))
        halves = to_temporary_file(chunks, dim, np.float16)
        index = cls(halves, np.flatnonzero(~halves.any(axis=1)))
        nonzero = index.nonzero_rows()
        if len(nonzero) < MIN_PQ:
            return cls(halves.astype(np.float32), index._empty)
        index._ivf_pq = _train(halves, nonzero)
        return index

    def search(self, query: Matrix, k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """The best k rows for a query [dim] and their scores, by (-score, row); raises BadInput for k < 1."""
        check_k(k)
        mask = None if allowed is None else allowed & self._nonzero()
        candidates = self._candidates(np.ascontiguousarray(query, np.float32), k, mask)
        return top_rows(candidates, self.similarities(query, candidates), k)

    def similarities(self, query: Matrix, rows: Rows) -> Scores:
        """The inner product of one query [dim] with these rows, [len(rows)]; of equal rows exactly the same."""
        scores: Scores = np.einsum("ij,j->i", self.vectors(rows), query.astype(np.float32, copy=False))
        return scores

    def vectors(self, rows: Rows | slice) -> Matrix:
        """The vectors of these rows, [len(rows), dim]; of pq rounded to float16."""
        return np.asarray(self._vectors[rows], np.float32)

    def nonzero_rows(self) -> Rows:
        """The rows that are not zero, ascending."""
        return np.flatnonzero(self._nonzero())

    def _nonzero(self) -> Mask:
        mask = np.ones(len(self), np.bool_)
        mask[self._empty] = False
        return mask

    def _candidates(self, query: Matrix, k: int, mask: Mask | None) -> Rows:
        """Candidate rows, ascending, that include the k best and ties with the last; for pq approximately."""
        if mask is not None and np.count_nonzero(mask) <= MAX_COMPARED:
            return np.flatnonzero(mask)
        if self._ivf_pq is not None:
            return self._scan(query, k, mask)
        parts = (self.vectors(slice(start, start + CHUNK)) @ query for start in range(0, len(self), CHUNK))
        scores = np.concatenate([np.zeros(0, np.float32), *parts])  # only to preselect: BLAS adds in varying order
        scores[self._empty if mask is None else ~mask] = -np.inf
        last = -np.inf if k >= len(scores) else float(np.partition(scores, -k)[-k])
        return np.flatnonzero((scores >= last - ROUNDING) & (scores > -np.inf))

    def _scan(self, query: Matrix, k: int, mask: Mask | None) -> Rows:
        """Candidates of faiss's fast scan; scans more lists if a filter leaves too few candidates."""
        faiss = _faiss()
        index, size = self._ivf_pq, len(self) - len(self._empty)
        count = min(size, max(CANDIDATES, PER_HIT * k))
        selector = {} if mask is None else {"sel": faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))}
        share = 1.0 if mask is None else np.count_nonzero(mask) / size
        probed = max(MIN_PROBES, index.nlist // LISTS_PER_PROBE) * (1 if k <= DEEP else 2) / share
        while True:
            parameters = faiss.SearchParametersIVF(nprobe=min(index.nlist, int(probed)), **selector)
            rows: Rows = index.search(_pad(query[None]), count, params=parameters)[1][0]
            rows = np.sort(rows[rows >= 0])
            if len(rows) >= k or probed >= index.nlist:
                return rows
            probed *= 4

    def save(self, folder: Path) -> None:
        """Write into a folder, which is created."""
        folder.mkdir(parents=True, exist_ok=True)
        info = asdict(self.info)
        if self._ivf_pq is not None:
            _faiss().write_index(self._ivf_pq, str(folder / IVF_PQ))
            info["bytes"] = (folder / IVF_PQ).stat().st_size
        save_array(folder / VECTORS, self._vectors)
        save_array(folder / EMPTY, self._empty)
        (folder / INFO).write_text(json.dumps(info) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, *, fast: bool = True) -> VectorIndex:
        """Memory-mapped; raises IndexDamaged. fast: whether to read the file of faiss, which must be trusted; without
        it every row is compared."""
        info = read_info(folder)
        try:
            numbers = np.float32 if info.kind == "exact" else np.float16
            vectors, empty = load_array(folder / VECTORS, numbers, 2), load_array(folder / EMPTY, np.int64)
            ivf_pq = _read_ivf_pq(folder / IVF_PQ, info) if fast and info.kind == "pq" else None
        except (RuntimeError, MemoryError, OSError) as error:
            raise damaged(f"cannot read the vectors in {folder}") from error
        if vectors.shape != (info.rows, info.dim) or (len(empty) and not 0 <= empty[0] <= empty[-1] < info.rows):
            raise damaged(f"the vector files in {folder} are inconsistent")
        return cls(vectors, empty, ivf_pq)


class Vectors:
    """The vectors of all segments of a snapshot; tombstones are never hits."""

    def __init__(self, parts: Sequence[VectorIndex], live: Mask | None = None) -> None:
        self.parts, self.live = parts, live
        self._firsts = offsets_of(np.array([len(part) for part in parts]))[:-1]

    @classmethod
    def open(cls, snapshot: Snapshot, name: str) -> Vectors:
        """The vectors of the ranker `name`."""
        parts = [VectorIndex.load(segment.path / name, fast=not snapshot.distrust) for segment in snapshot.segments]
        if [len(part) for part in parts] != [segment.documents for segment in snapshot.segments]:
            raise damaged(f"the vectors of {name} do not fit the documents")
        return cls(parts, snapshot.live)

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return sum(map(len, self.parts))

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.parts[0].dim

    def search(self, query: Matrix, k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """`VectorIndex.search`, over all segments."""
        allowed = both(allowed, self.live)
        rows, scores = [], []
        for first, part in zip(self._firsts.tolist(), self.parts, strict=True):
            mask = None if allowed is None else allowed[first : first + len(part)]
            local, near = part.search(query, k, allowed=mask)
            rows.append(local + first)
            scores.append(near)
        return top_rows(np.concatenate(rows), np.concatenate(scores), k)

    def similarities(self, query: Matrix, rows: Rows) -> Scores:
        """The inner product of one query [dim] with these rows, [len(rows)]; of equal rows exactly the same."""
        return gather(self._firsts, rows, lambda number, local: self.parts[number].similarities(query, local))

    def vectors(self, rows: Rows) -> Matrix:
        """The vectors of these rows, [len(rows), dim]; of pq rounded to float16."""
        return gather(self._firsts, np.asarray(rows), lambda number, local: self.parts[number].vectors(local))

    def nonzero_rows(self) -> Rows:
        """The live rows that are not zero, ascending."""
        pairs = zip(self._firsts.tolist(), self.parts, strict=True)
        rows = np.concatenate([part.nonzero_rows() + first for first, part in pairs])
        return rows if self.live is None else rows[self.live[rows]]

    def save(self, folder: Path) -> None:
        """Write the only segment's vectors into a folder, which is created."""
        (part,) = self.parts
        part.save(folder)


def _faiss() -> Any:
    """faiss, imported on first use, with one thread: starting more costs more than a query."""
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss


def to_temporary_file(chunks: Iterable[Matrix], dim: int, kind: type[np.floating[Any]]) -> NDArray[Any]:
    """Chunks of rows as one array [n, dim], mapped from an unlinked temporary file."""
    from tempfile import TemporaryFile  # a query need not import it

    rows = 0
    with TemporaryFile() as file:
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, kind).data)
            rows += len(chunk)
        file.flush()
        return np.memmap(file, kind, "r", shape=(rows, dim)) if rows else np.zeros((0, dim), kind)


def _train(halves: NDArray[Any], nonzero: Rows) -> Any:
    """A faiss index of the nonzero rows, with their row numbers as ids."""
    faiss = _faiss()
    lists, width = list_count(len(nonzero)), _pad(np.zeros((0, halves.shape[1]), np.float32)).shape[1]
    index = faiss.index_factory(width, f"IVF{lists},PQ{width // 2}x4fsr", faiss.METRIC_INNER_PRODUCT)
    size = min(len(nonzero), max(MIN_PQ, TRAINING * lists))
    sample = nonzero[np.linspace(0, len(nonzero) - 1, size).astype(np.int64)]
    index.train(_pad(halves[sample]))
    for start in range(0, len(nonzero), CHUNK):
        rows = nonzero[start : start + CHUNK]
        index.add_with_ids(_pad(halves[rows]), rows)
    return index


def _read_ivf_pq(path: Path, info: VectorInfo) -> Any:
    faiss = _faiss()
    index = faiss.read_index(str(path))
    width = _pad(np.zeros((0, info.dim), np.float32)).shape[1]
    if not isinstance(index, faiss.IndexIVFPQFastScan) or (index.nlist, index.d) != (info.lists, width):
        raise damaged(f"{path} does not fit {INFO}")
    return index


def _pad(vectors: NDArray[Any]) -> Matrix:
    """float32, padded with zeros to a multiple of four dimensions: two dimensions per code, two codes per byte."""
    missing = -vectors.shape[1] % 4
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors, np.float32)
