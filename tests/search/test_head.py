"""A learned head in the default ranker: its values against numpy, its share of scores, and its weight."""

from __future__ import annotations

import json
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from ncs.build import tune
from ncs.build.head_weight import MIN_LIFT, MIN_QUERIES, head_summary
from ncs.build.pipeline import add_rankers
from ncs.config import BuildConfig, LsaConfig
from ncs.errors import BadInput, IndexDamaged
from ncs.index import Index
from ncs.learn.confidence import save_weights
from ncs.search.feedback import Feedback
from ncs.search.hybrid import UNIT_Z_SCORE, HybridRanker, head_weight, save_weight
from ncs.search.rankers import load_ranker
from ncs.search.unif import UnifRanker
from tests.heads import head

pytestmark = pytest.mark.slow  # they ask an index of some of the standard library, built once

MODULES = "argparse calendar difflib inspect mailbox shutil statistics tarfile textwrap turtle"
QUERY = "close the socket of a file"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("heads")
    (root / "src" / "lib").mkdir(parents=True)
    for name in MODULES.split():
        shutil.copy(Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py", root / "src" / "lib")
    config = BuildConfig(lsa=LsaConfig(dim=16), embeddings="lsa")
    with Index.build(root / "src", root / "index", config=config, workers=1) as index:
        words = tuple(index.words().vocabulary)
    head(words=words, dim=8).save(root / "noise" / "head")
    add_rankers(root / "index", [f"unif:head={root / 'noise'}"])
    return root / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.load(folder) as opened:
        yield opened


def hybrid(index: Index, **options: float) -> HybridRanker:
    return cast(HybridRanker, load_ranker("hybrid", index.snapshot, **options))


def unif(index: Index) -> UnifRanker:
    return cast(UnifRanker, index.ranker("unif"))


def check_that_a_field_counts_where_there_is_one(index: Index, ranker: UnifRanker) -> None:
    words, differences = index.word_table(), {True: list[float](), False: list[float]()}
    for row in range(40):
        vector = ranker.ablated_vector(words, row, index.documents.document(row), "doc")
        away = np.abs(vector - ranker.vectors.vectors(np.array([row]))[0]).max()
        differences[len(words.ids_of(row, "doc")) > 0].append(float(away))
    assert max(differences[False]) < 1e-5
    assert max(differences[True]) > 1e-3


def test_z_scores_are_standard_deviations_above_the_mean_of_all_documents(index: Index) -> None:
    ranker = unif(index)
    query = ranker.query_vector(QUERY)
    rows = ranker.vectors.nonzero_rows()
    cosines = (ranker.vectors.vectors(rows) @ query).astype(np.float64)
    assert len(rows) < 2_048  # the sample is all of them
    expected = (cosines - cosines.mean()) / cosines.std()
    np.testing.assert_allclose(ranker.z_scores(query, rows, QUERY), expected, atol=1e-4)
    assert not ranker.z_scores(np.zeros_like(query), rows, "").any()


def test_signals_with_a_head_add_up_and_its_own_candidates_are_found(index: Index) -> None:
    ranker = hybrid(index, head=5.0)
    ranking = ranker.rank(QUERY, 10)
    factors = np.prod(list(ranking.factors.values()), axis=0)
    np.testing.assert_allclose(sum(ranking.signals.values()) * factors, ranking.scores)
    words, with_head = "close socket file", unif(index)
    z_scores = with_head.z_scores(with_head.query_vector(words), np.array(ranking.rows), words)
    np.testing.assert_allclose(ranking.signals["learnt"], 5 * np.maximum(z_scores, 0) / UNIT_Z_SCORE, atol=1e-6)
    assert with_head.search(words, 1)[0][0] in ranker.rank(QUERY, 200).rows
    assert hybrid(index, head=0.0).search(QUERY, 10) != ranker.search(QUERY, 10)


def test_a_head_of_noise_is_not_used(index: Index) -> None:
    figures = index.description.counts["head"]
    standing = figures["standing"]
    assert standing["questions"] >= MIN_QUERIES
    assert standing["low"] < MIN_LIFT
    assert abs(standing["after"]) < 1
    assert figures["weight"] == 0 == head_weight(index.snapshot.statistics)
    expected = "hybrid: weight 0 of the head: it does not lift right functions above all others: by "
    assert head_summary(index.folder).startswith(expected)
    assert "learnt" not in hybrid(index).rank(QUERY, 3).signals


def test_without_a_field_a_document_is_what_its_other_words_make_it(index: Index) -> None:
    check_that_a_field_counts_where_there_is_one(index, unif(index))


def test_centred_vectors_are_those_less_their_mean_and_are_read_back(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "index")
    with Index.load(copy) as index:
        plain = unif(index)
        plain.head.save(tmp_path / "head" / "head")
        filled, before = plain.vectors.nonzero_rows(), plain.search(QUERY, 5)
        vectors = plain.vectors.vectors(np.arange(len(index))).astype(np.float64)
    expected = vectors - vectors.mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    add_rankers(copy, [f"unif:head={tmp_path / 'head'},centre=true"])
    with Index.load(copy) as index:
        centered = unif(index)
        np.testing.assert_allclose(centered.vectors.vectors(filled), expected[filled], atol=1e-5)
        assert centered.search(QUERY, 5) != before
        check_that_a_field_counts_where_there_is_one(index, centered)


def test_the_weight_is_that_of_tune_else_that_of_the_build_and_damage_is_refused(folder: Path, tmp_path: Path) -> None:
    with Index.load(shutil.copytree(folder, tmp_path / "index")) as index:
        statistics = index.snapshot.statistics
        save_weight(statistics, 0.25)
        save_weights({"meaning": 0.5}, index.folder)
        assert hybrid(index).weights.head == 0.25
        save_weights({"head": 0.4}, index.folder)
        assert [hybrid(index, calibrated=each).weights.head for each in (True, False)] == [0.4, 0.25]
        for wrong in ("{}", json.dumps({"weight": -1}), "[", json.dumps({"weight": "x"})):
            (statistics / "unif" / "weight.json").write_text(wrong)
            with pytest.raises(IndexDamaged, match="build the index again"):
                hybrid(index)


def test_an_index_keeps_the_head_that_it_was_fitted_with(index: Index, tmp_path: Path) -> None:
    given = str(index.ranker("unif").config["head"])
    other = UnifRanker(head=str(tmp_path / "gone"))
    with pytest.raises(BadInput, match="no trained head"):
        other.prepare(index.snapshot.statistics)  # which has another head
    moved = Path(given).rename(tmp_path / "moved")
    try:
        copy = UnifRanker(head=given)
        copy.prepare(index.snapshot.statistics)
    finally:
        moved.rename(given)


def test_tune_weighs_the_head_where_the_build_uses_it(folder: Path, tmp_path: Path) -> None:
    with Index.load(shutil.copytree(folder, tmp_path / "index")) as index:
        save_weight(index.snapshot.statistics, 0.3)
        things = ("file", "line", "path", "text")
        verbs = ("close", "copy", "parse", "read", "write")  # no stop words, which the head is not asked with
        texts = [f"{verb} {thing}" for verb in verbs for thing in things]
        judged = [Feedback(text, (unif(index).search(text, 1)[0][0],)) for text in texts]
        tuned = tune.tune(index.snapshot, judged, force=True)
        assert (tuned.before["head"], tuned.written) == (0.3, True)
        assert tuned.after["head"] > 0.3  # only the head knows what is right
        assert "head 0.3 ->" in tune.summary(tuned)
        save_weight(index.snapshot.statistics, 0.0)
        assert hybrid(index).weights.head == tuned.after["head"]
        assert hybrid(index, calibrated=False).weights.head == 0
        assert tune.reset(index.snapshot)
        assert hybrid(index).weights.head == 0
