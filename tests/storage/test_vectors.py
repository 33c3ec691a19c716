"""Search among vectors, exact and by IVF-PQ, against sorting by numpy."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.storage import vectors as module
from ncs.storage.vectors import FEW, LEAST, VectorIndex, Vectors, choose_kind, read_info

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


def expected(vectors: Matrix, query: Matrix, k: int) -> list[int]:
    """Rows by (-score, row) with scores of 64 bits."""
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    return [int(row) for row in np.lexsort((np.arange(len(vectors)), -scores))[:k]]


def recall(index: VectorIndex, k: int, allowed: Mask | None = None) -> float:
    """Of the k best by numpy, the share that the index finds."""
    mask = np.ones(ROWS, np.bool_) if allowed is None else allowed.copy()
    mask[ZERO] = False
    found = []
    for query in QUERIES:
        best = np.argsort(-np.where(mask, VECTORS @ query, -np.inf))[: min(k, np.count_nonzero(mask))]
        found.append(np.isin(best, index.search(query[None], k, allowed=allowed)[0][0]).mean())
    return float(np.mean(found))


def test_exact_search_gives_the_rows_and_scores_that_numpy_gives() -> None:
    vectors, queries = unit(500, 24), unit(7, 24, seed=1)
    rows, scores = VectorIndex.build([vectors], 24).search(queries, 10)
    assert rows.tolist() == [expected(vectors, query, 10) for query in queries]
    np.testing.assert_allclose(scores, np.take_along_axis(queries @ vectors.T, rows, axis=1), atol=1e-6)


def test_ivf_pq_finds_nearly_all_that_exact_search_finds() -> None:
    assert pq().info.lists == 256
    assert recall(pq(), 10) >= 0.95
    assert recall(pq(), 100) >= 0.95
    rows, scores = pq().search(QUERIES, 10)
    np.testing.assert_allclose(scores, np.take_along_axis(QUERIES @ VECTORS.T, rows, axis=1), atol=1e-3)


@pytest.mark.parametrize("kind", ["exact", "pq"])
def test_the_same_rows_make_the_same_files_however_they_are_chunked(kind: Kind, tmp_path: Path) -> None:
    vectors = VECTORS[:2_000]
    for name, chunks in (("one", [vectors]), ("many", [vectors[:1], vectors[1:64], vectors[64:64], vectors[64:]])):
        (tmp_path / name).mkdir()
        VectorIndex.build(chunks, DIM, kind=kind).save(tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [*(["empty.npy", "ivf_pq.faiss"] if kind == "pq" else ["empty.npy"]), "vectors.json", "vectors.npy"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes(), name


@pytest.mark.parametrize("k", [1, 3, 20, 63, 64, 99, 100, 150])
def test_of_equal_vectors_the_lower_rows_come_first_wherever_the_cut_falls(k: int) -> None:
    a, b = unit(2, 8)
    vectors = np.array([a if row % 3 else b for row in range(100)])
    rows, _ = VectorIndex.build([vectors], 8).search(a[None], k)
    assert [row for row in rows[0].tolist() if row >= 0] == expected(vectors, a, k)


def test_of_equal_vectors_in_an_ivf_pq_index_the_lower_rows_come_first() -> None:
    vectors = VECTORS[:2_000].copy()
    vectors[100:130] = vectors[100]
    rows, scores = VectorIndex.build([vectors], DIM, kind="pq").search(vectors[100:101], 12)
    assert rows[0].tolist() == list(range(100, 112))
    assert len(set(scores[0].tolist())) == 1


def test_a_filter_finds_what_sorting_the_allowed_rows_finds() -> None:
    vectors, query = unit(FEW + 3_000, 8), unit(1, 8, seed=5)
    index = VectorIndex.build([vectors], 8)
    for share in (0.3, 0.95):  # under FEW rows, and over
        allowed = np.random.default_rng(0).random(len(vectors)) < share
        rows, _ = index.search(query, 12, allowed=allowed)
        assert rows[0].tolist() == [row for row in expected(vectors, query[0], len(vectors)) if allowed[row]][:12]


def test_a_filter_of_an_ivf_pq_index_holds_whether_it_leaves_many_rows_or_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 10)
    rng = np.random.default_rng(1)
    for share in (0.9, 0.2, 0.02):
        allowed = rng.random(ROWS) < share
        rows = pq().search(QUERIES, 10, allowed=allowed)[0]
        assert allowed[rows].all()
        assert recall(pq(), 10, allowed) >= 0.95
    only = np.isin(np.arange(ROWS), [3, 42])
    assert pq().search(QUERIES[:1], 3, allowed=only)[0].tolist() == [[42, -1, -1]]
    far = VECTORS @ VECTORS[50] < -0.6  # the nearest lists hold none of them
    rows = pq().search(VECTORS[50:51], 20, allowed=far)[0][0]
    assert (rows >= 0).all()
    assert far[rows].all()


def test_missing_hits_are_row_minus_one_with_the_lowest_score() -> None:
    vectors = unit(5, 4)
    allowed = np.array([False, True, False, False, True])
    rows, scores = VectorIndex.build([vectors], 4).search(vectors[1:2], 4, allowed=allowed)
    assert rows[0].tolist() == [1, 4, -1, -1]
    assert scores[0, 2:].tolist() == [-np.inf, -np.inf]


def test_zero_rows_are_never_hits_though_others_score_below_zero() -> None:
    vectors = unit(6, 4)
    vectors[[0, 3]] = 0
    index = VectorIndex.build([vectors[:2], vectors[2:]], 4)
    assert sorted(index.search(-vectors[1:2], 6)[0][0].tolist()) == [-1, -1, 1, 2, 4, 5]
    only_zero = np.isin(np.arange(6), [0, 3])
    assert index.search(-vectors[1:2], 2, allowed=only_zero)[0].tolist() == [[-1, -1]]
    assert index.nonzero_rows().tolist() == [1, 2, 4, 5]
    for k in (10, ROWS):
        assert not np.isin(pq().search(-QUERIES[:2], k)[0], ZERO).any()
    assert sorted(pq().search(QUERIES[:1], ROWS)[0][0].tolist())[:3] == [-1, -1, 0]


def test_an_index_of_no_rows_or_no_queries_finds_nothing(tmp_path: Path) -> None:
    empty = VectorIndex.build([], 4)
    empty.save(tmp_path)
    for index in (empty, VectorIndex.load(tmp_path), VectorIndex.build([], 4, kind="pq")):
        assert (len(index), index.dim) == (0, 4)
        assert index.search(unit(2, 4), 3)[0].tolist() == [[-1] * 3] * 2
    assert VectorIndex.build([unit(3, 4)], 4).search(unit(0, 4), 3)[0].shape == (0, 3)


def test_many_queries_at_once_score_as_each_alone() -> None:
    vectors, queries = unit(300, 16), unit(40, 16, seed=2)
    index = VectorIndex.build([vectors], 16)
    together, alone = index.search(queries, 5)[1], [index.search(query[None], 5)[1][0] for query in queries]
    assert together.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize("kind", ["exact", "pq"])
def test_a_loaded_index_answers_as_the_one_that_was_saved(kind: Kind, tmp_path: Path) -> None:
    index = pq() if kind == "pq" else VectorIndex.build([VECTORS], DIM)
    index.save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    assert (len(loaded), loaded.dim, loaded.info) == (ROWS, DIM, index.info)
    assert (read_info(tmp_path).kind, read_info(tmp_path).rows) == (kind, ROWS)
    for k in (1, 10, 700):
        before, after = index.search(QUERIES, k), loaded.search(QUERIES, k)
        assert before[0].tobytes() + before[1].tobytes() == after[0].tobytes() + after[1].tobytes()
    rows = np.array([5, 0, 11_999, 5])
    np.testing.assert_allclose(loaded.vectors(rows), VECTORS[rows], atol=0 if kind == "exact" else 1e-3)
    np.testing.assert_allclose(loaded.similarities(QUERIES[0], rows), VECTORS[rows] @ QUERIES[0], atol=1e-3)
    assert loaded.nonzero_rows().tolist() == [row for row in range(ROWS) if row not in ZERO]


def test_segments_are_searched_as_one_and_tombstones_are_never_hits() -> None:
    parts = [VectorIndex.build([each], DIM) for each in (VECTORS[:7_000], VECTORS[7_000:7_001], VECTORS[7_001:])]
    live = np.random.default_rng(0).random(ROWS) < 0.9
    allowed = np.random.default_rng(1).random(ROWS) < 0.9
    for mask, index in ((None, Vectors(parts)), (live, Vectors(parts, live))):
        both = allowed if mask is None else allowed & mask
        found = index.search(QUERIES[:5], 20, allowed=allowed)[0]
        whole = VectorIndex.build([VECTORS], DIM).search(QUERIES[:5], 20, allowed=both)[0]
        assert found.tolist() == whole.tolist()
        rows = np.array([7_000, 3, 11_999, 6_999])
        np.testing.assert_array_equal(index.vectors(rows), VECTORS[rows])
        np.testing.assert_allclose(index.similarities(QUERIES[0], rows), VECTORS[rows] @ QUERIES[0], atol=1e-6)
        filled = [row for row in range(ROWS) if row not in ZERO and (mask is None or mask[row])]
        assert index.nonzero_rows().tolist() == filled
    with pytest.raises(BadInput, match="does not fit"):
        Vectors(parts).search(QUERIES, 3, allowed=allowed[1:])


def test_an_exact_index_is_searched_without_faiss(tmp_path: Path) -> None:
    VectorIndex.build([unit(25, 16)], 16).save(tmp_path)
    code = (
        "import sys, pathlib, numpy; from ncs.storage.vectors import VectorIndex;"
        "index = VectorIndex.load(pathlib.Path(sys.argv[1])); index.search(index.vectors(numpy.arange(3)), 2);"
        "sys.exit('faiss' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_few_rows_are_searched_exactly_whatever_was_asked_for() -> None:
    vectors = VECTORS[: LEAST + 10].copy()
    vectors[20:] = 0  # few are left
    assert VectorIndex.build([vectors], DIM, kind="pq").info.kind == "exact"
    assert (choose_kind("pq", LEAST - 1), choose_kind("pq", LEAST)) == ("exact", "pq")
    with pytest.raises(BadInput, match="unknown kind of vectors 'hnsw'; choose auto, exact, pq"):
        choose_kind("hnsw", 5)


@pytest.mark.parametrize("name", ["vectors.npy", "ivf_pq.faiss", "empty.npy", "vectors.json"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, -2])
def test_truncated_files_are_refused(tmp_path: Path, name: str, keep: float) -> None:
    pq().save(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(IndexDamaged, match="build the index again"):
        VectorIndex.load(tmp_path)


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)
    for name, vectors, kind in (("one", VECTORS[:2_000], "pq"), ("other", VECTORS[:3_000, :20], "exact")):
        (tmp_path / name).mkdir()
        VectorIndex.build([vectors], vectors.shape[1], kind=kind).save(tmp_path / name)  # type: ignore[arg-type]
    one, other = tmp_path / "one", tmp_path / "other"
    for name in ("vectors.npy", "vectors.json"):
        content = (one / name).read_bytes()
        (one / name).write_bytes((other / name).read_bytes())
        with pytest.raises(IndexDamaged, match="build the index again"):
            VectorIndex.load(one)
        (one / name).write_bytes(content)
    about = json.loads((one / "vectors.json").read_text())
    for wrong in ({"kind": "hnsw"}, {"rows": 7}, {"dim": 3}, {"lists": 3}, {"unknown": 1}):
        (one / "vectors.json").write_text(json.dumps({**about, **wrong}))
        with pytest.raises(IndexDamaged, match="build the index again"):
            VectorIndex.load(one)


def test_wrong_arguments_are_refused() -> None:
    index = VectorIndex.build([unit(5, 4)], 4)
    with pytest.raises(BadInput, match="ask for 1 or more"):
        index.search(unit(1, 4), 0)
    with pytest.raises(BadInput, match="do not fit"):
        index.search(unit(1, 5), 1)
    with pytest.raises(BadInput, match="does not fit 5 rows"):
        index.search(unit(1, 4), 1, allowed=np.ones(4, np.bool_))
