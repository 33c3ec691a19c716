"""The fast scan of packed lists: scores stay what they are, ten bits, the mapped file, more found in as many lists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from ncs.errors import IndexDamaged
from ncs.storage.fine import Fine, FineWriter, Grid
from ncs.storage.scanned import Scanned
from ncs.storage.stretched import MOST, Stretch
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from ncs.storage.vector_kinds import Kind
    from ncs.types import Matrix

ROWS, DIM = 12_000, 30


def unit(vectors: Any) -> Matrix:
    found: Matrix = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return found


def documents(rows: int = ROWS, dim: int = DIM) -> Matrix:
    """Around three hundred centres."""
    rng = np.random.default_rng(0)
    return unit(rng.normal(size=(300, dim))[rng.integers(0, 300, rows)] + rng.normal(size=(rows, dim)))


def questions(count: int = 300, dim: int = DIM) -> Matrix:
    """Not among the documents: all share a direction, as questions of people do."""
    rng = np.random.default_rng(1)
    return unit(rng.normal(size=(count, dim)) / dim**0.5 + rng.normal(size=dim) / dim**0.5)


VECTORS, ASKED = documents(), questions()


def built(kind: Kind, asked: Matrix = ASKED[:200], vectors: Matrix = VECTORS) -> VectorIndex:
    chunks = np.array_split(vectors, 5)
    return VectorIndex.build(
        chunks, vectors.shape[1], kind=kind, rows=len(vectors), sample=vectors[::2], questions=asked
    )


@pytest.mark.parametrize("seed", range(20))
def test_documents_and_questions_drawn_out_score_as_they_did(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(2, 60))
    kept, asked = rng.normal(size=(50, dim)).astype(np.float32), rng.normal(size=(9, dim)).astype(np.float32)
    stretch = Stretch.of(unit(asked + 2 * rng.normal(size=dim)), dim)
    assert 1 <= stretch.factor <= MOST
    np.testing.assert_allclose(
        stretch.questions(asked) @ stretch.documents(kept).T, asked @ kept.T, rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(np.linalg.norm(stretch.direction), 1, atol=1e-6)


def test_questions_that_share_nothing_draw_nothing_out() -> None:
    opposite = np.concatenate([ASKED, -ASKED])
    for asked in (opposite, ASKED[:0]):
        stretch = Stretch.of(asked, DIM)
        assert stretch.factor == 1
        np.testing.assert_array_equal(stretch.documents(VECTORS[:9]), VECTORS[:9])


@pytest.mark.parametrize("dim", [1, 3, 4, 50])
def test_ten_bits_keep_a_number_to_a_thousandth_of_its_range(dim: int) -> None:
    vectors = np.random.default_rng(dim).normal(size=(500, dim)).astype(np.float32)
    grid = Grid.of(vectors)
    with FineWriter(grid) as writer:
        for chunk in np.array_split(vectors, 3):
            writer.add(chunk)
        fine = writer.done()
    assert fine.codes.shape == (500, grid.width) == (500, 5 * -(-dim // 4))
    rows = np.array([7, 0, 499, 7])
    wide = vectors.max(axis=0) - vectors.min(axis=0)
    assert (np.abs(fine.vectors(rows) - vectors[rows]) <= 0.6 * wide * 1.125 / 1024).all()
    np.testing.assert_allclose(fine.scores(vectors[3], rows), fine.vectors(rows) @ vectors[3], atol=1e-5 * dim)
    far = np.full((1, dim), 99, np.float32)
    np.testing.assert_allclose(Fine(grid.encoded(far), grid).vectors(np.array([0]))[0], vectors.max(axis=0) + wide / 16, rtol=0.01)  # fmt: skip  # noqa: E501


def test_equal_rows_score_exactly_alike_wherever_they_stand() -> None:
    vectors = np.tile(VECTORS[5], (1001, 1))
    vectors[::7] = VECTORS[: len(vectors[::7])]
    grid = Grid.of(VECTORS)
    scores = Fine(grid.encoded(vectors), grid).scores(ASKED[0], np.arange(1001))
    assert len(set(scores[np.arange(1001) % 7 > 0].tolist())) == 1


def test_in_as_many_lists_more_is_found_than_without_questions_to_learn_from_or_by_ivf() -> None:
    best = np.argsort(-(ASKED[200:] @ VECTORS.T), axis=1)[:, :10]
    met = {}
    for name, index in (("learnt", built("pq")), ("plain", built("pq", ASKED[:0])), ("ivf", built("ivf"))):
        searcher = cast(Scanned, index._searcher)
        searcher.about = replace(searcher.about, effort=12)
        assert searcher.about.lists == 256
        found = index.search(ASKED[200:], 10)[0]
        met[name] = np.mean([np.isin(one, other).mean() for one, other in zip(best, found, strict=True)])
    assert met["learnt"] > met["plain"] + 0.03
    assert met["learnt"] > met["ivf"] + 0.03


def test_what_is_mapped_answers_exactly_as_what_was_built(tmp_path: Path) -> None:
    index = built("pq")
    index.save(tmp_path)
    opened = VectorIndex.load(tmp_path)
    for k in (1, 10, 700):
        for one, other in zip(index.search(ASKED[200:], k), opened.search(ASKED[200:], k), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(index.rows(np.arange(ROWS)), opened.rows(np.arange(ROWS)))
    np.testing.assert_allclose(opened.rows(np.arange(0, ROWS, 2)), VECTORS[::2], atol=0.001)  # the sample's
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < ROWS * (16 + 8 + 40 + 12)


def test_the_first_question_asks_the_system_for_just_the_lists_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("pq").save(tmp_path)
    opened, content, asked = VectorIndex.load(tmp_path), (tmp_path / "lists.bin").read_bytes(), []
    monkeypatch.setattr("os.posix_fadvise", lambda _, start, length, __: asked.append(content[start : start + length]))
    row = int(opened.search(ASKED[:1], 1)[0][0, 0])
    assert len(asked) == opened.about.effort < opened.about.lists
    assert any(np.int64(row).tobytes() in each for each in asked)
    opened.search(ASKED[:1], 1)
    assert len(asked) == opened.about.effort


@pytest.mark.parametrize("rows", [1, 5, 17, 100])
def test_few_vectors_can_be_searched_so_where_it_is_wanted(rows: int, tmp_path: Path) -> None:
    vectors = VECTORS[:rows]
    built("pq", vectors=vectors).save(tmp_path)
    found = VectorIndex.load(tmp_path).search(vectors, 3)[0]
    assert found[:, 0].tolist() == list(range(rows))


@pytest.mark.parametrize("name", ["vectors.faiss", "lists.bin", "scan.npy", "fine.npy"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, -2])
def test_truncated_files_are_refused(tmp_path: Path, name: str, keep: float) -> None:
    built("pq", vectors=VECTORS[:2_000]).save(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(IndexDamaged, match="build the index again"):
        VectorIndex.load(tmp_path)


def test_files_of_another_index_are_refused(tmp_path: Path) -> None:
    for name, vectors in (("one", VECTORS[:2_000]), ("other", VECTORS[:3_000, :20])):
        (tmp_path / name).mkdir()
        built("pq", ASKED[:, : vectors.shape[1]], vectors).save(tmp_path / name)
    content = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    for name in content:
        if name != "empty.npy":
            (tmp_path / "one" / name).write_bytes((tmp_path / "other" / name).read_bytes())
            with pytest.raises(IndexDamaged, match="build the index again"):
                VectorIndex.load(tmp_path / "one")
            (tmp_path / "one" / name).write_bytes(content[name])
    about = json.loads(content["vectors.json"])
    (tmp_path / "one" / "vectors.json").write_text(json.dumps({**about, "kind": "ivf"}))
    with pytest.raises(IndexDamaged, match="build the index again"):
        VectorIndex.load(tmp_path / "one")


def test_lists_that_were_written_before_there_was_a_fast_scan_are_still_searched() -> None:
    """tests/data/vectors_ivf: of ncs at ee182d3, `--vectors auto` at the time, made of the vectors below."""
    vectors = unit(np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32))
    opened = VectorIndex.load(Path(__file__).with_name("data") / "vectors_ivf")
    assert (opened.about.kind, len(opened), opened.filled().tolist()) == ("ivf", 200, [*range(3), *range(4, 200)])
    found, scores = opened.search(vectors[4:], 1)
    assert found[:, 0].tolist() == list(range(4, 200))
    np.testing.assert_allclose(scores, 1, atol=0.02)
    np.testing.assert_allclose(opened.rows(np.arange(4, 200)), vectors[4:], atol=0.01)
