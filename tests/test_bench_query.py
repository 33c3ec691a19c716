"""The query benchmark: stages add up, nothing stays watched, every question is timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation import bench_query
from evaluation.bench_query import STAGES, Clock, table, watched
from ncs.index import Index
from tests import corpus


def test_a_stage_is_charged_for_its_own_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0, 1, 4, 5, 7, 10])  # outer from 0 to 10, in it inner from 1 to 4 and again from 5 to 7
    monkeypatch.setattr("time.perf_counter", lambda: float(next(times)))
    clock = Clock()
    with clock("outer"):
        for _ in range(2):
            with clock("inner"):
                pass
    assert clock.seconds == {"inner": 5.0, "outer": 5.0}


def test_table_adds_the_stages_of_each_question_before_it_takes_percentiles() -> None:
    stages = {"lexical": [1.0, 2.0, 3.0], "rest": [3.0, 1.0, 0.0]}
    report = {"documents": 5, "questions": 3, "load": 0.5, "stages_ms": stages, "others_ms": {"bm25s": [7.0, 7.0, 7.0]}}
    rows = {line.split("|")[1].strip(): line.split("|")[2:4] for line in table(report).splitlines()[3:]}
    assert [float(cell) for cell in rows["hybrid: whole"]] == pytest.approx([3.0, 3.9])  # of 4, 3 and 3
    assert [float(cell) for cell in rows["hybrid: lexical"]] == pytest.approx([2.0, 2.9])
    assert [float(cell) for cell in rows["bm25s"]] == [7, 7]


def test_functions_are_as_before_when_nobody_watches() -> None:
    before = [getattr(owner, name) for places in STAGES.values() for owner, name in places]
    with watched():
        assert before != [getattr(owner, name) for places in STAGES.values() for owner, name in places]
    assert before == [getattr(owner, name) for places in STAGES.values() for owner, name in places]


@pytest.mark.slow
def test_every_question_of_a_file_is_timed_in_every_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "index").close()
    questions, report = tmp_path / "questions.txt", tmp_path / "report.json"
    questions.write_text("hide soft keyboard\n\nread text file\n")
    arguments = [str(tmp_path / "index"), "--queries", str(questions), "--json", str(report)]
    assert bench_query.main(arguments) == 0
    found = json.loads(report.read_text())
    assert found["questions"] == 2
    assert {name: len(values) for name, values in found["stages_ms"].items()} == dict.fromkeys([*STAGES, "rest"], 2)
    assert {len(values) for values in found["others_ms"].values()} == {2}
    assert "| hybrid: whole" in capsys.readouterr().out
    questions.write_text("\n")
    assert bench_query.main(arguments) == 2
    assert "holds no question" in capsys.readouterr().err
