"""The server benchmark: its clients count right, and its phases have no errors."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evaluation.benchmarks import serve
from evaluation.benchmarks.serve import Answers, Load, ask
from ncs.index import Index
from tests import corpus
from tests.webserver import serving


def test_every_answer_is_counted_and_a_refusal_is_an_error() -> None:
    with serving() as site:
        site.put("/good", b"12345")
        answers = ask(site.url, ["/good", "/none"], Load(4, 0.01, 1.0))
    paths = Counter(path for path, _ in site.asked)
    assert answers.errors == {"404": paths["/none"]}
    assert len(answers.milliseconds) == paths.total() > 4


def test_percentiles_are_those_of_the_answers() -> None:
    values = [0.5, 1.0, 1.1, 2.0, 3.0, 40.0]
    summary = Answers(values, Counter({"503": 1}), 2.0).summary()
    assert (summary["requests"], summary["requests_per_second"], summary["errors"]) == (6, 3.0, {"503": 1})
    assert summary["ms"]["p95"] == pytest.approx(np.percentile(values, 95), abs=0.01)
    assert summary["ms"]["p100"] == 40


@pytest.mark.slow
def test_an_index_is_served_and_asked_without_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "index").close()
    queries, report = tmp_path / "queries.txt", tmp_path / "report.json"
    queries.write_text("hide soft keyboard\nread text file\n")
    options = ["--queries", str(queries), "--clients", "3", "--think", "0.05", "--seconds", "3", "--workers", "1"]
    assert serve.main([str(tmp_path / "index"), *options, "--json", str(report)]) == 0
    phases = json.loads(report.read_text())["phases"]
    assert len(phases) == 5
    assert all(phase["requests"] > 0 for phase in phases.values())
    assert "| search " in capsys.readouterr().out
