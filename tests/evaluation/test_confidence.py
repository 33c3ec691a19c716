"""The confidence model: its fit against scikit-learn's, its reliability, and the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpora.jsonl import write_rows
from corpora.repo_search import OWN_ROWS
from evaluation import confidence
from evaluation.confidence import PENALTY, JudgedHits, fit, reliability
from ncs.learn.confidence import FEATURES, Model
from tests.gitrepo import repository

CODE = "def hide_keyboard(view):\n    view.close()\n\n\ndef read_file(path):\n    return open(path).read()\n"


def test_the_model_is_the_one_scikit_learn_fits_where_sets_count_the_same() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    features = rng.random((600, len(FEATURES)))
    right = rng.random(600) < 1 / (1 + np.exp(8 - features @ np.array([2.0, 1.0, 3.0, 1.5, 2.5, 1.0, 2.0, 3.0])))
    parts = [slice(0, 100), slice(100, 600)]
    ours = fit([[JudgedHits(features[part], right[part])] for part in parts])
    weights = np.repeat([10.0, 2.0], [100, 500])
    theirs = LogisticRegression(C=1 / PENALTY, tol=1e-8, max_iter=1000).fit(features, right, weights)
    assert (theirs.coef_ > 0).all()
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-2)
    assert min(fit([[JudgedHits(features, features[:, 0] < 0.5)]]).coefficients) == 0  # more never means less


def test_reliability_is_the_share_right_of_what_is_stated() -> None:
    zeros = (0.0,) * (len(FEATURES) - 1)
    asked = [JudgedHits(np.array([[9.0, *zeros], [0.0, *zeros]]), np.array([True, False]))] * 3
    rows = reliability(Model(-4.0, (1.0, *zeros)), [*asked, JudgedHits(asked[0].features, np.array([False, False]))])
    assert rows == [
        ("0.0 to 0.1", "4", "0.02", "0.00"),
        ("0.8 to 1.0", "4", "0.99", "0.75"),
        ("first hits", "4", "0.99", "0.75"),
    ]


def test_the_command_prints_the_model_and_how_reliable_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        repository(tmp_path / name / "repositories/o+r", {"a.py": CODE})
        questions = {"hide the keyboard": "a.py::hide_keyboard", "read a file": "a.py::read_file"}
        write_rows(
            tmp_path / name / OWN_ROWS,
            [
                {"id": text, "repo": "o/r", "root": ".", "revision": "main", "query": text, "relevant": [answer]}
                for text, answer in questions.items()
            ],
        )
    assert confidence.main(["--fit", str(tmp_path / "one"), "--report", str(tmp_path / "two"), "-q"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Model(")
    assert f"| {tmp_path / 'two'} | first hits" in " ".join(printed.split())


def test_a_printed_table_is_drawn_as_a_line_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, plot = tmp_path / "table.md", tmp_path / "plot.svg"
    table.write_text(
        "Model(1)\n\n| set | stated | hits | mean stated | right |\n|---|---|---|---|---|\n"
        "| tea | 0.0 to 0.1 | 1,200 | 0.05 | 0.04 |\n| tea | first hits | 7 | 0.05 | 0.04 |\n"
    )
    assert confidence.main(["--table", str(table), "--plot", str(plot)]) == 0
    assert [plot.read_text().count(f">{label}<") for label in ("tea", "as stated", "first hits")] == [1, 1, 0]
    with pytest.raises(SystemExit):
        confidence.main(["--table", str(table)])
    assert "name sets with --fit; or draw a table" in capsys.readouterr().err
