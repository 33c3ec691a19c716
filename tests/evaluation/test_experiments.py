"""Experiments end to end on a small corpus: figures, tables, files, the command."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.coir import DATASETS
from corpora.corpus import Corpus, write_beir
from corpora.program import read_program
from corpora.trec import read_run
from evaluation.__main__ import main
from evaluation.distractors import Distractors
from evaluation.experiments import OFF, RESULTS, Build, Experiment, System, read, run_experiment, write
from evaluation.measures import compare, evaluate, mean, ranking
from evaluation.reports import BEGIN, END, caption, readme, table
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.rankers import create_ranker
from ncs.types import Document, Query, Run

FUNCTIONS = {
    "keyboard": "void hideKeyboard(View v) { manager.hideSoftInput(v.getToken()); }",
    "file": "String readFile(Path path) { return new String(Files.readAllBytes(path)); }",
    "network": "boolean isConnected() { return manager.getActiveNetwork().isConnected(); }",
    "bitmap": "Bitmap scale(Bitmap image, int w) { return Bitmap.createScaledBitmap(image, w, w, true); }",
    "zip": "void unzip(File archive) { new ZipInputStream(archive).getNextEntry(); }",
    "same": "boolean isConnected() { return manager.getActiveNetwork().isConnected(); }",
}
QUERIES = {"hide soft keyboard": "keyboard", "read a file": "file", "network connected": "network", "nonsense": "zip"}


def small(gold: str | None = None) -> Corpus:
    def documents() -> Iterator[Document]:
        for id, code in FUNCTIONS.items():
            yield read_program(code, "java", id=id)

    queries = tuple(Query(f"q{i}", text) for i, text in enumerate(QUERIES))
    qrels = {query.id: {gold or QUERIES[query.text]: 1} for query in queries}
    return Corpus("small", queries, qrels, documents)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Two builds, three systems: bm25 (always), the published ncs, and ncs with other settings."""
    systems = [System("ncs"), System("ncs", {"query_weights": "idf"})]
    settings = [{"fasttext.dim": 8}, {"fasttext.dim": 12}]
    return run_experiment(small(), systems, settings=settings, measures=["mrr", "answered@1", "recall@5"], depth=5)


def test_values_are_those_of_an_index_asked_by_hand(experiment: Experiment, tmp_path: Path) -> None:
    corpus = small()
    config = BuildConfig(deduplicate=False, fasttext=replace(BuildConfig().fasttext, dim=12))
    with Index.of(corpus.documents(), tmp_path / "index", config=config) as index:
        for name in ("bm25", "ncs"):
            run = index.run(corpus.queries, ranker=name, k=5)
            (ranked,) = [ranked for ranked in experiment.builds[1].systems if ranked.system == name]
            for measure in experiment.measures:
                values = evaluate(corpus.qrels, run, measure)
                assert list(ranked.values[measure]) == pytest.approx(list(values.values()), abs=1e-6)
                assert ranked.means[measure] == pytest.approx(mean(values), abs=1e-6)


def test_every_build_says_how_it_was_made_and_what_it_cost(experiment: Experiment) -> None:
    for build in experiment.builds:
        assert [ranked.system for ranked in build.systems] == ["bm25", "ncs", "ncs:query_weights=idf"]
        assert build.systems[0].values["answered@1"] == [1.0, 1.0, 1.0, 0.0]
    assert [build.settings for build in experiment.builds] == ["fasttext.dim=8", "fasttext.dim=12"]
    for build, dim in zip(experiment.builds, (8, 12), strict=True):
        assert build.config["fasttext"]["dim"] == dim
        assert build.config["deduplicate"] is False
        assert build.build_seconds >= sum(build.seconds.values()) - 0.1
        assert build.index_bytes > 0
        assert 10 * 2**20 < build.peak_memory_bytes < 100 * 2**30
        assert all(0 < ranked.query_ms_p50 <= ranked.query_ms_p95 for ranked in build.systems)


def test_every_system_says_what_its_queries_its_embedding_and_its_files_cost(experiment: Experiment) -> None:
    for build in experiment.builds:
        bm25, ncs, changed = build.systems
        for ranked in build.systems:
            assert len(ranked.query_ms) == 4
            assert ranked.query_ms_p50 == pytest.approx(float(np.median(ranked.query_ms)), abs=0.002)
            assert min(ranked.query_ms) <= ranked.query_ms_p95 <= max(ranked.query_ms) + 0.001
        assert (bm25.embed_document_ms, bm25.embed_query_ms) == (None, None)
        for ranked in (ncs, changed):
            assert (ranked.embed_document_ms or 0) > 0
            assert (ranked.embed_query_ms or 0) > 0
        assert bm25.index_bytes is not None
        assert ncs.index_bytes is not None
        assert bm25.index_bytes + ncs.index_bytes < build.index_bytes
        assert changed.index_bytes is None  # it was fitted for the experiment and saved nothing


def test_a_query_among_distractors_is_ranked_among_its_candidates_only(tmp_path: Path) -> None:
    """Two of six functions at random and its own: whoever of them is found stands where the whole ranking has it."""
    corpus, distractors = small(), Distractors(2, seed=3)
    candidates = distractors.rows(list(corpus.documents()), corpus.qrels)
    found = run_experiment(corpus, [System("ncs")], measures=["mrr"], depth=5, distractors=distractors, runs=tmp_path)
    assert found.candidates == "among 2 drawn distractors, seed 3"
    ids = list(FUNCTIONS)
    run_experiment(corpus, [], measures=["mrr"], depth=6, runs=tmp_path / "whole")
    for ranked in found.builds[0].systems:
        for query, scores in read_run(tmp_path / f"small-{ranked.system}.run").items():
            assert set(scores) <= {ids[row] for row in candidates[query]}
    bm25 = read_run(tmp_path / "small-bm25.run")
    everything = read_run(tmp_path / "whole" / "small-bm25.run")
    for query, scores in bm25.items():
        allowed = {ids[row] for row in candidates[query]}
        assert list(scores) == [id for id in ranking(everything[query]) if id in allowed]


def test_batches_leave_out_what_fills_none_and_are_told_in_the_result() -> None:
    found = run_experiment(
        small(), [], measures=["mrr", "answered@1"], depth=5, distractors=Distractors(2, batches=True)
    )
    assert found.candidates == "in batches of 3, seed 0"
    assert len(found.queries) == len(found.texts) == 3
    assert "in batches of 3, seed 0" in caption(found)


def test_a_query_that_a_measure_leaves_out_has_no_value_and_is_not_in_its_mean(tmp_path: Path) -> None:
    corpus = small()
    qrels = {**corpus.qrels, "q3": {"zip": 0}}
    found = run_experiment(
        Corpus("small", corpus.queries, qrels, corpus.documents), [], measures=["ndcg_all", "ndcg"], depth=5
    )
    bm25 = found.builds[0].systems[0]
    assert bm25.values == {"ndcg_all": [1.0, 1.0, 1.0, None], "ndcg": [1.0, 1.0, 1.0, 0.0]}
    assert bm25.means == {"ndcg_all": 1.0, "ndcg": 0.75}
    write(found, tmp_path / "small.json")
    assert read(tmp_path / "small.json") == replace(found, texts=())
    assert found.values(bm25, "ndcg_all") == {"q0": 1.0, "q1": 1.0, "q2": 1.0}


def test_the_json_gives_back_the_experiment(experiment: Experiment, tmp_path: Path) -> None:
    write(experiment, tmp_path / "deep" / "small.json")
    assert read(tmp_path / "deep" / "small.json") == replace(experiment, texts=())
    assert list(experiment.texts) == list(QUERIES)
    text = (tmp_path / "deep" / "small.json").read_text()
    assert '"answered@1": [1.0, 1.0, 1.0, 0.0]' in text
    assert "hide soft keyboard" not in text  # a data set's questions may not be ours to pass on
    (tmp_path / "x.json").write_text('{"builds": []}')
    with pytest.raises(BadInput, match=r"x\.json is not the JSON of an experiment"):
        read(tmp_path / "x.json")


def cells_of(table: str) -> list[list[str]]:
    lines = table.splitlines()
    assert len({len(line) for line in lines}) == 1
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "--" not in line]


def with_values(build: Build, values: Sequence[float]) -> Build:
    """The build with these values of mrr for its second system."""
    ranked = replace(build.systems[1], values={**build.systems[1].values, "mrr": values})
    return replace(build, systems=[build.systems[0], ranked, *build.systems[2:]])


def expected_difference(queries: Sequence[str], ours: Sequence[float], theirs: Sequence[float | None]) -> str:
    known = {query: value for query, value in zip(queries, theirs, strict=True) if value is not None}
    found = compare(dict(zip(queries, ours, strict=True)), known)
    return f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def test_the_table_of_one_build_shows_means_counts_and_paired_differences_to_bm25(experiment: Experiment) -> None:
    values = [0.25, 1.0, 0.5, 0.0]
    build = with_values(experiment.builds[0], values)
    head, bm25, ours, _ = cells_of(table(replace(experiment, builds=[build])))
    assert head[:5] == ["ranker", "mrr [95 %]", "to bm25 [95 %]", "answered@1", "recall@5"]
    assert ours[0] == "ncs"
    assert ours[1].startswith("0.438 [")
    assert ours[2] == expected_difference(experiment.queries, values, build.systems[0].values["mrr"])
    assert bm25[2:4] == ["", "3 (75.0%)"]
    assert "6 documents, 4 queries" in caption(experiment)


def test_the_table_of_a_sweep_has_a_row_for_each_of_the_settings_and_a_column_a_system(experiment: Experiment) -> None:
    first, second = [1.0, 0.5, 1.0, 0.0], [0.25, 1.0, 0.5, 0.0]
    builds = [with_values(build, values) for build, values in zip(experiment.builds, [first, second], strict=True)]
    means, differences = (cells_of(part) for part in table(replace(experiment, builds=builds)).split("\n\n"))
    assert means[0][1:-1] == ["bm25", "ncs", "ncs:query_weights=idf"] == differences[0][1:]
    assert [row[0] for row in means[1:]] == ["fasttext.dim=8", "fasttext.dim=12"]
    assert [row[2][:7] for row in means[1:]] == ["0.625 [", "0.438 ["]
    assert differences[0][0] == "to fasttext.dim=8 [95 %]"
    assert differences[1][1:3] == ["equal", expected_difference(experiment.queries, second, first)]


def test_a_judged_document_that_is_not_there_is_told_before_anything_is_built() -> None:
    with pytest.raises(BadInput, match="'missing', judged for 'q0', is not in the corpus"):
        run_experiment(small("missing"), [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fasttext.dimm": 8}, "no setting called 'fasttext.dimm'; choose one of: dim, "),
        ({"speed": 8}, "no setting called 'speed'.* fasttext, "),
        ({"fasttext": 8}, "'fasttext' is not a single setting"),
        ({"fasttext.dim": True}, "True has another type"),
    ],
)
def test_an_unknown_setting_is_refused_before_anything_is_built(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run_experiment(small(), [], settings=[changes])


def test_the_tables_of_all_results_stand_between_the_two_marks(experiment: Experiment, tmp_path: Path) -> None:
    write(experiment, tmp_path / "small.json")
    (tmp_path / "other.json").write_text('{"engines": {}}')
    text = readme(f"# Title\n{BEGIN}\nold\n{END}\nafter\n", tmp_path)
    assert text == readme(text, tmp_path)
    assert text.startswith(f"# Title\n{BEGIN}\n\n### small\n\n| mrr")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    with pytest.raises(BadInput, match="add these two lines"):
        readme("# Title\n", tmp_path)


@pytest.mark.slow
def test_the_tables_in_the_readme_are_those_of_the_committed_results() -> None:
    text = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    assert readme(text, RESULTS) == text


def test_the_command_writes_the_json_and_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_beir(small(), tmp_path / "small")
    out = tmp_path / "out.json"
    command = [str(tmp_path / "small"), "--ranker", "bm25", "--measure", "mrr", "--set", "fasttext.dim=8,9", "-k", "3"]
    assert main([*command, "--out", str(out)]) == 0
    said = capsys.readouterr()
    found = read(out)
    assert table(found) in said.out
    assert "small fasttext.dim=9 bm25: " in said.err
    assert (found.depth, [build.settings for build in found.builds]) == (3, ["fasttext.dim=8", "fasttext.dim=9"])


def test_a_result_is_shown_again_from_its_json_as_a_page_a_spreadsheet_and_markdown(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(experiment, tmp_path / "small.json")
    files = {kind: tmp_path / f"out.{kind}" for kind in ("html", "csv", "markdown")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    assert main([str(tmp_path / "small.json"), *options]) == 0
    assert table(experiment) in capsys.readouterr().out
    assert table(experiment) in files["markdown"].read_text()
    assert files["html"].read_text().startswith("<!doctype html>")
    with files["csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["index"], row["ranker"]) for row in rows[:2]] == [
        ("fasttext.dim=8", "bm25"),
        ("fasttext.dim=8", "ncs"),
    ]
    assert [float(row["mrr"]) for row in rows] == [
        ranked.means["mrr"] for build in experiment.builds for ranked in build.systems
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a corpus: cosqa, nlp2api"),
        (["nope"], "no corpus or BEIR folder called 'nope'"),
        (["cosqa", "--ranker", "nope"], "no ranker called 'nope'; choose one of: bm25"),
        (["cosqa", "--measure", "f1"], "no measure called 'f1'"),
        (["cosqa", "--ablation", "--ranker", "ncs"], "--ablation and --ranker cannot be used together"),
        (["cosqa", "--batches"], "--batches needs --distractors"),
        (["cosqa", "--html", "/nowhere/x.html"], "--html /nowhere/x.html: no folder /nowhere"),
        (["cosqa", "-k", "0"], "-k is 0"),
    ],
)
def test_a_wrong_command_says_one_line_and_exits_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.err.startswith("evaluate: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def test_every_signal_of_the_default_ranker_has_a_row_in_the_ablation_compared_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = create_ranker("hybrid").config
    assert {key for settings in OFF.values() for key in settings} <= known.keys()
    write_beir(small(), tmp_path / "small")
    command = [str(tmp_path / "small"), "--ablation", "--measure", "mrr", "--out", str(tmp_path / "out.json"), "-q"]
    assert main(command) == 0
    rows = cells_of("\n".join(line for line in capsys.readouterr().out.splitlines() if line.startswith("|")))
    assert rows[0][2] == "to hybrid [95 %]"
    assert [row[0] for row in rows[1:3]] == ["bm25", "hybrid"]
    assert len(rows) == 3 + len(OFF)


def test_where_files_are_judged_a_run_over_functions_counts_for_the_file_of_its_best_function() -> None:
    corpus = small()
    file_of = {
        "keyboard": "View.java",
        "file": "Files.java",
        "zip": "Files.java",
        "network": "Net.java",
        "same": "Net.java",
    }

    def fold(run: Run) -> Run:
        return {
            query: {file_of.get(id, id): score for id, score in reversed(list(scores.items()))}
            for query, scores in run.items()
        }

    qrels = {"q1": {"Files.java": 1}, "q2": {"Net.java": 1, "not listed": 1}}
    judged = Corpus("small", corpus.queries, qrels, corpus.documents, fold)
    bm25 = run_experiment(judged, [], measures=["mrr", "recall@5"], depth=5).builds[0].systems[0]
    assert bm25.values == {"mrr": [1.0, 1.0], "recall@5": [1.0, 0.5]}
    with pytest.raises(BadInput, match="no query has a relevant document to rank among distractors"):
        run_experiment(judged, [], distractors=Distractors(2))


def test_a_name_of_several_corpora_gives_their_pool_each_of_them_and_the_mean_over_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = small()
    names = list(DATASETS)[:2]
    write_beir(corpus, tmp_path / "coir" / names[0])
    half = Corpus("half", corpus.queries[:2], {q: corpus.qrels[q] for q in ("q0", "q1")}, corpus.documents)
    write_beir(half, tmp_path / "coir" / names[1])
    out = tmp_path / "all.json"
    assert (
        main(["coir", "--data", str(tmp_path), "--ranker", "bm25", "--measure", "mrr", "--json", str(out), "-q"]) == 0
    )
    pool, *parts = (read(path) for path in (out, *sorted((tmp_path / "all").iterdir())))
    assert [each.builds[0].systems[0].means["mrr"] for each in (pool, *parts)] == pytest.approx(
        [5 / 6, 3 / 4, 1], abs=1e-6
    )
    assert pool.queries == [f"{parts[0].corpus}/q{i}" for i in range(4)] + [f"{parts[1].corpus}/q{i}" for i in range(2)]
    said = capsys.readouterr().out
    assert said[said.index("mean over the 2 corpora") :].splitlines()[4] == "| bm25   | 0.875 |"


def test_codesearchnets_ndcg_counts_the_mean_grades_and_the_other_measures_the_rounded_ones() -> None:
    corpus = small()
    grades = {"q0": {"keyboard": 2.5, "file": 0.0}, "q1": {"file": 0.4, "zip": 1.5}}
    qrels = {query: {id: int(grade + 0.5) for id, grade in given.items()} for query, given in grades.items()}
    judged = Corpus("small", corpus.queries, qrels, corpus.documents, grades=grades)
    bm25 = run_experiment(judged, [], measures=["ndcg_within", "mrr"], depth=5).builds[0].systems[0]
    first, second = 2**0.4 - 1, 2**1.5 - 1  # q1 finds the file, then the archive, which says `file` too
    found = (first + second / np.log2(3)) / (second + first / np.log2(3))
    assert bm25.values["ndcg_within"] == pytest.approx([1.0, found], abs=1e-6)
    assert bm25.values["mrr"] == [1.0, 0.5]
