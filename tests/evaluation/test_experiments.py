"""Experiments end to end on a small corpus: figures, files, the command."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from corpora.coir import DATASETS
from corpora.corpus import Corpus, write_beir
from corpora.trec import read_run
from evaluation.__main__ import main
from evaluation.experiments import (
    OFF,
    RESULTS,
    Experiment,
    Ranked,
    System,
    draw_distractors,
    read,
    run_experiment,
    write,
)
from evaluation.measures import evaluate, mean, ranking
from evaluation.reports import caption, readme, table
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.types import Document, Run
from tests.evaluation.small import FUNCTIONS, QUERIES, SMALL, documents


def bm25_of(corpus: Corpus, *measures: str) -> Ranked:
    return run_experiment(corpus, [], measures=measures, depth=5).builds[0].systems[0]


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Two builds, three systems: bm25 (always), the published ncs, and ncs with other settings."""
    systems = [System("ncs"), System("ncs", {"query_weights": "idf"})]
    settings = [{"fasttext.dim": 8}, {"fasttext.dim": 12}]
    return run_experiment(SMALL, systems, settings=settings, measures=["mrr", "answered@1", "recall@5"], depth=5)


def test_values_are_those_of_an_index_that_is_searched_by_hand(experiment: Experiment, tmp_path: Path) -> None:
    config = BuildConfig(deduplicate=False, fasttext=replace(BuildConfig().fasttext, dim=12))
    with Index.of(documents(), tmp_path / "index", config=config) as index:
        for name, measure in product(("bm25", "ncs"), experiment.measures):
            run = {
                query.id: {hit.document.id: hit.score for hit in index.search(query.text, 5, ranker=name)}
                for query in SMALL.queries
            }
            result, values = experiment.builds[1].system(name), evaluate(SMALL.qrels, run, measure)
            assert list(result.values[measure]) == pytest.approx(list(values.values()), abs=1e-6)
            assert result.means[measure] == pytest.approx(mean(values), abs=1e-6)


def test_every_build_has_its_settings_and_costs_and_every_system_its_latencies(experiment: Experiment) -> None:
    assert [build.settings for build in experiment.builds] == ["fasttext.dim=8", "fasttext.dim=12"]
    for build, dim in zip(experiment.builds, (8, 12), strict=True):
        assert (build.config["fasttext"]["dim"], build.config["deduplicate"]) == (dim, False)
        assert build.build_seconds >= sum(build.seconds.values()) - 0.1
        assert 10 * 2**20 < build.peak_memory_bytes < 100 * 2**30
        for result in build.systems:
            assert len(result.query_ms) == 4
            assert result.query_ms_p50 == pytest.approx(float(np.median(result.query_ms)), abs=0.002)
            assert result.query_ms_p50 <= result.query_ms_p95 <= max(result.query_ms) + 0.001
        bm25, ncs, changed = build.systems
        assert [bm25.system, ncs.system, changed.system] == ["bm25", "ncs", "ncs:query_weights=idf"]
        assert (bm25.embed_document_ms, bm25.embed_query_ms) == (None, None)
        assert min(ncs.embed_document_ms or 0, changed.embed_query_ms or 0) > 0
        assert 0 < (bm25.index_bytes or 0) + (ncs.index_bytes or 0) < build.index_bytes
        assert changed.index_bytes is None  # it was fitted for the experiment and saved nothing


def test_a_query_among_distractors_is_ranked_among_its_candidates_only_in_the_order_of_all(tmp_path: Path) -> None:
    candidates = draw_distractors(list(documents()), SMALL.qrels, 2, seed=3)
    result = run_experiment(SMALL, [System("ncs")], measures=["mrr"], depth=5, distractors=2, seed=3, runs=tmp_path)
    assert "among 2 drawn distractors, seed 3" in caption(result)
    run_experiment(SMALL, [System("ncs")], measures=["mrr"], depth=6, runs=tmp_path / "whole")
    for name in ("small-bm25.run", "small-ncs.run"):
        whole = read_run(tmp_path / "whole" / name)
        for query, scores in read_run(tmp_path / name).items():
            allowed = {list(FUNCTIONS)[row] for row in candidates[query]}
            assert list(scores) == [id for id in ranking(whole[query]) if id in allowed]


def corpus_of(n: int) -> list[Document]:
    return [Document(f"d{row}", "r", "p", 1, 1, "java", "method", "f", "f") for row in range(n)]


def test_a_query_has_its_own_document_and_others_that_only_seed_and_query_decide() -> None:
    documents, qrels = corpus_of(400), {f"q{i}": {f"d{3 * i}": 1, "d399": 0} for i in range(60)}
    every = draw_distractors(documents, qrels, 99)
    for number, rows in enumerate(every.values()):
        assert (len(rows), 3 * number in rows) == (100, True)
        assert 0 <= rows[0] < rows[-1] < 400
        assert (np.diff(rows) > 0).all()
    assert (draw_distractors(documents, {"q7": {"d21": 1}}, 99)["q7"] == every["q7"]).all()
    for query, seed in (("q7", 1), ("other", 0)):
        assert (draw_distractors(documents, {query: {"d21": 1}}, 99, seed=seed)[query] != every["q7"]).any()


def test_all_relevant_documents_stay_and_too_few_others_are_refused() -> None:
    qrels = {"q": {"d1": 1, "d5": 2, "d9": 1}}
    assert draw_distractors(corpus_of(13), qrels, 10)["q"].tolist() == list(range(13))
    with pytest.raises(BadInput, match="11 distractors for 'q', but only 10 other documents"):
        draw_distractors(corpus_of(13), qrels, 11)


def test_where_names_are_judged_all_documents_of_a_right_name_are_no_distractors() -> None:
    files = {f"d{row}": f"{row // 4}.py" for row in range(40)}

    def judged_run(run: Run) -> Run:
        return {query: {files[id]: score for id, score in scores.items()} for query, scores in run.items()}

    qrels = {"q": {"2.py": 1, "not listed 1": 1}, "none": {"not there": 1}}
    ((query, rows),) = draw_distractors(corpus_of(40), qrels, 30, judged_run=judged_run).items()
    assert (query, len(rows), set(range(8, 12)) - set(rows.tolist())) == ("q", 34, set())


def test_the_json_gives_back_the_experiment_without_texts_and_with_values_left_out(tmp_path: Path) -> None:
    corpus = replace(SMALL, qrels={**SMALL.qrels, "q3": {"zip": 0}})
    result = run_experiment(corpus, [], measures=["ndcg_all", "ndcg"], depth=5)
    bm25 = result.builds[0].systems[0]
    assert bm25.values == {"ndcg_all": [1.0, 1.0, 1.0, None], "ndcg": [1.0, 1.0, 1.0, 0.0]}
    assert bm25.means == {"ndcg_all": 1.0, "ndcg": 0.75}
    assert result.values(bm25, "ndcg_all") == {"q0": 1.0, "q1": 1.0, "q2": 1.0}
    assert list(result.texts) == list(QUERIES)
    write(result, tmp_path / "deep" / "small.json")
    assert read(tmp_path / "deep" / "small.json") == replace(result, texts=())
    text = (tmp_path / "deep" / "small.json").read_text()
    assert '"ndcg": [1.0, 1.0, 1.0, 0.0]' in text
    assert "hide soft keyboard" not in text  # a data set's questions may not be ours to pass on
    (tmp_path / "x.json").write_text('{"builds": []}')
    with pytest.raises(BadInput, match=r"x\.json is not the JSON of an experiment"):
        read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("corpus", "changes", "message"),
    [
        (replace(SMALL, qrels={"q0": {"missing": 1}}), {}, "'missing', judged for 'q0', is not in the corpus"),
        (SMALL, {"fasttext.dimm": 8}, "no setting called 'fasttext.dimm'; choose one of: fasttext.dim, .*lsa.dim"),
        (SMALL, {"fasttext": 8}, "no setting called 'fasttext'"),
        (SMALL, {"fasttext.dim": True}, "True has another type"),
    ],
)
def test_a_wrong_corpus_or_setting_is_refused_before_anything_is_built(
    corpus: Corpus, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run_experiment(corpus, [], settings=[changes])


@pytest.mark.slow
def test_the_tables_in_the_readme_are_those_of_the_committed_results() -> None:
    text = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    assert readme(text, RESULTS) == text
    with pytest.raises(BadInput, match="add these two lines"):
        readme("# Title\n", RESULTS)


def test_a_result_is_written_and_shown_again_as_a_page_a_spreadsheet_and_markdown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_beir(SMALL, tmp_path / "small")
    command = [str(tmp_path / "small"), "--ranker", "bm25", "--measure", "mrr", "--set", "fasttext.dim=8,9", "-k", "3"]
    files = {kind: tmp_path / f"out.{kind}" for kind in ("html", "csv", "markdown", "json")}
    assert main([*command, "--out", str(files["json"])]) == 0
    result = read(files["json"])
    assert table(result) in capsys.readouterr().out
    assert (result.depth, [build.settings for build in result.builds]) == (3, ["fasttext.dim=8", "fasttext.dim=9"])
    options = [part for kind, path in files.items() if kind != "json" for part in (f"--{kind}", str(path))]
    assert main([str(files["json"]), *options]) == 0
    assert table(result) in capsys.readouterr().out
    assert table(result) in files["markdown"].read_text()
    assert files["html"].read_text().startswith("<!doctype html>")
    rows = [line.split(",")[1:3] for line in files["csv"].read_text().splitlines()]
    assert rows == [["index", "ranker"], ["fasttext.dim=8", "bm25"], ["fasttext.dim=9", "bm25"]]


def test_a_result_is_in_its_file_where_nobody_reads_the_tables_to_their_end(tmp_path: Path) -> None:
    write_beir(SMALL, tmp_path / "small")
    options = ["--ranker", "bm25", "--quiet", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "evaluation", str(tmp_path / "small"), *options]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=unbuffered, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()  # as head does when it has its lines
    assert process.returncode == 0
    assert read(tmp_path / "out").corpus == "small"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a corpus: cosqa, nlp2api"),
        (["nope"], "no corpus or BEIR folder called 'nope'"),
        (["cosqa", "--ranker", "nope"], "no ranker 'nope'; choose from bm25"),
        (["cosqa", "--measure", "f1"], "no measure called 'f1'"),
        (["cosqa", "--ablation", "--ranker", "ncs"], "--ablation and --ranker cannot be used together"),
        (["cosqa", "--html", "/nowhere/x.html"], "--html /nowhere/x.html: no folder /nowhere"),
        (["cosqa", "-k", "0"], "-k is 0"),
    ],
)
def test_a_wrong_command_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_every_signal_of_the_default_ranker_has_a_row_in_the_ablation_compared_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_beir(SMALL, tmp_path / "small")
    command = [str(tmp_path / "small"), "--ablation", "--measure", "mrr", "--out", str(tmp_path / "out.json"), "-q"]
    assert main(command) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert "to hybrid [95 %]" in lines[0]
    assert [line.split()[1] for line in lines[2:4]] == ["bm25", "hybrid"]
    assert len(lines) == 4 + len(OFF)


def test_where_files_are_judged_their_run_is_made_of_that_over_functions() -> None:
    def fold(run: Run) -> Run:
        return {query: {f"{id}.java": score for id, score in scores.items()} for query, scores in run.items()}

    corpus = replace(SMALL, qrels={"q1": {"file.java": 1}, "q2": {"network.java": 1, "not listed": 1}}, fold=fold)
    assert bm25_of(corpus, "mrr", "recall@5").values == {"mrr": [1.0, 1.0], "recall@5": [1.0, 0.5]}
    among = run_experiment(corpus, [], measures=["mrr"], distractors=2)
    assert (among.queries, among.builds[0].systems[0].values) == (["q1", "q2"], {"mrr": [1.0, 1.0]})
    with pytest.raises(BadInput, match="no query has a relevant document to rank among distractors"):
        run_experiment(replace(corpus, qrels={"q1": {"not listed": 1}}), [], distractors=2)


def test_a_name_of_several_corpora_gives_their_pool_each_of_them_and_the_mean_over_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, out = list(DATASETS)[:2], tmp_path / "all.json"
    half = replace(SMALL, queries=SMALL.queries[:2], qrels={q: SMALL.qrels[q] for q in ("q0", "q1")})
    for name, corpus in zip(names, (SMALL, half), strict=True):
        write_beir(corpus, tmp_path / "coir" / name)
    command = ["coir", "--data", str(tmp_path), "--ranker", "bm25", "--measure", "mrr", "--json", str(out), "-q"]
    assert main(command) == 0
    pool, *parts = (read(path) for path in (out, *sorted((tmp_path / "all").iterdir())))
    means = [each.builds[0].systems[0].means["mrr"] for each in (pool, *parts)]
    assert means == pytest.approx([5 / 6, 3 / 4, 1], abs=1e-6)
    assert pool.queries == [f"{parts[0].corpus}/q{i}" for i in range(4)] + [f"{parts[1].corpus}/q{i}" for i in range(2)]
    printed = capsys.readouterr().out
    assert printed[printed.index("mean over the 2 corpora") :].splitlines()[4] == "| bm25   | 0.875 |"


def test_codesearchnets_ndcg_counts_the_mean_grades_and_the_other_measures_the_rounded_ones() -> None:
    grades = {"q0": {"keyboard": 2.5, "file": 0.0}, "q1": {"file": 0.4, "zip": 1.5}}
    qrels = {query: {id: int(grade + 0.5) for id, grade in by_id.items()} for query, by_id in grades.items()}
    corpus = replace(SMALL, qrels=qrels, grades=grades)
    bm25 = bm25_of(corpus, "ndcg_within", "mrr")
    first, second = 2**0.4 - 1, 2**1.5 - 1  # q1 finds the file, then the archive, which says `file` too
    ndcg = (first + second / np.log2(3)) / (second + first / np.log2(3))
    assert bm25.values["ndcg_within"] == pytest.approx([1.0, ndcg], abs=1e-6)
    assert bm25.values["mrr"] == [1.0, 0.5]
