"""Exact search among vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from ncs.types import Matrix


def unit(rows: int, dim: int, seed: int = 0) -> Matrix:
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    found: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def expected(vectors: Matrix, query: Matrix, k: int) -> list[int]:
    """Rows by (-score, row) with scores of 64 bits."""
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    return [int(row) for row in np.lexsort((np.arange(len(vectors)), -scores))[:k]]


def test_search_gives_the_rows_and_scores_that_numpy_gives() -> None:
    vectors, queries = unit(500, 24), unit(7, 24, seed=1)
    rows, scores = VectorIndex.build([vectors], 24).search(queries, 10)
    assert rows.tolist() == [expected(vectors, query, 10) for query in queries]
    np.testing.assert_allclose(scores, np.take_along_axis(queries @ vectors.T, rows, axis=1), atol=1e-6)


def test_chunks_make_the_index_that_one_matrix_makes(tmp_path: Path) -> None:
    vectors = unit(100, 8)
    for name, chunks in (("one", [vectors]), ("many", [vectors[:1], vectors[1:64], vectors[64:64], vectors[64:]])):
        (tmp_path / name).mkdir()
        VectorIndex.build(chunks, 8).save(tmp_path / name)
    for file in ("vectors.faiss", "empty.npy"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "many" / file).read_bytes()


@pytest.mark.parametrize("k", [1, 3, 20, 63, 64, 99, 100, 150])
def test_of_equal_vectors_the_lower_rows_come_first_wherever_the_cut_falls(k: int) -> None:
    a, b = unit(2, 8)
    vectors = np.array([a if row % 3 else b for row in range(100)])
    rows, _ = VectorIndex.build([vectors], 8).search(a[None], k)
    assert [row for row in rows[0].tolist() if row >= 0] == expected(vectors, a, k)


def test_a_filter_finds_what_sorting_the_allowed_rows_finds() -> None:
    vectors, query = unit(203, 8), unit(1, 8, seed=5)
    allowed = np.random.default_rng(0).random(203) < 0.3
    rows, _ = VectorIndex.build([vectors], 8).search(query, 12, allowed=allowed)
    assert rows[0].tolist() == [row for row in expected(vectors, query[0], 203) if allowed[row]][:12]


def test_missing_hits_are_row_minus_one_with_the_lowest_score() -> None:
    vectors = unit(5, 4)
    allowed = np.array([False, True, False, False, True])
    rows, scores = VectorIndex.build([vectors], 4).search(vectors[1:2], 4, allowed=allowed)
    assert rows[0].tolist() == [1, 4, -1, -1]
    assert scores[0, 2:].tolist() == [-np.inf, -np.inf]


def test_zero_rows_are_never_found_though_others_score_below_zero() -> None:
    vectors = unit(6, 4)
    vectors[[0, 3]] = 0
    index = VectorIndex.build([vectors[:2], vectors[2:]], 4)
    query = -vectors[1:2]
    assert sorted(index.search(query, 6)[0][0].tolist()) == [-1, -1, 1, 2, 4, 5]
    only_zero = np.isin(np.arange(6), [0, 3])
    assert index.search(query, 2, allowed=only_zero)[0].tolist() == [[-1, -1]]


def test_an_index_of_no_rows_or_no_queries_finds_nothing() -> None:
    empty = VectorIndex.build([], 4)
    assert empty.search(unit(2, 4), 3)[0].tolist() == [[-1] * 3] * 2
    assert VectorIndex.build([unit(3, 4)], 4).search(unit(0, 4), 3)[0].shape == (0, 3)


def test_many_queries_at_once_score_as_each_alone() -> None:
    vectors, queries = unit(300, 16), unit(40, 16, seed=2)
    index = VectorIndex.build([vectors], 16)
    together, alone = index.search(queries, 5)[1], [index.search(query[None], 5)[1][0] for query in queries]
    assert together.tobytes() == np.array(alone).tobytes()


def test_a_saved_index_answers_as_before(tmp_path: Path) -> None:
    vectors, queries = unit(300, 16), unit(3, 16, seed=2)
    vectors[7] = 0
    index = VectorIndex.build([vectors], 16)
    index.save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    assert (len(loaded), loaded.dim) == (300, 16)
    before, after = index.search(queries, 300), loaded.search(queries, 300)
    assert before[0].tobytes() == after[0].tobytes()
    assert before[1].tobytes() == after[1].tobytes()


@pytest.mark.parametrize("size", [0, 1, 4, 10, 30, 44, 45, 46, 500, 1644])
def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    VectorIndex.build([unit(25, 16)], 16).save(tmp_path)
    path = tmp_path / "vectors.faiss"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(IndexDamaged, match="build the index again"):
        VectorIndex.load(tmp_path)


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    import faiss

    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)
    VectorIndex.build([unit(25, 16)], 16).save(tmp_path)
    (tmp_path / "empty.npy").write_bytes(b"not an array")
    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)
    VectorIndex.build([unit(25, 16)], 16).save(tmp_path)
    for foreign in (b"x" * 2000, b""):
        (tmp_path / "vectors.faiss").write_bytes(foreign)
        with pytest.raises(IndexDamaged):
            VectorIndex.load(tmp_path)
    other = faiss.IndexFlatL2(16)
    faiss.write_index(other, str(tmp_path / "vectors.faiss"))
    with pytest.raises(IndexDamaged, match="no vectors of ours"):
        VectorIndex.load(tmp_path)


def test_wrong_arguments_are_refused() -> None:
    index = VectorIndex.build([unit(5, 4)], 4)
    with pytest.raises(BadInput, match="ask for 1 or more"):
        index.search(unit(1, 4), 0)
    with pytest.raises(BadInput, match="do not fit"):
        index.search(unit(1, 5), 1)
    with pytest.raises(BadInput, match="does not fit 5 rows"):
        index.search(unit(1, 4), 1, allowed=np.ones(4, np.bool_))
