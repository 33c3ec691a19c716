"""Two results beside each other, from JSON and from TREC run files; several corpora as one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpora.trec import write_qrels, write_run
from evaluation.__main__ import main
from evaluation.comparison import compare_results
from evaluation.experiments import pooled, write
from evaluation.measures import compare, evaluate
from evaluation.reports import averages
from ncs.errors import BadInput
from tests.results import experiment, ranked

QRELS = {f"q{i}": {f"d{i}": 1} for i in range(8)}
GOOD = {f"q{i}": {f"d{i}": 2.0, "x": 1.0} for i in range(8)}
BAD = {f"q{i}": {"x": 2.0, f"d{i}": 1.0} for i in range(6)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_qrels(QRELS, tmp_path / "qrels.txt")
    write_run(GOOD, tmp_path / "good.run")
    write_run(BAD, tmp_path / "bad.run")
    ids = list(QRELS)
    systems = [
        ranked(name, {"mrr": list(evaluate(QRELS, run, "mrr").values())})
        for name, run in (("bm25", BAD), ("ncs", GOOD))
    ]
    write(experiment("small", systems, queries=ids), tmp_path / "one.json")
    write(experiment("small", systems[::-1], queries=ids, settings=["x=1", "x=2"]), tmp_path / "two.json")
    return tmp_path


def test_two_run_files_are_judged_by_the_qrels_and_a_query_that_one_lacks_counts_zero(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--compare", str(folder / "good.run"), str(folder / "bad.run"), "--qrels", str(folder / "qrels.txt")]
    assert main([*command, "--measure", "mrr", "--json", str(folder / "out.json")]) == 0
    (found,) = json.loads((folder / "out.json").read_text())
    expected = compare(evaluate(QRELS, GOOD, "mrr"), evaluate(QRELS, BAD, "mrr"))
    assert (found["our_mean"], found["their_mean"]) == (1.0, 3 / 8)
    assert found["found"]["difference"] == pytest.approx(5 / 8)
    assert found["found"]["p"] == expected.p == 2 / 2**8  # only all as they are, or all exchanged, is as uneven
    out = capsys.readouterr().out
    assert "+0.6250 [" in out
    assert "8 queries; 95 % paired bootstrap intervals" in out


def test_systems_of_one_name_are_compared_with_each_other_and_named_ones_with_whom_one_likes(folder: Path) -> None:
    one, two = str(folder / "one.json"), str(folder / "two.json")
    (named,) = compare_results(f"{one}:ncs", f"{two}:x=2 bm25")
    assert (named.ours, named.theirs) == ("one ncs", "two x=2 bm25")
    assert named.found.difference == pytest.approx(5 / 8)
    same = compare_results(one, one)
    assert [(each.ours, each.found.difference, each.found.p) for each in same] == [
        ("one bm25", 0.0, 1.0), ("one ncs", 0.0, 1.0),
    ]  # fmt: skip
    (mixed,) = compare_results(f"{one}:ncs", str(folder / "bad.run"), qrels=folder / "qrels.txt")
    assert mixed.found.difference == pytest.approx(5 / 8)


@pytest.mark.parametrize(
    ("a", "b", "measures", "message"),
    [
        ("one.json:what", "two.json", (), r"one\.json has no system 'what'; choose one of: bm25, ncs"),
        ("one.json", "two.json", (), r"no system is in both .* name one of each, as RESULT\.json:SYSTEM"),
        ("one.json", "one.json", ("map",), "share no measure"),
        ("good.run", "bad.run", (), "is read as a TREC run"),
    ],
)
def test_what_cannot_be_compared_is_told(folder: Path, a: str, b: str, measures: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        compare_results(str(folder / a), str(folder / b), measures=measures)


def test_a_pool_counts_every_query_alike_and_an_average_every_corpus() -> None:
    small = experiment("small", [ranked("bm25", {"mrr": [1.0, 0.5]}, [1.0, 3.0])], queries=["a", "b"], texts=["x", "y"])
    large = experiment("large", [ranked("bm25", {"mrr": [0.0] * 4}, [5.0] * 4)], queries=["a", "c", "d", "e"])
    pool = pooled("both", [small, large])
    assert pool.queries == ["small/a", "small/b", "large/a", "large/c", "large/d", "large/e"]
    (system,) = pool.builds[0].systems
    assert system.values == {"mrr": [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]}
    assert system.means == {"mrr": 0.25}
    assert system.query_ms_p50 == np.median([1.0, 3.0, 5.0, 5.0, 5.0, 5.0])
    assert (pool.documents, pool.builds[0].build_seconds, system.fit_seconds) == (10, 4.0, 2.0)
    assert averages([small, large]).splitlines()[2] == "| bm25   | 0.375 |"
    assert pooled("one", [small]).queries == ["a", "b"]


def test_corpora_that_were_asked_differently_are_not_pooled() -> None:
    small = experiment("small", [ranked("bm25", {"mrr": [1.0]})], queries=["a"])
    other = experiment("other", [ranked("ncs", {"mrr": [1.0]})], queries=["b"])
    with pytest.raises(BadInput, match="have different rankers, settings or measures"):
        pooled("both", [small, other])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("q0 Q0 d0 1 nan ncs\n", "a.run:1: the score 'nan' is not a number"),
        ("q0 Q0 d0 1 2.0 ncs\nzz Q0 d0 1 2.0 ncs\n", "1 of the run's 2 queries are not judged, first 'zz'"),
    ],
)
def test_a_wrong_run_file_is_one_line_that_names_the_place(
    folder: Path, run: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.run").write_text(run)
    command = ["--compare", str(folder / "a.run"), str(folder / "good.run"), "--qrels", str(folder / "qrels.txt")]
    assert main(command) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
