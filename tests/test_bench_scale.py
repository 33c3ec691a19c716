"""bin/benchmark scale: one table of what size costs, made of the other benchmarks' results or by running them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation import bench_scale
from evaluation.bench_scale import FIGURES, RESULTS, Figure
from ncs.index import BuildConfig, Index
from tests.test_synthetic import real


def test_a_figure_holds_or_does_not() -> None:
    assert [Figure("x", value, 1.3).holds for value in (1.2, 1.3, 1.4)] == ["yes", "yes", "NO"]
    assert [Figure("x", value, 0.95, at_least=True).holds for value in (0.96, 0.94)] == ["yes", "NO"]
    assert Figure("x", 1234.5).row("part") == ["part", "x", "1,234", "", ""]
    assert Figure("x", 0.12345, 1).row("part") == ["part", "x", "0.123", "<= 1", "yes"]


@pytest.mark.parametrize("part", FIGURES)
def test_what_was_measured_is_shown(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_scale.main(["--only", part]) == 0
    shown = capsys.readouterr().out
    assert "not measured" not in shown
    figures = list(FIGURES[part](json.loads((RESULTS / f"bench_{part}.json").read_bytes())))
    assert len(shown.splitlines()) == 2 + len(figures)
    assert any(figure.holds for figure in figures)


@pytest.mark.slow
def test_parts_run_one_after_the_other_and_one_that_fails_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Index.of(real(), tmp_path / "index", config=BuildConfig(embeddings="lsa")).close()
    (tmp_path / "questions.txt").write_text("open the file\nhide panel\n")
    given = [str(tmp_path), "--index", str(tmp_path / "index"), "--queries", str(tmp_path / "questions.txt")]
    out = tmp_path / "out"
    parts = ["--only", "update", "--only", "synth", "--functions", "300"]
    assert bench_scale.main([*given, "--out", str(out), *parts]) == 1  # an index of documents is not updated
    shown = capsys.readouterr()
    assert "300 functions: opened cold" in shown.out
    assert "not measured: update" in shown.out
    assert f"update: ended with 2, see {out / 'update.log'}" in shown.err
    assert "update" in (out / "update.log").read_text()
    assert bench_scale.main(given) == 2
    assert "--out FOLDER" in capsys.readouterr().err
