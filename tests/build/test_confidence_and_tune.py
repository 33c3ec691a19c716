"""Confidence and `ncs tune`, on an index of some of the standard library."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

from ncs.build import tune
from ncs.build.head_weight import MAX_QUERIES, synthetic_queries
from ncs.cli.main import app
from ncs.errors import BadInput
from ncs.index import Index
from ncs.learn.confidence import LIKELY, load_weights
from ncs.search.feedback import Feedback, read_feedback
from ncs.search.hybrid import HybridRanker, Weights
from ncs.text.tokens import tokenize
from tests import corpus
from tests.gitrepo import contents

pytestmark = pytest.mark.slow  # they search one index, which takes seconds to build

MODULES = "argparse calendar difflib inspect mailbox shutil statistics tarfile textwrap turtle"
NONSENSE = ("xyzzy frobnicate quux", "marinate chicken breast with garlic", "react component with a tailwind button")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("calibration")
    (root / "src" / "lib").mkdir(parents=True)
    for name in MODULES.split():
        shutil.copy(Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py", root / "src" / "lib")
    with Index.build(root / "src", root / "index", workers=1):
        return root / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.load(folder) as opened:
        yield opened
        tune.reset(opened.snapshot)


def hybrid(index: Index) -> HybridRanker:
    return cast(HybridRanker, index.ranker("hybrid"))


def test_at_most_200_queries_are_made_each_from_a_document_that_answers_it(index: Index) -> None:
    queries = synthetic_queries(hybrid(index).open_parts, index.documents)
    assert sum(MAX_QUERIES.values()) == 200
    counts = {kind: sum(query.kind == kind for query in queries) for kind in MAX_QUERIES}
    assert counts["doc"] > 20
    assert all(0 < counts[kind] <= MAX_QUERIES[kind] for kind in MAX_QUERIES)
    for query in queries:
        document = index.documents.document(query.row)
        if query.kind == "name":
            assert query.text.split() == tokenize(document.name)
        if query.kind == "doc":
            assert " ".join(" ".join(document.words["doc"]).split()).startswith(query.text)


def test_nonsense_and_other_domains_get_low_confidence_and_comments_themselves_high(index: Index) -> None:
    hits = [hit for text in NONSENSE for hit in index.search(text, 3)]
    assert all(cast(float, hit.confidence) < LIKELY for hit in hits)
    exact = []
    for row in np.random.default_rng(3).permutation(len(index))[:400].tolist():
        comment = " ".join(index.documents.document(row).words.get("doc", ())).strip().split(". ")[0]
        if len(comment.split()) >= 6:
            exact.append(cast(float, index.search(comment, 1)[0].confidence))
    assert len(exact) > 40
    assert np.median(exact) > 0.2
    assert np.percentile(exact, 90) > 0.6


def test_a_least_confidence_leaves_out_what_is_less_likely(index: Index) -> None:
    hits = index.search("arithmetic mean", 10)
    least = sorted(cast(float, hit.confidence) for hit in hits)[5]
    better = [hit for hit in hits if cast(float, hit.confidence) >= least]
    assert index.search("arithmetic mean", 10, min_confidence=least) == better
    query = ["query", NONSENSE[2], "-i", str(index.folder), "--min-confidence", "0.5"]
    result = CliRunner().invoke(app, query)
    assert result.exit_code == 1
    assert "nothing found is likely enough (best: 0." in result.stderr


@pytest.fixture
def feedback(index: Index, tmp_path: Path) -> Path:
    """A query per line, and the function that answers it."""
    ids, names = index.documents.ids(range(len(index))), list(index.documents.names())
    last = {name: ids[row] for row, (name, _, _) in enumerate(names)}
    functions = [name for name, _, kind in names if kind == "function" and len(name) > 6][:42:3]
    file = tmp_path / "queries.tsv"
    file.write_text("".join(f"{name.replace('_', ' ')}\t{last[name]}\n" for name in functions))
    return file


def test_thumbs_down_alone_are_learned_from_and_counted(index: Index, feedback: Path) -> None:
    without = tune.tune(index.snapshot, read_feedback(feedback, index.documents), force=True)
    assert tune.reset(index.snapshot)
    downs = [(text, index.search(text, 1)[0].document.id) for text in ("open file", "close file", "arithmetic mean")]
    with feedback.open("a") as more:
        more.writelines(f"# down\t{text}\t{id}\n" for text, id in downs)
    tuned = tune.tune(index.snapshot, read_feedback(feedback, index.documents), force=True)
    assert (without.wrong, tuned.wrong, tuned.wrong_alone, tuned.questions) == (0, 3, 3, without.questions)
    assert tuned.after != without.after
    assert "3 functions judged wrong, 3 of them" in tune.summary(tuned)
    assert "judged wrong" not in tune.summary(without)


def test_tuning_writes_one_file_that_reset_removes(folder: Path, feedback: Path) -> None:
    before = contents(folder)
    result = CliRunner().invoke(app, ["tune", "--from-feedback", str(feedback), "-i", str(folder), "--force"])
    assert result.exit_code == 0, result.output
    assert "5 folds" in result.stdout
    assert contents(folder) == {**before, "tuned.json": (folder / "tuned.json").read_bytes()}
    with Index.load(folder, verify=True) as tuned:
        weights = load_weights(folder)
        assert weights
        assert {name: asdict(hybrid(tuned).weights)[name] for name in weights} == weights
        untuned = HybridRanker(calibrated=False)
        untuned.load(tuned.snapshot)
        assert untuned.weights != hybrid(tuned).weights
    assert CliRunner().invoke(app, ["tune", "--reset", "-i", str(folder)]).exit_code == 0
    assert contents(folder) == before


def test_a_build_keeps_the_tuned_weights(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "source")
    for naming in (Weights().naming, 0.35):
        with Index.build(root, tmp_path / "index") as index:
            assert hybrid(index).weights.naming == naming
            assert index.search("hide keyboard")[0].confidence is not None
        (tmp_path / "index" / "tuned.json").write_text('{"weights": {"naming": 0.35}}')


def test_tuning_that_does_not_win_is_not_used_unless_it_is_forced(index: Index) -> None:
    rng = np.random.default_rng(0)
    wrong = [Feedback(f"question {n} about file", (int(rng.integers(len(index))),)) for n in range(12)]
    last = index.documents.row_of(index.search("arithmetic mean", 9)[8].document.id) or 0
    tuned = tune.tune(index.snapshot, [*wrong, Feedback("arithmetic mean", (last,))])
    assert not tuned.written
    assert not load_weights(index.folder)
    with pytest.raises(BadInput, match="9 queries with right functions: too few"):
        tune.tune(index.snapshot, wrong[:9])
