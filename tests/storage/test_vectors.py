"""Search among vectors, exact and by IVF-PQ, against sorting by numpy."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.storage import vectors as module
from ncs.storage.vectors import MAX_COMPARED, MIN_PQ, VectorIndex, Vectors, choose_kind, read_info

if TYPE_CHECKING:
    from ncs.storage.vectors import Kind
    from ncs.types import Mask, Matrix

ROWS, DIM = 12_000, 22  # not a multiple of four
ZERO = [3, 700]


def unit(rows: int, dim: int, seed: int = 0) -> Matrix:
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    normalized: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return normalized


def clouds() -> tuple[Matrix, Matrix]:
    """Rows around two hundred centers, ZERO ones among them; and queries that share a direction, as people's do."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(200, DIM))
    vectors = centers[rng.integers(0, 200, ROWS)] + rng.normal(size=(ROWS, DIM)) * 0.7
    queries = rng.normal(size=(60, DIM)) + rng.normal(size=DIM)
    for each in (vectors, queries):
        each /= np.linalg.norm(each, axis=1, keepdims=True)
    vectors[ZERO] = 0
    return vectors.astype(np.float32), queries.astype(np.float32)


VECTORS, QUERIES = clouds()


@cache
def pq() -> VectorIndex:
    return VectorIndex.build(np.array_split(VECTORS, 7), DIM, kind="pq")


def expected(vectors: Matrix, query: Matrix, k: int, allowed: Mask) -> list[int]:
    """The allowed rows that are not zero by (-score, row), with scores of 64 bits."""
    scores = (vectors.astype(np.float64) @ query.astype(np.float64)).round(9)  # of equal vectors the same
    order = np.lexsort((np.arange(len(vectors)), -scores))
    rows: list[int] = order[(allowed & vectors.any(axis=1))[order]][:k].tolist()
    return rows


def recall(index: VectorIndex, k: int, allowed: Mask | None = None) -> float:
    """Of the k best by numpy, the share that the index finds."""
    mask = np.ones(ROWS, np.bool_) if allowed is None else allowed.copy()
    mask[ZERO] = False
    shares = []
    for query in QUERIES:
        best = np.argsort(-np.where(mask, VECTORS @ query, -np.inf))[: min(k, np.count_nonzero(mask))]
        shares.append(np.isin(best, index.search(query, k, allowed=allowed)[0]).mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("share", [1, 0.95, 0.3])
@pytest.mark.parametrize(("count", "cuts"), [(MAX_COMPARED + 3_000, []), (2_000, [700, 700, 701]), (100, [1])])
def test_exact_search_in_any_segments_gives_the_rows_and_scores_that_numpy_gives(
    count: int, cuts: list[int], share: float
) -> None:
    rng, often = np.random.default_rng(count), unit(1, 8, seed=1)[0]
    vectors = unit(count, 8)
    vectors[rng.random(count) < 0.5] = often
    vectors[rng.random(count) < 0.1] = 0
    live, allowed = rng.random((2, count)) < share
    parts = [VectorIndex.build([part], 8) for part in np.split(vectors, cuts)]
    index = Vectors(parts, live) if share < 0.95 else Vectors(parts)
    mask = allowed & live if share < 0.95 else allowed
    searches = [*((query, 10) for query in unit(7, 8, seed=2)), *((often, k) for k in (1, 3, 63, 64, 99, 150))]
    for query, k in searches:
        rows, scores = index.search(query, k, allowed=None if share == 1 else allowed)
        assert rows.tolist() == expected(vectors, query, k, mask)
        np.testing.assert_allclose(scores, vectors[rows] @ query, atol=1e-6)
    rows = rng.integers(0, count, 9)
    np.testing.assert_array_equal(index.vectors(rows), vectors[rows])
    np.testing.assert_allclose(index.similarities(often, rows), vectors[rows] @ often, atol=1e-6)
    every = np.ones(count, np.bool_) if index.live is None else live
    assert index.nonzero_rows().tolist() == np.flatnonzero(vectors.any(axis=1) & every).tolist()


@pytest.mark.parametrize("kind", ["exact", "pq"])
def test_the_same_rows_make_the_same_files_and_hits_however_they_are_chunked_and_once_loaded(
    kind: Kind, tmp_path: Path
) -> None:
    vectors = VECTORS[:2_000]
    for name, chunks in (("one", [vectors]), ("many", [vectors[:1], vectors[1:64], vectors[64:64], vectors[64:]])):
        VectorIndex.build(chunks, DIM, kind=kind).save(tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [*(["empty.npy", "ivf_pq.faiss"] if kind == "pq" else ["empty.npy"]), "vectors.json", "vectors.npy"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes(), name
    index, loaded = VectorIndex.build([vectors], DIM, kind=kind), VectorIndex.load(tmp_path / "one")
    assert (len(loaded), loaded.dim, loaded.info) == (2_000, DIM, index.info)
    assert (read_info(tmp_path / "one").kind, read_info(tmp_path / "one").rows) == (kind, 2_000)
    for query, k in product(QUERIES, (1, 10, 700)):
        before, after = index.search(query, k), loaded.search(query, k)
        assert before[0].tobytes() + before[1].tobytes() == after[0].tobytes() + after[1].tobytes()
    rows = np.array([5, 0, 1_999, 5])
    np.testing.assert_allclose(loaded.vectors(rows), vectors[rows], atol=0 if kind == "exact" else 1e-3)
    np.testing.assert_allclose(loaded.similarities(QUERIES[0], rows), vectors[rows] @ QUERIES[0], atol=1e-3)
    assert loaded.nonzero_rows().tolist() == [row for row in range(2_000) if row not in ZERO]


def test_of_equal_vectors_the_lower_rows_come_first_in_an_ivf_pq_index_too() -> None:
    vectors = VECTORS[:2_000].copy()
    vectors[100:250] = vectors[100]
    rows, scores = VectorIndex.build([vectors], DIM, kind="pq").search(vectors[100], 12)
    assert rows.tolist() == list(range(100, 112))
    assert len(set(scores.tolist())) == 1


def test_ivf_pq_finds_nearly_all_that_exact_search_finds_whether_a_filter_leaves_many_rows_or_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pq().info.lists == 256
    assert recall(pq(), 100) >= 0.95
    monkeypatch.setattr(module, "MAX_COMPARED", 10)
    rng = np.random.default_rng(1)
    for share in (1, 0.9, 0.2, 0.02):
        allowed = None if share == 1 else rng.random(ROWS) < share
        for query in QUERIES:
            rows, scores = pq().search(query, 10, allowed=allowed)
            assert allowed is None or allowed[rows].all()
            np.testing.assert_allclose(scores, VECTORS[rows] @ query, atol=1e-3)
        assert recall(pq(), 10, allowed) >= 0.95
    only = np.isin(np.arange(ROWS), [3, 42])
    assert pq().search(QUERIES[0], 3, allowed=only)[0].tolist() == [42]
    far = VECTORS @ VECTORS[50] < -0.6  # the nearest lists hold none of them
    rows = pq().search(VECTORS[50], 20, allowed=far)[0]
    assert len(rows) == 20
    assert far[rows].all()
    assert not np.isin(ZERO, pq().search(QUERIES[0], ROWS)[0]).any()


def test_an_index_of_no_rows_has_no_hits(tmp_path: Path) -> None:
    empty = VectorIndex.build([], 4)
    empty.save(tmp_path)
    for index in (empty, VectorIndex.load(tmp_path), VectorIndex.build([], 4, kind="pq")):
        assert (len(index), index.dim) == (0, 4)
        assert not len(index.search(unit(1, 4)[0], 3)[0])


def test_an_exact_index_is_searched_without_faiss(tmp_path: Path) -> None:
    VectorIndex.build([unit(25, 16)], 16).save(tmp_path)
    code = (
        "import sys, pathlib, numpy; from ncs.storage.vectors import VectorIndex;"
        "index = VectorIndex.load(pathlib.Path(sys.argv[1])); index.search(index.vectors(numpy.arange(3))[0], 2);"
        "sys.exit('faiss' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_few_rows_are_searched_exactly_and_wrong_arguments_are_refused() -> None:
    vectors = VECTORS[: MIN_PQ + 10].copy()
    vectors[20:] = 0  # few are left
    index = VectorIndex.build([vectors], DIM, kind="pq")
    assert index.info.kind == "exact"
    with pytest.raises(BadInput, match="no kind of vectors 'hnsw'; choose from auto, exact, pq"):
        choose_kind("hnsw", 5)
    with pytest.raises(BadInput, match="must be at least 1"):
        index.search(vectors[0], 0)


def test_missing_and_truncated_files_and_those_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    pq().save(tmp_path)
    info = json.loads((tmp_path / "vectors.json").read_bytes())
    damages: list[tuple[str, bytes | None]] = [
        ("vectors.json", json.dumps({**info, **change}).encode())
        for change in ({"kind": "hnsw"}, {"rows": 7}, {"dim": 3}, {"lists": 3}, {"unknown": 1})
    ]
    for path in tmp_path.iterdir():
        whole = path.read_bytes()
        damages += [(path.name, content) for content in (None, b"", whole[:10], whole[: len(whole) // 2], whole[:-2])]
    assert len(damages) == 25
    for name, content in damages:
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content) if content is not None else (tmp_path / name).unlink()
        with pytest.raises(IndexDamaged, match="build the index again"):
            VectorIndex.load(tmp_path)
        (tmp_path / name).write_bytes(whole)
