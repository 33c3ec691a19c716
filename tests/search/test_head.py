"""A learnt head in the default ranker: its values against numpy, its share of scores, and its weight."""

from __future__ import annotations

import json
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from ncs.learn.head_calibration import LEAST, WEIGHT, decided, told, why
from ncs.learn.learning import Gain

from ncs.build.add_ranker import add_rankers
from ncs.config import FastTextConfig
from ncs.errors import BadInput, IndexDamaged
from ncs.index import BuildConfig, Index
from ncs.learn.confidence import TUNED, Learnt
from ncs.learn.tuning import reset, tune
from ncs.learn.tuning import told as tuning_told
from ncs.search.feedback import Feedback
from ncs.search.hybrid import HybridRanker
from ncs.search.signals.head import FAR, HeadSignal, save_weight, weight_of
from ncs.search.unif import UnifRanker
from tests.heads import head

pytestmark = pytest.mark.slow  # they ask an index of some of the standard library, built once

MODULES = "argparse calendar difflib inspect mailbox shutil statistics textwrap turtle zipfile"
QUESTION = "close the socket of a file"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("heads")
    (root / "src" / "lib").mkdir(parents=True)
    for name in MODULES.split():
        shutil.copy(Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py", root / "src" / "lib")
    quick = FastTextConfig(dim=16, epochs=1)
    with Index.build(
        root / "src", root / "index", config=BuildConfig(fasttext=quick, embeddings="fasttext"), workers=1
    ) as index:
        words = tuple(index.words().vocabulary)
    head(words=words, dim=8).save(root / "noise" / "head")
    add_rankers(root / "index", [f"unif:head={root / 'noise'}"])
    return root / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.load(folder) as opened:
        yield opened


def listening(index: Index, weight: float) -> HybridRanker:
    return cast(HybridRanker, index.fitted("hybrid", head=weight))


def test_values_are_standard_deviations_above_the_mean_of_all_documents(index: Index) -> None:
    ranker = cast(UnifRanker, index.ranker("unif"))
    signal, query = HeadSignal.of(ranker), ranker.question(QUESTION)
    rows = ranker.vectors.filled()
    cosines = (ranker.vectors.vectors(rows) @ query).astype(np.float64)
    assert len(rows) < 2_048  # the sample is all of them
    expected = np.maximum(0, (cosines - cosines.mean()) / cosines.std()) / FAR
    np.testing.assert_allclose(signal.values(query, rows), expected, atol=1e-4)
    assert not signal.values(np.zeros_like(query), rows).any()
    assert signal.near(np.zeros_like(query), 5) == []


def test_shares_with_a_head_add_up_and_its_own_candidates_are_found(index: Index) -> None:
    ranker = listening(index, 5.0)
    found = ranker.rank(QUESTION, 10)
    factors = np.prod(list(found.factors.values()), axis=0)
    np.testing.assert_allclose(sum(found.signals.values()) * factors, found.scores)
    unif = cast(UnifRanker, index.ranker("unif"))
    values = HeadSignal.of(unif).values(unif.question("close socket file"), np.array(found.rows))
    np.testing.assert_allclose(found.signals["learnt"], 5 * values, atol=1e-6)
    best = unif.search("close socket file", 1)[0][0]
    assert best in ranker.rank(QUESTION, 200).rows
    assert listening(index, 0.0).search(QUESTION, 10) != ranker.search(QUESTION, 10)


def test_noise_is_not_listened_to(index: Index) -> None:
    weighed = cast("dict[str, dict[str, object]]", index.description.counts["calibration"])["head"]
    stands = cast("dict[str, dict[str, float]]", weighed["stands"])
    assert stands["all"]["questions"] >= LEAST
    assert stands["all"]["high"] < 0
    assert abs(stands["all"]["after"]) < 1
    assert weighed["weight"] == 0 == weight_of(index.data)
    assert told(index.folder).startswith(
        "hybrid: weight 0 of the head: it lifts the functions asked for no higher than ncs_centred does: by -"
    )
    assert "learnt" not in cast(HybridRanker, index.ranker()).rank(QUESTION, 3).signals


def test_a_head_counts_where_it_lifts_the_standing_and_lowers_no_rank() -> None:
    up, even, down = (Gain(60, 2.0, 2.0 + by, by - 0.1, by + 0.1) for by in (0.5, 0.0, -0.5))
    same = {"all": even, "doc": even, "name": even}
    assert decided({"all": up, "doc": up, "name": even}, same) == WEIGHT
    assert decided({"all": even, "doc": up, "name": even}, same) == 0  # above chance over all is asked for
    assert decided({"all": up, "doc": up, "name": down}, same) == 0  # comments alone are not enough
    assert decided({"all": up, "doc": up, "name": up}, {**same, "doc": down}) == 0  # right functions sink
    assert "by +0.50 [+0.40, +0.60] standard deviations, and lowers" in why({"all": up, "name": even}, same)
    assert why({"all": even}, same).startswith("it lifts the functions asked for no higher")
    assert (
        why({"all": up, "name": down}, same) == "it puts the functions that a name asks for lower than ncs_centred does"
    )
    assert why({"all": up}, {**same, "doc": down}) == "it lowers the mean reciprocal rank of doc questions by 0.500"


def test_without_a_field_a_document_is_what_its_other_words_make_it(index: Index) -> None:
    ranker = cast(UnifRanker, index.ranker("unif"))
    words = index.words()
    empty = [row for row in range(len(words)) if not len(words.ids_of(row, "doc"))][:20]
    documents = index.documents.documents(empty)
    np.testing.assert_allclose(
        ranker.without(words, empty, documents, "doc"), ranker.vectors.vectors(np.array(empty)), atol=1e-5
    )
    full = [row for row in range(len(words)) if len(words.ids_of(row, "doc")) > 5][:1]
    there = ranker.without(words, full, index.documents.documents(full), "doc")
    assert not np.allclose(there, ranker.vectors.vectors(np.array(full)), atol=1e-3)


def test_centred_vectors_are_those_less_their_mean_and_are_read_back(index: Index, tmp_path: Path) -> None:
    plain = cast(UnifRanker, index.ranker("unif"))
    rows = np.arange(len(index))
    vectors = plain.vectors.vectors(rows).astype(np.float64)
    expected = vectors - vectors.mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    plain.head.save(tmp_path / "head")
    moved = UnifRanker(head=str(tmp_path), centre=True)
    moved.fit(index.words())
    np.testing.assert_allclose(
        moved.vectors.vectors(rows)[plain.vectors.filled()], expected[plain.vectors.filled()], atol=1e-5
    )
    moved.save(tmp_path)
    again = UnifRanker()
    again.load(tmp_path)
    assert again.search(QUESTION, 5) == moved.search(QUESTION, 5) != plain.search(QUESTION, 5)
    empty = [row for row in range(len(index)) if not len(index.words().ids_of(row, "doc"))][:5]
    left = again.without(index.words(), empty, index.documents.documents(empty), "doc")
    np.testing.assert_allclose(left, again.vectors.vectors(np.array(empty)), atol=1e-5)


def test_a_weight_that_is_no_number_is_told(tmp_path: Path) -> None:
    assert weight_of(tmp_path) == 0
    (tmp_path / "unif").mkdir()
    save_weight(tmp_path, 0.25)
    assert weight_of(tmp_path) == 0.25
    for wrong in ("{}", json.dumps({"weight": -1}), "[", json.dumps({"weight": "x"})):
        (tmp_path / "unif" / "weight.json").write_text(wrong)
        with pytest.raises(IndexDamaged, match="build the index again"):
            weight_of(tmp_path)


def test_an_index_keeps_what_its_head_was_made_of(index: Index, folder: Path, tmp_path: Path) -> None:
    given = str(index.ranker("unif").config["head"])
    gone = UnifRanker(head=str(tmp_path / "gone"))
    gone.take_over(index.data)  # holds another head
    with pytest.raises(BadInput, match="there is no trained head"):
        gone.prepare()
    kept = UnifRanker(head=given)
    kept.take_over(index.data)
    moved = Path(given).rename(tmp_path / "moved")
    try:
        kept.fit(index.words())
    finally:
        moved.rename(given)
    assert kept.search(QUESTION, 5) == index.ranker("unif").search(QUESTION, 5)


def test_what_tune_found_goes_before_what_the_build_found(tmp_path: Path) -> None:
    (tmp_path / "unif").mkdir()
    save_weight(tmp_path, 0.25)
    Learnt({"meaning": 0.5}).save(tmp_path / TUNED)
    assert weight_of(tmp_path) == 0.25
    Learnt({"head": 0.4}).save(tmp_path / TUNED)
    assert (weight_of(tmp_path), weight_of(tmp_path, tuned=False)) == (0.4, 0.25)


def test_tune_weighs_the_head_where_the_build_listens_to_it(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "index")
    with Index.load(copied) as index:
        save_weight(index.data, 0.3)
        unif = cast(UnifRanker, index.ranker("unif"))
        things = ("file", "line", "path", "text")
        texts = [f"{verb} of a {thing}" for verb in ("close", "copy", "parse") for thing in things]
        questions = [Feedback(text, (unif.search(text, 1)[0][0],)) for text in texts]
        tuned = tune(index, questions, force=True)
        assert (tuned.before["head"], tuned.written) == (0.3, True)
        assert tuned.after["head"] > 0.3  # the head alone knows what was said to be right
        assert "head 0.3 ->" in tuning_told(tuned)
        save_weight(index.data, 0.0)  # as it was built
    with Index.load(copied) as index:
        assert cast(HybridRanker, index.ranker()).weights.head == tuned.after["head"]
        assert cast(HybridRanker, index.fitted("hybrid", calibrated=False)).weights.head == 0
        assert reset(index)
    with Index.load(copied) as index:
        assert cast(HybridRanker, index.ranker()).weights.head == 0
