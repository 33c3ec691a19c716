"""Results as tables and as a page, two beside each other, and several corpora as one."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.trec import write_qrels, write_run
from evaluation.__main__ import main
from evaluation.comparison import compare_results
from evaluation.experiments import Build, Experiment, Ranked, pooled, write
from evaluation.measures import compare, evaluate, interval
from evaluation.page import page
from evaluation.reports import averages, by_size, caption, table, tables
from ncs.errors import BadInput


def ranked(
    system: str, values: Mapping[str, Sequence[float]], milliseconds: Sequence[float] = (1.0, 2.0, 3.0)
) -> Ranked:
    """A system with these values; its means are theirs."""
    means = {measure: sum(column) / len(column) for measure, column in values.items()}
    p50 = sorted(milliseconds)[len(milliseconds) // 2]
    return Ranked(system, 1.0, p50, max(milliseconds), means, values, list(milliseconds))


def experiment(
    corpus: str, systems: Sequence[Ranked], queries: Sequence[str], *, settings: Sequence[str] = ("",),
    texts: Sequence[str] = (),
) -> Experiment:  # fmt: skip
    """One result over these systems; each of the settings has the same ones."""
    builds = [Build(each, {}, {}, {"extract": 1.0}, 2.0, 1000, 5000, systems) for each in settings]
    machine: dict[str, str | int] = {"system": "Linux", "cores": 2, "python": "3.11"}
    return Experiment(
        corpus, f"digest of {corpus}", 5, "c" * 40, machine, 10, [*systems[0].values], queries, builds, texts
    )


def cells_of(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert len({len(line) for line in lines}) == 1
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "--" not in line]


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    comparison = compare(*({str(query): value for query, value in enumerate(side)} for side in (ours, theirs)))
    return f"{comparison.difference:+.3f} [{comparison.low:+.3f}, {comparison.high:+.3f}]"


def test_the_table_of_one_build_shows_means_counts_and_paired_differences_to_bm25() -> None:
    mrr, answered = [0.25, 1.0, 0.5, 0.0], [1.0, 1.0, 1.0, 0.0]
    systems = [
        ranked(name, {"mrr": column, "answered@1": column}) for name, column in (("bm25", answered), ("ncs", mrr))
    ]
    result = experiment("small", systems, queries="abcd")
    head, bm25, ours = cells_of(table(result))
    assert head[:4] == ["ranker", "mrr [95 %]", "to bm25 [95 %]", "answered@1"]
    low, high = interval(dict(zip("abcd", mrr, strict=True)))
    assert ours[:3] == ["ncs", f"0.438 [{low:.3f}, {high:.3f}]", difference(mrr, answered)]
    assert bm25[2:4] == ["", "3 (75.0%)"]
    assert "5 documents, 4 queries" in caption(result)


def test_the_questions_of_corpora_of_one_size_count_alike_and_only_what_all_measured_is_shown() -> None:
    def result(corpus: str, documents: int, values: Sequence[float]) -> Experiment:
        systems = [ranked(name, {"mrr": values, corpus: values}) for name in ("bm25", corpus)]
        return replace(experiment(corpus, systems, queries="abcd"[: len(values)]), documents=documents)

    results = [result("small", 3_000, [1.0, 1.0, 1.0]), result("other", 20, [0.0]), result("large", 30_001, [0.5])]
    head, *rows = cells_of(by_size(results))
    assert head == ["documents", "corpora", "questions", "ranker", "mrr"]
    low, high = interval({"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0})
    assert rows == [
        ["to 3,000", "2", "4", "bm25", f"0.750 [{low:.3f}, {high:.3f}]"],
        ["more", "1", "1", "bm25", "0.500 [0.500, 0.500]"],
    ]


def test_results_by_size_are_read_from_files_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(experiment("small", [ranked("bm25", {"mrr": [0.5]})], queries="a"), tmp_path / "small.json")
    assert main(["--by", "size", str(tmp_path / "small.json")]) == 0
    assert "to 3,000" in capsys.readouterr().out
    assert main(["--by", "size", "cosqa"]) == 2
    assert "name their JSON files" in capsys.readouterr().err


def test_the_table_of_a_sweep_has_a_row_for_each_of_the_settings_and_a_column_a_system() -> None:
    values = [1.0, 0.5, 1.0, 0.0], [0.25, 1.0, 0.5, 0.0]
    result = experiment("small", [ranked("bm25", {"mrr": values[0]})], queries="abcd", settings=["dim=8", "dim=12"])
    builds = [
        replace(build, systems=[*build.systems, ranked("ncs", {"mrr": mrr})])
        for build, mrr in zip(result.builds, values, strict=True)
    ]
    means, differences = (cells_of(part) for part in table(replace(result, builds=builds)).split("\n\n"))
    assert [row[0] for row in means] == ["mrr [95 %]", "dim=8", "dim=12"]
    assert [row[2][:7] for row in means] == ["ncs", "0.625 [", "0.438 ["]
    assert differences == [["to dim=8 [95 %]", "bm25", "ncs"], ["dim=12", "equal", difference(values[1], values[0])]]


QRELS = {f"q{i}": {f"d{i}": 1} for i in range(8)}
GOOD = {f"q{i}": {f"d{i}": 2.0, "x": 1.0} for i in range(8)}
BAD = {f"q{i}": {"x": 2.0, f"d{i}": 1.0} for i in range(6)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_qrels(QRELS, tmp_path / "qrels.txt")
    write_run(GOOD, tmp_path / "good.run")
    write_run(BAD, tmp_path / "bad.run")
    mrr = [(name, list(evaluate(QRELS, run, "mrr").values())) for name, run in (("bm25", BAD), ("ncs", GOOD))]
    systems = [ranked(name, {"mrr": values}) for name, values in mrr]
    write(experiment("small", systems, queries=list(QRELS)), tmp_path / "one.json")
    write(experiment("small", systems[::-1], queries=list(QRELS), settings=["x=1", "x=2"]), tmp_path / "two.json")
    return tmp_path


def test_two_run_files_are_judged_by_the_qrels_and_a_query_that_one_lacks_counts_zero(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--compare", str(folder / "good.run"), str(folder / "bad.run"), "--qrels", str(folder / "qrels.txt")]
    assert main([*command, "--measure", "mrr", "--json", str(folder / "out.json")]) == 0
    (row,) = json.loads((folder / "out.json").read_text())
    assert (row["our_mean"], row["their_mean"]) == (1.0, 3 / 8)
    assert row["found"]["difference"] == pytest.approx(5 / 8)
    assert row["found"]["p"] == 2 / 2**8  # only all as they are, or all exchanged, is as uneven
    out = capsys.readouterr().out
    assert "+0.6250 [" in out
    assert "8 queries; 95 % paired bootstrap intervals" in out


def test_systems_of_one_name_are_compared_with_each_other_and_named_ones_with_any_other(folder: Path) -> None:
    one, two = str(folder / "one.json"), str(folder / "two.json")
    (named,) = compare_results(f"{one}:ncs", f"{two}:x=2 bm25")
    assert (named.ours, named.theirs) == ("one ncs", "two x=2 bm25")
    assert named.comparison.difference == pytest.approx(5 / 8)
    same = compare_results(one, one)
    assert [(each.ours, each.comparison.difference, each.comparison.p) for each in same] == [
        ("one bm25", 0.0, 1.0), ("one ncs", 0.0, 1.0),
    ]  # fmt: skip
    (mixed,) = compare_results(f"{one}:ncs", str(folder / "bad.run"), qrels=folder / "qrels.txt")
    assert (mixed.ours, mixed.theirs) == ("one ncs", "bad")
    assert mixed.comparison.difference == pytest.approx(5 / 8)


@pytest.mark.parametrize(
    ("a", "b", "measures", "message"),
    [
        ("one.json:what", "two.json", (), r"one\.json has no system 'what'; choose one of: bm25, ncs"),
        ("one.json", "two.json", (), r"no system is in both .* name one of each, as RESULT\.json:SYSTEM"),
        ("one.json", "one.json", ("map",), "share no measure"),
        ("good.run", "bad.run", (), "is read as a TREC run"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(
    folder: Path, a: str, b: str, measures: tuple[str, ...], message: str
) -> None:
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
    other = experiment("other", [ranked("ncs", {"mrr": [1.0]})], queries=["b"])
    with pytest.raises(BadInput, match="have different rankers, settings or measures"):
        pooled("both", [small, other])


def two_systems(name: str = "small", system: str = "ncs") -> Experiment:
    bm25 = ranked("bm25", {"mrr": [1.0, 0.5, 0.0, 0.25], "answered@1": [1.0, 0.0, 0.0, 0.0]})
    ours = ranked(system, {"mrr": [0.5, 1.0, 0.2, 0.25], "answered@1": [0.0, 1.0, 0.0, 0.0]}, [10.0, 20.0, 30.0])
    texts = ["hide <b>keyboard</b> & co", "read a file", "unzip", "send mail"]
    return experiment(name, [bm25, ours], queries=["q1", "q2", "q3", "q4"], texts=texts)


def rows_of(text: str) -> list[list[str]]:
    """The cells of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def plots_of(text: str) -> list[str]:
    sources = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)"', text)
    return [base64.b64decode(source).decode() for source in sources]


def test_the_page_refers_to_nothing_outside_itself_its_ids_differ_and_names_are_never_markup() -> None:
    evil = '<script>alert("$x$")</script>'
    text = page([two_systems(evil, evil), two_systems("other"), two_systems()])
    plots = plots_of(text)
    assert len(plots) == text.count("src=") == 9
    assert html.escape(evil, quote=False) in plots[0]
    assert plots[3:6] == plots_of(page([two_systems("other")]))
    assert "http" not in text.replace("http-equiv", "")
    assert not re.search(r"<(link|script|iframe|object|embed|base)|href=|\bon\w+=", text)
    assert rows_of(text)[2][0] == evil
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids)) == 3


def test_the_page_has_the_table_of_the_markdown_report_and_the_queries_that_differ_with_both_ranks() -> None:
    text = page([two_systems()], pair=("bm25", "ncs"))
    head, rows = tables(two_systems())[0]
    assert rows_of(text) == [
        head,
        *rows,
        ["query", "difference", "bm25", "ncs"],
        ["hide <b>keyboard</b> & co", "+0.500", "1", "2"],
        ["unzip", "-0.200", "–", "5"],
        ["read a file", "-0.500", "2", "1"],
    ]
    assert "1 query is better, 2 worse, 1 equal" in text
    assert "<h3>ncs beside bm25: mrr</h3>" in page([two_systems()])
    with pytest.raises(BadInput, match="no system 'what' in this result; there are: bm25, ncs"):
        page([two_systems()], pair=("what", "ncs"))
