"""Approximate search among vectors, each kind beside exact search."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.storage.tune_nprobe import RECALL
from ncs.storage.vector_kinds import Kind, chosen
from ncs.storage.vectors import FEW, VectorIndex

if TYPE_CHECKING:
    from ncs.types import Mask, Matrix

KINDS: tuple[Kind, ...] = ("pq", "ivf", "hnsw", "rabitq")
ROWS, DIM = 12_000, 20


def clouds(rows: int = ROWS, dim: int = DIM, seed: int = 0) -> Matrix:
    """Unit vectors around two hundred centres; of many, rows 3 and 700 are zero."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(200, dim))
    vectors = centres[rng.integers(0, 200, rows)] + rng.normal(size=(rows, dim)) * 0.5
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    if rows > 700:
        vectors[[3, 700]] = 0
    found: Matrix = vectors
    return found


VECTORS = clouds()
QUERIES = clouds(60, seed=0)[5:]


def built(kind: Kind, vectors: Matrix = VECTORS) -> VectorIndex:
    chunks = np.array_split(vectors, 7)
    sample, asked = vectors[:: max(1, len(vectors) // 4_000)], vectors[10::300]
    return VectorIndex.build(chunks, vectors.shape[1], kind=kind, rows=len(vectors), sample=sample, questions=asked)


@cache
def index_of(kind: Kind) -> VectorIndex:
    return built(kind)


def share_found(index: VectorIndex, allowed: Mask | None = None) -> float:
    """Of the ten best by numpy, how many the index finds."""
    found = 0
    for query in QUERIES:
        scores = VECTORS @ query
        scores[[3, 700]] = -np.inf
        if allowed is not None:
            scores[~allowed] = -np.inf
        best = np.argsort(-scores)[:10]
        found += len(np.intersect1d(best, index.search(query[None], 10, allowed=allowed)[0][0]))
    return found / (10 * len(QUERIES))


@pytest.mark.parametrize("kind", KINDS)
def test_nearly_all_that_exact_search_finds_is_found(kind: Kind) -> None:
    assert share_found(index_of(kind)) >= 0.95
    assert index_of(kind).about.recall >= RECALL - 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_opened_answers_as_what_was_built(kind: Kind, tmp_path: Path) -> None:
    index_of(kind).save(tmp_path)
    opened = VectorIndex.load(tmp_path)
    assert (len(opened), opened.dim, opened.about.kind) == (ROWS, DIM, kind)
    (rows, scores), (again, others) = index_of(kind).search(QUERIES, 30), opened.search(QUERIES, 30)
    assert rows.tolist() == again.tolist()
    np.testing.assert_allclose(scores, others, atol=1e-6)
    rows = np.array([5, 0, 11_999, 5])
    np.testing.assert_allclose(opened.rows(rows), VECTORS[rows], atol=0.01)
    np.testing.assert_allclose(opened.rows(rows), index_of(kind).rows(rows), atol=1e-6)
    np.testing.assert_allclose(opened.similarities(QUERIES[0], rows), VECTORS[rows] @ QUERIES[0], atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_vectors_make_the_same_bytes(kind: Kind, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        built(kind).save(tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_is_kept_whether_it_leaves_many_rows_or_few(kind: Kind) -> None:
    rng = np.random.default_rng(1)
    for share in (0.9, 0.2, 0.001):
        allowed = rng.random(ROWS) < share
        found = index_of(kind).search(QUERIES, 10, allowed=allowed)[0]
        assert allowed[found[found >= 0]].all()
        assert share_found(index_of(kind), allowed) >= 0.95
    only = np.isin(np.arange(ROWS), [3, 42])
    assert index_of(kind).search(QUERIES[:1], 3, allowed=only)[0].tolist() == [[42, -1, -1]]


def test_the_first_question_asks_the_system_for_just_the_lists_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_of("ivf").save(tmp_path)
    opened, content, asked = VectorIndex.load(tmp_path), (tmp_path / "vectors.faiss").read_bytes(), []
    monkeypatch.setattr("os.posix_fadvise", lambda _, start, length, __: asked.append(content[start : start + length]))
    places, row = np.load(tmp_path / "places.npy"), int(opened.search(VECTORS[50:51], 1)[0][0, 0])
    assert len(asked) == opened.about.effort
    lengths = 12_000 * (32 + 8)  # bytes of codes and ids, at the end of the file
    code = content[len(content) - lengths + 8 * int(places[row]) :][:32]
    assert any(code in each for each in asked)
    opened.search(VECTORS[50:51], 1)
    assert len(asked) == opened.about.effort


def test_a_filter_that_leaves_more_than_few_rows_of_one_corner_still_finds_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ncs.storage.vectors.FEW", 10)
    corner = VECTORS @ VECTORS[50] < -0.6  # far from what is asked for: no near list holds any
    assert np.count_nonzero(corner) > 20
    found = index_of("ivf").search(VECTORS[50:51], 20, allowed=corner)[0][0]
    assert (found >= 0).all()
    assert corner[found].all()


@pytest.mark.parametrize("kind", KINDS)
def test_zero_rows_are_never_found(kind: Kind) -> None:
    for k in (10, ROWS):
        found = index_of(kind).search(-QUERIES[:2], k)[0]
        assert not np.isin(found, [3, 700]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_of_equal_vectors_the_lower_rows_come_first(kind: Kind) -> None:
    vectors = clouds(600)
    vectors[100:130] = vectors[100]
    rows, scores = built(kind, vectors).search(vectors[100:101], 12)
    assert rows[0].tolist() == list(range(100, 112))
    assert len(set(scores[0].tolist())) == 1


@pytest.mark.parametrize("name", ["vectors.faiss", "places.npy", "vectors.json"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, -2])
def test_truncated_files_are_refused(tmp_path: Path, name: str, keep: float) -> None:
    index_of("ivf").save(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(IndexDamaged, match="build the index again"):
        VectorIndex.load(tmp_path)


def test_files_of_another_index_are_refused(tmp_path: Path) -> None:
    index_of("ivf").save(tmp_path)
    about = json.loads((tmp_path / "vectors.json").read_text())
    for wrong in ({"kind": "hnsw"}, {"rows": 7}, {"dim": 3}, {"unknown": 1}):
        (tmp_path / "vectors.json").write_text(json.dumps({**about, **wrong}))
        with pytest.raises(IndexDamaged):
            VectorIndex.load(tmp_path)
    np.save(tmp_path / "places.npy", np.zeros(5, np.uint32))
    (tmp_path / "vectors.json").write_text(json.dumps(about))
    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)


def test_who_forces_no_kind_that_there_is_learns_which_there_are() -> None:
    with pytest.raises(BadInput, match="auto, exact, pq, ivf, hnsw, rabitq, not 'lsh'"):
        chosen("lsh", 5)
    with pytest.raises(BadInput, match="give a sample"):
        VectorIndex.build([VECTORS], DIM, kind="ivf")
    assert FEW < ROWS
