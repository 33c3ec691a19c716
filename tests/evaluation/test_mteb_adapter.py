"""Our rankers as models of mteb: the protocol by itself, and the real package on a BEIR folder, offline."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from corpora.corpus import write_beir
from evaluation.experiments import System, run_experiment
from evaluation.mteb_adapter import NOTHING, RankerModel, main
from tests.evaluation.small import FUNCTIONS, SMALL


def indexed(texts: Mapping[str, str], languages: Mapping[str, list[str]] | list[str], subset: str) -> RankerModel:
    model = RankerModel("bm25")
    rows = [{"id": id, "text": text} for id, text in texts.items()]
    model.index(rows, task_metadata=SimpleNamespace(eval_langs=languages), hf_subset=subset)
    return model


def test_the_answers_are_those_of_the_ranker_in_its_order_and_scores_fall() -> None:
    queries = [{"id": query.id, "text": query.text} for query in SMALL.queries]
    with closing(indexed(FUNCTIONS, ["java-Code"], "default")) as model:
        answers = model.search(queries, top_k=3)
        again = model.search(queries[2:3], top_k=3, top_ranked={"q2": ["same", "zip", "none"]})
    assert (list(answers["q0"]), list(again["q2"]), answers["q3"]) == (["keyboard"], ["same"], {NOTHING: 0.0})
    assert list(answers["q2"])[:2] == ["network", "same"]  # equal scores: the lower row first
    assert (np.diff(np.array(list(answers["q2"].values()), np.float32)) < 0).all()


@pytest.mark.parametrize(("subset", "names"), [("java", ["sendMail", ""]), ("text", ["", ""])])
def test_the_language_is_the_tasks_and_text_without_one_is_read_as_words(subset: str, names: list[str]) -> None:
    texts = {"a": "void sendMail(String to) { }", "b": "How one sends mail"}
    with closing(indexed(texts, {"java": ["java-Code"], "text": ["eng-Latn"]}, subset)) as model:
        assert model._index is not None
        assert [document.name for document in model._index.documents.documents([0, 1])] == names


def test_a_row_of_a_beir_folder_is_the_document_that_our_own_figure_is_of(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"_id": "a", "text": "def send_mail(to): pass", "metadata": {"language": "python"}}
    row = {"id": "a", "title": "", "text": values["text"], "beir": json.dumps(values)}
    with closing(RankerModel("bm25")) as model:
        model.index([row], task_metadata=SimpleNamespace(eval_langs=["eng-Latn"]), hf_subset="default")
        assert model._index is not None
        assert [document.name for document in model._index.documents.documents([0])] == ["send_mail"]
    assert main(["folder", "--language", "klingon"]) == 2
    assert "mteb_adapter: no language 'klingon'; choose from java, python" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mteb") is None, reason="mteb is not installed")
def test_mteb_itself_finds_our_ndcg_offline_with_ties_and_a_query_without_hits(tmp_path: Path) -> None:
    write_beir(SMALL, tmp_path / "tiny-task")
    folder = str(tmp_path / "tiny-task")
    command = [sys.executable, "-m", "evaluation.mteb_adapter", folder, "--language", "java", "--ranker", "bm25"]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(command, env=offline, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["bm25"]
    (bm25,) = run_experiment(SMALL, [System("bm25")], measures=["ndcg@10"]).builds[0].systems
    assert bm25.values["ndcg@10"][3] == 0.0
    assert bm25.means["ndcg@10"] == pytest.approx(figures["ours"], abs=1e-6)
    assert figures["mteb"] == pytest.approx(figures["ours"], abs=1e-5)  # mteb gives five decimals
