"""Calibration, confidence and tuning: against formulas by hand, scikit-learn, and the standard library as a corpus."""

from __future__ import annotations

import json
import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from ncs.answer import ask
from ncs.cli.main import app
from ncs.errors import BadInput, IndexDamaged
from ncs.index import BuildConfig, Index
from ncs.learn import calibration, confidence, learning, tuning
from ncs.learn import synthetic_queries as sampling
from ncs.learn.calibration import calibrate
from ncs.learn.confidence import DEFAULT, TRAITS, Learnt, Model
from ncs.config import FastTextConfig
from ncs.learn.field_ablation import Hiding
from ncs.learn.learning import Asked
from ncs.learn.synthetic_queries import MOST, sample
from ncs.search.bm25 import Bm25Ranker
from ncs.search.feedback import Feedback, read_feedback
from ncs.search.hybrid import DEFAULTS, HybridRanker
from ncs.search.ncs import NcsRanker
from ncs.storage.document_facts import Structure
from ncs.storage.documents import Store

pytestmark = pytest.mark.slow  # most of them ask an index of the standard library, built once

MODULES = "argparse calendar difflib inspect mailbox shutil statistics textwrap turtle zipfile"
NONSENSE = ("xyzzy frobnicate quux", "marinate chicken breast with garlic", "react component with a tailwind button")


@pytest.fixture(scope="module", autouse=True)
def as_many_questions_as_large_indexes_are_asked() -> Iterator[None]:
    """Small ones are asked too few for weights to be learnt."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "FEWEST", 0.3)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of some of the standard library."""
    root = tmp_path_factory.mktemp("calibration")
    (root / "src" / "lib").mkdir(parents=True)
    for name in MODULES.split():
        source = Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py"
        if source.is_file():
            shutil.copy(source, root / "src" / "lib")
    learning_quickly = FastTextConfig(dim=16, epochs=1)
    with Index.build(root / "src", root / "index", config=BuildConfig(fasttext=learning_quickly), workers=1):
        return root / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.load(folder) as opened:
        yield opened
        tuning.reset(opened)


def parts(index: Index) -> tuple[Bm25Ranker, NcsRanker, Structure, Store]:
    ranker = cast(HybridRanker, index.ranker())
    structure = cast(Structure, ranker.structure)
    return cast(Bm25Ranker, ranker.rankers[0]), cast(NcsRanker, ranker.rankers[1]), structure, index.store


def test_with_nothing_hidden_a_document_scores_what_the_saved_rankers_say(index: Index) -> None:
    bm25, dense, structure, _ = parts(index)
    hiding = Hiding(structure.words, bm25, dense, structure.languages)
    words = ["return", "mean", "file", "thread", "file"]
    ids = [term.id for term in bm25.postings.terms(words) if term.id is not None]
    rows = np.arange(0, len(index), 97)
    query = dense.encoder.query(" ".join(words))
    again = [hiding.lexical(words, int(row), None)[0] for row in rows]
    np.testing.assert_allclose(again, bm25.postings.scores(ids, rows), rtol=1e-5, atol=1e-6)
    near = [float(hiding.vector(int(row), None) @ query) for row in rows]
    np.testing.assert_allclose(near, dense.index.similarities(query, rows), atol=0.02)


def test_a_hidden_comment_takes_away_its_words_and_no_others(index: Index) -> None:
    bm25, dense, structure, store = parts(index)
    row = next(row for row, (name, _, _) in enumerate(store.names()) if name == "fmean")
    hiding = Hiding(structure.words, bm25, dense, structure.languages)
    hidden = hiding.hide("fmean arithmetic", row, "doc")  # the code says fmean, the comment alone says arithmetic
    idf = bm25.postings.idf(["fmean", "arithmetic"])
    assert hidden.coverage == pytest.approx(idf["fmean"] / sum(idf.values()))
    assert hidden.lexical > 0
    assert hiding.hide("arithmetic", row, "doc").lexical == 0
    assert hiding.hide("fmean", row, "name").name == 0


def test_no_more_than_300_questions_are_asked_each_of_a_document_of_the_product(index: Index) -> None:
    _, _, structure, store = parts(index)
    questions = sample(structure.words, store, structure)
    assert sum(MOST.values()) == 300
    counts = {kind: sum(q.kind == kind for q in questions) for kind in MOST}
    assert counts["doc"] > 40
    assert all(0 < counts[kind] <= MOST[kind] for kind in MOST)
    for question in questions:
        document = store.document(question.row)
        if question.kind == "symbol":
            assert question.text == document.name
        if question.kind == "doc":
            said = " ".join(" ".join(document.words["doc"]).split())
            assert said.startswith(question.text)


def test_the_smallest_indexes_are_asked_few_questions_and_keep_the_weights(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "FEWEST", 0.15)
    found = calibrate(*parts(index))
    assert found.figures["questions"]["doc"] == int(0.15 * MOST["doc"])
    assert all(found.figures["questions"][kind] <= 0.15 * MOST[kind] for kind in MOST)
    assert found.learnt.weights == {}
    assert found.figures["held_out"] is None
    assert found.learnt.model != DEFAULT


def test_the_same_index_teaches_the_same(index: Index) -> None:
    built = Learnt.load(index.data)
    again = calibrate(*parts(index))
    assert again.learnt == built
    assert json.loads(json.dumps(again.figures)) == index.manifest.counts["calibration"]


def test_weights_stay_at_defaults_where_they_do_not_win_on_what_was_held_out(index: Index) -> None:
    found = calibrate(*parts(index))
    wins = found.figures["held_out"]["low"] > 0
    assert found.figures["held_out"]["wins"] == wins
    assert found.learnt.weights == (found.figures["weights"] if wins else {})


def test_a_corpus_without_comments_keeps_every_default(tmp_path: Path) -> None:
    source = tmp_path / "src" / "app" / "code.py"
    source.parent.mkdir(parents=True)
    source.write_text("".join(f"def do_{word}():\n    return {word}\n" for word in ("alpha", "beta", "gamma")))
    with Index.build(tmp_path / "src", tmp_path / "index", workers=1) as built:
        assert Learnt.load(built.data) == Learnt()
        ranker = cast(HybridRanker, built.ranker())
        assert asdict(ranker.weights)["naming"] == DEFAULTS.naming
        assert built.search("do alpha")[0].confidence is not None


def test_nonsense_and_other_domains_get_low_confidence_and_comments_themselves_high(index: Index) -> None:
    hits = [hit for text in NONSENSE for hit in index.search(text, 3)]
    assert all(cast(float, hit.confidence) < 0.05 for hit in hits)
    exact = []
    for row in np.random.default_rng(3).permutation(len(index))[:400].tolist():
        said = " ".join(index.store.document(row).words.get("doc", ())).strip().split(". ")[0]
        if len(said.split()) >= 6:
            exact.append(cast(float, index.search(said, 1)[0].confidence))
    assert len(exact) > 40
    assert np.median(exact) > 0.2
    assert np.percentile(exact, 90) > 0.6


def test_a_least_confidence_leaves_out_what_is_less_likely_and_says_so(index: Index) -> None:
    text = "react component with a tailwind button"
    every = ask(index, text, 10, ranker="hybrid", code=False)
    best = max(hit["confidence"] for hit in every["hits"])
    answer = ask(index, text, 10, ranker="hybrid", code=False, min_confidence=0.5)
    assert answer["hits"] == []
    assert any(f"no result is likely enough (best: {best:.2f})" in note for note in answer["notes"])
    some = index.search("arithmetic mean", 10)
    least = sorted(cast(float, hit.confidence) for hit in some)[5]
    assert index.search("arithmetic mean", 10, min_confidence=least) == [
        hit for hit in some if cast(float, hit.confidence) >= least
    ]
    with pytest.raises(BadInput, match="gives no confidence"):
        index.search("mean", ranker="bm25", min_confidence=0.5)
    with pytest.raises(BadInput, match="from 0 to 1"):
        index.search("mean", min_confidence=50)


def test_the_command_ends_with_1_where_nothing_is_likely_enough(folder: Path) -> None:
    asked = ["query", NONSENSE[2], "-i", str(folder), "--min-confidence", "0.5"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 1
    assert "no result is likely enough (best: 0.0" in result.stderr


def test_the_model_is_the_one_scikit_learn_fits() -> None:
    rng = np.random.default_rng(0)
    traits = rng.random((600, len(TRAITS)))
    true = np.array([2.0, 1.0, 3.0, 1.5, 2.5, 1.0, 2.0, 3.0])
    right = rng.random(600) < 1 / (1 + np.exp(8 - traits @ true))
    ours = confidence.fit(traits, right, towards=Model(0.0, (0.0,) * len(TRAITS)), strength=2.0)
    theirs = LogisticRegression(C=0.5, tol=1e-8, max_iter=1000).fit(traits, right)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-2)
    np.testing.assert_allclose(ours.probabilities(traits), theirs.predict_proba(traits)[:, 1], atol=1e-3)


def test_a_trait_that_speaks_against_being_right_is_not_counted() -> None:
    rng = np.random.default_rng(0)
    traits = rng.random((400, len(TRAITS)))
    right = traits[:, 0] < 0.5
    assert confidence.fit(traits, right, strength=0.01).coefficients[0] == 0


def test_what_was_learnt_comes_back_and_what_was_tuned_goes_before_it(tmp_path: Path) -> None:
    assert Learnt.load(tmp_path) == Learnt({}, DEFAULT)
    built = Learnt({"naming": 0.2}, Model(-3.0, tuple(range(len(TRAITS)))))
    built.save(tmp_path / confidence.BUILT)
    Learnt({"meaning": 0.4}).save(tmp_path / confidence.TUNED)
    assert Learnt.load(tmp_path).weights == {"meaning": 0.4}
    assert Learnt.load(tmp_path, tuned=False) == built
    (tmp_path / confidence.TUNED).write_text('{"weights": {"meaning": "x"}}')
    with pytest.raises(IndexDamaged, match="ncs tune --reset"):
        Learnt.load(tmp_path)


def asked_with(good: int, n: int = 40) -> list[Asked]:
    """Questions of ten candidates whose right one is told by signal `good` alone; the others are noise."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(n):
        signals = rng.random((10, 3))
        found.append(Asked(signals, np.array([int(signals[:, good].argmax())])))
    return found


def test_the_signal_that_tells_the_right_one_gains_weight_and_the_rest_lose() -> None:
    few, many = (learning.learn(asked_with(1, n), 3) for n in (40, 200))
    assert few[0] == many[0] == 1
    assert many[1] > few[1] > 1.5  # the penalty is for all questions together: more of them may say more
    assert many[2] < few[2] < 1
    gain = learning.held_out(asked_with(1), 3, folds=5, before=np.ones(3))
    assert gain.wins
    assert gain.after > gain.before


def test_questions_that_tell_nothing_leave_the_weights() -> None:
    assert learning.learn([Asked(np.ones((4, 3)), np.array([2]))] * 20, 3).tolist() == [1, 1, 1]
    assert learning.learn([Asked(np.ones((4, 3)), np.zeros(0, np.int64))], 3).tolist() == [1, 1, 1]
    rng = np.random.default_rng(2)
    by_chance = [Asked(rng.random((10, 3)), np.array([int(rng.integers(10))])) for _ in range(60)]
    assert not learning.held_out(by_chance, 3, folds=5, before=np.ones(3)).wins


def test_the_reciprocal_rank_counts_ties_against_the_right_one() -> None:
    question = Asked(np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.1]]), np.array([1]))
    assert question.reciprocal_rank(np.array([1.0, 0.0])) == 1 / 2
    assert question.reciprocal_rank(np.array([1.0, 1.0])) == 1 / 2
    assert question.reciprocal_rank(np.array([0.0, 1.0])) == 1
    assert Asked(question.signals, np.zeros(0, np.int64)).reciprocal_rank(np.ones(2)) == 0


def lines(index: Index, n: int = 14) -> list[str]:
    """Questions whose function is not the first hit as things are, or is."""
    names = [name for name, _, kind in index.store.names() if kind == "function" and len(name) > 6][: 3 * n : 3]
    ids = index.store.ids(range(len(index)))
    by_name = {name: ids[row] for row, (name, _, _) in enumerate(index.store.names())}
    return [f"{name.replace('_', ' ')}\t{by_name[name]}" for name in names]


def test_feedback_names_functions_by_id_by_place_and_by_name(index: Index, tmp_path: Path) -> None:
    row = next(row for row, (_, name, _) in enumerate(index.store.names()) if name == "TextWrapper.wrap")
    document = index.store.document(row)
    file = tmp_path / "questions.tsv"
    file.write_text(
        f"# mine\nwrap text\t{document.id}\n\nbreak lines\ttextwrap.py:{document.start_line + 2}\n"
        "fold paragraph\tTextWrapper.wrap\nfold paragraph\tTextWrapper::fill\n"
    )
    found = read_feedback(file, index.store)
    assert [each.text for each in found] == ["wrap text", "break lines", "fold paragraph"]
    assert [each.rows[0] for each in found] == [row, row, row]
    assert index.store.document(found[2].rows[1]).qualified_name == "TextWrapper.fill"
    (tmp_path / "qrels").write_text(f"q1 0 {document.id} 1\nq1 0 {index.store.ids([0])[0]} 0\n")
    file.write_text("q1\twrap text\nq2\tnot judged\n")
    assert read_feedback(file, index.store, qrels=tmp_path / "qrels") == [Feedback("wrap text", (row,), (0,))]


def test_thumbs_down_are_wrong_rows_and_the_later_of_two_judgments_holds(index: Index, tmp_path: Path) -> None:
    first, second, third = index.store.ids([3, 4, 5])
    file = tmp_path / "votes.tsv"
    file.write_text(
        f"# down\twrap text\t{first}\nwrap text\t{second}\n# down\topen\t{third}\n"
        f"# down\tgone\tno/such/file.py:1\n# down\tno target\n# down with {third}\nread\t{first}\n"
        f"# down\tread\t{first}\n# down\twrite\t{first}\nwrite\t{first}\n"
    )
    assert read_feedback(file, index.store) == [
        Feedback("wrap text", (4,), (3,)),
        Feedback("open", (), (5,)),
        Feedback("read", (), (3,)),
        Feedback("write", (3,), ()),
    ]


def test_a_signal_that_finds_wrong_ones_only_loses_weight() -> None:
    rng = np.random.default_rng(3)
    alone = []
    for _ in range(40):
        signals = rng.random((10, 3))
        alone.append(Asked(signals, np.delete(np.arange(10), signals[:, 1].argmax())))  # any but the best by the 2nd
    factors = learning.learn(alone, 3)
    assert factors[1] < 0.9 < factors[2]


def test_thumbs_down_alone_are_learnt_from_and_counted(index: Index, tmp_path: Path) -> None:
    file = tmp_path / "votes.tsv"
    file.write_text("\n".join(lines(index)) + "\n")
    without = tuning.tune(index, read_feedback(file, index.store), force=True)
    assert tuning.reset(index)
    downs = [(text, index.search(text, 1)[0].document.id) for text in ("open file", "close file", "arithmetic mean")]
    with file.open("a") as more:
        more.writelines(f"# down\t{text}\t{id}\n" for text, id in downs)
    tuned = tuning.tune(index, read_feedback(file, index.store), force=True)
    assert tuning.reset(index)
    assert (without.wrong, tuned.wrong, tuned.wrong_alone, tuned.questions) == (0, 3, 3, without.questions)
    assert tuned.after != without.after
    assert "judged wrong: 3, of which 3" in tuning.told(tuned)
    assert "judged wrong" not in tuning.told(without)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no tab here", "line 2: not a question, a tab, the id of its function; separate them with one tab"),
        ("q\tno.such.function", "line 2: this index has no function 'no.such.function'; write an id"),
        ("q\ttextwrap.py:999999", "line 2: this index has no function 'textwrap.py:999999'"),
    ],
)
def test_a_bad_line_is_named_with_its_number_and_remedy(index: Index, tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "bad.tsv"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(BadInput) as error:
        read_feedback(file, index.store)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_tuning_writes_one_file_that_reset_takes_away(folder: Path, index: Index, tmp_path: Path) -> None:
    file = tmp_path / "questions.tsv"
    file.write_text("\n".join(lines(index)))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    told = CliRunner().invoke(app, ["tune", "--from-feedback", str(file), "-i", str(folder), "--force"])
    assert told.exit_code == 0, told.output
    assert "5 folds" in told.stdout
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.name for path in after.keys() - before.keys()} == {"tuned.json"}
    assert {path: after[path] for path in before} == before
    with Index.load(folder, verify=True) as tuned:
        ranker = cast(HybridRanker, tuned.ranker())
        weights = Learnt.load(tuned.data).weights
        assert weights
        assert {name: asdict(ranker.weights)[name] for name in weights} == weights
        untuned = cast(HybridRanker, tuned.fitted("hybrid", calibrated=False))
        assert untuned.weights != ranker.weights
    assert CliRunner().invoke(app, ["tune", "--reset", "-i", str(folder)]).exit_code == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_next_build_keeps_what_was_tuned_and_says_so(tmp_path: Path) -> None:
    source = tmp_path / "source" / "a.py"
    source.parent.mkdir()
    source.write_text('def open_file(path):\n    """Open a file."""\n    return open(path)\n')
    with Index.build(source.parent, tmp_path / "index") as index:
        assert not any("ncs tune" in note for note in index.manifest.notes)
        Learnt({"naming": 0.35}).save(index.data / confidence.TUNED)
    source.write_text('def close_file(file):\n    """Close a file."""\n    file.close()\n')
    with Index.update(tmp_path / "index")[0] as index:
        assert "naming" not in Learnt.load(index.data, tuned=False).weights
        assert cast(HybridRanker, index.ranker()).weights.naming == 0.35
        assert [note for note in index.manifest.notes if "--reset" in note]
        assert not [path for path in index.manifest.files if path.endswith("tuned.json")]
    with Index.load(tmp_path / "index", verify=True) as index:
        assert tuning.reset(index)
    with Index.build(source.parent, tmp_path / "index") as index:
        assert cast(HybridRanker, index.ranker()).weights.naming == DEFAULTS.naming
        assert not any("ncs tune" in note for note in index.manifest.notes)


def test_tuning_that_does_not_win_is_not_used_unless_it_is_forced(index: Index) -> None:
    rng = np.random.default_rng(0)
    wrong = [Feedback(f"question {n} about file", (int(rng.integers(len(index))),)) for n in range(12)]
    wrong.append(
        Feedback("arithmetic mean", (index.store.row_of(index.search("arithmetic mean", 9)[8].document.id) or 0,))
    )
    told = tuning.tune(index, wrong)
    assert not told.written
    assert not (index.data / "tuned.json").exists()
    with pytest.raises(BadInput, match="9 questions with right functions are too few"):
        tuning.tune(index, wrong[:9])


def test_a_signal_that_is_silent_in_all_questions_keeps_its_weight() -> None:
    silent = [Asked(question.signals * [1, 1, 0], question.right) for question in asked_with(1)]
    factors = learning.learn(silent, 3)
    assert factors[1] > 1.5
    assert factors[2] == pytest.approx(1, abs=1e-3)


def test_a_weight_of_two_is_the_same_as_a_hit_that_is_there_twice() -> None:
    rng = np.random.default_rng(2)
    traits, right = rng.random((60, len(TRAITS))), rng.random(60) < 0.3
    twice = np.repeat(np.arange(60), np.where(np.arange(60) < 20, 2, 1))
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighed = confidence.fit(traits, right, weights=weights)
    repeated = confidence.fit(traits[twice], right[twice])
    assert weighed.intercept == pytest.approx(repeated.intercept, abs=1e-3)
    assert weighed.coefficients == pytest.approx(repeated.coefficients, abs=1e-3)
    said = weighed.probabilities(traits)
    found = confidence.reliability(said, right, weights=weights)
    assert found.error == pytest.approx(confidence.reliability(said[twice], right[twice]).error, abs=1e-4)


def test_the_more_questions_have_an_answer_the_surer_a_hit_is(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    typical, sure = np.full((1, len(TRAITS)), 0.5), []
    for unanswered in (1.0, 0.25):
        monkeypatch.setattr(calibration, "UNANSWERED", unanswered)
        sure.append(float(calibrate(*parts(index)).learnt.model.probabilities(typical)[0]))
    assert sure[1] > sure[0]
