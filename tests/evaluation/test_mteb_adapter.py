"""Our rankers as models of mteb: the protocol by itself, and the real package on a BEIR folder, offline."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from corpora.corpus import read_beir
from evaluation.experiments import System, run_experiment
from evaluation.mteb_adapter import NOTHING, RankerModel, falling

CODE = {
    "keyboard": "void hideKeyboard(View v) { manager.hideSoftInput(v.getToken()); }",
    "file": "String readFile(Path path) { return new String(Files.readAllBytes(path)); }",
    "network": "boolean isConnected() { return manager.getActiveNetwork().isConnected(); }",
    "same": "boolean isConnected() { return manager.getActiveNetwork().isConnected(); }",
    "zip": "void unzip(File archive) { new ZipInputStream(archive).getNextEntry(); }",
}
QUERIES = {"q1": "hide keyboard", "q2": "network connected", "q3": "qqqq", "q4": "read file archive"}
QRELS = {"q1": {"keyboard": 1}, "q2": {"same": 1}, "q3": {"zip": 1}, "q4": {"file": 2, "zip": 1}}
JAVA = SimpleNamespace(eval_langs=["java-Code"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BEIR folder as others write it: an id and a text, no metadata."""
    folder = tmp_path / "tiny-task"
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": id, "title": "", "text": code}) for id, code in CODE.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": i, "text": t}) + "\n" for i, t in QUERIES.items()))
    lines = [f"{query}\t{id}\t{grade}" for query, grades in QRELS.items() for id, grade in grades.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    return folder


@pytest.fixture
def model() -> RankerModel:
    model = RankerModel("bm25")
    model.index(
        [{"id": id, "text": code} for id, code in CODE.items()],
        task_metadata=JAVA,
        hf_subset="default",
        hf_split="test",
    )
    return model


def test_the_answers_are_those_of_the_ranker_in_its_order_and_scores_fall(model: RankerModel) -> None:
    queries = [{"id": id, "text": text} for id, text in QUERIES.items()]
    found = model.search(queries, top_k=3)
    assert list(found["q1"]) == ["keyboard"]
    assert list(found["q2"])[:2] == ["network", "same"]  # equal scores: the lower row first
    scores = np.array(list(found["q2"].values()), np.float32)
    assert (np.diff(scores) < 0).all()
    assert found["q3"] == {NOTHING: 0.0}
    model.close()


def test_only_the_documents_of_a_reranking_task_are_ranked(model: RankerModel) -> None:
    found = model.search(
        [{"id": "q2", "text": "network connected"}], top_k=3, top_ranked={"q2": ["same", "zip", "not there"]}
    )
    assert list(found["q2"]) == ["same"]
    model.close()


def test_the_language_is_the_tasks_and_text_without_one_is_read_as_words(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "void sendMail(String to) { }"}, {"id": "b", "text": "How one sends mail"}]
    by_subset = SimpleNamespace(eval_langs={"java": ["java-Code"], "text": ["eng-Latn"]})
    names = {}
    for subset in ("java", "text"):
        model = RankerModel("bm25")
        model.index(rows, task_metadata=by_subset, hf_subset=subset)
        assert model._index is not None
        names[subset] = [document.name for document in model._index.documents.documents([0, 1])]
        model.close()
    assert names == {"java": ["sendMail", ""], "text": ["", ""]}


def test_falling_scores_keep_their_order_as_float32_and_change_by_a_few_bits_only() -> None:
    rng = np.random.default_rng(0)
    scores = sorted(rng.choice([0.1, 0.5, 2.0, 2.0 + 1e-12, -3.0], 200).tolist(), reverse=True)
    strict = np.array(falling(scores))
    assert (strict.astype(np.float32) == strict).all()
    assert (np.diff(strict) < 0).all()
    assert np.abs(strict - scores).max() < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mteb") is None, reason="mteb is not installed")
def test_mteb_itself_finds_our_ndcg_offline_with_ties_and_a_query_without_hits(folder: Path) -> None:
    command = [sys.executable, "-m", "evaluation.mteb_adapter", str(folder), "--language", "java", "--ranker", "bm25"]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(command, env=offline, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["bm25"]
    (bm25,) = (
        run_experiment(read_beir(folder, language="java"), [System("bm25")], measures=["ndcg@10"]).builds[0].systems
    )
    assert bm25.values["ndcg@10"][2] == 0.0
    assert bm25.means["ndcg@10"] == pytest.approx(figures["ours"], abs=1e-6)
    assert figures["mteb"] == pytest.approx(figures["ours"], abs=1e-5)  # mteb gives five decimals
